//! What holds for any bytes at all.

use std::io::{BufRead, BufReader};

use krontab::batch::run;
use proptest::prelude::*;
use serde_json::json;

use super::decide::decide;
use super::evaluate::evaluate;
use super::next::next;
use super::{ZONES, answers_of_bytes};

/// How many lines of the input ask something.
fn asking(input: &[u8]) -> usize {
    input.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count()
}

/// Requests with a few characters changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let lines = [
        next(),
        decide(),
        evaluate(),
        json!({"id": 1, "op": "parse", "dialect": "ojs", "expr": "0 0 L * 5#3"}),
        json!({"id": 1, "op": "fuzzy", "phrase": "weekly on monday between 9am utc-5 and 17:00", "extensions": true}),
        json!({"id": 1, "op": "scatter", "placeholder": "FUZZY:HOURLY:2 * * *", "identifier": "x"}),
        json!({"id": 1, "op": "lint", "text": "@daily @win(after,1h) name=a command=\"/bin/a b\"\n"}),
    ];
    let texts: Vec<Vec<u8>> = lines.iter().map(|line| line.to_string().into_bytes()).collect();
    let characters = b"\"{}[]:,\\0159-eTZ.;=*/@#LW \tan\n\r\x00\xFF\xC3".to_vec();
    let changes =
        prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(characters), 0..3), 0..4);
    (prop::sample::select(texts), changes).prop_map(|(mut text, changes)| {
        for (at, character, how) in changes {
            let at = at.index(text.len());
            match how {
                0 => text[at] = character,
                1 => text.insert(at, character),
                _ => drop(text.remove(at)),
            }
        }
        text
    })
}

proptest! {
    #[test]
    fn any_bytes_have_one_answer_for_each_line(input in prop::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert_eq!(answers_of_bytes(&input).len(), asking(&input));
    }

    #[test]
    fn damaged_requests_have_one_answer_each(lines in prop::collection::vec(damaged(), 1..6)) {
        let input = lines.join(&b'\n');
        prop_assert_eq!(answers_of_bytes(&input).len(), asking(&input));
    }

    #[test]
    fn however_the_input_comes_the_answers_are_the_same(
        lines in prop::collection::vec(damaged(), 1..6),
        capacity in 1_usize..400,
    ) {
        let input = lines.join(&b'\n');
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        run(&*input, &mut whole, &ZONES).unwrap();
        let mut reader = BufReader::with_capacity(capacity, &*input);
        prop_assert!(reader.fill_buf().unwrap().len() <= capacity);
        run(reader, &mut pieces, &ZONES).unwrap();
        prop_assert_eq!(whole, pieces);
    }
}
