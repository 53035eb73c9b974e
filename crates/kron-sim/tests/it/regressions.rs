use kron_sim::run;

/// Seeds that broke a promise when what was found was undone, in the simulator of that time. A change of the simulator
/// makes other histories of them.
const FOUND: [(u64, &str); 6] = [
    (5, "a new job in the place of a removed one was removed with it"),
    (11, "what was decided before a stall was started after it, past its deadline"),
    (2_017, "who asked for the clock to be accepted while krond stopped was never answered"),
    (3_365, "a start was told of with a definition that it was not decided with"),
    (4_494, "temporary files that could not be removed were in the way of the next"),
    (307_089, "a run that is found while it is on its way, its clock having been accepted, is one run"),
];

#[test]
fn what_was_found_stays_fixed() {
    for (seed, what) in FOUND {
        let verdict = run(seed);
        assert!(verdict.violation.is_none(), "seed {seed} ({what}): {:?}", verdict.violation);
    }
}
