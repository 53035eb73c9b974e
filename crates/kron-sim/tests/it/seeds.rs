use kron_sim::{Options, Tally, run, run_with};

/// Enough histories for a million periods. `KRON_SIM_SEED` begins elsewhere.
const PERIODS: u64 = 1_000_000;

#[test]
fn a_million_periods_break_no_promise() {
    let first = std::env::var("KRON_SIM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("first seed {first}");
    let mut tally = Tally::default();
    let mut seed = first;
    while tally.periods < PERIODS {
        let verdict = run(seed);
        tally += verdict.tally;
        if let Some(violation) = verdict.violation {
            panic!(
                "seed {seed} broke a promise: {violation}\nreplay: scripts/campaign sim --seed {seed} --trace"
            );
        }
        seed += 1;
    }
    println!("seeds {first} to {}\n{tally}", seed - 1);
}

#[test]
fn a_seed_replays() {
    for seed in 1..40 {
        let (once, again) = (run(seed), run_with(seed, Options { trace: true, ..Options::default() }));
        assert_eq!((once.hash, once.tally), (again.hash, again.tally), "seed {seed}");
        assert!(once.trace.is_empty() && !again.trace.is_empty());
        assert_ne!(once.hash, run(seed + 1).hash);
    }
}
