//! A board with weeks of the past, filled set by set: event by event, as scores come in, it would take hours.

use crate::common::{Bench, Outcome};

pub const BOARD: &str = "weeks";
/// Points of an event are 0 to this.
const POINTS: u64 = 1_000;
/// Events of a batch, as many as a writer takes.
const BATCH: u64 = 500;
/// Players and events of the week that memory is compared with.
const FEW: u64 = 1_000;

/// How much is filled in.
#[derive(Clone, Copy)]
pub struct Size {
    pub players: u64,
    /// Of each week.
    pub events: u64,
    /// Weeks with that many.
    pub weeks: u32,
}

/// A week that is over.
#[derive(Clone)]
pub struct Week {
    pub period_id: i64,
    /// As `centile close --period` takes it.
    pub name: String,
    pub archive: String,
    /// Its first day.
    pub starts: String,
    board_id: i32,
}

impl Week {
    /// Which rows of the ledger are its scores.
    pub fn scores(&self) -> String {
        format!(
            "board_id = {} AND kind = 'score' AND occurred_at >= '{1} 00:00Z' AND occurred_at < timestamptz '{1} 00:00Z' + interval '7 days'",
            self.board_id, self.starts
        )
    }

    /// Makes a closed week one that is over and not closed, so that it can be closed again: its ranking is still there until
    /// `centile maintain` removes it.
    pub fn open_again(&self, bench: &Bench) -> Outcome<()> {
        let id = self.period_id;
        bench
            .psql(&format!(
                "BEGIN;
                 DROP MATERIALIZED VIEW centile_archive.{};
                 DELETE FROM centile_store.outbox WHERE period_id = {id};
                 UPDATE centile_store.rankings SET released_at = NULL WHERE period_id = {id};
                 UPDATE centile_store.periods p
                 SET state = 'open', ranking_id = (SELECT r.id FROM centile_store.rankings r WHERE r.period_id = p.id),
                     cut_off_at = NULL, archive_name = NULL, archive_revision = 0, archive_players = NULL,
                     archive_differences = NULL, frozen_top = NULL, closed_at = NULL
                 WHERE id = {id};
                 COMMIT",
                self.archive
            ))
            .map(drop)
    }
}

/// The weeks of equal size, each in a month of its own, so that whoever reads a week reads nothing else; and a last one with
/// a thousand players.
pub fn fill(bench: &Bench, size: Size) -> Outcome<(Vec<Week>, Week)> {
    let Size { players, events, weeks } = size;
    let top = POINTS * (events / players).max(1) * u64::from(weeks);
    let board_id = bench
        .psql(&format!(
            "SELECT centile.create_board('{BOARD}', p_periods => '{{all_time,week}}',
                                         p_layout_bounds => ARRAY(SELECT n * {top} / 100 FROM generate_series(1, 99) AS n))"
        ))?
        .parse()?;
    bench.psql(&format!(
        "INSERT INTO centile_store.users (external_id, name, lane_hash)
         SELECT 'player-' || n, 'Player ' || n, centile.lane_hash('player-' || n) FROM generate_series(1, {players}) AS n"
    ))?;
    // Row by row in no order this index takes most of the time; made of them all at the end it takes seconds.
    let player_index = bench.psql("SELECT pg_get_indexdef('centile_store.score_transactions_player_idx'::regclass)")?;
    bench.psql("DROP INDEX centile_store.score_transactions_player_idx")?;
    let mut filled = Vec::new();
    let mut batch = 0;
    for n in 0..=weeks {
        let (players, events) = if n < weeks { (players, events) } else { (FEW, FEW * events / players) };
        filled.push(add_week(bench, board_id, n, (players, events), batch)?);
        batch += events / BATCH + 1;
    }
    // "ON ONLY" would make it for the months to come.
    bench.psql(&format!("SET maintenance_work_mem = '512MB'; {}", player_index.replace(" ON ONLY ", " ON ")))?;
    bench.psql(&format!(
        "UPDATE centile_store.board_lanes
         SET batch = CASE lane WHEN 0 THEN {batch} ELSE 0 END,
             last_at = (SELECT max(ends_at) FROM centile_store.periods WHERE board_id = {board_id} AND kind = 'week')
         WHERE board_id = {board_id}"
    ))?;
    let open = format!("FROM centile_store.periods p WHERE p.board_id = {board_id} ORDER BY p.id");
    for period_id in bench.psql(&format!("SELECT p.id {open}"))?.lines() {
        add_ranking(bench, period_id.parse()?)?;
    }
    bench.psql("VACUUM ANALYZE")?;
    let small = filled.pop().ok_or("no weeks")?;
    Ok((filled, small))
}

fn add_week(bench: &Bench, board_id: i32, n: u32, (players, events): (u64, u64), batch: u64) -> Outcome<Week> {
    // The second Monday of a month.
    let starts = bench.psql(&format!(
        "SELECT (date_trunc('week', m + interval '6 days') + interval '7 days')::date
         FROM (SELECT timestamp '2020-01-01' + {n} * interval '1 month' AS m) x"
    ))?;
    bench.psql(&format!(
        "SELECT centile.ensure_ledger_months('{starts}', '{starts}'), centile.open_periods({board_id}, '{{{starts} 12:00Z}}')"
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

/// The ranking of a period as writers would have left it: entries from the ledger, bucket rows, counts, split stripes.
fn add_ranking(bench: &Bench, period_id: i64) -> Outcome<()> {
    let ranking_id = bench.psql(&format!("SELECT ranking_id FROM centile_store.periods WHERE id = {period_id}"))?;
    for sql in [
        format!("INSERT INTO centile_store.leaderboard SELECT {ranking_id}, e.* FROM centile.entries_from_ledger({period_id}) AS e"),
        format!(
            "INSERT INTO centile_store.leaderboard_bucket (bucket, ranking_id, rank_key, tie_key, user_key)
             SELECT s.buckets[width_bucket(l.rank_key, s.keys)], {ranking_id}, l.rank_key, l.tie_key, -l.user_id
             FROM centile_store.leaderboard l
             CROSS JOIN (SELECT array_agg(rank_key ORDER BY rank_key) AS keys, array_agg(bucket ORDER BY rank_key) AS buckets
                         FROM centile_store.stripes WHERE ranking_id = {ranking_id}) s
             WHERE l.ranking_id = {ranking_id} ORDER BY l.rank_key, l.tie_key"
        ),
        format!(
            "UPDATE centile_store.stripe_counts c SET counts = ARRAY[x.players]
             FROM (SELECT bucket, count(*) AS players FROM centile_store.leaderboard_bucket WHERE ranking_id = {ranking_id} GROUP BY bucket) x
             WHERE c.ranking_id = {ranking_id} AND c.lane = 0 AND c.bucket = x.bucket"
        ),
        format!(
            "UPDATE centile_store.bucket_counts c
             SET counts = ARRAY(SELECT coalesce(s.counts[1], 0) FROM generate_series(0, 99) AS b (bucket)
                                LEFT JOIN centile_store.stripe_counts s ON s.ranking_id = {ranking_id} AND s.lane = 0 AND s.bucket = b.bucket
                                ORDER BY b.bucket)
             WHERE c.ranking_id = {ranking_id} AND c.lane = 0"
        ),
        format!(
            "DO $$
             DECLARE
                 v_bucket smallint;
             BEGIN
                 FOR v_bucket IN SELECT * FROM centile_store.buckets_to_tidy({ranking_id}) LOOP
                     WHILE centile_store.tidy_stripes({ranking_id}, v_bucket) > 0 LOOP
                     END LOOP;
                 END LOOP;
             END
             $$"
        ),
    ] {
        bench.psql(&sql)?;
    }
    Ok(())
}
