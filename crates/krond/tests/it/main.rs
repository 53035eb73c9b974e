//! krond's hands, tested with real processes. Each file asks one question.

/// What the other files stand on.
#[macro_use]
mod world;

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
