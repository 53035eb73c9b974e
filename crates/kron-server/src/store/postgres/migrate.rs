//! The tables, made and changed in steps. A step that has been released is never edited.

use super::pool::Pool;

/// A step: its number, and whether a program that does not know it can go on using the tables.
struct Step {
    number: i32,
    breaks: bool,
    sql: &'static str,
}

/// All steps, in order.
const STEPS: [Step; 2] = [
    Step { number: 1, breaks: true, sql: include_str!("steps/001.sql") },
    Step { number: 2, breaks: false, sql: include_str!("steps/002.sql") },
];

/// Whoever changes the tables holds this lock, so that nodes that start together do it once.
const LOCK: &str = "SELECT pg_advisory_xact_lock(6171802030)";

/// The record of the steps that were taken.
const RECORD: &str = "CREATE TABLE IF NOT EXISTS kron_steps (number INTEGER PRIMARY KEY, breaks BOOLEAN NOT NULL, \
                      taken_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())";

/// How that begins: whoever starts waits a minute for another that changes the tables, a change may take ten minutes, and
/// one that was stopped in the middle of it keeps the others waiting no longer than a minute.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '10min'; \
                     SET LOCAL idle_in_transaction_session_timeout = '60s'";

/// The oldest PostgreSQL that is served.
const SERVER_MIN: i32 = 150_000;

/// A dump that was restored elsewhere brings events with it whose numbers are ahead of the transactions there. No step
/// tells of anything, so it is early enough after all of them. The number of this transaction is no measure: servers that
/// run beside it may have begun later and told already, while others that began with the old base have not.
pub(super) const REBASE: &str = "UPDATE event_base SET base = (SELECT max(seq) + 1 FROM events) WHERE \
     (SELECT max(seq) FROM events) >= (pg_snapshot_xmax(pg_current_snapshot())::text::bigint << 20) + base";

/// Takes the steps that are missing. Programs of different versions can share the tables as long as the newer steps
/// break nothing.
pub(super) async fn migrate(pool: &Pool) -> Result<(), String> {
    let failed = |error: sqlx::Error| format!("could not prepare the database: {error}");
    let mut connection =
        pool.connect().await.map_err(|error| format!("could not reach the database: {error}"))?;
    let run = async |connection: &mut sqlx::PgConnection, sql: &'static str| {
        sqlx::raw_sql(sql).execute(connection).await.map(drop)
    };
    // A pooler keeps to one connection within a transaction only, so there is nothing before it.
    run(&mut connection, BEGIN).await.map_err(failed)?;
    let version: String = sqlx::query_scalar("SHOW server_version_num")
        .persistent(false)
        .fetch_one(&mut connection)
        .await
        .map_err(failed)?;
    if version.parse().is_ok_and(|version: i32| version < SERVER_MIN) {
        return Err(format!(
            "expected PostgreSQL {} or newer, but found version {version}: update the database server",
            SERVER_MIN / 10_000
        ));
    }
    run(&mut connection, LOCK).await.map_err(failed)?;
    run(&mut connection, RECORD).await.map_err(failed)?;
    let taken: Vec<(i32, bool)> = sqlx::query_as("SELECT number, breaks FROM kron_steps ORDER BY number")
        .persistent(false)
        .fetch_all(&mut connection)
        .await
        .map_err(failed)?;
    let newest = STEPS.last().map_or(0, |step| step.number);
    if let Some((number, _)) = taken.iter().find(|(number, breaks)| *number > newest && *breaks) {
        return Err(format!(
            "expected tables up to step {newest}, but found step {number}, which this kron-server does not know: \
             a newer one has changed the database; use that version, or another database"
        ));
    }
    for step in STEPS.iter().filter(|step| taken.iter().all(|(number, _)| *number != step.number)) {
        run(&mut connection, step.sql).await.map_err(failed)?;
        sqlx::query("INSERT INTO kron_steps (number, breaks) VALUES ($1, $2)")
            .persistent(false)
            .bind(step.number)
            .bind(step.breaks)
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        tracing::info!(step = step.number, "changed the tables");
    }
    run(&mut connection, REBASE).await.map_err(failed)?;
    run(&mut connection, "COMMIT").await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::STEPS;
    use crate::store::conformance::fingerprint;

    /// A step that was taken somewhere is never taken there again: what is edited later would hold in new databases only.
    #[test]
    fn a_step_is_never_edited() {
        let pinned = ["b9e6065e0328fc77", "3c95968278ee210e"];
        assert_eq!(
            STEPS.map(|step| fingerprint(step.sql)),
            pinned,
            "make a step more instead, and pin it here"
        );
    }

    #[test]
    fn steps_are_numbered_without_a_gap() {
        assert!(STEPS.iter().zip(1..).all(|(step, number)| step.number == number));
    }
}
