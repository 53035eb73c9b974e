//! Text becomes a phrase, or an error with its place.
//!
//! One pass, words in order, the first mistake wins. `interval`, `time` and `offset` have the rest of
//! the parser.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use jiff::civil::Weekday;

use super::cursor::{BLANKS, Cursor};
use super::error::{Code, FuzzyError};
use super::extensions::Extensions;
use super::phrase::{Extra, Form, Phrase};
use super::placeholder::{Kind, Placeholder};
use super::time::WrittenTime;
use super::warning::{FuzzyWarning, FuzzyWarningKind};
use super::weekday::{self, Workweek};
use super::window::{Window, WrittenWindow};
use crate::parse::EXPRESSION_BYTES_MAX;
use crate::suggest;

pub(super) fn parse(text: &str, extensions: Extensions) -> Result<Phrase, FuzzyError> {
    check_characters(text)?;
    let mut parser = Parser { cursor: Cursor::new(text), extensions, warnings: Vec::new() };
    let (form, kind) = parser.phrase()?;
    Ok(Phrase { form, placeholder: Placeholder(kind), warnings: parser.warnings })
}

fn check_characters(text: &str) -> Result<(), FuzzyError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let headline = format!("A phrase of {} bytes is not supported", text.len());
        let guidance = format!("A phrase has at most {EXPRESSION_BYTES_MAX} bytes");
        return Err(FuzzyError::new(Code::Unsupported, 0..text.len(), headline, guidance));
    }
    match text.char_indices().find(|&(_, c)| !matches!(c, ' '..='~') && !BLANKS.contains(&c)) {
        None => Ok(()),
        Some((at, c)) => Err(FuzzyError::new(
            Code::Unsupported,
            at..at + c.len_utf8(),
            format!("The character U+{:04X} is not supported", u32::from(c)),
            "A phrase has only ASCII letters, digits, signs and white space",
        )),
    }
}

/// What a phrase can begin with, in the order of the error message.
const TYPES: [&str; 6] = ["daily", "weekly", "hourly", "bi-weekly", "tri-weekly", "every"];

/// Words that someone may write behind a time and surely does not mean as a zone.
const KEYWORDS: [&str; 12] =
    ["am", "and", "at", "daily", "every", "from", "noon", "on", "or", "pm", "to", "until"];

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

const WINDOWS: [&str; 2] = ["around <time>", "between <time> and <time>"];

pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) extensions: Extensions,
    warnings: Vec<FuzzyWarning>,
}

/// A window as written, what it is in UTC, and how many days later (or earlier) it starts there.
struct ReadWindow {
    written: WrittenWindow,
    window: Window,
    days: i32,
}

impl Parser<'_> {
    fn phrase(&mut self) -> Result<(Form, Kind), FuzzyError> {
        let Some(place) = self.cursor.peek() else {
            return Err(self.missing("A schedule expression is required", "daily around 14:00"));
        };
        self.cursor.move_to(place.end);
        match self.cursor.slice(place.clone()).to_ascii_lowercase().as_str() {
            "daily" => self.daily(),
            "weekly" => self.weekly(),
            "hourly" => self.hourly(),
            "bi-weekly" => self.alone(&place, |exactly| Form::BiWeekly { exactly }, Kind::BiWeekly, 14),
            "tri-weekly" => self.alone(&place, |exactly| Form::TriWeekly { exactly }, Kind::TriWeekly, 21),
            "every" => self.every(place.start),
            word => {
                let help = suggest::did_you_mean(word, TYPES);
                let headline = format!("Unknown schedule type '{}'", self.cursor.quoted(place.clone()));
                let guidance = format!("Valid types: {}", TYPES.join(", "));
                Err(FuzzyError::new(Code::ScheduleType, place, headline, guidance).with_help(help))
            }
        }
    }

    fn daily(&mut self) -> Result<(Form, Kind), FuzzyError> {
        let mut weekdays = self.on_weekdays();
        let read = self.window("daily")?;
        if weekdays.is_none() {
            weekdays = self.on_weekdays();
        }
        let follow: &[&str] = if read.is_none() { &WINDOWS } else { &[] };
        self.end(Some("daily"), follow, weekdays.is_none().then_some(Extra::OnWeekdays))?;
        let days = weekdays.map(|place| {
            let moved = Workweek::USUAL.moved(read.as_ref().map_or(0, |read| read.days));
            self.note_moved(place, read.as_ref(), "'on weekdays'", &moved.names());
            moved
        });
        let form = Form::Daily { window: read.as_ref().map(|read| read.written), weekdays: days.is_some() };
        Ok((form, Kind::Daily { window: read.map(|read| read.window), days }))
    }

    fn weekly(&mut self) -> Result<(Form, Kind), FuzzyError> {
        let asked = if self.cursor.eat("on") { Some(self.weekday()?) } else { None };
        let head = match &asked {
            None => "weekly".to_string(),
            Some((weekday, _)) => format!("weekly on {}", weekday::name(*weekday)),
        };
        let read = self.window(&head)?;
        let follow: &[&str] = match (&asked, &read) {
            (None, None) => &["on <weekday>", WINDOWS[0], WINDOWS[1]],
            (Some(_), None) => &WINDOWS,
            (_, Some(_)) => &[],
        };
        self.end(Some(&head), follow, None)?;
        let written = read.as_ref().map(|read| read.written);
        let form = Form::Weekly { weekday: asked.as_ref().map(|(weekday, _)| *weekday), window: written };
        let weekday = asked.map(|(weekday, place)| {
            let moved = weekday.wrapping_add(read.as_ref().map_or(0, |read| read.days));
            let subject = format!("'{}'", weekday::name(weekday));
            self.note_moved(place, read.as_ref(), &subject, weekday::name(moved));
            moved
        });
        Ok((form, Kind::Weekly { weekday, window: read.map(|read| read.window) }))
    }

    fn hourly(&mut self) -> Result<(Form, Kind), FuzzyError> {
        let weekdays = self.on_weekdays().is_some();
        self.end(None, &[], (!weekdays).then_some(Extra::OnWeekdays))?;
        let days = weekdays.then_some(Workweek::USUAL);
        Ok((Form::Hourly { weekdays }, Kind::Hourly { step: None, days }))
    }

    /// `bi-weekly` and `tri-weekly`: nothing but a word of Kron's own can follow.
    fn alone(
        &mut self,
        place: &Range<usize>,
        form: fn(bool) -> Form,
        stepped: Kind,
        days: u16,
    ) -> Result<(Form, Kind), FuzzyError> {
        let exactly = self.extension("exactly");
        self.end(None, &[], (!exactly).then_some(Extra::Exactly))?;
        let form = form(exactly);
        if exactly {
            return Ok((form, Kind::EveryDays(days)));
        }
        self.warn_of_day_step(place, form, days);
        Ok((form, stepped))
    }

    /// The weekday after `on`, and its place.
    fn weekday(&mut self) -> Result<(Weekday, Range<usize>), FuzzyError> {
        let Some(place) = self.cursor.peek() else {
            return Err(self.missing("'on' requires a weekday", "weekly on monday"));
        };
        let word = self.cursor.slice(place.clone());
        let short = || if self.extensions.are_on() { weekday::abbreviated(word) } else { None };
        let Some(weekday) = weekday::named(word).or_else(short) else {
            let help = weekday::suggested(word).map(|close| format!("did you mean `{close}`?"));
            let headline = self.in_phrase("Unknown weekday", place.clone());
            let guidance = format!("Valid weekdays: {}", weekday::NAMES.join(", "));
            return Err(FuzzyError::new(Code::Weekday, place, headline, guidance).with_help(help));
        };
        self.cursor.move_to(place.end);
        Ok((weekday, place))
    }

    /// `around` or `between`, if one of them follows. `head` is the phrase before it, for examples.
    fn window(&mut self, head: &str) -> Result<Option<ReadWindow>, FuzzyError> {
        let start = self.cursor.peek().unwrap_or_default().start;
        let written = if self.cursor.eat("around") {
            self.around(head)?
        } else if self.cursor.eat("between") {
            self.between(head)?
        } else {
            return Ok(None);
        };
        match written.to_utc() {
            Some((window, days)) => Ok(Some(ReadWindow { written, window, days })),
            None => Err(FuzzyError::new(
                Code::EqualTimes,
                start..self.cursor.at(),
                format!("'between' requires two different times in '{}'", self.cursor.whole()),
                format!("Use '{head} around <time>' for a window of ±1 hour, or '{head}' for the whole day"),
            )),
        }
    }

    fn around(&mut self, head: &str) -> Result<WrittenWindow, FuzzyError> {
        let Some(place) = self.cursor.peek() else {
            let example = format!("{head} around 14:00");
            return Err(self.missing("'around' requires a time specification", &example));
        };
        if self.cursor.slice(place.clone()).eq_ignore_ascii_case("at") {
            return Err(FuzzyError::new(
                Code::Unsupported,
                place,
                format!("'{head} around at <time>' syntax is not supported"),
                use_around(head),
            ));
        }
        Ok(WrittenWindow::Around(self.time(place)?))
    }

    fn between(&mut self, head: &str) -> Result<WrittenWindow, FuzzyError> {
        let (start, start_place) = self.end_of_range(head)?;
        if !self.cursor.eat("and") {
            return Err(self.incomplete_range(head));
        }
        let (end, end_place) = self.end_of_range(head)?;
        if start.offset.is_some() != end.offset.is_some() {
            let (without, place) =
                if start.offset.is_none() { (start, start_place) } else { (end, end_place) };
            self.warn(FuzzyWarning::new(
                FuzzyWarningKind::OneSidedOffset,
                Some(place),
                format!("Only one of the two times has a UTC offset: '{without}' is read as UTC"),
                "Write the offset behind both times if both are meant",
            ));
        }
        Ok(WrittenWindow::Between(start, end))
    }

    /// One of the two times of a range, and its place.
    fn end_of_range(&mut self, head: &str) -> Result<(WrittenTime, Range<usize>), FuzzyError> {
        let is_time = |place: &Range<usize>| !self.cursor.slice(place.clone()).eq_ignore_ascii_case("and");
        let Some(place) = self.cursor.peek().filter(is_time) else {
            return Err(self.incomplete_range(head));
        };
        let start = place.start;
        let time = self.time(place)?;
        Ok((time, start..self.cursor.at()))
    }

    fn incomplete_range(&self, head: &str) -> FuzzyError {
        let example = format!("{head} between 9:00 and 17:00");
        self.missing("'between' requires two time specifications", &example)
    }

    /// `on weekdays`, if the extensions are on and it follows; and its place.
    pub(super) fn on_weekdays(&mut self) -> Option<Range<usize>> {
        let start = self.cursor.peek()?.start;
        let mut ahead = self.cursor.clone();
        if !(self.extensions.are_on() && ahead.eat("on") && ahead.eat("weekdays")) {
            return None;
        }
        self.cursor = ahead;
        Some(start..self.cursor.at())
    }

    /// A word of Kron's own, if the extensions are on and it follows.
    pub(super) fn extension(&mut self, word: &str) -> bool {
        self.extensions.are_on() && self.cursor.eat(word)
    }

    /// The end of the phrase. Otherwise an error says what could have followed: `follow` and, with
    /// extensions, `extra`. `head` is the phrase without its window, if it can have one.
    pub(super) fn end(
        &self,
        head: Option<&str>,
        follow: &[&str],
        extra: Option<Extra>,
    ) -> Result<(), FuzzyError> {
        let Some(place) = self.cursor.peek() else { return Ok(()) };
        let span = place.start..self.cursor.end().end;
        if let Some(head) = head
            && !follow.is_empty()
            && self.cursor.slice(place.clone()).eq_ignore_ascii_case("at")
        {
            let headline = format!("'{head} at <time>' syntax is not supported");
            return Err(FuzzyError::new(Code::Unsupported, span, headline, use_around(head)));
        }
        let (before, rest) = (self.cursor.quoted(0..place.start), self.cursor.quoted(span.clone()));
        let mut valid: Vec<String> = follow.iter().map(ToString::to_string).collect();
        valid.extend(extra.filter(|_| self.extensions.are_on()).map(|extra| extra.to_string()));
        let guidance = match valid.as_slice() {
            [] => format!("Nothing can follow '{before}'"),
            valid => format!("What can follow '{before}': {}", valid.join(", ")),
        };
        let is_extra = extra.is_some_and(|extra| extra.to_string().eq_ignore_ascii_case(&rest));
        let help = if is_extra {
            Some(format!("`{}` is an extension of Kron's, and extensions are off", rest.to_ascii_lowercase()))
        } else {
            let last = rest.rsplit(' ').next().and_then(weekday::named);
            last.filter(|_| head.is_some() && !follow.is_empty())
                .map(|weekday| format!("did you mean `weekly on {}`?", weekday::name(weekday)))
        };
        let headline = format!("'{rest}' after '{before}' is not supported");
        Err(FuzzyError::new(Code::Unsupported, span, headline, guidance).with_help(help))
    }

    /// Something is missing behind the last word that was read.
    pub(super) fn missing(&self, headline: &str, example: &str) -> FuzzyError {
        let at = self.cursor.at();
        FuzzyError::new(Code::Missing, at..at, headline.to_string(), format!("Example: {example}"))
    }

    /// "Unknown weekday 'mondey' in 'weekly on mondey'".
    pub(super) fn in_phrase(&self, what: &str, place: Range<usize>) -> String {
        format!("{what} '{}' in '{}'", self.cursor.quoted(place), self.cursor.whole())
    }

    /// Adds a remark, once.
    pub(super) fn warn(&mut self, warning: FuzzyWarning) {
        if !self.warnings.iter().any(|known| known.headline() == warning.headline()) {
            self.warnings.push(warning);
        }
    }

    fn note_moved(&mut self, place: Range<usize>, read: Option<&ReadWindow>, subject: &str, moved: &str) {
        let Some(read) = read.filter(|read| read.days != 0) else { return };
        let anchor = read.written.anchor();
        let side = if read.days < 0 { "before" } else { "after" };
        self.warn(FuzzyWarning::new(
            FuzzyWarningKind::WeekdayMoved,
            Some(place),
            format!("{subject} becomes {moved} in UTC"),
            format!("{anchor} is {} UTC on the day {side}", anchor.to_utc().0),
        ));
    }

    /// `form` is a step of so many days through the days of the month.
    pub(super) fn warn_of_day_step(&mut self, place: &Range<usize>, form: Form, step: u16) {
        let exactly = if self.extensions.are_on() {
            format!("; '{form} exactly' keeps the distance")
        } else {
            String::new()
        };
        self.warn(FuzzyWarning::new(
            FuzzyWarningKind::DayStep,
            Some(place.clone()),
            format!("'{form}' runs on {} of every month, not every {step} days", month_days(step)),
            format!("The count starts again on day 1 of every month{exactly}"),
        ));
    }
}

fn use_around(head: &str) -> String {
    format!("Use '{head} around <time>' for fuzzy scheduling within ±1 hour window")
}

/// The days of the month that a step from the first one meets: "days 1, 15, 29".
fn month_days(step: u16) -> String {
    let days: Vec<String> = (1..=31).step_by(step.into()).map(|day: u16| day.to_string()).collect();
    match days.as_slice() {
        [day] => format!("day {day}"),
        [first, second, third, .., last] if days.len() > 5 => {
            format!("days {first}, {second}, {third}, ..., {last}")
        }
        days => format!("days {}", days.join(", ")),
    }
}
