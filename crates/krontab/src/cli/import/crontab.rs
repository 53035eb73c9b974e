//! A crontab: environment lines, and lines with five fields or an alias, perhaps a user, and a command.

use super::Found;
use super::draft::{Draft, Lateness, Run, When};
use super::fields::{Days, Field, Fields, Of};
use super::firing::Rule;

/// Whose jobs they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Whose<'a> {
    /// Every line names a user.
    Lines,
    /// One user's: who it is, if that is known.
    One(Option<&'a str>),
}

/// Reads a crontab of the zone that the host is in.
pub(crate) fn read(text: &str, whose: Whose<'_>, host_zone: &str) -> Vec<Found> {
    let mut environment: Vec<(String, String)> = Vec::new();
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((key, value)) = assignment(line) {
            environment.retain(|(known, _)| *known != key);
            environment.push((key, value));
            continue;
        }
        let outcome = entry(line, whose, host_zone, &environment);
        found.push(Found { line: number, text: line.to_owned(), outcome });
    }
    found
}

/// `NAME = value`, with quotes or without.
fn assignment(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let unquoted = |text: &str| {
        let text = text.trim();
        let inner = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        inner('"').or_else(|| inner('\'')).unwrap_or(text).to_owned()
    };
    let key = unquoted(key);
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (key, unquoted(value)))
}

fn entry(
    line: &str,
    whose: Whose<'_>,
    host_zone: &str,
    environment: &[(String, String)],
) -> Result<Draft, String> {
    // cronie: a dash before the fields keeps the run out of the log.
    let line = line.strip_prefix('-').unwrap_or(line);
    let (fields, rest) = match line.starts_with('@') {
        true => {
            let (alias, rest) = split_word(line);
            (alias_fields(alias)?, rest)
        }
        false => {
            let (mut words, mut rest) = (Vec::new(), line);
            for _ in 0..5 {
                let (word, after) = split_word(rest);
                words.push(word);
                rest = after;
            }
            (fields(&words)?, rest)
        }
    };
    let (user, command) = match whose {
        Whose::Lines => {
            let (user, command) = split_word(rest);
            (Some(user).filter(|user| !user.is_empty()), command)
        }
        Whose::One(user) => (user, rest),
    };
    if whose == Whose::Lines && user.is_none_or(|user| !is_user(user)) {
        let found = user.unwrap_or("nothing");
        return Err(format!(
            "expected a user after the five fields, but found `{found}`; is it a user's crontab? Then say --from crontab"
        ));
    }
    if command.is_empty() {
        return Err("expected a command, but the line ends".to_owned());
    }
    let mut notes = Vec::new();
    let value =
        |key: &str| environment.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
    let name = name(command.split('%').next().unwrap_or_default());
    let command = input(command, &mut notes);
    let run = match value("SHELL") {
        None | Some("/bin/sh" | "") => Run::Shell(command.clone()),
        Some(shell) => Run::Argv(vec![shell.to_owned(), "-c".to_owned(), command.clone()]),
    };
    if let Some(mail) = value("MAILTO").filter(|mail| !mail.is_empty()) {
        notes.push(format!("cron mails what it prints to {mail}; here it goes where krond's output goes"));
    }
    if value("RANDOM_DELAY").is_some_and(|delay| delay != "0") {
        notes.push("RANDOM_DELAY is drawn anew by every cron; a window is the same every time".to_owned());
    }
    let window = value("RANDOM_DELAY")
        .and_then(|minutes| minutes.parse::<i64>().ok())
        .map(|minutes| minutes.saturating_mul(60));
    let zone = value("CRON_TZ").filter(|zone| !zone.is_empty()).unwrap_or(host_zone);
    if zone != host_zone {
        notes.push(format!(
            "CRON_TZ is cronie's: Debian's cron does not look at it, and runs this in {host_zone}"
        ));
    }
    if fields.needs_both_days() {
        notes.push(BOTH_DAYS.to_owned());
    }
    let own = [
        "SHELL",
        "LOGNAME",
        "MAILTO",
        "MAILFROM",
        "CRON_TZ",
        "RANDOM_DELAY",
        "CONTENT_TYPE",
        "CONTENT_TRANSFER_ENCODING",
    ];
    let kept = environment.iter().filter(|(key, _)| !own.contains(&key.as_str()));
    Ok(Draft {
        name,
        when: When::Calendar(fields),
        zone: zone.to_owned(),
        rule: Rule::Cron,
        window: window.filter(|window| (1..=86_400).contains(window)),
        lateness: Lateness::None,
        concurrency: "allow",
        suspend: false,
        run,
        user: user.map(str::to_owned),
        // Where cron runs it, too. Without, both take the home of the user.
        cwd: value("HOME").filter(|home| home.starts_with('/')).map(str::to_owned),
        environment: kept.cloned().collect(),
        description: None,
        notes,
    })
}

/// What is to be said where a day must satisfy both fields.
pub(crate) const BOTH_DAYS: &str = "it runs on days that both day fields name, and Kron's fields mean either: the weekday is a \
     constraint here, and periods on other days are told as unschedulable";

fn is_user(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$'))
}

/// The first word, and what comes after it.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Five words as fields, as Vixie cron reads them.
pub(crate) fn fields(words: &[&str]) -> Result<Fields, String> {
    let word = |number: usize, of: Of| match words.get(number) {
        None | Some(&"") => Err(format!("expected {}, but the line ends", of.name())),
        Some(word) => Field::cron(word, of),
    };
    let (day, weekday) = (word(2, Of::Day)?, word(4, Of::Weekday)?);
    // Vixie cron looks only at the first character: `*/2` is a star to it.
    let is_star = |number: usize| words.get(number).is_some_and(|word| word.starts_with('*'));
    Ok(Fields {
        minute: word(0, Of::Minute)?,
        hour: word(1, Of::Hour)?,
        day,
        month: word(3, Of::Month)?,
        weekday,
        days: if is_star(2) || is_star(4) { Days::Both } else { Days::Either },
    })
}

fn alias_fields(alias: &str) -> Result<Fields, String> {
    let text = match alias {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        "@reboot" => {
            return Err(
                "`@reboot` is no time: it runs when cron starts, and Kron runs periods, each at most once; \
                 let the system start it, with a unit of systemd that is WantedBy=multi-user.target"
                    .to_owned(),
            );
        }
        _ => return Err(format!("expected `@daily` or another alias of cron, but found `{alias}`")),
    };
    fields(&text.split(' ').collect::<Vec<_>>())
}

/// The command as the shell gets it: `%` ends it and begins its input, and `\%` is a percent sign.
fn input(command: &str, notes: &mut Vec<String>) -> String {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'%') => part.extend(chars.next()),
            '%' => parts.push(std::mem::take(&mut part)),
            _ => part.push(c),
        }
    }
    parts.push(part);
    let command = parts.remove(0).trim_end().to_owned();
    // What is empty after the last `%` is no line.
    if parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    if parts.is_empty() {
        return command;
    }
    notes
        .push("`%` begins its input in cron, and means nothing here: the input comes from printf".to_owned());
    let quoted: Vec<String> = parts.iter().map(|line| format!("'{}'", line.replace('\'', "'\\''"))).collect();
    format!("printf '%s\\n' {} | {{ {command}; }}", quoted.join(" "))
}

/// A name from a command: the last path in it that is neither a device nor where output goes.
fn name(command: &str) -> String {
    let trimmed = |word: &str| word.trim_matches([';', '}', '{', ')', '(', '"', '\'', '|', '&']).to_owned();
    let words = || command.split_whitespace().map(trimmed).filter(|word| !word.is_empty());
    let is_path = |word: &String| {
        let begins = ["/", "./", "../", "~/", "$HOME/"].iter().any(|start| word.starts_with(start));
        begins && word.len() > 1 && !word.starts_with("/dev/")
    };
    let mut after_redirection = false;
    let paths: Vec<String> = words()
        .filter(|word| {
            let is_target =
                std::mem::replace(&mut after_redirection, word.ends_with('>') || word.ends_with('<'));
            !is_target && is_path(word)
        })
        .collect();
    let chosen = paths.last().cloned().or_else(|| words().next()).unwrap_or_default();
    chosen.rsplit('/').find(|part| !part.is_empty()).unwrap_or("job").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_path_that_is_run() {
        for (command, expected) in [
            ("cd / && run-parts --report /etc/cron.hourly", "cron.hourly"),
            ("test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }", "cron.daily"),
            ("/usr/bin/backup --all > /var/log/backup 2>&1", "backup"),
            ("/usr/bin/backup >/dev/null", "backup"),
            ("cd /srv/app && ./poll", "poll"),
            ("echo hello", "echo"),
            ("", "job"),
        ] {
            assert_eq!(name(command), expected, "{command}");
        }
    }

    #[test]
    fn percent_signs_are_input() {
        let mut notes = Vec::new();
        assert_eq!(input(r"date +\%F", &mut notes), "date +%F");
        assert!(notes.is_empty());
        assert_eq!(
            input("mail -s x joe%Dear Joe,%It's late%", &mut notes),
            "printf '%s\\n' 'Dear Joe,' 'It'\\''s late' | { mail -s x joe; }"
        );
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn environment_lines_are_for_the_entries_below_them() {
        let text = "A = 1\n0 1 * * * /bin/a\nA=\"2 3\"\nMAILTO=joe\n0 1 * * * /bin/b\n@reboot /bin/c\n";
        let found = read(text, Whose::One(None), "UTC");
        let environment = |number: usize| found[number].outcome.as_ref().unwrap().environment.clone();
        assert_eq!(environment(0), [("A".to_owned(), "1".to_owned())]);
        assert_eq!(environment(1), [("A".to_owned(), "2 3".to_owned())]);
        assert!(found[1].outcome.as_ref().unwrap().notes[0].contains("joe"));
        assert!(found[2].outcome.as_ref().unwrap_err().starts_with("`@reboot` is no time"));
    }

    #[test]
    fn what_cron_takes_from_the_environment_is_said_in_its_own_way() {
        let text = "HOME=/srv/app\nLOGNAME=joe\nCRON_TZ=Asia/Tokyo\n0 1 * * * bin/a\n";
        let found = read(text, Whose::One(Some("ann")), "UTC");
        let draft = found[0].outcome.as_ref().unwrap();
        assert_eq!(
            draft.line("a", None),
            "0 1 * * * @tz(Asia/Tokyo) @policy(concurrency=allow) @dst(gap=after) name=a command=bin/a shell=true \
             user=ann cwd=/srv/app env=HOME=/srv/app"
        );
        assert!(draft.notes[0].contains("Debian's cron does not look at it, and runs this in UTC"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(text in "[ -~\n\té%]{0,200}") {
            for whose in [Whose::One(None), Whose::Lines] {
                for found in read(&text, whose, "Europe/Paris") {
                    if let Ok(draft) = found.outcome {
                        proptest::prop_assert!(!draft.line("x", Some(60)).contains('\n'));
                    }
                }
            }
        }

        #[test]
        fn any_fields_are_read_or_refused(words in proptest::collection::vec("[0-9*/,a-u~?-]{0,8}", 5)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let _ = fields(&words);
        }
    }

    #[test]
    fn both_days_are_one_constraint() {
        let both = fields(&["0", "0", "*/2", "*", "1"]).unwrap();
        assert_eq!((both.kron().as_str(), both.weekday_names().as_str()), ("0 0 */2 * *", "MON"));
        let either = fields(&["0", "0", "13", "*", "5"]).unwrap();
        assert_eq!(either.kron(), "0 0 13 * 5");
    }
}
