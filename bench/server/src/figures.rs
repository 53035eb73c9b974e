//! Many measured times, and how they are printed.

use std::fs;
use std::time::{Duration, Instant};

/// Says where and when this was measured, without which no figure means anything.
pub fn machine() {
    let first = |path: &str, key: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        line.split(':').next_back().unwrap_or_default().trim().to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{} x {}, load {}", cores, first("/proc/cpuinfo", "model name"), load());
}

/// How much else the machine has to do.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

pub fn head(what: &str) {
    println!("\n{what:<44} {:>10} {:>9} {:>9} {:>9}   load", "a second", "p50", "p99", "max");
}

/// Prints how many were done a second, and how long each request took.
pub fn line(what: &str, done: usize, took: Duration, mut each: Vec<Duration>) {
    each.sort_unstable();
    let rate = done as f64 / took.as_secs_f64();
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|part| show(percentile(&each, part)));
    println!("{what:<44} {rate:>10.0} {p50:>9} {p99:>9} {max:>9}   {}", load());
}

/// A part of them took at most so long. They are sorted.
pub fn percentile(sorted: &[Duration], part: f64) -> Duration {
    let at = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

pub fn show(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds => format!("{:.2} ms", seconds * 1_000.0),
    }
}

/// Does something on so many threads at once, so often on each; every call says how many it has done.
pub fn together<T: Send>(
    threads: usize,
    times: usize,
    make: impl Fn() -> T + Sync,
    call: impl Fn(&mut T) -> usize + Sync,
) -> (usize, Duration, Vec<Duration>) {
    let barrier = std::sync::Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let one = || {
            let mut with = make();
            barrier.wait();
            let mut done = 0;
            let each = (0..times)
                .map(|_| {
                    let began = Instant::now();
                    done += call(&mut with);
                    began.elapsed()
                })
                .collect::<Vec<_>>();
            (done, each)
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        barrier.wait();
        let began = Instant::now();
        let results: Vec<_> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
        let took = began.elapsed();
        let done = results.iter().map(|(done, _)| done).sum();
        (done, took, results.into_iter().flat_map(|(_, each)| each).collect())
    })
}
