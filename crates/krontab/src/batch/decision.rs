//! How a decision is written: by hand, because there may be a million of them.

use std::fmt::{self, Display, Write};

use kron_core::{CANDIDATES_MAX, Decision, Distribution, Job};

use super::answer;
use super::time::Time;

/// A decision, and the job it was made for.
pub(super) struct Decided {
    pub(super) job: Job,
    pub(super) decision: Decision,
}

/// Appends the fields of the public Kron's decisions and, from `identity` on, Kron's own: everything that
/// is needed to make the decision again.
pub(super) fn append(out: &mut Vec<u8>, Decided { job, decision }: &Decided) {
    // Enough for nearly every decision, so that nothing is moved on the way.
    out.reserve(1 << 10);
    let mut object = Object { out };
    object.open();
    let nominal = Time(decision.nominal()).to_string();
    object.word("periodId", &nominal);
    object.word("nominalTime", &nominal);
    object.text("job", job.identity());
    object.word("periodStart", &nominal);
    object.plain("windowStart", Time(decision.window_start()));
    object.plain("windowEnd", Time(decision.window_end()));
    object.bare("windowEndIsOpen", false);
    object.word("mode", job.window().mode().name());
    object.word("distribution", job.distribution().name());
    object.word("seedStrategy", job.seed_strategy().name());
    object.plain("periodKey", decision.period_key());
    object.text("seedMaterial", &decision.explain(job).seed_material());
    object.plain("seedHash", decision.seed_hash());
    match decision.chosen() {
        Some(chosen) => object.plain("chosenTime", Time(chosen)),
        // The public vectors write it so.
        None => object.word("chosenTime", ""),
    }
    object.bare("unschedulable", decision.is_unschedulable());
    if let Some(reason) = decision.reason() {
        object.word("reason", reason);
    }
    object.bare("attemptCount", decision.attempts());
    object.bare("maxAttempts", CANDIDATES_MAX);
    object.text("identity", job.identity());
    object.text("timezone", job.zone().name());
    object.parameters("distributionParams", job.distribution());
    object.text("salt", job.salt());
    object.plain("constraints", job.constraints());
    object.close();
}

/// Writes the members of an object.
struct Object<'o> {
    out: &'o mut Vec<u8>,
}

impl Object<'_> {
    fn open(&mut self) {
        self.out.push(b'{');
    }

    fn close(&mut self) {
        self.out.push(b'}');
    }

    #[inline(always)] // so that the length of every name is known where it is copied
    fn name(&mut self, name: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// A number or a boolean.
    #[inline(always)]
    fn bare(&mut self, name: &str, value: impl Display) {
        self.name(name);
        self.print(value);
    }

    /// A text that has nothing to escape: one of Kron's words, a number, a time.
    #[inline(always)]
    fn word(&mut self, name: &str, value: &str) {
        self.name(name);
        self.quoted(value.as_bytes());
    }

    /// The same, for what is yet to be printed.
    #[inline(always)]
    fn plain(&mut self, name: &str, value: impl Display) {
        self.name(name);
        self.out.push(b'"');
        self.print(value);
        self.out.push(b'"');
    }

    /// A text that may hold anything.
    #[inline(always)]
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.escaped(value);
    }

    fn escaped(&mut self, value: &str) {
        // Looking at every byte, without an end in between, is what processors do many at a time.
        let escapes = value.bytes().fold(false, |found, byte| found | matches!(byte, b'"' | b'\\' | ..b' '));
        if escapes { answer::shape(self.out, value) } else { self.quoted(value.as_bytes()) }
    }

    fn quoted(&mut self, value: &[u8]) {
        self.out.push(b'"');
        self.out.extend_from_slice(value);
        self.out.push(b'"');
    }

    fn print(&mut self, value: impl Display) {
        write!(Bytes(self.out), "{value}").expect("memory takes every byte");
    }

    /// The parameters in force, as the texts that a request would give.
    fn parameters(&mut self, name: &str, distribution: &Distribution) {
        self.name(name);
        self.open();
        if *distribution != Distribution::Uniform {
            // `shape=2.5` or `lambda=1,dir=early`: no value has a comma.
            let text = distribution.parameters().to_string();
            for (key, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
                self.word(key, value);
            }
        }
        self.close();
    }
}

/// Text that is appended to bytes; `io::Write` would take a detour.
struct Bytes<'o>(&'o mut Vec<u8>);

impl Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
