//! A board with past weeks, filled with set-based SQL, because writing event by event would take
//! hours.

use crate::common::{Bench, BenchResult, fill_rankings};

pub const BOARD: &str = "weeks";
/// Maximum points of an event; the minimum is 0.
const POINTS: u64 = 1_000;
/// Events per batch, as in the batch writer.
const BATCH: u64 = 500;
/// Players and events of the small week, for the comparison of memory.
const FEW: u64 = 1_000;

/// Amount of data.
#[derive(Clone, Copy)]
pub struct Size {
    pub players: u64,
    /// Events per week.
    pub events: u64,
    /// Number of weeks of this size.
    pub weeks: u32,
}

/// A past week.
#[derive(Clone)]
pub struct Week {
    pub period_id: i64,
    /// Its name for `centile close --period`.
    pub name: String,
    pub archive: String,
    /// Its first day.
    pub starts: String,
    pub board_id: i32,
}

impl Week {
    /// SQL condition for its rows in the ledger.
    pub fn scores(&self) -> String {
        format!(
            "board_id = {} AND kind = 'score' AND occurred_at >= '{1} 00:00Z' AND occurred_at < timestamptz '{1} 00:00Z' + interval '7 days'",
            self.board_id, self.starts
        )
    }

    /// Reopens a closed week, so that it can be closed again. Its last ranking, made by a rebuild,
    /// exists until `centile maintain` removes it.
    pub fn reopen(&self, bench: &Bench) -> BenchResult<()> {
        let id = self.period_id;
        bench
            .psql(&format!(
                "BEGIN;
                 DROP MATERIALIZED VIEW centile_archive.{};
                 DELETE FROM centile_store.outbox WHERE period_id = {id};
                 UPDATE centile_store.periods p
                 SET state = 'open', ranking_id = (SELECT max(r.id) FROM centile_store.rankings r WHERE r.period_id = p.id),
                     cut_off_at = NULL, archive_name = NULL, archive_revision = 0, archive_players = NULL,
                     archive_differences = NULL, frozen_top = NULL, closed_at = NULL
                 WHERE id = {id};
                 UPDATE centile_store.rankings r SET released_at = NULL
                 FROM centile_store.periods p WHERE p.id = {id} AND r.id = p.ranking_id;
                 COMMIT",
                self.archive
            ))
            .map(drop)
    }
}

/// Fills weeks of equal size and a last one with a thousand players. Each week has its own month,
/// so that reading a week reads no other partition.
pub fn fill(bench: &Bench, size: Size) -> BenchResult<(Vec<Week>, Week)> {
    let Size { players, events, weeks } = size;
    let top = POINTS * (events / players).max(1) * u64::from(weeks);
    let board_id = bench
        .psql(&format!(
            "SELECT centile.create_board('{BOARD}', '{{\"periods\": [\"all_time\", \"week\"], \"first_layout\": {{\"expected_points\": {top}}}}}')"
        ))?
        .parse()?;
    bench.psql(&format!(
        "INSERT INTO centile_store.users (external_id, name, lane_hash)
         SELECT 'player-' || n, 'Player ' || n, centile.lane_hash('player-' || n) FROM generate_series(1, {players}) AS n"
    ))?;
    // Building this index at the end takes seconds; maintaining it row by row takes most of the
    // time.
    let player_index = bench.psql("SELECT pg_get_indexdef('centile_store.score_transactions_player_idx'::regclass)")?;
    bench.psql("DROP INDEX centile_store.score_transactions_player_idx")?;
    let mut filled = Vec::new();
    let mut batch = 0;
    for n in 0..=weeks {
        let (players, events) = if n < weeks { (players, events) } else { (FEW, FEW * events / players) };
        filled.push(add_week(bench, board_id, n, (players, events), batch)?);
        batch += events / BATCH + 1;
    }
    // `ON ONLY` would create it for future months.
    bench.psql(&format!("SET maintenance_work_mem = '512MB'; {}", player_index.replace(" ON ONLY ", " ON ")))?;
    bench.psql(&format!(
        "UPDATE centile_store.board_lanes
         SET batch = CASE lane WHEN 0 THEN {batch} ELSE 0 END,
             last_at = (SELECT max(ends_at) FROM centile_store.periods WHERE board_id = {board_id} AND kind = 'week')
         WHERE board_id = {board_id}"
    ))?;
    let open = format!("FROM centile_store.periods p WHERE p.board_id = {board_id} ORDER BY p.id");
    for period_id in bench.psql(&format!("SELECT p.id {open}"))?.lines() {
        fill_rankings(bench, "postgres", &[period_id])?;
    }
    bench.psql("VACUUM ANALYZE")?;
    let small = filled.pop().ok_or("no weeks")?;
    Ok((filled, small))
}

fn add_week(bench: &Bench, board_id: i32, n: u32, (players, events): (u64, u64), batch: u64) -> BenchResult<Week> {
    // The second Monday of a month.
    let starts = bench.psql(&format!(
        "SELECT (date_trunc('week', m + interval '6 days') + interval '7 days')::date
         FROM (SELECT timestamp '2020-01-01' + {n} * interval '1 month' AS m) x"
    ))?;
    bench.psql(&format!(
        "SELECT centile.ensure_ledger_months('{starts}', '{starts}'), centile_store.open_periods({board_id}, '{{{starts} 12:00Z}}')"
    ))?;
    bench.psql(&format!(
        "SELECT setseed(0.{n}1);
         INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, occurred_at, lane, batch)
         SELECT {board_id}, 1 + n * 7919 % {players}, 'score', (random() * {POINTS})::bigint,
                timestamptz '{starts} 00:00Z' + n * (interval '7 days' / {events}::double precision), 0, {batch} + 1 + n / {BATCH}
         FROM generate_series(0, {events} - 1::bigint) AS n"
    ))?;
    let row = bench.psql(&format!(
        "SELECT p.id, p.kind || ':' || p.label, centile_store.archive_name(p.id) FROM centile_store.periods p
         WHERE p.board_id = {board_id} AND p.kind = 'week' AND p.starts_at = '{starts} 00:00Z'"
    ))?;
    let [period_id, name, archive] = row.split('|').collect::<Vec<_>>()[..] else {
        return Err(format!("no week begins on {starts}").into());
    };
    Ok(Week { period_id: period_id.parse()?, name: name.to_owned(), archive: archive.to_owned(), starts, board_id })
}
