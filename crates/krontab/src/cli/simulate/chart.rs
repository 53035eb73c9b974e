//! Counts become pictures: a curve before and after spreading, and a week of hours.

use std::fmt::Write;

use super::load::{Buckets, Week};
use crate::cli::time;

/// The most points of a curve: one for every pixel of a wide screen's half.
const POINTS_MAX: usize = 900;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 280.0;
/// Room for the numbers at the left, and for the dates below.
const LEFT: f64 = 64.0;
const BELOW: f64 = 28.0;
const ABOVE: f64 = 12.0;

/// The colours, light and dark, of both pictures. Nothing comes from anywhere else.
pub(crate) const STYLE: &str = "\
.kron{--ink:#1b1f24;--faint:#656d76;--line:#d8dee4;--before:#b0b8c1;--after:#0a69c7;--paper:#ffffff}
@media (prefers-color-scheme:dark){.kron{--ink:#e6edf3;--faint:#8d96a0;--line:#30363d;--before:#57606a;--after:#4ea1ff;--paper:#0d1117}}
.kron text{fill:var(--faint);font:12px system-ui,sans-serif}
.kron .grid{stroke:var(--line);stroke-width:1}
.kron .before{fill:var(--before);fill-opacity:.8}
.kron .after{fill:var(--after);fill-opacity:.75}
.kron .heat{fill:var(--after)}
.kron .none{fill:none;stroke:var(--line)}
";

/// The load curve: starts by nominal times behind those by chosen times.
pub(crate) fn curve(before: &Buckets, after: &Buckets, unit: &str) -> String {
    let (neighbours, first) = before.highest(POINTS_MAX);
    let (_, second) = after.highest(POINTS_MAX);
    let top = first.iter().chain(&second).copied().max().unwrap_or(0).max(1);
    let points = first.len().max(1);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg class=\"kron\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Starts per {unit}, before and after spreading\">"
    );
    let _ = writeln!(out, "<style>{STYLE}</style>");
    for quarter in 0..=4_u32 {
        let y = ABOVE + (HEIGHT - ABOVE - BELOW) * f64::from(4 - quarter) / 4.0;
        let value = u64::from(top) * u64::from(quarter) / 4;
        let _ =
            writeln!(out, "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
    for (class, counts) in [("before", &first), ("after", &second)] {
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{}\"/>", area(counts, top));
    }
    for (tick, anchor) in [(0, "start"), (1, "middle"), (2, "middle"), (3, "middle"), (4, "end")] {
        let point = (points * tick / 4).min(points - 1);
        let at = time::utc(before.start_of(point * neighbours));
        let shown = at.get(..16).unwrap_or(&at).replace('T', " ");
        let x = LEFT + (WIDTH - LEFT) * f64::from(u32::try_from(tick).unwrap_or(0)) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{shown}</text>",
            HEIGHT - 8.0
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Steps from count to count, down to the axis at both ends.
fn area(counts: &[u32], top: u32) -> String {
    let bottom = HEIGHT - BELOW;
    let step = (WIDTH - LEFT) / f64::from(u32::try_from(counts.len().max(1)).unwrap_or(1));
    let mut path = format!("M{LEFT} {bottom}");
    for (count, number) in counts.iter().zip(0_u32..) {
        let y = bottom - (bottom - ABOVE) * f64::from(*count) / f64::from(top);
        let _ = write!(path, "V{y:.1}H{:.1}", LEFT + step * f64::from(number + 1));
    }
    let _ = write!(path, "V{bottom}Z");
    path
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const CELL: u32 = 36;

/// A week of hours. The darkest is `top`, so that two of them can be compared.
pub(crate) fn heat_map(week: &Week, top: u32, title: &str) -> String {
    let mut out = String::new();
    let (width, height) = (40 + 24 * CELL, 20 + 7 * 24);
    let _ = writeln!(
        out,
        "<svg class=\"kron\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{}\">",
        escaped(title)
    );
    for hour in (0..24_u32).step_by(3) {
        let _ = writeln!(out, "<text x=\"{}\" y=\"12\">{hour:02}:00</text>", 40 + hour * CELL);
    }
    for ((day, cells), row) in DAYS.iter().zip(week).zip(0_u32..) {
        let y = 20 + row * 24;
        let _ = writeln!(out, "<text x=\"32\" y=\"{}\" text-anchor=\"end\">{day}</text>", y + 16);
        for (cell, hour) in cells.iter().zip(0_u32..) {
            let x = 40 + hour * CELL;
            let place = format!("x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"22\" rx=\"3\"", CELL - 2);
            let _ = match cell {
                Some(count) => {
                    // A little more than nothing, so that a small load beside a high peak is still seen.
                    let shade = 0.04 + 0.96 * f64::from(*count) / f64::from(top.max(1));
                    writeln!(
                        out,
                        "<rect class=\"heat\" fill-opacity=\"{shade:.3}\" {place}><title>{day} {hour:02}:00: {count}</title></rect>"
                    )
                }
                None => writeln!(out, "<rect class=\"none\" {place}/>"),
            };
        }
    }
    out.push_str("</svg>\n");
    out
}

/// A text that may stand in a page: names come from files, and files from anywhere.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::simulate::count::tests::span;

    #[test]
    fn a_curve_is_as_high_as_its_peak() {
        let span = span("2026-03-01T00:00:00Z", "2026-03-01T00:04:00Z");
        let (before, after) = (Buckets::new(&[8, 0, 0, 0], span, 1), Buckets::new(&[2, 2, 2, 2], span, 1));
        let svg = curve(&before, &after, "minute");
        assert!(svg.contains("M64 252V12.0H288.0V252.0H512.0"), "{svg}");
        assert!(svg.contains("V192.0H288.0V192.0H512.0") && svg.contains(">8</text>"), "{svg}");
    }

    #[test]
    fn nothing_of_a_name_is_markup() {
        assert_eq!(escaped("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
    }
}
