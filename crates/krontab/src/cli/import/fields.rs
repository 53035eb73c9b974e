//! The fields of another scheduler's calendar: what they match, and how Kron spells them.

use jiff::civil::DateTime;

/// Five fields, and how the two for days go together.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub(crate) minute: Field,
    pub(crate) hour: Field,
    pub(crate) day: Field,
    pub(crate) month: Field,
    pub(crate) weekday: Field,
    pub(crate) days: Days,
}

/// How a day of the month and a day of the week go together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Days {
    /// A day must satisfy both.
    Both,
    /// One is enough.
    Either,
}

/// One field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// As Kron spells it.
    pub(crate) text: String,
    /// Bit n stands for the value n. Sunday is 0.
    pub(crate) bits: u64,
}

/// Which field it is, for bounds and names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Of {
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
pub(crate) const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Of {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Of::Minute => "a minute",
            Of::Hour => "an hour",
            Of::Day => "a day of the month",
            Of::Month => "a month",
            Of::Weekday => "a day of the week",
        }
    }

    pub(crate) fn bounds(self) -> (u32, u32) {
        match self {
            Of::Minute => (0, 59),
            Of::Hour => (0, 23),
            Of::Day => (1, 31),
            Of::Month => (1, 12),
            Of::Weekday => (0, 7),
        }
    }

    /// A number, or the name of a month or a weekday.
    fn value(self, text: &str) -> Result<u32, String> {
        let names: &[&str] = match self {
            Of::Month => &MONTHS,
            Of::Weekday => &WEEKDAYS,
            _ => &[],
        };
        let first = if self == Of::Month { 1 } else { 0 };
        if let Some(found) = (first..).zip(names).find(|(_, name)| name.eq_ignore_ascii_case(text)) {
            return Ok(found.0);
        }
        let (min, max) = self.bounds();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(number) if is_number && (min..=max).contains(&number) => Ok(number),
            _ => Err(format!("expected {} from {min} to {max}, but found `{text}`", self.name())),
        }
    }
}

impl Field {
    /// Reads a field as cron has it. `?` is `*`, and a number with a step begins there, where other crons
    /// take them.
    pub(crate) fn cron(text: &str, of: Of) -> Result<Field, String> {
        let (min, max) = of.bounds();
        let (mut bits, mut items) = (0_u64, Vec::new());
        for item in text.split(',') {
            let (range, step) = match item.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (item, None),
            };
            let step = match step {
                None => 1,
                Some(step) => match step.parse::<u32>() {
                    Ok(step) if (1..=max).contains(&step) => step,
                    _ => {
                        return Err(format!(
                            "expected a step from 1 to {max}, but found `{step}` in `{item}`"
                        ));
                    }
                },
            };
            if range.contains('~') {
                return Err(format!(
                    "`{item}` is {} at random, which Kron says with a window: write the earliest and `@win(after,…)`",
                    of.name()
                ));
            }
            let (first, last) = match range.split_once('-') {
                _ if range == "*" || range == "?" => (min, if of == Of::Weekday { 6 } else { max }),
                Some((first, last)) => (of.value(first)?, of.value(last)?),
                None if item.contains('/') => (of.value(range)?, max),
                None => (of.value(range)?, of.value(range)?),
            };
            if first > last {
                return Err(format!(
                    "expected a range that ends at or after its beginning, but found `{item}`"
                ));
            }
            for value in (first..=last).step_by(usize::try_from(step).unwrap_or(1)) {
                bits |= 1 << if of == Of::Weekday && value == 7 { 0 } else { value };
            }
            items.push(match (range, step) {
                ("*" | "?", 1) => "*".to_owned(),
                ("*" | "?", step) => format!("*/{step}"),
                (_, _) if first == last => first.to_string(),
                (_, 1) => format!("{first}-{last}"),
                (_, step) => format!("{first}-{last}/{step}"),
            });
        }
        // Who lists `*` restricts nothing.
        let text = if items.iter().any(|item| item == "*") { "*".to_owned() } else { items.join(",") };
        Ok(Field { text, bits })
    }

    pub(crate) fn all(of: Of) -> Field {
        Field::cron("*", of).expect("`*` is a field")
    }

    /// A field with these values, spelled as Kron would.
    pub(crate) fn of(values: u64, of: Of, text: String) -> Field {
        let (min, max) = of.bounds();
        let max = if of == Of::Weekday { 6 } else { max };
        let all = (min..=max).fold(0_u64, |bits, value| bits | 1 << value);
        Field { text: if values & all == all { "*".to_owned() } else { text }, bits: values }
    }

    pub(crate) fn is_star(&self) -> bool {
        self.text == "*"
    }

    fn has(&self, value: i8) -> bool {
        self.bits >> u32::from(value.unsigned_abs()) & 1 == 1
    }
}

impl Fields {
    /// Whether the minute or the hour field begins with `*`, as crons tell an interval from a time of day.
    pub(crate) fn is_interval(&self) -> bool {
        self.minute.text.starts_with('*') || self.hour.text.starts_with('*')
    }

    /// Whether both day fields restrict, and a day must satisfy both: what cron fields cannot say.
    pub(crate) fn needs_both_days(&self) -> bool {
        self.days == Days::Both && !self.day.is_star() && !self.weekday.is_star()
    }

    /// The five fields as Kron spells them. If both days must match, the day of the week is left to a
    /// constraint.
    pub(crate) fn kron(&self) -> String {
        let weekday = if self.needs_both_days() { "*" } else { &self.weekday.text };
        [&self.minute.text, &self.hour.text, &self.day.text, &self.month.text, weekday].join(" ")
    }

    /// The weekdays by name: `MON,TUE`.
    pub(crate) fn weekday_names(&self) -> String {
        let named = WEEKDAYS.iter().enumerate().filter(|(number, _)| self.weekday.bits >> number & 1 == 1);
        named.map(|(_, name)| name.to_ascii_uppercase()).collect::<Vec<_>>().join(",")
    }

    /// Whether they name a local time, to the minute.
    pub(crate) fn matches(&self, civil: DateTime) -> bool {
        let weekday = civil.weekday().to_sunday_zero_offset();
        let (day, weekday) = (self.day.has(civil.day()), self.weekday.has(weekday));
        let days = match self.days {
            Days::Either if !self.day.is_star() && !self.weekday.is_star() => day || weekday,
            _ => day && weekday,
        };
        days && self.minute.has(civil.minute())
            && self.hour.has(civil.hour())
            && self.month.has(civil.month())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_spelled_as_kron_does() {
        for (text, of, spelled, bits) in [
            ("*", Of::Hour, "*", 0xFF_FFFF),
            ("*/1", Of::Day, "*", 0xFFFF_FFFE),
            ("?", Of::Day, "*", 0xFFFF_FFFE),
            ("5/20", Of::Minute, "5-59/20", 1 << 5 | 1 << 25 | 1 << 45),
            ("mon-FRI", Of::Weekday, "1-5", 0b11_1110),
            ("5-7", Of::Weekday, "5-7", 0b110_0001),
            ("7", Of::Weekday, "7", 1),
            ("jan,Dec", Of::Month, "1,12", 1 << 1 | 1 << 12),
            ("1,*", Of::Hour, "*", 0xFF_FFFF),
        ] {
            let field = Field::cron(text, of).unwrap();
            assert_eq!((field.text.as_str(), field.bits), (spelled, bits), "{text}");
        }
        for (text, of, error) in [
            ("60", Of::Minute, "expected a minute from 0 to 59, but found `60`"),
            ("5-1", Of::Hour, "expected a range that ends at or after its beginning, but found `5-1`"),
            ("*/0", Of::Hour, "expected a step from 1 to 23, but found `0` in `*/0`"),
            ("", Of::Day, "expected a day of the month from 1 to 31, but found ``"),
        ] {
            assert_eq!(Field::cron(text, of).unwrap_err(), error);
        }
        assert!(Field::cron("0~59", Of::Minute).unwrap_err().contains("@win(after,…)"));
    }
}
