//! Kron beside what other languages have: a program of each is given the corpus with Kron's answers, and says how long
//! it takes for those that it answers alike.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::contestant::{self, KRON};
use crate::corpus::{CLASSES, Zone, random_starts};
use crate::measure::best;

/// They are slow, so they are asked less.
const STARTS: usize = 25;
const ZONES: [Zone; 2] = [Zone::Utc, Zone::NewYork];

/// Prints a table. Each program is a command that reads questions and writes `peer|question|nanoseconds`.
pub(crate) fn compare(programs: &[String]) {
    let questions = questions();
    let asked: String = questions.iter().map(|question| format!("{}\n", question.text)).collect();
    let told: Vec<(String, usize, f64)> = programs.iter().flat_map(|program| ask(program, &asked)).collect();
    let mut peers: Vec<&str> = told.iter().map(|(peer, ..)| peer.as_str()).collect();
    peers.dedup();
    let mut out = String::from(
        "Kron's nanoseconds, and how many times as long each peer takes; `-`: not read, or answered differently.\n",
    );
    let _ = write!(out, "{:<42} {:>8}", "next", "kron ns");
    for peer in &peers {
        let _ = write!(out, " {peer:>20}");
    }
    for zone in ZONES {
        for class in &CLASSES {
            let _ = write!(out, "\n{:<42}", format!("{} {}", class.name, zone.name()));
            let of = |question: &&Question| question.class == class.name && question.zone == zone;
            let kron = mean(questions.iter().filter(of).map(|question| question.kron));
            let _ = write!(out, " {:>8}", kron.map_or("-".into(), |kron| format!("{kron:.1}")));
            for peer in &peers {
                let ratios = told.iter().filter(|(who, nth, _)| who == peer && of(&&questions[*nth]));
                let ratio = mean(ratios.map(|(_, nth, nanos)| nanos / questions[*nth].kron));
                let _ = write!(out, " {:>20}", ratio.map_or("-".into(), |ratio| format!("{ratio:.0}")));
            }
        }
    }
    println!("{out}");
}

/// One expression in one zone.
struct Question {
    class: &'static str,
    zone: Zone,
    kron: f64,
    /// The expression, the zone, and pairs of a start and its answer, for a program to read.
    text: String,
}

fn questions() -> Vec<Question> {
    let starts = random_starts(STARTS);
    let mut questions = Vec::new();
    for zone in ZONES {
        for (class, expression) in
            CLASSES.iter().flat_map(|class| class.expressions.iter().map(move |it| (class, it)))
        {
            let kron =
                contestant::by_name(KRON, &[*expression], zone, &starts).expect("Kron reads everything");
            let nanos = best(&[(&*kron.pass, kron.asks)])[0];
            let mut text = format!("{expression}|{}|", zone.name());
            for (start, answer) in starts.iter().zip(&kron.answers) {
                let answer = answer.expect("everything in the corpus comes again");
                let _ = write!(text, "{start}:{answer} ");
            }
            questions.push(Question { class: class.name, zone, kron: nanos, text });
        }
    }
    questions
}

fn ask(program: &str, asked: &str) -> Vec<(String, usize, f64)> {
    let mut child = Command::new("sh")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell can be started");
    let mut input = child.stdin.take().expect("it was asked for");
    input.write_all(asked.as_bytes()).expect("it reads");
    drop(input);
    let out = child.wait_with_output().expect("it ends");
    if !out.status.success() {
        eprintln!("{program} ended with {}", out.status);
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = |line: &str| {
        let mut parts = line.split('|');
        Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// The geometric mean, if there is anything.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value.ln()));
    (count > 0.0).then(|| (sum / count).exp())
}
