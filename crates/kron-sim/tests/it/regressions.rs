use kron_sim::run;

/// Seeds that once broke a promise, and what was wrong.
const FOUND: [(u64, &str); 4] = [
    (2, "a new job in the place of a removed one was removed with it"),
    (413, "what was decided before a stall was started after it, past its deadline"),
    (440, "who asked for the clock to be accepted while krond stopped was never answered"),
    (6511, "the same, with two of them"),
];

#[test]
fn what_was_found_stays_fixed() {
    for (seed, what) in FOUND {
        let verdict = run(seed);
        assert!(verdict.violation.is_none(), "seed {seed} ({what}): {:?}", verdict.violation);
    }
}
