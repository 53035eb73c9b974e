//! Near misses: the word someone probably meant.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The longest word worth comparing; nobody mistypes a longer one into a name.
const WORD_BYTES_MAX: usize = 40;

/// How many letters may be wrong, missing, too many or swapped.
const MISTAKES_MAX: usize = 2;

/// The candidate with the fewest differences from `word`, if it has few enough. Case does not count.
///
/// Kron's languages share it, so that a near miss is one everywhere.
///
/// ```
/// use kron_schedule::suggest::closest;
///
/// assert_eq!(closest("concurency", ["concurrency", "deadline"]), Some("concurrency"));
/// assert_eq!(closest("retries", ["concurrency", "deadline"]), None);
/// ```
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= MISTAKES_MAX)
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, candidate)| *distance <= MISTAKES_MAX.min(candidate.len() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean `…`?", if there is something to mean.
pub fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    closest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let width = b.len() + 1;
    let mut table: Vec<usize> = (0..width).collect();
    for i in 1..=a.len() {
        table.push(i);
        for j in 1..width {
            let differs = usize::from(!a[i - 1].eq_ignore_ascii_case(&b[j - 1]));
            let at = |i: usize, j: usize| table[i * width + j];
            let mut best = (at(i - 1, j) + 1).min(at(i, j - 1) + 1).min(at(i - 1, j - 1) + differs);
            let swapped = i > 1
                && j > 1
                && a[i - 1].eq_ignore_ascii_case(&b[j - 2])
                && a[i - 2].eq_ignore_ascii_case(&b[j - 1]);
            if swapped {
                best = best.min(at(i - 2, j - 2) + 1);
            }
            table.push(best);
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        let words = ["@daily", "@weekly", "@hourly"];
        assert_eq!(closest("@dayly", words), Some("@daily"));
        assert_eq!(closest("@Daily", words), Some("@daily"));
        assert_eq!(closest("@wekely", words), Some("@weekly"));
        assert_eq!(closest("@fortnightly", words), None);
        assert_eq!(closest("MNO", ["MON", "TUE"]), Some("MON"));
        assert_eq!(closest("XYZ", ["MON", "TUE"]), None);
        assert_eq!(closest("", ["MON"]), None);
    }
}
