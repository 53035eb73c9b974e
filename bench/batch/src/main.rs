//! A million `decide` requests through `batch::run`: the goal is 200,000 a second on one core.
//!
//! Every line has another identity and another nominal time; of the last kind no two have anything in
//! common. They come through a buffer as small as that of standard input. What is measured is the CPU
//! time of the thread, from the bytes of the requests to the bytes of the answers, of chunks that fit in
//! memory. The median of the chunks counts, for every kind; the best one shows how much other work on the
//! machine has disturbed.

use std::fmt::Write as _;
use std::io::BufReader;
use std::process::ExitCode;

use jiff::Timestamp;
use krontab::{Zones, batch};
use rustix::time::{ClockId, clock_gettime};

/// Requests a second.
const GOAL: f64 = 200_000.0;
/// Requests of each kind.
const REQUESTS: usize = 1_000_000;
/// Requests that are in memory at once.
const CHUNK: usize = 50_000;
/// The buffer of standard input.
const BUFFER: usize = 8 << 10;

/// A `decide`, besides the members that always vary.
struct Kind {
    name: &'static str,
    /// `#` stands for the number of the line, and `%` for an hour that changes with every line.
    members: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind { name: "window alone", members: r#""window":{"mode":"after","duration":"1h"}"# },
    Kind {
        name: "every member but constraints",
        members: r#""timezone":"America/New_York","window":{"mode":"around","duration":"1h30m"},"distribution":{"name":"skewLate","params":{"shape":"2.5"}},"seed":{"strategy":"daily","salt":"team alpha"}"#,
    },
    Kind {
        name: "every member",
        members: r#""timezone":"America/New_York","window":{"mode":"around","duration":"1h30m"},"distribution":{"name":"skewLate","params":{"shape":"2.5"}},"seed":{"strategy":"daily","salt":"team alpha"},"only":"dow=1-7","avoid":"hours=3;date=2026-12-24""#,
    },
    Kind {
        name: "every member, no two alike",
        members: r#""timezone":"America/New_York","window":{"mode":"around","duration":"1h#ms"},"distribution":{"name":"skewLate","params":{"shape":"2.#"}},"seed":{"strategy":"daily","salt":"team #"},"only":"dow=1-7","avoid":"hours=%;date=2026-12-24""#,
    },
    Kind {
        name: "unschedulable, after 64 candidates",
        members: r#""timezone":"America/New_York","window":{"mode":"after","duration":"1h"},"avoid":"hours=0-23""#,
    },
];

fn main() -> ExitCode {
    println!("{REQUESTS} requests of each kind, CPU time of the thread");
    println!(
        "{:<34} {:>6} {:>7} {:>8} {:>12} {:>6} {:>12}",
        "decide", "bytes", "answer", "ns", "requests/s", "ratio", "best"
    );
    let zones = Zones::bundled();
    let mut reached = true;
    for Kind { name, members } in KINDS {
        let Measured { mut nanos, asked, answered } = measure(members, &zones);
        nanos.sort_unstable();
        let each = |total: usize| total / REQUESTS;
        let rate = |nanos: i64| CHUNK as f64 * 1e9 / nanos as f64;
        let (best, median) = (nanos[0], nanos[nanos.len() / 2]);
        let ratio = rate(median) / GOAL;
        reached &= ratio >= 1.0;
        let note = if ratio >= 1.0 { "ok" } else { "TOO SLOW" };
        println!(
            "{name:<34} {:>6} {:>7} {:>8} {:>12.0} {ratio:>6.2} {:>12.0} {note}",
            each(asked),
            each(answered),
            median / CHUNK as i64,
            rate(median),
            rate(best),
        );
    }
    println!("goal: {GOAL} requests/s, a ratio of 1, in the median chunk of every kind");
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Measured {
    /// Of each chunk.
    nanos: Vec<i64>,
    /// Bytes of all requests, and of all answers.
    asked: usize,
    answered: usize,
}

fn measure(members: &str, zones: &Zones) -> Measured {
    let mut measured = Measured { nanos: Vec::new(), asked: 0, answered: 0 };
    let mut answers = Vec::new();
    for first in (0..REQUESTS).step_by(CHUNK) {
        let requests = requests(first..first + CHUNK, members);
        answers.clear();
        let start = cpu_nanos();
        batch::run(BufReader::with_capacity(BUFFER, requests.as_bytes()), &mut answers, zones)
            .expect("memory can be read and written");
        measured.nanos.push(cpu_nanos() - start);
        measured.asked += requests.len();
        measured.answered += answers.len();
        check(first, &answers);
    }
    measured
}

/// One line for each number.
fn requests(numbers: std::ops::Range<usize>, members: &str) -> String {
    let mut lines = String::new();
    for number in numbers {
        // A minute apart, from 2026 on.
        let members = members.replace('#', &number.to_string()).replace('%', &(number % 24).to_string());
        let nominal = Timestamp::from_second(1_767_225_600 + 60 * number as i64).expect("it is this century");
        writeln!(
            lines,
            r#"{{"id":{number},"op":"decide","identity":"prod/job-{number:07}","nominal":"{nominal}",{members}}}"#
        )
        .expect("a string takes every byte");
    }
    lines
}

/// Every request has its own answer, and it is a decision.
fn check(first: usize, answers: &[u8]) {
    let text = str::from_utf8(answers).expect("answers are UTF-8");
    let mut count = 0;
    for (number, line) in (first..).zip(text.lines()) {
        assert!(line.starts_with(&format!(r#"{{"id":{number},"ok":true,"#)), "{line}");
        count += 1;
    }
    assert_eq!(count, CHUNK);
}

fn cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
