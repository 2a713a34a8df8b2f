//! Compares the two ways to refresh an archive in PostgreSQL.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    common::{Bench, BenchResult},
    fill::{BOARD, Week},
    watch::{self, Took},
};

/// Duration of a refresh, and the archive's size after it.
pub struct Way {
    pub seconds: f64,
    pub mib: f64,
}

/// Results of both ways after the same kind of correction.
pub struct BothWays {
    pub shifts: bool,
    /// `REFRESH ... CONCURRENTLY`, as in `centile refresh`.
    pub concurrently: Way,
    /// A new view that replaces the old one.
    pub beside: Way,
}

pub fn both_ways(bench: &Bench, week: &Week, shifts: bool) -> BenchResult<BothWays> {
    correct(bench, week, shifts)?;
    prepare(bench, week)?;
    let took = watch::run(bench, &["refresh", "--board", BOARD, "--period", &week.name, "--by", "bench"])?;
    let concurrently = Way { seconds: took.seconds(), mib: size(bench, week)? };

    correct(bench, week, shifts)?;
    prepare(bench, week)?;
    let began = Instant::now();
    bench.psql(&build_beside(week))?;
    let beside = Way { seconds: began.elapsed().as_secs_f64(), mib: size(bench, week)? };
    Ok(BothWays { shifts, concurrently, beside })
}

/// Corrects a score: the last player becomes first, so that every rank shifts, or the first gains a
/// point.
pub fn correct(bench: &Bench, week: &Week, shifts: bool) -> BenchResult<Took> {
    let place = if shifts { "DESC" } else { "ASC" };
    let row = bench.psql(&format!(
        "SELECT u.external_id, (SELECT max(score) FROM centile_archive.{0}) + 1 - a.score
         FROM (SELECT * FROM centile_archive.{0} ORDER BY position {place} LIMIT 1) a
         JOIN centile_store.users u ON u.id = a.user_id",
        week.archive
    ))?;
    let (player, points) = row.split_once('|').ok_or("the archive has no players")?;
    let at = format!("{}T12:00:00Z", week.starts);
    watch::run(bench, &["correct", player, points, "--board", BOARD, "--at", &at, "--reason", "bench", "--by", "bench"])
}

/// Runs a refresh and, a second later, a correction of the same week. Returns the refresh, and the
/// correction's seconds and success.
pub fn and_correct(bench: &Bench, week: &Week) -> BenchResult<(Took, (f64, bool))> {
    correct(bench, week, true)?;
    thread::scope(|scope| {
        let correction = scope.spawn(|| {
            thread::sleep(Duration::from_secs(1));
            let began = Instant::now();
            let went_through = correct(bench, week, false).is_ok();
            (began.elapsed().as_secs_f64(), went_through)
        });
        let refreshed = watch::run(bench, &["refresh", "--board", BOARD, "--period", &week.name, "--by", "bench"])?;
        Ok((refreshed, correction.join().map_err(|_| "the correction did not end")?))
    })
}

/// Vacuums, as autovacuum would have done.
fn prepare(bench: &Bench, week: &Week) -> BenchResult<()> {
    bench.psql(&format!("VACUUM ANALYZE centile_archive.{}", week.archive))?;
    bench.psql("CHECKPOINT").map(drop)
}

fn size(bench: &Bench, week: &Week) -> BenchResult<f64> {
    let bytes = bench.psql(&format!("SELECT pg_total_relation_size('centile_archive.{}')", week.archive))?;
    Ok(bytes.parse::<f64>()? / 1024.0 / 1024.0)
}

/// Returns the SQL for a view with the memory, indexes and statistics of `centile refresh`.
fn build_beside(week: &Week) -> String {
    let Week { period_id, archive, .. } = week;
    format!(
        "SET work_mem = '128MB'; SET maintenance_work_mem = '128MB';
         BEGIN;
         UPDATE centile_store.cut_offs c
         SET batches = ARRAY(SELECT l.batch FROM centile_store.periods p JOIN centile_store.board_lanes l USING (board_id)
                             WHERE p.id = c.period_id ORDER BY l.lane)
         WHERE c.period_id = {period_id};
         DO $$ BEGIN EXECUTE 'CREATE MATERIALIZED VIEW centile_archive.beside AS ' || centile_store.archive_query({period_id}); END $$;
         CREATE UNIQUE INDEX beside_position ON centile_archive.beside (\"position\");
         CREATE UNIQUE INDEX beside_user ON centile_archive.beside (user_id);
         CREATE INDEX beside_rank ON centile_archive.beside (rank);
         GRANT SELECT ON centile_archive.beside TO centile_reader, centile_service;
         ANALYZE centile_archive.beside;
         DROP MATERIALIZED VIEW centile_archive.{archive};
         ALTER MATERIALIZED VIEW centile_archive.beside RENAME TO {archive};
         ALTER INDEX centile_archive.beside_position RENAME TO archive_{period_id}_position;
         ALTER INDEX centile_archive.beside_user RENAME TO archive_{period_id}_user;
         ALTER INDEX centile_archive.beside_rank RENAME TO archive_{period_id}_rank;
         COMMIT"
    )
}
