//! `OnCalendar=` of systemd: as much of it as cron fields can say.

use super::fields::{Days, Field, Fields, Of, WEEKDAYS};

/// A calendar expression: its fields, and the zone at its end, if there is one.
pub(crate) fn read(text: &str) -> Result<(Fields, Option<String>), String> {
    let written = text.trim();
    let mut words: Vec<&str> = written.split_whitespace().collect();
    let zone = words.last().filter(|word| is_zone(word)).map(|zone| (*zone).to_owned());
    if zone.is_some() {
        words.pop();
    }
    if let [word] = words[..] {
        words = shorthand(word).map_or(vec![word], |meant| meant.split(' ').collect());
    }
    let weekday = match words.first() {
        Some(word) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => Some(words.remove(0)),
        _ => None,
    };
    let (mut date, mut time) = (None, None);
    for word in words {
        let place = if word.contains(':') { &mut time } else { &mut date };
        if place.replace(word).is_some() {
            return Err(format!("expected a weekday, a date, a time and a zone, but found `{written}`"));
        }
    }
    if weekday.is_none() && date.is_none() && time.is_none() {
        return Err("expected a calendar such as `Mon *-*-* 03:00:00`, but found nothing".to_owned());
    }
    let (month, day) = self::date(date.unwrap_or("*-*-*"))?;
    let (hour, minute) = self::time(time.unwrap_or("00:00:00"))?;
    let weekday = weekday.map_or(Ok(Field::all(Of::Weekday)), weekdays)?;
    Ok((Fields { minute, hour, day, month, weekday, days: Days::Both }, zone))
}

/// What one word stands for, which a zone may follow.
fn shorthand(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "minutely" => "*-*-* *:*:00",
        "hourly" => "*-*-* *:00:00",
        "daily" => "*-*-* 00:00:00",
        "weekly" => "Mon *-*-* 00:00:00",
        "monthly" => "*-*-01 00:00:00",
        "quarterly" => "*-01,04,07,10-01 00:00:00",
        "semiannually" => "*-01,07-01 00:00:00",
        "yearly" | "annually" => "*-01-01 00:00:00",
        _ => return None,
    })
}

fn is_zone(word: &str) -> bool {
    matches!(word, "UTC" | "GMT") || word.contains('/') && word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// `Mon..Fri,Sun`, with short names or long ones.
fn weekdays(text: &str) -> Result<Field, String> {
    let number = |name: &str| {
        let short = name.get(..3).unwrap_or(name).to_ascii_lowercase();
        WEEKDAYS
            .iter()
            .position(|known| *known == short)
            .ok_or_else(|| format!("expected a day of the week such as `Mon`, but found `{name}`"))
    };
    let mut bits = 0;
    for item in text.trim_end_matches(',').split(',') {
        let (first, last) = match item.split_once("..").or_else(|| item.split_once('-')) {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(item)?, number(item)?),
        };
        // A week begins on Monday here, and a range stays in it.
        let (first, last) = ((first + 6) % 7, (last + 6) % 7);
        if first > last {
            return Err(format!("expected a range from Monday towards Sunday, but found `{item}`"));
        }
        bits |= (first..=last).fold(0_u64, |bits, day| bits | 1 << ((day + 1) % 7));
    }
    let names = WEEKDAYS.iter().enumerate().filter(|(number, _)| bits >> number & 1 == 1);
    let names: Vec<String> = names.map(|(_, name)| name.to_ascii_uppercase()).collect();
    Ok(Field::of(bits, Of::Weekday, names.join(",")))
}

/// `*-MONTH-DAY` or `MONTH-DAY`. A year, or a day counted from the end of the month, has no cron field.
fn date(text: &str) -> Result<(Field, Field), String> {
    if text.contains('~') {
        return Err(format!(
            "`{text}` counts days from the end of the month, which Kron's cron fields cannot say"
        ));
    }
    let parts: Vec<&str> = text.split('-').collect();
    let (year, month, day) = match parts.as_slice() {
        [year, month, day] => (*year, *month, *day),
        [month, day] => ("*", *month, *day),
        _ => return Err(format!("expected a date such as `*-*-01`, but found `{text}`")),
    };
    if year != "*" {
        return Err(format!("`{text}` names a year, which cron fields cannot say"));
    }
    Ok((component(month, Of::Month)?, component(day, Of::Day)?))
}

/// `HOUR:MINUTE` or `HOUR:MINUTE:SECOND`. Only whole minutes are cron's.
fn time(text: &str) -> Result<(Field, Field), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] => (*hour, *minute, "0"),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return Err(format!("expected a time such as `03:00:00`, but found `{text}`")),
    };
    if second.parse::<f64>() != Ok(0.0) {
        return Err(format!("`{text}` is not a whole minute, which cron fields cannot say"));
    }
    Ok((component(hour, Of::Hour)?, component(minute, Of::Minute)?))
}

/// `*`, numbers, ranges with `..`, and `/` for repetitions: `2/3` begins at 2, and must come again.
fn component(text: &str, of: Of) -> Result<Field, String> {
    let (min, max) = of.bounds();
    let mut items = Vec::new();
    for item in text.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        if let (Some(step), false) = (step, range.contains("..")) {
            let comes_again = |first: u32, step: u32| first.saturating_add(step) <= max;
            match (range.parse(), step.parse()) {
                (Ok(first), Ok(step)) if !comes_again(first, step) => {
                    return Err(format!(
                        "expected {} that comes again up to {max}, but found `{item}`",
                        of.name()
                    ));
                }
                _ if range == "*" => {
                    return Err(format!(
                        "expected a beginning before the `/`, such as `{min}/{step}`, but found `{item}`"
                    ));
                }
                _ => {}
            }
        }
        let range = match (range.split_once(".."), step) {
            (Some((first, last)), _) => format!("{}-{}", plain(first), plain(last)),
            (None, Some(_)) if range != "*" => format!("{}-{max}", plain(range)),
            (None, _) if range == "*" => "*".to_owned(),
            (None, _) => plain(range).to_owned(),
        };
        let range = if range == format!("{min}-{max}") { "*".to_owned() } else { range };
        items.push(match step {
            Some(step) => format!("{range}/{}", plain(step)),
            None => range,
        });
    }
    Field::cron(&items.join(","), of)
}

/// A number without zeros before it.
fn plain(text: &str) -> &str {
    match text.trim_start_matches('0') {
        "" => text.get(text.len().saturating_sub(1)..).unwrap_or(text),
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cron_can_say_is_said() {
        for (text, cron) in [
            ("daily", "0 0 * * *"),
            ("weekly", "0 0 * * MON"),
            ("quarterly", "0 0 1 1,4,7,10 *"),
            ("*-*-* 6,18:00", "0 6,18 * * *"),
            ("Sun *-*-* 03:10:00", "10 3 * * SUN"),
            ("Mon..Fri 22:30", "30 22 * * MON,TUE,WED,THU,FRI"),
            ("*:0/15", "*/15 * * * *"),
            ("*-*-1..7 18:00", "0 18 1-7 * *"),
            ("0/6:30", "30 */6 * * *"),
            ("Mon..Sun 04:05", "5 4 * * *"),
            ("*-*-* 02:00:00 Europe/Berlin", "0 2 * * *"),
            ("weekly UTC", "0 0 * * MON"),
            ("Daily Europe/Paris", "0 0 * * *"),
            ("Sat..Sun", "0 0 * * SUN,SAT"),
        ] {
            let (fields, _) = read(text).unwrap();
            assert_eq!(fields.kron(), cron, "{text}");
        }
        let (both, zone) = read("Fri *-*-13 08:00 Europe/Berlin").unwrap();
        assert_eq!((both.kron().as_str(), both.weekday_names().as_str()), ("0 8 13 * *", "FRI"));
        assert_eq!(zone.as_deref(), Some("Europe/Berlin"));
    }

    #[test]
    fn what_cron_cannot_say_is_told() {
        for (text, part) in [
            ("*-*~01", "from the end of the month"),
            ("2027-01-01", "names a year"),
            ("*:*:0/30", "not a whole minute"),
            ("Fun 03:00", "expected a day of the week"),
            ("Wed..Mon", "from Monday towards Sunday, but found `Wed..Mon`"),
            ("*:*/5", "a beginning before the `/`, such as `0/5`, but found `*/5`"),
            ("23/1:00", "an hour that comes again up to 23, but found `23/1`"),
            ("daily 03:00", "expected a day of the week such as `Mon`, but found `daily`"),
            ("25:00", "expected an hour from 0 to 23"),
            ("", "but found nothing"),
            ("1:00 2:00", "expected a weekday, a date, a time and a zone"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
