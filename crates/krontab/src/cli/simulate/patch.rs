//! Changed lines become a unified diff, as `patch` and `git apply` read it.

use std::collections::BTreeMap;
use std::fmt::Write;

/// How many unchanged lines stand around a change.
const CONTEXT: usize = 3;

/// The diff of one file: lines by their number, counted from 1, each replaced by one other. Nothing if none
/// is. A path that begins with a slash loses it, because `patch` refuses those.
pub(crate) fn unified(path: &str, text: &str, changes: &BTreeMap<usize, String>) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::new();
    for (first, last) in hunks(changes.keys().copied().filter(|line| *line <= lines.len()), lines.len()) {
        if out.is_empty() {
            let path = path.trim_start_matches('/');
            let _ = write!(out, "--- {path}\n+++ {path}\n");
        }
        let count = last - first + 1;
        let _ = writeln!(out, "@@ -{first},{count} +{first},{count} @@");
        for number in first..=last {
            let line = lines[number - 1];
            match changes.get(&number) {
                Some(changed) => {
                    written(&mut out, '-', line);
                    // With the same end of line, or with as little.
                    let end = &line[line.trim_end_matches(['\r', '\n']).len()..];
                    written(&mut out, '+', &format!("{changed}{end}"));
                }
                None => written(&mut out, ' ', line),
            }
        }
    }
    out
}

fn written(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

/// The first and last lines of stretches around these lines; those that touch are one.
fn hunks(changed: impl Iterator<Item = usize>, lines: usize) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for line in changed {
        let (first, last) = (line.saturating_sub(CONTEXT).max(1), (line + CONTEXT).min(lines));
        match hunks.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = last,
            _ => hunks.push((first, last)),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_between_its_neighbours() {
        let text: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let changes = |lines: &[usize]| -> BTreeMap<usize, String> {
            lines.iter().map(|line| (*line, format!("changed {line}"))).collect()
        };
        assert_eq!(unified("x", &text, &changes(&[])), "");
        assert_eq!(
            unified("/etc/x", &text, &changes(&[2])),
            "--- etc/x\n+++ etc/x\n@@ -1,5 +1,5 @@\n line 1\n-line 2\n+changed 2\n line 3\n line 4\n line 5\n"
        );
        let two = unified("x", &text, &changes(&[5, 9, 20]));
        assert_eq!(two.matches("@@ -").count(), 2, "{two}");
        assert!(two.contains("@@ -2,11 +2,11 @@") && two.contains("@@ -17,4 +17,4 @@"), "{two}");
        let open = unified("x", "a\nb", &changes(&[2]));
        let end = "\\ No newline at end of file\n";
        assert_eq!(open, format!("--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\n-b\n{end}+changed 2\n{end}"));
    }
}
