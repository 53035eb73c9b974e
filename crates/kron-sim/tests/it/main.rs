//! krond in many worlds. Each file asks one question.

/// Does a million periods under fire break a promise, and does a seed replay?
mod seeds;

/// Does anything break a promise at any point of one small history?
mod exhaustive;

/// Would the checker notice if krond were broken?
mod planted;

/// Does what was found stay fixed?
mod regressions;
