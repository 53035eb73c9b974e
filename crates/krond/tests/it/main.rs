//! krond, tested with real processes: first its hands alone, then all of it. Each file asks one question.

/// What the other files stand on.
#[macro_use]
mod world;

/// What those stand on that have a whole krond.
mod daemon;

/// Do very many at once all get their turn?
mod daemon_burst;

/// Who may ask it, and can anybody keep it from answering?
mod daemon_control;

/// Can it be killed at any moment?
mod daemon_crash;

/// Does the demonstration show what it should, and leave nothing behind?
mod daemon_demo;

/// Does a job that is paused rest, whatever happens, until it is resumed?
mod daemon_pause;

/// Do runs overlap, end and fail as they should?
mod daemon_policies;

/// Does a new configuration count as a whole, or not at all?
mod daemon_reload;

/// Is a run who and where it should be, and does nobody hear of its secrets?
mod daemon_runs;

/// Does it start where it can, and say why where it cannot?
mod daemon_start;

/// Is every state, damaged, unreadable or ahead of time, handled safely?
mod daemon_state;

/// What becomes of runs when it stops?
mod daemon_stop;

/// Do people and programs read what they expect?
mod daemon_views;

/// Are the documents those of the commands?
mod cli_generated;

/// Does a child run only once it is released, and never otherwise?
mod gate;

/// Is a run exactly who, where and with what it should be?
mod identity;

/// Where does its output go?
mod output;

/// Are runs waited for and ended as a whole, and nobody else?
mod tree;

/// Does a change of zone make a local time run again?
mod zones;
