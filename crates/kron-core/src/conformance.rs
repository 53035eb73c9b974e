//! What a store of ledgers must do, as data.
//!
//! Each [`Case`] is a list of records and the ledger that must be read back when they have been
//! written in that order. A store plays them in its own way, and closes and opens itself between any
//! two records, since that is what it is for:
//!
//! ```
//! use kron_core::{Ledger, conformance::cases};
//!
//! for case in cases() {
//!     let mut ledger = Ledger::new(); // a store would open itself here
//!     for record in &case.records {
//!         ledger.apply(record); // ... write the record here, close, and open again
//!     }
//!     assert_eq!(ledger, case.expected, "{}", case.name);
//! }
//! ```

use alloc::vec::Vec;

use kron_schedule::{Count, Dialect, Dst, Duration, Expr, Zone};

use crate::{Job, Ledger, Passed, PeriodId, Reason, Record, RunId, Settled, Tally, WindowMode, decide};

/// Records to write, and the ledger to be read back.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the case is about, as a sentence.
    pub name: &'static str,
    /// What to write, in this order.
    pub records: Vec<Record>,
    /// What must be read back.
    pub expected: Ledger,
    /// Whether more than one run is active at the end. A store that has room for one only (the state
    /// file of krond) must keep the one started last.
    pub many_active: bool,
}

/// All cases.
#[must_use]
pub fn cases() -> Vec<Case> {
    use Reason::{DeadlinePassed, FoundRunning, NoCandidate, Rescheduled, Started, StillRunning, Superseded};
    let case = |name, records, watermark: u32, pending: &[u32], active: &[u32]| Case {
        name,
        records,
        expected: Ledger::restored(
            (watermark > 0).then(|| period(watermark)),
            pending.iter().copied().map(period).collect(),
            active.iter().copied().map(run).collect(),
        ),
        many_active: active.len() > 1,
    };
    alloc::vec![
        case("a job that was never seen has an empty ledger", alloc::vec![], 0, &[], &[]),
        case(
            "a start raises the watermark and is active",
            alloc::vec![settled(1, Started, &[])],
            1,
            &[],
            &[1]
        ),
        case(
            "an end leaves the watermark alone",
            alloc::vec![settled(1, Started, &[]), Record::Ended(run(1))],
            1,
            &[],
            &[],
        ),
        case("a miss raises the watermark", alloc::vec![settled(1, DeadlinePassed, &[])], 1, &[], &[]),
        case(
            "a skip does not end the run it was skipped for",
            alloc::vec![settled(1, Started, &[]), settled(2, StillRunning, &[])],
            2,
            &[],
            &[1],
        ),
        case("an unschedulable period is handled", alloc::vec![settled(1, NoCandidate, &[])], 1, &[], &[]),
        case(
            "what is overtaken stays pending",
            alloc::vec![settled(5, Started, &[2, 3]), Record::Ended(run(5))],
            5,
            &[2, 3],
            &[],
        ),
        case(
            "a pending period leaves the list when it starts, and the watermark stays",
            alloc::vec![settled(5, Started, &[2, 3]), settled(2, Started, &[])],
            5,
            &[3],
            &[5, 2],
        ),
        case(
            "a pending period leaves the list when it is skipped",
            alloc::vec![settled(5, DeadlinePassed, &[2, 3]), settled(3, Rescheduled, &[])],
            5,
            &[2],
            &[],
        ),
        case(
            "a record that is written twice counts once",
            alloc::vec![settled(5, Started, &[2]), settled(5, Started, &[2]), settled(2, Superseded, &[])],
            5,
            &[],
            &[5],
        ),
        case(
            "a start that is written again after its end does not run again",
            alloc::vec![settled(1, Started, &[]), Record::Ended(run(1)), settled(1, Started, &[])],
            1,
            &[],
            &[],
        ),
        case(
            "a handled period does not become pending again",
            alloc::vec![
                settled(5, DeadlinePassed, &[2]),
                settled(2, DeadlinePassed, &[]),
                settled(7, DeadlinePassed, &[2, 4, 6])
            ],
            7,
            &[6],
            &[],
        ),
        case(
            "an earlier period never lowers the watermark",
            alloc::vec![settled(5, DeadlinePassed, &[]), settled(3, DeadlinePassed, &[])],
            5,
            &[],
            &[],
        ),
        case(
            "a run that was found is active and handled",
            alloc::vec![settled(4, FoundRunning, &[])],
            4,
            &[],
            &[4],
        ),
        case(
            "many periods can be passed at once",
            alloc::vec![
                settled(1, DeadlinePassed, &[]),
                passed(&[(DeadlinePassed, 2, 6), (Superseded, 7, 9)], &[], &[8])
            ],
            9,
            &[8],
            &[],
        ),
        case(
            "passing over takes pending periods off the list",
            alloc::vec![settled(5, DeadlinePassed, &[2, 3, 4]), passed(&[(Superseded, 2, 4)], &[2, 4], &[])],
            5,
            &[3],
            &[],
        ),
        case(
            "several runs can be active",
            alloc::vec![
                settled(1, Started, &[]),
                settled(2, Started, &[]),
                settled(3, Started, &[]),
                Record::Ended(run(2))
            ],
            3,
            &[],
            &[1, 3],
        ),
        case(
            "a run by hand is active and handles nothing",
            alloc::vec![settled(1, DeadlinePassed, &[]), Record::Manual(run(0))],
            1,
            &[],
            &[0],
        ),
        case(
            "the end of a run that is not there changes nothing",
            alloc::vec![settled(1, DeadlinePassed, &[]), Record::Ended(run(9))],
            1,
            &[],
            &[],
        ),
    ]
}

/// The n-th hour of 2026.
fn period(n: u32) -> PeriodId {
    let second = 1_767_225_600 + i64::from(n) * 3_600;
    PeriodId::new(jiff::Timestamp::from_second(second).expect("an hour of this century"))
}

/// The run of the n-th period; number 0 is one by hand.
fn run(n: u32) -> RunId {
    match n {
        0 => RunId::Manual(1),
        n => RunId::Period(period(n)),
    }
}

fn settled(n: u32, reason: Reason, overtakes: &[u32]) -> Record {
    let zone = Zone::utc();
    let schedule = Expr::parse("0 * * * *", Dialect::Kron).and_then(|expr| expr.compile(&zone, Dst::KRON));
    let job = Job::builder("conformance", schedule.expect("a schedule"), zone)
        .window(WindowMode::After, Duration::from_seconds(6 * 3_600))
        .build()
        .expect("a job");
    Record::Settled(Settled {
        decision: decide(&job, period(n).nominal()),
        reason,
        overtakes: overtakes.iter().copied().map(period).collect(),
    })
}

fn passed(tallies: &[(Reason, u32, u32)], settles: &[u32], overtakes: &[u32]) -> Record {
    let tally = |&(reason, first, last): &(Reason, u32, u32)| Tally {
        reason,
        first: period(first),
        last: period(last),
        count: Count::AtLeast(1),
    };
    Record::Passed(Passed {
        tallies: tallies.iter().map(tally).collect(),
        settles: settles.iter().copied().map(period).collect(),
        overtakes: overtakes.iter().copied().map(period).collect(),
    })
}
