//! The form's fields, and the members of a registration that they stand for.

use jiff::Timestamp;
use kron_dashboard::{Answer, Change, Draft, NEXT_MAX, Preview, Refused, Warning};
use kron_schedule::fuzzy::{Extensions, Phrase, Scattered};
use kron_zones::Zones;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::cron::{self, Compiled, Cron, Registration};
use crate::members::Members;

/// The fields that stand for members of the same name.
const PLAIN: [&str; 6] = ["name", "cron", "timezone", "type", "overlap_policy", "description"];

/// The field of the form that a member's mistake is shown at.
pub(super) fn field_of(member: &str) -> &str {
    match member {
        "expression" => "cron",
        "kron.deadline" => "deadline",
        "kron.window.mode" => "windowMode",
        "options.queue" | "options" => "queue",
        member if member.starts_with("kron.distribution") => "distribution",
        member if member.starts_with("kron") => "window",
        member => member,
    }
}

/// What the form is filled with.
pub(super) fn fields(cron: &Cron) -> Value {
    let members = cron.definition.members();
    let mut fields: Map<String, Value> =
        PLAIN.iter().filter_map(|name| Some(((*name).to_owned(), members.value(name)?))).collect();
    // Numbers stay the digits they are: the page never reads them.
    fields.insert("args".into(), json!(cron.definition.args.get()));
    fields.insert("queue".into(), cron.definition.options.value("queue").unwrap_or_default());
    let kron: Value = members.value("kron").unwrap_or_default();
    fields.insert("window".into(), kron["window"]["duration"].clone());
    fields.insert("windowMode".into(), kron["window"]["mode"].clone());
    fields.insert("distribution".into(), kron["distribution"]["name"].clone());
    fields.insert("deadline".into(), kron["deadline"].clone());
    Value::Object(fields)
}

/// The members that a draft stands for, laid over what is stored.
fn members(draft: &Draft, stored: Option<&Cron>) -> Answer<Members> {
    let mut members = stored.map(|cron| cron.definition.members()).unwrap_or_default();
    let text =
        |name: &str| draft.fields.get(name).map(|value| value.as_str().unwrap_or_default().trim().to_owned());
    for name in PLAIN {
        match text(name) {
            Some(text) if text.is_empty() => drop(members.take(name)),
            Some(text) => members.put(name, &text),
            None => {}
        }
    }
    match text("args") {
        Some(text) if text.is_empty() => drop(members.take("args")),
        Some(text) => {
            let args = RawValue::from_string(text).map_err(|error| {
                let message = format!("expected a JSON list such as [\"a\", 1], but {error}");
                Refused { field: Some("args".into()), ..Refused::new(400, "wrong", message) }
            })?;
            members.put("args", &args);
        }
        None => {}
    }
    if let Some(queue) = text("queue") {
        let mut options = members.take_members("options")?.unwrap_or_default();
        if queue.is_empty() {
            options.take("queue");
        } else {
            options.put("queue", &queue);
        }
        members.put("options", &options);
    }
    let mut kron = members.take_members("kron")?.unwrap_or_default();
    if let Some(window) = text("window") {
        kron.take("window");
        if !window.is_empty() {
            let mode = text("windowMode").filter(|mode| !mode.is_empty()).unwrap_or_else(|| "after".into());
            kron.put("window", &json!({ "mode": mode, "duration": window }));
        }
    }
    if let Some(name) = text("distribution") {
        let before = kron.value("distribution").unwrap_or_default();
        if name.is_empty() {
            kron.take("distribution");
        } else if before["name"] != json!(name) {
            kron.put("distribution", &json!({ "name": name }));
        }
    }
    match text("deadline") {
        Some(text) if text.is_empty() => drop(kron.take("deadline")),
        Some(text) => kron.put("deadline", &text),
        None => {}
    }
    if !kron.is_empty() {
        members.put("kron", &kron);
    }
    Ok(members)
}

/// The lines of a rendered mistake that show its place.
pub(super) fn place_in(rendered: &str) -> Option<String> {
    let lines: Vec<&str> = rendered.lines().filter(|line| line.starts_with("  |")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What a phrase stands for, if the schedule is written as one.
struct Resolved {
    text: String,
    warnings: Vec<Warning>,
}

fn resolve(written: &str, name: &str) -> Option<Answer<Resolved>> {
    // Expressions begin with a digit, a star or an `@`.
    let is_phrase = written.trim_start().starts_with(char::is_alphabetic);
    if !is_phrase {
        return None;
    }
    let wrong = |error: &kron_schedule::fuzzy::FuzzyError| Refused {
        field: Some("cron".into()),
        hint: error.help().map(str::to_owned),
        excerpt: place_in(&error.render(written)),
        ..Refused::new(400, "wrong", error.message())
    };
    let phrase = match Phrase::parse(written, Extensions::Off) {
        Ok(phrase) => phrase,
        Err(error) => return Some(Err(wrong(&error))),
    };
    let warnings = phrase.warnings().iter();
    let warnings =
        warnings.map(|warning| Warning { message: warning.message(), help: None, excerpt: None }).collect();
    let scattered = phrase.placeholder().scatter(if name.is_empty() { "preview" } else { name });
    Some(match scattered {
        Ok(Scattered::Cron(cron)) => Ok(Resolved { text: cron.text().to_owned(), warnings }),
        Ok(Scattered::EveryDays(_)) => {
            let message = "expected a phrase that a cron expression can say, but found every so many days";
            Err(Refused { field: Some("cron".into()), ..Refused::new(400, "wrong", message) })
        }
        Err(error) => Err(wrong(&error)),
    })
}

/// The draft with its phrase, if it has one, made an expression.
fn settled(draft: &Draft, stored: Option<&Cron>) -> Answer<(Members, Option<Resolved>)> {
    let mut members = members(draft, stored)?;
    let text = |members: &Members, name: &str| {
        members.value(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let resolved = resolve(&text(&members, "cron"), &text(&members, "name")).transpose()?;
    if let Some(resolved) = &resolved {
        members.put("cron", &resolved.text);
    }
    Ok((members, resolved))
}

/// What is registered when a draft is saved.
pub(super) fn registration(
    draft: &Draft,
    stored: Option<&Cron>,
    zones: &Zones,
    now: Timestamp,
) -> Answer<Registration> {
    let (members, _) = settled(draft, stored)?;
    let registration = Registration::read(members, zones, now)?;
    match stored {
        Some(cron) if cron.definition.name != registration.definition.name => {
            Err(cron::renamed(&cron.definition.name, &registration.definition.name).into())
        }
        _ => Ok(registration),
    }
}

/// What a draft would do.
pub(super) fn preview(
    draft: &Draft,
    stored: Option<&Cron>,
    zones: &Zones,
    now: Timestamp,
) -> Answer<Preview> {
    let (mut members, resolved) = settled(draft, stored)?;
    // A form is filled in bit by bit, and the schedule comes first.
    if !members.0.contains_key("name") {
        members.put("name", &"preview");
    }
    if !members.0.contains_key("type") {
        members.put("type", &"preview");
    }
    let written =
        members.value("cron").and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
    let preview = cron::Preview::read(members, stored, zones, now)?;
    let next = preview.runs(NEXT_MAX);
    let compiled = preview.compiled();
    let change = match stored.map(|cron| (cron, cron.definition.compile(cron.anchor, zones))) {
        Some((cron, Ok(before))) => Some(changed(&next, &cron::runs(cron, &before, NEXT_MAX))),
        _ => None,
    };
    let mut warnings = warnings(compiled, &written);
    let (note, written) = match resolved {
        Some(resolved) => {
            warnings.extend(resolved.warnings);
            let note = "A phrase becomes an expression of its own for each name, so that jobs with the same words do \
                        not start together.";
            (Some(note.to_owned()), Some(resolved.text))
        }
        None => (None, None),
    };
    let zone = compiled.plan.zone();
    Ok(Preview {
        words: compiled.expr.describe(),
        written,
        note,
        zone: zone.name().to_owned(),
        warnings,
        local: next.iter().map(|at| kron_dashboard::local(zone, *at)).collect(),
        next,
        change,
    })
}

fn warnings(compiled: &Compiled, written: &str) -> Vec<Warning> {
    let warnings = compiled.expr.warnings();
    let shown = warnings.iter().map(|warning| Warning {
        message: warning.to_string(),
        help: warning.help().map(str::to_owned),
        excerpt: place_in(&warning.render(written)),
    });
    shown.collect()
}

/// Which of the next runs are new, and which are gone.
fn changed(after: &[Timestamp], before: &[Timestamp]) -> Change {
    let missing = |from: &[Timestamp], other: &[Timestamp]| -> Vec<Timestamp> {
        // Beyond the shorter list nothing can be said.
        let end = other.last().copied();
        let is_known = |at: &&Timestamp| other.len() < NEXT_MAX || Some(**at) <= end;
        from.iter().filter(is_known).filter(|at| !other.contains(at)).copied().collect()
    };
    Change {
        added: missing(after, before),
        removed: missing(before, after),
        kept: after.iter().filter(|at| before.contains(at)).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(fields: &Value) -> Draft {
        serde_json::from_value(json!({ "fields": fields })).unwrap()
    }

    fn at() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_form_that_is_filled_in_bit_by_bit_is_told_what_it_means() {
        let zones = Zones::bundled();
        let said = preview(&draft(&json!({"cron": "30 9 * * MON-FRI"})), None, &zones, at()).unwrap();
        assert_eq!(said.words, "At 09:30 on weekdays");
        assert_eq!(said.next[0].to_string(), "2026-03-02T09:30:00Z");
        let wrong = preview(&draft(&json!({"cron": "30 25 * * *"})), None, &zones, at()).unwrap_err();
        assert_eq!(wrong.field.as_deref(), Some("cron"));
        assert_eq!(wrong.excerpt.as_deref(), Some("  | 30 25 * * *\n  |    ^^"));
    }

    #[test]
    fn a_phrase_becomes_an_expression() {
        let zones = Zones::bundled();
        let said =
            preview(&draft(&json!({"cron": "daily around 14:00", "name": "a"})), None, &zones, at()).unwrap();
        let written = said.written.unwrap();
        assert!(written.ends_with(" * * *"), "{written}");
        let registered = registration(
            &draft(&json!({"cron": "daily around 14:00", "name": "a", "type": "t"})),
            None,
            &zones,
            at(),
        );
        assert_eq!(registered.unwrap().definition.cron, written);
        let wrong = preview(&draft(&json!({"cron": "dayly around 14:00"})), None, &zones, at()).unwrap_err();
        assert_eq!((wrong.status, wrong.field.as_deref()), (400, Some("cron")));
    }

    #[test]
    fn an_edit_keeps_what_the_form_does_not_show_and_says_which_dates_change() {
        let zones = Zones::bundled();
        let given = json!({"name": "a", "cron": "0 9 * * *", "type": "t", "args": [12345678901234567890_u64],
            "options": {"queue": "q", "priority": 5},
            "kron": {"window": {"duration": "1h"}, "seed": {"salt": "s"}, "only": ["hours=9-10"]}});
        let given = Members::read(given.to_string().as_bytes()).unwrap();
        let registered = Registration::read(given, &zones, at()).unwrap();
        let compiled = registered.definition.compile(at(), &zones).unwrap();
        let stored = Cron::new(registered.definition, &compiled, true, at());
        let mut edit = draft(&json!({"cron": "0 9 * * MON-FRI", "window": "30m", "windowMode": "after"}));
        edit.id = Some("a".into());
        let after = registration(&edit, Some(&stored), &zones, at()).unwrap().definition;
        assert_eq!(after.args.get(), "[12345678901234567890]");
        assert_eq!(after.options.value("priority"), Some(json!(5)));
        let kron: Value = serde_json::from_str(after.kron.unwrap().get()).unwrap();
        assert_eq!(kron["seed"]["salt"], "s");
        assert_eq!(kron["window"], json!({"mode": "after", "duration": "30m"}));
        let mut edit = draft(&json!({"cron": "0 9 * * MON-FRI"}));
        edit.id = Some("a".into());
        let change = preview(&edit, Some(&stored), &zones, at()).unwrap().change.unwrap();
        assert!(change.added.is_empty());
        assert_eq!(change.removed.len(), 2, "the two days of a weekend");
        let renamed = draft(&json!({"name": "b"}));
        assert_eq!(
            registration(&renamed, Some(&stored), &zones, at()).unwrap_err().field.as_deref(),
            Some("name")
        );
        let wrong = registration(&draft(&json!({"args": "[1"})), Some(&stored), &zones, at()).unwrap_err();
        assert_eq!(wrong.field.as_deref(), Some("args"));
    }
}
