//! krond's timers with a million jobs, beside a binary heap and tokio's queue of delays (G9).
//!
//! Jobs have periods as on real hosts. With "minutes" they are due on whole minutes, as crontabs have it, with "seconds" anywhere,
//! as windows spread them. A turn takes out what is due first and sets it again, a period later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::hint::black_box;
use std::time::Duration;

use krond::timers::{Slot, Timers};
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

use crate::allocated;
use crate::cpu_nanos;

const JOBS: u32 = 1_000_000;
const TURNS: u32 = 3_000_000;
const ROUNDS: usize = 3;

pub fn compare() {
    println!(
        "\ntimers, {JOBS} jobs: ns to take one out and set it again (best of {ROUNDS}, {TURNS} each), bytes a job"
    );
    println!("{:<34} {:>9} {:>6} {:>9} {:>6}", "", "minutes", "bytes", "seconds", "bytes");
    let contestants: [(&str, Run); 3] =
        [("kron", kron), ("BinaryHeap<(u64, u32)>", heap), ("tokio-util's DelayQueue", delays)];
    let mut costs = contestants.map(|(name, _)| (name, [Cost::WORST; 2]));
    for (column, step) in [60, 1].into_iter().enumerate() {
        let workload = Workload::new(step);
        for _ in 0..ROUNDS {
            for ((_, run), (_, best)) in contestants.iter().zip(&mut costs) {
                best[column] = best[column].least(run(&workload));
            }
        }
    }
    for (name, [minutes, seconds]) in &costs {
        println!(
            "{name:<34} {:>9.1} {:>6.1} {:>9.1} {:>6.1}",
            minutes.nanos, minutes.bytes, seconds.nanos, seconds.bytes
        );
    }
    let kron = &costs[0].1;
    for ((name, peer), goals) in costs[1..].iter().zip([[Some(20.0), Some(12.0)], [Some(25.0), None]]) {
        for (column, alignment) in ["minutes", "seconds"].into_iter().enumerate() {
            let ratio = peer[column].nanos / kron[column].nanos;
            let note = goals[column].map_or(String::new(), |goal| {
                format!(" (G9 {goal}: {})", if ratio >= goal { "met" } else { "not met" })
            });
            println!("{name} / kron, {alignment}: {ratio:.1}{note}");
        }
    }
}

type Run = fn(&Workload) -> Cost;

/// What a turn costs, and what a job does.
#[derive(Clone, Copy)]
struct Cost {
    nanos: f64,
    bytes: f64,
}

impl Cost {
    const WORST: Self = Self { nanos: f64::INFINITY, bytes: f64::INFINITY };

    fn least(self, other: Self) -> Self {
        Self { nanos: self.nanos.min(other.nanos), bytes: self.bytes.min(other.bytes) }
    }

    fn of(bytes_before: usize, nanos: i64) -> Self {
        let bytes = allocated() - bytes_before;
        Self { nanos: nanos as f64 / f64::from(TURNS), bytes: bytes as f64 / f64::from(JOBS) }
    }
}

/// When each job is due first, and how often.
struct Workload {
    first: Vec<u32>,
    period: Vec<u32>,
}

impl Workload {
    /// Due times are multiples of `step` seconds.
    fn new(step: u32) -> Self {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |below: u32| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            ((random >> 32) as u32) % below
        };
        let mut first = Vec::new();
        let mut period = Vec::new();
        for _ in 0..JOBS {
            let seconds = match next(100) {
                0..5 => 60,
                5..25 => 300,
                25..60 => 3_600,
                60..90 => 86_400,
                _ => 2_592_000,
            };
            period.push(seconds);
            first.push(step + next(seconds / step) * step);
        }
        Self { first, period }
    }

    fn jobs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..JOBS).zip(self.first.iter().copied())
    }
}

fn kron(workload: &Workload) -> Cost {
    let before = allocated();
    let mut timers = Timers::default();
    for (job, at) in workload.jobs() {
        timers.set(Slot(job), i64::from(at));
    }
    let start = cpu_nanos();
    let mut turns = 0;
    while turns < TURNS {
        let now = timers.first().unwrap();
        for (at, slots) in timers.take_due(now) {
            for slot in slots {
                timers.set(slot, at + i64::from(workload.period[slot.0 as usize]));
                turns += 1;
            }
        }
    }
    // A bucket is one turn for all that are in it, so it may be a few more.
    let nanos = (cpu_nanos() - start) * i64::from(TURNS) / i64::from(turns);
    Cost::of(before, nanos)
}

fn heap(workload: &Workload) -> Cost {
    let before = allocated();
    let mut heap = BinaryHeap::new();
    for (job, at) in workload.jobs() {
        heap.push(Reverse((u64::from(at), job)));
    }
    let start = cpu_nanos();
    for _ in 0..TURNS {
        let Reverse((at, job)) = heap.pop().unwrap();
        heap.push(Reverse((at + u64::from(workload.period[job as usize]), job)));
    }
    let cost = Cost::of(before, cpu_nanos() - start);
    black_box(heap);
    cost
}

/// In a runtime whose clock goes on to the next delay as soon as there is nothing else to do.
fn delays(workload: &Workload) -> Cost {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let before = allocated();
        let zero = Instant::now();
        let mut queue = DelayQueue::new();
        let mut due = workload.first.clone();
        let before = before + due.capacity() * size_of::<u32>();
        for (job, at) in workload.jobs() {
            queue.insert_at(job, zero + Duration::from_secs(at.into()));
        }
        let start = cpu_nanos();
        for _ in 0..TURNS {
            let job = poll_fn(|context| queue.poll_expired(context)).await.unwrap().into_inner();
            let at = &mut due[job as usize];
            *at += workload.period[job as usize];
            queue.insert_at(job, zero + Duration::from_secs((*at).into()));
        }
        Cost::of(before, cpu_nanos() - start)
    })
}
