//! What is legal and surely a surprise.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::calendar::days_in_month_max;
use crate::compile::month_name;
use crate::error::render;
use crate::every::Every;
use crate::expr::{Cron, Expr, Shape, Values, ones};
use crate::field::Field;

/// A remark about an expression that works, but perhaps not as its author thinks.
///
/// ```
/// use kron_schedule::{Dialect, Expr};
///
/// let line = "* */15 * * *";
/// let warnings = Expr::parse(line, Dialect::Kron)?.warnings();
/// assert_eq!(warnings[0].render(line), "\
/// this runs 120 times a day: every minute of the hours 0 and 15
///   | * */15 * * *
///   | ^^^^^^
///   = help: did you mean `*/15 * * * *`, every 15 minutes?");
/// # Ok::<(), kron_schedule::ParseError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    kind: WarningKind,
    span: Range<usize>,
    message: String,
    help: Option<String>,
}

/// What the remark is about, as a closed list for programs to branch on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WarningKind {
    /// Both day fields restrict, and a day needs to satisfy only one of them.
    EitherDay,
    /// Every minute of some hours, where a time of day may have been meant.
    EveryMinute,
    /// A day that some of the months do not have.
    MissingDay,
    /// A step so long that only the first value is left.
    StepTooLong,
    /// An interval beside the second grid: evaluation happens at most once a second.
    SubSecond,
    /// A step that does not divide its field, and starts anew with it.
    UnevenStep,
}

impl Warning {
    /// What the remark is about, for programs to branch on.
    #[must_use]
    pub fn kind(&self) -> WarningKind {
        self.kind
    }

    /// Where it is, in bytes of the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What to write instead, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The remark, and below it the text with a caret under its place.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        render(self, &self.span, self.help(), text)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Expr {
    /// What is legal and surely a surprise, in the order of the fields.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Expr::Cron(cron) => {
                let mut warnings: Vec<Warning> =
                    Field::ALL.iter().filter_map(|field| cron.step_warning(*field)).collect();
                warnings.extend(cron.every_minute());
                warnings.extend(cron.missing_days());
                warnings.extend(cron.either_day());
                warnings.sort_by_key(|warning| warning.span.start);
                warnings
            }
            Expr::Every(every) => sub_second(every).into_iter().collect(),
        }
    }
}

impl Cron {
    fn step_warning(&self, field: Field) -> Option<Warning> {
        let (values, whole) = match field {
            Field::Second => (self.fields.second, "minute"),
            Field::Minute => (self.fields.minute, "hour"),
            Field::Hour => (self.fields.hour, "day"),
            Field::Day => (self.fields.day.values, "month"),
            Field::Month => (self.fields.month, "year"),
            Field::Weekday => (self.fields.weekday.values, "week"),
        };
        let (step, 0) = values.led(field)? else { return None };
        let count = field.max() - field.min() + 1;
        let span = self.span(field);
        if step >= count {
            return Some(Warning {
                kind: WarningKind::StepTooLong,
                span,
                message: format!("a step this long leaves only {field} {}", field.min()),
                help: None,
            });
        }
        (!count.is_multiple_of(step) || (field == Field::Day && step > 1)).then(|| Warning {
            kind: WarningKind::UnevenStep,
            span,
            message: format!("`*/{step}` starts anew every {whole}, so its last step is shorter"),
            help: None,
        })
    }

    fn every_minute(&self) -> Option<Warning> {
        let (minute, hour) = (self.fields.minute, self.fields.hour);
        if minute.shape != Shape::Star
            || hour.bits == Field::Hour.all()
            || self.fields.second != Values::only(0)
        {
            return None;
        }
        let hours: Vec<String> = ones(hour.bits).map(|hour| hour.to_string()).collect();
        let help = match (hour.led(Field::Hour), hours.as_slice()) {
            (Some((step, 0)), _) if self.is_daily() => {
                Some(format!("did you mean `*/{step} * * * *`, every {step} minutes?"))
            }
            (None, [hour]) => Some(format!("for once a day at {hour}:00 write `0 {hour}`")),
            _ => None,
        };
        Some(Warning {
            kind: WarningKind::EveryMinute,
            span: self.span(Field::Minute).start..self.span(Field::Hour).end,
            message: format!(
                "this runs {} times a day: every minute of {}",
                60 * hours.len(),
                hours_named(&hours)
            ),
            help,
        })
    }

    /// Whether it does not restrict days and months.
    fn is_daily(&self) -> bool {
        !self.restricts_day() && !self.restricts_weekday() && self.fields.month.shape == Shape::Star
    }

    /// The largest day that is named, if some of the months do not have it.
    fn missing_days(&self) -> Option<Warning> {
        let day = &self.fields.day;
        if day.values.shape == Shape::Star {
            return None;
        }
        // A progression from `*` names the days it finds; the others were asked for.
        let listed = day.values.led(Field::Day).map_or(day.values.bits, |(_, rest)| rest);
        let latest = (listed | u64::from(day.nearest)).checked_ilog2().filter(|latest| *latest > 28)?;
        let short: Vec<String> = ones(self.fields.month.bits)
            .filter(|month| days_in_month_max(*month) < latest || (*month == 2 && latest == 29))
            .map(|month| month_name(month).to_string())
            .collect();
        let years = if latest == 29 { " in most years" } else { "" };
        (!short.is_empty()).then(|| Warning {
            kind: WarningKind::MissingDay,
            span: self.span(Field::Day),
            message: format!("there is no day {latest} in {}{years}", joined(&short)),
            help: self.dialect.has_quartz_forms().then(|| "`L` is the last day of any month".into()),
        })
    }

    fn either_day(&self) -> Option<Warning> {
        (self.restricts_day() && self.restricts_weekday()).then(|| Warning {
            kind: WarningKind::EitherDay,
            span: self.span(Field::Day).start..self.span(Field::Weekday).end,
            message: "a day needs to satisfy only one of the two day fields, not both".into(),
            help: None,
        })
    }
}

fn sub_second(every: &Every) -> Option<Warning> {
    (every.interval().subsec_nanos() != 0).then(|| Warning {
        kind: WarningKind::SubSecond,
        span: every.span(),
        message: "schedules are looked at once a second at most: what comes between fires once, together"
            .into(),
        help: None,
    })
}

/// "the hour 2", "the hours 0 and 15", "9 hours".
fn hours_named(hours: &[String]) -> String {
    match hours {
        [hour] => format!("the hour {hour}"),
        [_, _] | [_, _, _] => format!("the hours {}", joined(hours)),
        many => format!("{} hours", many.len()),
    }
}

/// "a", "a and b", "a, b and c".
fn joined(values: &[String]) -> String {
    match values {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect::{self, Kron, Ojs};
    use alloc::vec;

    #[test]
    fn surprises_are_told_in_these_words() {
        let warnings = |line: &str, dialect: Dialect| -> Vec<String> {
            Expr::parse(line, dialect).unwrap().warnings().iter().map(ToString::to_string).collect()
        };
        let none: Vec<String> = vec![];
        assert_eq!(warnings("*/15 * * * *", Kron), none);
        assert_eq!(warnings("0 0 L * *", Ojs), none);
        assert_eq!(warnings("* * * * *", Kron), none);
        assert_eq!(
            warnings("*/7 * * * *", Kron),
            ["`*/7` starts anew every hour, so its last step is shorter"]
        );
        assert_eq!(
            warnings("0 0 */2 * *", Kron),
            ["`*/2` starts anew every month, so its last step is shorter"]
        );
        assert_eq!(warnings("*/90 * * * *", Kron), ["a step this long leaves only minute 0"]);
        assert_eq!(warnings("* 2 * * *", Kron), ["this runs 60 times a day: every minute of the hour 2"]);
        assert_eq!(
            warnings("0 0 31 * *", Ojs),
            ["there is no day 31 in February, April, June, September and November"]
        );
        assert_eq!(warnings("0 0 30 1,2 *", Kron), ["there is no day 30 in February"]);
        assert_eq!(warnings("0 0 29 2 *", Kron), ["there is no day 29 in February in most years"]);
        assert_eq!(warnings("0 0 31 1 *", Kron), none);
        assert_eq!(
            warnings("0 0 1 * 1", Kron),
            ["a day needs to satisfy only one of the two day fields, not both"]
        );
        assert_eq!(
            warnings("@every 500ms", Ojs),
            ["schedules are looked at once a second at most: what comes between fires once, together"]
        );
    }
}
