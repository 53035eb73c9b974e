//! Text becomes occurrences: the proof, from what a person can check to what only a machine can.
//!
//! `cargo test -p kron-schedule --test it` runs all of it; `KRON_SEED=n` makes other random cases.

// Known answers. The tables in `data/` are for anyone who knows cron.
mod describe; // expressions become sentences, and different meanings different ones
mod errors; // the wording of every kind of error
mod fuzzy; // phrases: tables, wording, and what holds for any phrase and identifier
mod golden; // lines, zones and policies with their occurrences; canonical forms
mod refused; // what each dialect must refuse, rule by rule; hostile texts

// Random cases against a slow reference. `examples/campaign.rs` runs the same by the million.
mod compare; // one case, asked of the crate and of the oracle
mod generator; // cases: expressions of every form, all zones, instants beside changes of clocks
mod oracle; // the reference, which shares nothing with the crate
mod planted; // bugs planted on purpose, to see that the comparison catches them
mod properties; // what must hold for every case
mod shrink; // the smallest case that still disagrees
