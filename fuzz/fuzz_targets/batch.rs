//! Any bytes have one answer for each line that asks something, and every answer is JSON.
#![no_main]

use std::sync::LazyLock;

use krontab::{Zones, batch};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let mut output = Vec::new();
    batch::run(input, &mut output, &ZONES).expect("memory can be read and written");
    let output = String::from_utf8(output).expect("answers are UTF-8");

    let asking = input.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    assert_eq!(output.lines().count(), asking);
    for line in output.lines() {
        let answer: Value = serde_json::from_str(line).expect("an answer is JSON");
        let result = if answer["ok"] == true { &answer["result"] } else { &answer["error"]["code"] };
        assert!(!result.is_null(), "{line}");
    }
});

static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);
