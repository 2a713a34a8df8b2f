//! The query of an archive after many resets, voids and bans.

use std::time::Instant;

use crate::{
    common::{Bench, BenchResult},
    fill::Week,
};

/// Resets, voids and bans, each.
const ACTS: u64 = 100_000;
/// Maximum of the time with them, as a multiple of the time without.
const LIMIT: f64 = 2.0;

/// Seconds of the query without and with the acts.
pub struct WithActs {
    /// Number of resets, voids and bans, each.
    pub acts: u64,
    pub without: f64,
    pub with: f64,
}

/// Runs the query of a closed week's archive, adds acts to the ledger of the week, and runs it again.
/// Fails if that takes more than [`LIMIT`] times as long. Rankings are wrong afterwards.
pub fn beside_none(bench: &Bench, week: &Week, players: u64) -> BenchResult<WithActs> {
    let archive = |table: &str| -> BenchResult<f64> {
        bench.psql("CHECKPOINT")?;
        let began = Instant::now();
        bench.psql(&format!(
            "SET work_mem = '128MB';
             DO $$ BEGIN EXECUTE 'CREATE TABLE {table} AS ' || centile_store.archive_query({}); END $$",
            week.period_id
        ))?;
        Ok(began.elapsed().as_secs_f64())
    };
    archive("warm")?;
    let without = archive("without_acts")?;
    let (acts, starts, board_id) = (ACTS.min(players / 2), &week.starts, week.board_id);
    // Batch 0 is before every cut-off. Statistics stay as they are, as after a sudden mass reset.
    bench.psql(&format!(
        "INSERT INTO centile_store.score_transactions (board_id, user_id, kind, occurred_at, lane, batch)
         SELECT {board_id}, n + k.after, k.kind, timestamptz '{starts} 00:00Z' + interval '3 days', 0, 0
         FROM generate_series(1, {acts}) AS n CROSS JOIN (VALUES ('reset', 0), ('ban', {players} - {acts})) AS k (kind, after);
         INSERT INTO centile_store.score_transactions (board_id, user_id, kind, voids_id, occurred_at, lane, batch)
         SELECT {board_id}, t.user_id, 'void', t.id, t.occurred_at, 0, 0
         FROM centile_store.score_transactions t WHERE {} LIMIT {acts}",
        week.scores()
    ))?;
    let with = archive("with_acts")?;
    if with > LIMIT * without {
        return Err(format!("{with:.1} s with {acts} resets, voids and bans, {without:.1} s without").into());
    }
    Ok(WithActs { acts, without, with })
}
