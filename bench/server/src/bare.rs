//! Bare SQLite: rows of the same size, as durable, and nothing around them.

use std::time::Instant;

use rusqlite::Connection;

use crate::figures::{head, line};
use crate::server::place;

const COMMITS: usize = 1_600;

pub fn measure() {
    head("bare SQLite, WAL, synchronous=FULL");
    let body = "x".repeat(700);
    for rows in [1, 16, 64] {
        let home = tempfile::Builder::new().prefix("kron-bench").tempdir_in(place()).unwrap();
        let mut connection = Connection::open(home.path().join("bare.db")).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.pragma_update(None, "synchronous", "full").unwrap();
        connection.execute_batch("CREATE TABLE jobs (id TEXT PRIMARY KEY, body TEXT NOT NULL)").unwrap();
        let commits = COMMITS / rows.min(4);
        let mut each = Vec::with_capacity(commits);
        let began = Instant::now();
        for commit in 0..commits {
            let began = Instant::now();
            let transaction = connection.transaction().unwrap();
            for row in 0..rows {
                let id = format!("0199a0e0-0000-7000-8000-{:012x}", commit * rows + row);
                let mut insert = transaction.prepare_cached("INSERT INTO jobs VALUES (?1, ?2)").unwrap();
                insert.execute((&id, &body)).unwrap();
            }
            transaction.commit().unwrap();
            each.push(began.elapsed());
        }
        line(&format!("commits of {rows} rows of 700 bytes"), commits * rows, began.elapsed(), each);
    }
}
