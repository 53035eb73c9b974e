//! Which token of a line is what: the schedule, then modifiers, then fields.

use std::ops::Range;

use crate::code::Code;
use crate::field;
use crate::problem::{Mistake, quoted};
use crate::token::Token;

/// The tokens of an entry, by their part in it.
#[derive(Debug)]
pub(crate) struct Parts<'l> {
    pub(crate) schedule: Option<SchedulePart<'l>>,
    pub(crate) modifiers: Vec<Token<'l>>,
    pub(crate) fields: Vec<Token<'l>>,
    /// Whether the line is so far from an entry that it is no use to say what else is missing.
    pub(crate) is_lost: bool,
}

/// What stands in the place of the schedule.
#[derive(Debug)]
pub(crate) enum SchedulePart<'l> {
    /// Cron fields, an alias or `@every`: bytes of the line.
    Plain(Range<usize>),
    /// A quoted phrase.
    Phrase(Token<'l>),
}

/// The number of cron fields in a krontab.
pub(crate) const CRON_FIELDS: usize = 5;

/// Finds the part of every token. What has no place is a mistake, and left out.
pub(crate) fn divide<'l>(line: &'l str, tokens: Vec<Token<'l>>, mistakes: &mut Vec<Mistake>) -> Parts<'l> {
    let mut division =
        Division { line, tokens, at: 0, mistakes, command_ends_at: None, awaits_schedule: false };
    let mut parts = Parts { schedule: None, modifiers: Vec::new(), fields: Vec::new(), is_lost: false };
    parts.schedule = division.schedule(&mut parts.is_lost);
    division.modifiers(&mut parts);
    division.fields(&mut parts);
    parts
}

struct Division<'l, 'm> {
    line: &'l str,
    tokens: Vec<Token<'l>>,
    /// The next token to be given a part.
    at: usize,
    mistakes: &'m mut Vec<Mistake>,
    /// Whether the line began with a modifier, and its schedule has not come yet.
    awaits_schedule: bool,
    /// The token before which the last field that was read is an unquoted command.
    command_ends_at: Option<usize>,
}

impl<'l> Division<'l, '_> {
    fn schedule(&mut self, is_lost: &mut bool) -> Option<SchedulePart<'l>> {
        let first = self.tokens.first()?;
        let span = first.span();
        if self.line[span.start..].starts_with('"') {
            self.at = 1;
            return Some(SchedulePart::Phrase(first.clone()));
        }
        if is_field(first) {
            let whole = first.piece();
            // What follows may be a secret.
            let (span, key) = whole.split_once('=').map_or((span, ""), |(key, _)| (key.span(), key.text));
            let help = if field::is_known(key) {
                "an entry begins with its schedule: cron fields, `@daily`, `@every 1h` or a quoted phrase"
            } else {
                *is_lost = true;
                "a krontab has no settings; a variable stands in its entry: `env=KEY=value`"
            };
            let message = format!("expected a schedule, but found {}", quoted(&format!("{key}=")));
            self.mistakes.push(Mistake::new(Code::MissingSchedule, span, message).with_help(help));
            return None;
        }
        if is_modifier(first) {
            self.mistakes.push(
                Mistake::expected(Code::Order, span, "a schedule", first.text())
                    .with_help("the schedule comes first, then the modifiers"),
            );
            self.awaits_schedule = true;
            return None;
        }
        // An `@` form takes all that follows, so that the one who reads it can say what is too much.
        let most = if first.text().starts_with('@') { usize::MAX } else { CRON_FIELDS };
        let goes_on = |token: &&Token<'_>| !is_at(token) && !is_field(token) && !token.text().contains('(');
        self.at = 1 + self.tokens[1..].iter().take(most - 1).take_while(goes_on).count();
        let taken = &self.tokens[..self.at];
        if let Some(token) = taken.iter().find(|token| token.is_quoted()) {
            self.mistakes.push(
                Mistake::expected(Code::Schedule, token.span(), "cron fields without quotes", token.text())
                    .with_help("only a phrase such as `\"daily around 14:00\"` stands in quotes"),
            );
            return None;
        }
        Some(SchedulePart::Plain(span.start..taken.last().map_or(span.end, |last| last.span().end)))
    }

    fn modifiers(&mut self, parts: &mut Parts<'l>) {
        let after_schedule = self.at;
        while let Some(token) = self.tokens.get(self.at) {
            if is_at(token) {
                let token = token.clone();
                if !self.runs_on() {
                    parts.modifiers.push(token);
                    self.at += 1;
                }
            } else if is_field(token) {
                break;
            } else if std::mem::take(&mut self.awaits_schedule) {
                parts.schedule = self.late_schedule();
            } else {
                let strays = self.strays();
                let help = self.stray_help(&strays, after_schedule);
                parts.is_lost |= self.at == self.tokens.len();
                let found = &self.line[strays.clone()];
                let expected = "a modifier such as `@tz(UTC)` or a field such as `name=backup`";
                self.mistakes
                    .push(Mistake::expected(Code::Unexpected, strays, expected, found).with_help_if(help));
            }
        }
    }

    /// The schedule in the place of a modifier. That it stands there has been told.
    fn late_schedule(&mut self) -> Option<SchedulePart<'l>> {
        let first = self.tokens[self.at].clone();
        if self.line[first.span().start..].starts_with('"') {
            self.at += 1;
            return Some(SchedulePart::Phrase(first));
        }
        let rest = &self.tokens[self.at..];
        let count =
            rest.iter().take(CRON_FIELDS).take_while(|token| !is_at(token) && !is_field(token)).count();
        let taken = &rest[..count];
        let span = first.span().start..taken[count - 1].span().end;
        let is_quoted = taken.iter().any(Token::is_quoted);
        self.at += count;
        (!is_quoted).then_some(SchedulePart::Plain(span))
    }

    fn fields(&mut self, parts: &mut Parts<'l>) {
        while let Some(token) = self.tokens.get(self.at) {
            if is_field(token) {
                let is_command = token.text().starts_with("command=") && !token.is_quoted();
                self.command_ends_at = is_command.then_some(self.at + 1);
                parts.fields.push(token.clone());
                self.at += 1;
            } else if is_at(token) {
                self.mistakes.push(
                    Mistake::expected(
                        Code::Order,
                        token.span(),
                        "a field such as `name=backup`",
                        token.text(),
                    )
                    .with_help("modifiers stand before the fields"),
                );
                parts.modifiers.push(token.clone());
                self.at += 1;
            } else {
                let after_command = self.command_ends_at == Some(self.at);
                let strays = self.strays();
                let found = &self.line[strays.clone()];
                let help = if found.starts_with('#') {
                    Some(COMMENT_HELP)
                } else {
                    after_command
                        .then_some("a command with arguments stands in quotes: `command=\"/bin/echo hello\"`")
                };
                let expected = "a field such as `name=backup`";
                self.mistakes
                    .push(Mistake::expected(Code::Unexpected, strays, expected, found).with_help_if(help));
            }
        }
    }

    /// Passes over a modifier that a blank has broken in two, and says so.
    fn runs_on(&mut self) -> bool {
        let token = &self.tokens[self.at];
        if !token.text().contains('(') || token.text().ends_with(')') {
            return false;
        }
        let rest = &self.tokens[self.at + 1..];
        let within = rest.iter().take_while(|token| {
            let key = token.text().split_once('=').map(|(key, _)| key);
            !is_at(token) && !key.is_some_and(field::is_known)
        });
        let Some(last) = within.into_iter().position(|token| token.text().ends_with(')')) else {
            return false;
        };
        let span = token.span().start..rest[last].span().end;
        let may_have_blanks =
            ["@only(", "@avoid(", "@seed("].iter().any(|name| token.text().starts_with(name));
        let help = if may_have_blanks {
            "write it without blanks, or put quotes around what is between the parentheses"
        } else {
            "write it without blanks"
        };
        let mistake = Mistake::new(Code::ModifierSyntax, span, "a blank ends the modifier before its `)`");
        self.mistakes.push(mistake.with_help(help));
        self.at += 1 + last + 1;
        true
    }

    /// Passes over tokens that have no place, and gives where they stand. A comment is one to the end.
    fn strays(&mut self) -> Range<usize> {
        let start = self.tokens[self.at].span().start;
        let is_comment = self.line[start..].starts_with('#');
        let rest = &self.tokens[self.at..];
        let count = rest.iter().take_while(|token| is_comment || !is_at(token) && !is_field(token)).count();
        self.at += count;
        start..rest[count - 1].span().end
    }

    /// What someone who wrote these words between schedule and fields probably wants to know.
    fn stray_help(&self, strays: &Range<usize>, after_schedule: usize) -> Option<&'static str> {
        let found = &self.line[strays.clone()];
        let follows_schedule =
            after_schedule < self.tokens.len() && self.tokens[after_schedule].span().start == strays.start;
        let is_cron = |c: char| c.is_ascii_digit() || "*/,-".contains(c);
        if found.starts_with('#') {
            return Some(COMMENT_HELP);
        }
        if found.contains('(') {
            return Some("modifiers begin with `@`");
        }
        if self.line.trim_start().starts_with('"') {
            return Some("the whole phrase stands in one pair of quotes");
        }
        if follows_schedule && found.split([' ', '\t']).next().is_some_and(|word| word.chars().all(is_cron)) {
            return Some("a schedule has 5 cron fields: minute, hour, day, month and weekday");
        }
        let no_fields = self.at == self.tokens.len();
        (follows_schedule && no_fields).then_some(
            "a crontab's line is written `… name=backup command=\"…\"` here; `krontab import` converts it",
        )
    }
}

const COMMENT_HELP: &str = "comments stand on lines of their own";

/// Whether a token has the shape of a field, `key=value`.
fn is_field(token: &Token<'_>) -> bool {
    token.text().contains('=') && !is_at(token)
}

fn is_modifier(token: &Token<'_>) -> bool {
    is_at(token) && token.text().contains('(')
}

fn is_at(token: &Token<'_>) -> bool {
    token.text().starts_with('@')
}
