//! What is printed: one table of ratios, peer over Kron.

use std::fmt::Write;

use crate::contestant::PARSERS;
use crate::corpus::Zone;
use crate::measure::{Outcome, Row};

pub(crate) fn text(rows: &[Row]) -> String {
    let mut out = String::from(
        "Times are Kron's, in nanoseconds of thread CPU time. Ratios are the peer's time over Kron's: 10 means ten\n\
         times as long. `-`: the peer cannot read the expression or the zone. `other`: it answers differently.\n\
         `>`: it was ended after a second of processor time without all of its answers.\n\
         `kron+compile` is Kron itself, up to a schedule that can be asked.\n",
    );
    let peers: Vec<&str> = PARSERS[1..].iter().map(|(name, _)| *name).collect();
    for part in ["next", "worst", "list", "parse"] {
        let _ = write!(out, "\n{part:<42} {:>8}", "kron ns");
        for peer in &peers {
            let _ =
                write!(out, " {:>12}", if *peer == "kron+compile" && part != "parse" { "" } else { peer });
        }
        let _ = writeln!(out, " {:>9}  goal", "least");
        for row in rows.iter().filter(|row| row.part == part) {
            let _ = write!(out, "{:<42} {:>8.1}", row.name, row.kron);
            for peer in &peers {
                let cell = match row.peers.iter().find(|(name, _)| name == peer) {
                    Some((_, Outcome::Took(time))) => ratio(time / row.kron),
                    Some((_, Outcome::TookOver(time))) => format!("> {}", ratio(time / row.kron)),
                    Some((_, Outcome::Differs)) => "other".into(),
                    Some((_, Outcome::Panics)) => "panics".into(),
                    None if *peer == "kron+compile" || matches!(part, "list" | "parse") => String::new(),
                    None => "-".into(),
                };
                let _ = write!(out, " {cell:>12}");
            }
            let _ = write!(out, " {:>9}", row.least().map_or("-".into(), ratio));
            if let (Some(goal), Some(least)) = (row.goal, row.least()) {
                let met = if least >= goal.ratio { "met" } else { "not met" };
                let _ = write!(out, "  {} {:.1} {met}", goal.name, goal.ratio);
            }
            out.push('\n');
        }
    }
    let _ = writeln!(out, "\nover all classes (geometric means of the least ratio, and of croner's)");
    for zone in Zone::ALL {
        let goal = if zone == Zone::Utc { "" } else { "  G2 15.0" };
        let rows: Vec<&Row> =
            rows.iter().filter(|r| r.part == "next" && r.name.ends_with(zone.name())).collect();
        let least = mean(rows.iter().filter_map(|row| row.least()));
        let croner = mean(rows.iter().filter_map(|row| row.against("croner")));
        let _ = writeln!(out, "{:<20} {:>8}{goal}   croner {}", zone.name(), ratio(least), ratio(croner));
    }
    let _ = writeln!(out, "\nwhat a zone costs, the dearest over UTC (G3: at most 2.5 and 20 ns)");
    for (class, times, added) in zone_tax(rows) {
        let met = if times <= 2.5 && added <= 20.0 { "met" } else { "not met" };
        let _ = writeln!(out, "{class:<20} {times:>5.1}   {added:>+6.1} ns   {met}");
    }
    out
}

/// One object a row, in an array.
pub(crate) fn json(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let peers: Vec<String> = row
            .peers
            .iter()
            .map(|(name, outcome)| match outcome {
                Outcome::Took(time) => {
                    format!("{{\"name\":\"{name}\",\"ns\":{time:.2},\"ratio\":{:.2}}}", time / row.kron)
                }
                Outcome::Differs | Outcome::Panics | Outcome::TookOver(_) => {
                    format!("{{\"name\":\"{name}\",\"ns\":null,\"ratio\":null}}")
                }
            })
            .collect();
        let goal = row.goal.map_or("null".into(), |goal| {
            let met = row.least().is_some_and(|least| least >= goal.ratio);
            format!("{{\"name\":\"{}\",\"ratio\":{},\"met\":{met}}}", goal.name, goal.ratio)
        });
        format!(
            "  {{\"part\":\"{}\",\"name\":\"{}\",\"kron_ns\":{:.2},\"least_ratio\":{},\"peers\":[{}],\"goal\":{goal}}}",
            row.part,
            row.name,
            row.kron,
            row.least().map_or("null".into(), |least| format!("{least:.2}")),
            peers.join(","),
        )
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("[\n{}\n]\n", rows.join(",\n"))
}

impl Row {
    /// The ratio against the fastest peer that gives the same answers.
    fn least(&self) -> Option<f64> {
        let peers = self.peers.iter().filter(|(name, _)| !name.starts_with("kron"));
        peers.filter_map(|(name, _)| self.against(name)).min_by(f64::total_cmp)
    }

    fn against(&self, peer: &str) -> Option<f64> {
        self.peers.iter().find_map(|(name, outcome)| match outcome {
            Outcome::Took(time) if *name == peer => Some(time / self.kron),
            _ => None,
        })
    }
}

/// For each class what the dearest zone takes, as a multiple of UTC and in nanoseconds more.
fn zone_tax(rows: &[Row]) -> Vec<(&str, f64, f64)> {
    let next = || rows.iter().filter(|row| row.part == "next");
    next()
        .filter_map(|row| {
            let class = row.name.strip_suffix(Zone::Utc.name())?;
            let zoned = next().filter(|other| other.name.starts_with(class)).map(|other| other.kron);
            let dearest = zoned.max_by(f64::total_cmp)?;
            Some((class.trim_end(), dearest / row.kron, dearest - row.kron))
        })
        .collect()
}

fn mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = ratios.fold((0.0, 0.0), |(count, sum), ratio| (count + 1.0, sum + ratio.ln()));
    (sum / count).exp()
}

fn ratio(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}
