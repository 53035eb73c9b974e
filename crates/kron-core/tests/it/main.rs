//! What Kron decides, tested from outside. Each file asks one question.

/// Builds the jobs that the other files decide about.
mod jobs;

/// Are Kron's public decision vectors reproduced bit for bit?
mod vectors;

/// Are the worked examples of the design reproduced, every number of them?
mod appendix_a;

/// Are mistakes in a definition refused, in words that help?
mod definition;

/// Do decisions keep their promises, whatever the job and the period?
mod properties;

/// Does every rule about what to do with a period hold, as a story?
mod scenarios;

/// Do the cases for ledger stores tell a right store from a wrong one?
mod conformance;

/// Do the promises hold in long, random histories?
mod histories;

/// Does the engine leave memory alone where a million jobs would notice?
mod allocations;
