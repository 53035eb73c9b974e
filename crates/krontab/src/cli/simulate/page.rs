//! One page with everything in it: it asks no other host for anything, and has no script.

use std::fmt::Write;

use super::chart::{STYLE, curve, escaped, heat_map};
use super::load::{Buckets, Load, Week};
use super::peaks::Peak;

/// What a page shows.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) title: String,
    /// What was simulated, in a sentence or two.
    pub(crate) about: Vec<String>,
    /// `minute` or `hour`.
    pub(crate) unit: &'a str,
    pub(crate) zone: &'a str,
    pub(crate) before: (&'a Buckets, &'a Load, &'a Week),
    pub(crate) after: (&'a Buckets, &'a Load, &'a Week),
    pub(crate) peaks: &'a [Peak],
    /// The proposed change of the files, if there is one.
    pub(crate) patch: Option<&'a str>,
}

const LAYOUT: &str = "\
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{margin:2px 0;color:var(--faint)}
table{border-collapse:collapse}td,th{padding:3px 20px 3px 0;text-align:left;vertical-align:top}
td:first-child{white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{color:var(--faint);font-weight:500}
.key i{display:inline-block;width:12px;height:12px;border-radius:2px;margin:0 6px -1px 0}.key i+i,.key i:not(:first-child){margin-left:18px}
pre{overflow:auto;border:1px solid var(--line);border-radius:6px;padding:12px;font-size:13px}
svg{display:block;width:100%;height:auto}
";

impl Page<'_> {
    pub(crate) fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        // Even if a name found a way through, nothing could be run or fetched.
        out.push_str(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
        );
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
        let _ = writeln!(out, "<title>{title}</title>\n<style>{STYLE}{LAYOUT}</style>\n</head>");
        let _ = writeln!(out, "<body class=\"kron\">\n<main>\n<h1>{title}</h1>");
        for line in &self.about {
            let _ = writeln!(out, "<p>{}</p>", escaped(line));
        }
        let unit = self.unit;
        let _ = writeln!(out, "<h2>Starts per {unit}</h2>");
        out.push_str(
            "<p class=\"key\"><i style=\"background:var(--before)\"></i>before spreading, by nominal times",
        );
        out.push_str("<i style=\"background:var(--after)\"></i>after it, by chosen times</p>\n");
        out.push_str("<p>Each point is the highest of its neighbours. Times are in UTC.</p>\n");
        out.push_str(&curve(self.before.0, self.after.0, unit));
        self.table(&mut out);
        let top =
            [self.before.2, self.after.2].into_iter().flatten().flatten().filter_map(|count| *count).max();
        for (when, week) in [("before", self.before.2), ("after", self.after.2)] {
            let title = format!("The highest {unit} of every hour of the week, {when} spreading");
            let _ = writeln!(out, "<h2>{title}</h2>\n<p>Hours are those of {}.</p>", escaped(self.zone));
            out.push_str(&heat_map(week, top.unwrap_or(0), &title));
        }
        self.who(&mut out);
        if let Some(patch) = self.patch {
            let _ = writeln!(out, "<h2>A patch that lowers the peak</h2>\n<pre>{}</pre>", escaped(patch));
        }
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }

    fn table(&self, out: &mut String) {
        let (before, after) = (self.before.1, self.after.1);
        let _ = writeln!(
            out,
            "<table><tr><th>starts per {}</th><th class=\"n\">before</th><th class=\"n\">after</th></tr>",
            self.unit
        );
        for (name, before, after) in [
            ("peak", before.peak, after.peak),
            ("99 of 100 at most", before.p99, after.p99),
            ("90 of 100 at most", before.p90, after.p90),
            ("median", before.median, after.median),
        ] {
            let _ = writeln!(
                out,
                "<tr><td>{name}</td><td class=\"n\">{before}</td><td class=\"n\">{after}</td></tr>"
            );
        }
        out.push_str("</table>\n");
    }

    fn who(&self, out: &mut String) {
        if self.peaks.is_empty() {
            return;
        }
        let unit = self.unit;
        let _ = writeln!(out, "<h2>Who makes the highest {unit}s</h2>\n<table>");
        let _ = writeln!(
            out,
            "<tr><th>{unit}</th><th class=\"n\">starts</th><th class=\"n\">jobs</th><th>among them</th></tr>"
        );
        for peak in self.peaks {
            let names = escaped(&peak.names.join(", "));
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{names}</td></tr>",
                peak.at, peak.starts, peak.jobs
            );
        }
        out.push_str("</table>\n");
    }
}
