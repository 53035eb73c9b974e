//! An Open Job Spec server.
fn main() {}
