//! A public job queue on SQLite: huey, as durable, from threads of one process without a server between.

use std::process::Command;

use crate::server::place;

pub fn measure() {
    let Some(python) = std::env::var_os("KRON_BENCH_PYTHON") else {
        println!(
            "\nhuey is left out: KRON_BENCH_PYTHON names no Python that has it (scripts/bench server installs it)"
        );
        return;
    };
    let home = tempfile::Builder::new().prefix("kron-bench").tempdir_in(place()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/huey_bench.py");
    let status = Command::new(python).arg(script).arg(home.path().join("huey.db")).status().unwrap();
    assert!(status.success(), "huey_bench.py ended with {status}");
}
