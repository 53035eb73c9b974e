//! One function for each op: a request's members in, a result or a mistake out.

use kron_core::{Job, Ledger, PeriodId, Record, RunId, Step, Watch, decide, evaluate};
use kron_schedule::fuzzy::{Extensions, Phrase, Placeholder, Scattered};
use kron_schedule::{Dialect, Expr, Schedule, Zone};

use super::COUNT_MAX;
use super::answer::{self, Evaluated, Linted, Occurrences, Parsed, Phrased, ProblemShape};
use super::answer::{Remark, StepShape};
use super::decision::{self, Decided};
use super::job::{self, Definitions, Last};
use super::member::{Member, Members};
use super::mistake::Mistake;
use super::request::{Question, Request};
use super::time::Time;
use super::wire::{self, Op};
use crate::{Krontab, Source, Zones};

/// Where questions are answered. It keeps what is the same from one to the next.
pub(super) struct Desk<'z> {
    zones: &'z Zones,
    utc: Zone,
    /// Of a name and a dialect.
    zone: Last<Zone, 2>,
    /// A decision is asked for by its nominal time, and its job needs some schedule.
    any_schedule: Schedule,
    definitions: Definitions,
    source: Source,
}

impl<'z> Desk<'z> {
    pub(super) fn new(zones: &'z Zones) -> Desk<'z> {
        let utc = Zone::utc();
        // So rare that windows of any length do not overlap, which a job is checked for.
        let rare = Expr::parse("@every 10000h", Dialect::Kron);
        let any_schedule = rare.and_then(|expr| expr.compile(&utc, Dialect::Kron.default_dst()));
        Desk {
            zones,
            utc,
            zone: Last::default(),
            any_schedule: any_schedule.expect("whole hours are an interval"),
            definitions: Definitions::default(),
            source: Source::new("/text").expect("it is absolute"),
        }
    }

    pub(super) fn answer(&mut self, request: Request<'_>, out: &mut Vec<u8>) {
        let id = request.id;
        let Question { op, members } = match request.question {
            Ok(question) => question,
            Err(mistake) => return answer::refuse(out, id, mistake),
        };
        let members = &members;
        match op {
            Op::Decide => answer::write(out, id, self.decide(members), decision::append),
            Op::Evaluate => answer::write(out, id, self.evaluate(members), answer::shape),
            Op::Fuzzy => answer::write(out, id, fuzzy(members), answer::shape),
            Op::Lint => answer::write(out, id, self.lint(members), answer::shape),
            Op::Next => answer::write(out, id, self.next(members), answer::shape),
            Op::Parse => answer::write(out, id, self.parse(members), answer::shape),
            Op::Prev => answer::write(out, id, self.prev(members), answer::shape),
            Op::Scatter => answer::write(out, id, scatter(members), answer::shape),
        }
    }

    fn parse(&self, members: &Members<'_>) -> Result<Parsed, Mistake> {
        let dialect = members.required("dialect")?.choice(wire::DIALECTS)?;
        let member = members.required("expr")?;
        let expr = Expr::parse(&member.text()?, dialect).map_err(|error| member.blame(error))?;
        // What can never match is an error; in which zone makes no difference to nearly every expression.
        expr.compile(&self.utc, dialect.default_dst()).map_err(|error| member.blame(error))?;
        Ok(Parsed {
            canonical: expr.to_string(),
            description: expr.describe(),
            warnings: expr.warnings().iter().map(Remark::from).collect(),
        })
    }

    fn next(&mut self, members: &Members<'_>) -> Result<Occurrences, Mistake> {
        let (at, count) = (members.required("at")?.time()?, members.required("count")?.count(COUNT_MAX)?);
        let schedule = job::schedule(members, &self.zone(members)?)?;
        Ok(Occurrences { occurrences: schedule.occurrences_after(at).take(count).map(Time).collect() })
    }

    fn prev(&mut self, members: &Members<'_>) -> Result<Occurrences, Mistake> {
        let (at, count) = (members.required("at")?.time()?, members.required("count")?.count(COUNT_MAX)?);
        let schedule = job::schedule(members, &self.zone(members)?)?;
        Ok(Occurrences { occurrences: schedule.occurrences_before(at).take(count).map(Time).collect() })
    }

    fn decide(&mut self, members: &Members<'_>) -> Result<Decided, Mistake> {
        let nominal = members.required("nominal")?.time()?;
        let zone = self.zone(members)?;
        let job = self.definitions.job(members, self.any_schedule.clone(), zone)?.build()?;
        let decision = decide(&job, nominal);
        Ok(Decided { job, decision })
    }

    fn evaluate(&mut self, members: &Members<'_>) -> Result<Evaluated, Mistake> {
        // A `decide` may be extended to this; its nominal time has no say here, but must be one.
        members.optional("nominal").map(|nominal| nominal.time()).transpose()?;
        let zone = self.zone(members)?;
        let schedule = job::schedule(members, &zone)?;
        let policy = job::policy(members)?;
        let job = self.definitions.job(members, schedule, zone)?.policy(policy).build()?;
        let ledger = match members.optional("lastHandled") {
            Some(period) => {
                // A time that is none is refused in the same words as any other.
                period.time()?;
                Ledger::fenced(period.text()?.parse::<PeriodId>().map_err(|error| period.blame(error))?)
            }
            None => Ledger::new(),
        };
        // Which period it is a run of is not told, and no rule about it depends on that.
        let active: &[RunId] = if members.required("active")?.flag()? { &[RunId::Manual(0)] } else { &[] };
        let now = members.required("now")?.time()?;
        Ok(evaluated(&job, &ledger, active, Watch { since: now, now }))
    }

    fn lint(&self, members: &Members<'_>) -> Result<Linted, Mistake> {
        let text = members.required("text")?;
        let source = match members.optional("path") {
            Some(path) => Source::new(&*path.text()?)
                .map_err(|error| path.blame(Mistake::new(wire::BAD_VALUE, error.to_string())))?,
            None => self.source.clone(),
        };
        let parsed = Krontab::parse(&text.text()?, &source, self.zones);
        if parsed.has_errors() {
            let mistake = Mistake::new(wire::KRONTAB, "the krontab has errors");
            return Err(text.blame(Mistake { problems: parsed.problems, ..mistake }));
        }
        Ok(Linted {
            jobs: parsed.entries.iter().map(|entry| entry.name.clone()).collect(),
            warnings: parsed.problems.iter().map(ProblemShape::from).collect(),
        })
    }

    fn zone(&mut self, members: &Members<'_>) -> Result<Zone, Mistake> {
        let Some(member) = members.optional("timezone") else {
            return Ok(self.utc.clone());
        };
        // Of the ops that have zones, `decide` has no dialect.
        let asked = members.optional("dialect");
        let find = || {
            let dialect = asked.as_ref().map(|asked| asked.choice(wire::DIALECTS)).transpose()?;
            let dialect = dialect.unwrap_or(Dialect::Kron);
            self.zones.find_in(&member.text()?, dialect).map_err(|error| member.blame(error))
        };
        self.zone.read([member.json(), asked.as_ref().map_or("", Member::json)], find)
    }
}

fn evaluated(job: &Job, ledger: &Ledger, active: &[RunId], watch: Watch) -> Evaluated {
    let (asked, wake_at) = evaluate(job, ledger, active, watch);
    let mut steps = Vec::with_capacity(asked.len());
    for step in &asked {
        match step {
            Step::Start(decision) => steps.push(StepShape::new(wire::START, Some(decision.period_id()))),
            Step::Terminate(RunId::Period(period)) => {
                steps.push(StepShape::new(wire::TERMINATE, Some(*period)));
            }
            Step::Terminate(RunId::Manual(_)) => steps.push(StepShape::new(wire::TERMINATE, None)),
            Step::Record(Record::Settled(settled)) => {
                steps.push(StepShape::settled(settled.decision.period_id(), settled.reason));
            }
            Step::Record(Record::Passed(passed)) => {
                steps.extend(passed.tallies.iter().map(StepShape::passed));
            }
            // Adapters write these; nothing asks for them.
            Step::Record(Record::Manual(_) | Record::Ended(_)) => {}
        }
    }
    Evaluated { steps, wake_at: wake_at.map(Time) }
}

fn fuzzy(members: &Members<'_>) -> Result<Phrased, Mistake> {
    let member = members.required("phrase")?;
    let extensions = match members.optional("extensions").map(|flag| flag.flag()).transpose()? {
        Some(true) => Extensions::On,
        Some(false) | None => Extensions::Off,
    };
    let text = member.text()?;
    let phrase = Phrase::parse(&text, extensions).map_err(|error| {
        let mut mistake = member.blame(error);
        if Phrase::parse(&text, Extensions::On).is_ok() {
            mistake.message.push_str("; `\"extensions\":true` (`--extensions` of the tool) turns it on");
        }
        mistake
    })?;
    Ok(Phrased {
        placeholder: phrase.placeholder().to_string(),
        warnings: phrase.warnings().iter().map(Remark::from).collect(),
    })
}

fn scatter(members: &Members<'_>) -> Result<answer::Scattered, Mistake> {
    let (placeholder, identifier) = (members.required("placeholder")?, members.required("identifier")?);
    let read: Placeholder = placeholder.text()?.parse().map_err(|error| placeholder.blame(error))?;
    let scattered = read.scatter(&identifier.text()?).map_err(|error| identifier.blame(error))?;
    match &scattered {
        Scattered::Cron(cron) => {
            Ok(answer::Scattered { cron: cron.text().to_owned(), note: scattered.note().map(Remark::from) })
        }
        Scattered::EveryDays(days) => {
            let message = format!("cron cannot say this: {days}");
            Err(placeholder.blame(Mistake::new(wire::NOT_CRON, message)))
        }
    }
}
