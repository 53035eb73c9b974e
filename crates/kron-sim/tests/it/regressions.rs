use kron_sim::run;

/// Seeds that broke a promise when what was found was undone, in the simulator of that time. A change of the simulator
/// makes other histories of them, so what was found is pinned elsewhere: as a scenario of krond's own that fails when it
/// is undone, whatever the simulator is. Here they are only lived through once more.
const FOUND: [(u64, &str, &str); 16] = [
    (
        5,
        "a new job in the place of a removed one was removed with it",
        "krond daemon::a_new_job_may_take_the_place_of_one_that_is_gone",
    ),
    (
        11,
        "what was decided before a stall was started after it, past its deadline",
        "krond daemon::what_was_decided_before_a_stall_is_decided_again",
    ),
    (
        2_017,
        "who asked for the clock to be accepted while krond stopped was never answered",
        "krond daemon::whoever_asks_is_answered",
    ),
    (
        3_365,
        "a start was told of with a definition that it was not decided with",
        "krond daemon::a_start_is_told_with_the_definition_it_was_decided_with",
    ),
    (
        4_494,
        "temporary files that could not be removed were in the way of the next",
        "krond store::what_cannot_be_cleaned_away_is_in_nobodys_way",
    ),
    (
        48_588,
        "who asks krond to wait for its runs after it has decided to leave them asks too late",
        "krond daemon::what_is_asked_of_it_after_its_end_is_not_heard",
    ),
    (
        307_089,
        "a run that is found while it is on its way, its clock having been accepted, is one run",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        13_255,
        "a run whose period was read from a damaged file is the job's own all the same",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        24_153,
        "who asks a krond that has decided to end is not heard, and not left waiting by it",
        "the world was wrong: the host hears nobody after that",
    ),
    (
        33_686,
        "a file that was deleted, and stands there again by a write that a kill cut short, may be gone after a power cut",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        8_887,
        "a run that was let go before the clock was accepted, and begins after it, is not what its period may run as again",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        20_109,
        "who waits at a gate while its line is edited may be held to the new deadline",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        294_443,
        "the end of a run whose period was read from a damaged file is told of the run that krond knows",
        "the world was wrong: the host tells of the run that it was asked to watch",
    ),
    (
        81_590,
        "a run that was found in a damaged file, its clock having been accepted, is that of its period all the same",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        509_960,
        "a run that had begun when the clock was accepted for the second time is not on its way",
        "the checker was wrong, and it is nowhere else",
    ),
    (
        1_631_757,
        "who asks for the clock to be accepted beside somebody who is answered may be obeyed after that, and not be told",
        "the checker was wrong, and it is nowhere else",
    ),
];

#[test]
fn what_was_found_stays_fixed() {
    for (seed, what, pinned) in FOUND {
        let verdict = run(seed);
        assert!(verdict.violation.is_none(), "seed {seed} ({what}; {pinned}): {:?}", verdict.violation);
    }
}
