//! Starts of jobs as a calendar (iCalendar, RFC 5545): what `krontab ical` prints and the dashboard serves.
//!
//! Lines end with CRLF and have at most 75 bytes. Whatever a job says is text: it can neither end its line nor its
//! event. An event keeps its name as long as its job and its period do, so a calendar that is read again moves it.

use jiff::Timestamp;

/// A calendar that is being written.
#[derive(Clone, Debug)]
pub struct Calendar {
    text: String,
    /// When its events were written down.
    stamp: Timestamp,
}

/// A start of a job.
#[derive(Clone, Copy, Debug)]
pub struct Event<'e> {
    /// Whose.
    pub identity: &'e str,
    /// The nominal time of its period.
    pub nominal: Timestamp,
    /// When it starts.
    pub at: Timestamp,
    /// What is shown of it.
    pub summary: &'e str,
    /// What else is told of it, in lines.
    pub description: &'e str,
}

impl Calendar {
    /// An empty calendar of that program, written at that time.
    #[must_use]
    pub fn new(program: &str, stamp: Timestamp) -> Calendar {
        let mut calendar = Calendar { text: String::new(), stamp };
        calendar.line("BEGIN:VCALENDAR");
        calendar.line("VERSION:2.0");
        calendar.line(&format!("PRODID:-//Kron//{}//EN", escaped(program)));
        calendar.line("CALSCALE:GREGORIAN");
        calendar
    }

    /// The same under a name, which programs show.
    #[must_use]
    pub fn named(mut self, name: &str) -> Calendar {
        self.line(&format!("X-WR-CALNAME:{}", escaped(name)));
        self
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let Event { identity, nominal, at, summary, description } = *event;
        self.line("BEGIN:VEVENT");
        self.line(&format!("UID:{}-{:016x}@kron.invalid", nominal.as_second(), fingerprint(identity)));
        self.line(&format!("DTSTAMP:{}", compact(self.stamp)));
        self.line(&format!("DTSTART:{}", compact(at)));
        self.line("DURATION:PT0S");
        self.line("TRANSP:TRANSPARENT");
        self.line(&format!("SUMMARY:{}", escaped(summary)));
        self.line(&format!("DESCRIPTION:{}", escaped(description)));
        self.line("END:VEVENT");
    }

    /// The text of it.
    #[must_use]
    pub fn text(mut self) -> String {
        self.line("END:VCALENDAR");
        self.text
    }

    /// Writes a line, going on in the next, after a blank, where it is too long. No character is cut in two.
    fn line(&mut self, text: &str) {
        let mut length = 0;
        for c in text.chars() {
            if length + c.len_utf8() > LINE_BYTES_MAX {
                self.text.push_str("\r\n ");
                length = 1;
            }
            self.text.push(c);
            length += c.len_utf8();
        }
        self.text.push_str("\r\n");
    }
}

/// The most bytes of a line, without its end.
const LINE_BYTES_MAX: usize = 75;

/// A text as the value of a property.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '\\' | ';' | ',' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
        out
    })
}

/// `20260301T123000Z`
fn compact(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// FNV-1a: it only has to tell identities apart, and to be the same for ever.
fn fingerprint(identity: &str) -> u64 {
    identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a reader makes of a calendar: its lines, put together again.
    fn unfolded(text: &str) -> Vec<String> {
        let text = text.strip_suffix("\r\n").expect("the last line has an end too");
        text.replace("\r\n ", "").split("\r\n").map(str::to_owned).collect()
    }

    /// What a reader makes of the value of a property.
    fn unescaped(value: &str) -> String {
        let mut chars = value.chars();
        let mut out = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('n') => out.push('\n'),
                    other => out.extend(other),
                },
                c => out.push(c),
            }
        }
        out
    }

    fn written(summary: &str, description: &str) -> String {
        let at: Timestamp = "2026-03-01T02:30:00Z".parse().unwrap();
        let mut calendar = Calendar::new("test 1", at).named("Kron");
        calendar.add(&Event { identity: "a", nominal: at, at, summary, description });
        calendar.text()
    }

    #[test]
    fn a_calendar_to_the_letter() {
        assert_eq!(
            written("backup, nightly", "at 02:30\nperiod 1"),
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Kron//test 1//EN\r\nCALSCALE:GREGORIAN\r\n\
             X-WR-CALNAME:Kron\r\nBEGIN:VEVENT\r\nUID:1772332200-af63dc4c8601ec8c@kron.invalid\r\n\
             DTSTAMP:20260301T023000Z\r\nDTSTART:20260301T023000Z\r\nDURATION:PT0S\r\nTRANSP:TRANSPARENT\r\n\
             SUMMARY:backup\\, nightly\r\nDESCRIPTION:at 02:30\\nperiod 1\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        );
    }

    #[test]
    fn long_lines_go_on_in_the_next_and_no_character_is_cut() {
        let text = written(&"ü".repeat(80), "");
        let at = text.find("SUMMARY:").unwrap();
        let first = text[at..].split("\r\n").next().unwrap();
        assert_eq!(first.len(), 74, "the next character has two bytes");
        let exact = "x".repeat(LINE_BYTES_MAX - "SUMMARY:".len());
        assert!(written(&exact, "").contains(&format!("SUMMARY:{exact}\r\n")), "it just fits");
    }

    proptest! {
        /// Whatever a job is called and says, it is read back as that and is nothing else.
        #[test]
        fn whatever_a_job_says_is_text(summary in any::<String>(), description in "(\\PC|[\r\n\u{0}]){0,200}") {
            let text = written(&summary, &description);
            for line in text.split("\r\n") {
                prop_assert!(line.len() <= LINE_BYTES_MAX && !line.contains(char::is_control), "{line:?}");
            }
            let lines = unfolded(&text);
            prop_assert_eq!(lines.len(), 15);
            let plain = |text: &str| text.chars().filter(|c| !c.is_control() || *c == '\n').collect::<String>();
            let value = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(unescaped);
            prop_assert_eq!(value("SUMMARY:"), Some(plain(&summary)));
            prop_assert_eq!(value("DESCRIPTION:"), Some(plain(&description)));
        }
    }
}
