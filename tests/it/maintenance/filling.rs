//! Scores and acts of all kinds between the steps that fill a rolling window or rebuild a ranking.

use centile::tested::{Batches, Event};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::{Connection as _, PgConnection, PgPool};

use crate::{
    store::property::{Reproducible, seeds},
    support::{TestDb, amount, audit},
};

const LANES: i16 = 2;

/// A board while one of its rankings is being built.
struct Board {
    batches: Batches,
    pool: PgPool,
    /// The session that builds the ranking, and holds its lock.
    builder: PgConnection,
    ranking_id: i64,
    /// Players by lane.
    players: Vec<(i16, String)>,
    random: StdRng,
}

impl Board {
    /// Acts at random: scores of both lanes, some of new players, bans, resets and voids.
    async fn act(&mut self) {
        for _ in 0..self.random.random_range(0..4) {
            let kind = self.random.random_range(0..10);
            let (lane, player) = self.players.choose(&mut self.random).unwrap().clone();
            let statement = match kind {
                0 => {
                    "SELECT centile.ban_user('main', $1, NOT coalesce((SELECT p.banned FROM centile_store.players p JOIN centile_store.users u ON u.id = p.user_id WHERE u.external_id = $1), false))"
                }
                1 => "SELECT centile.reset_player('main', $1)",
                2 => {
                    "SELECT centile.void_score('main', t.id)
                     FROM centile_store.score_transactions t JOIN centile_store.users u ON u.id = t.user_id
                     WHERE u.external_id = $1 AND t.kind = 'score' ORDER BY random() LIMIT 1"
                }
                _ => {
                    self.score(lane).await;
                    continue;
                }
            };
            // For an unknown player, the statement fails and changes nothing.
            sqlx::query(statement).bind(&player).execute(&self.pool).await.ok();
        }
    }

    /// Writes a batch of some players of a lane.
    async fn score(&mut self, lane: i16) {
        let mut events = Vec::new();
        for (_, user_id) in self.players.iter().filter(|(other, _)| *other == lane) {
            if self.random.random_range(0..4) == 0 {
                let points = self.random.random_range(-3..9);
                events.push(Event {
                    user_id: user_id.parse().unwrap(),
                    points,
                    tiebreak: None,
                    reason: None,
                    id: None,
                    occurred_at: None,
                    metadata: None,
                });
            }
        }
        if !events.is_empty() {
            self.batches.write(1, lane, false, &events).await.unwrap();
        }
    }

    /// Gives the players their standings in some steps, with acts in between.
    async fn repair(&mut self) {
        type Row = (i16, i64, i64, Option<i64>, Option<i64>, Option<bool>, bool);
        let rows = "SELECT lane, batch, user_id, rank_key, tie_key, only_zeros, ends_act FROM centile_store.differing_players($1, 7)";
        let mut rows: Vec<Row> = sqlx::query_as(rows).bind(self.ranking_id).fetch_all(&self.pool).await.unwrap();
        while let Some((lane, batch, ..)) = rows.first().copied() {
            self.act().await;
            let all = rows.iter().take_while(|row| row.0 == lane).count();
            let act = rows.iter().position(|row| row.6).map_or(all, |end| end + 1);
            let mut step: Vec<Row> = rows.drain(..self.random.random_range(1..=8).min(all).min(act)).collect();
            let up_to = step[step.len() - 1].2;
            step.retain(|row| !row.6);
            sqlx::query("SELECT centile_store.repair_players($1, $2, $3, $4, $5, $6, $7, $8)")
                .bind(self.ranking_id)
                .bind(lane)
                .bind(batch)
                .bind(up_to)
                .bind(step.iter().map(|row| row.2).collect::<Vec<_>>())
                .bind(step.iter().map(|row| row.3).collect::<Vec<_>>())
                .bind(step.iter().map(|row| row.4).collect::<Vec<_>>())
                .bind(step.iter().map(|row| row.5).collect::<Vec<_>>())
                .execute(&mut self.builder)
                .await
                .unwrap();
        }
    }

    /// Writes the bucket rows in some steps, with acts in between, and swaps the rankings.
    async fn fill(&mut self) {
        let bounds = sqlx::query("SELECT centile_store.fill_bounds($1)").bind(self.ranking_id);
        bounds.execute(&mut self.builder).await.unwrap();
        for lane in 0..LANES {
            let mut left = 1;
            while left > 0 {
                self.act().await;
                left = sqlx::query_scalar::<_, i64>("SELECT f.players FROM centile_store.fill_rows($1, $2, $3) f")
                    .bind(self.ranking_id)
                    .bind(lane)
                    .bind(self.random.random_range(1..9))
                    .fetch_one(&mut self.builder)
                    .await
                    .unwrap();
            }
        }
        self.act().await;
        let swap =
            sqlx::query_scalar::<_, Option<i64>>("SELECT centile_store.swap_ranking($1, 1000)").bind(self.ranking_id);
        assert!(swap.fetch_one(&mut self.builder).await.unwrap().is_some(), "few changes are left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ranking_built_while_scores_arrive_agrees_with_the_ledger() {
    for seed in seeds(amount(4, 100)) {
        let case = Reproducible(seed);
        let mut random = StdRng::seed_from_u64(case.0);
        let db = TestDb::new().await;
        let mode = ["sum", "best", "latest"].choose(&mut random).unwrap();
        // Without a week or month, a score may change only the window.
        db.execute(&format!(
            "SELECT centile.create_board('main', '{{\"mode\": \"{mode}\", \"ties\": \"first\", \"lanes\": {LANES}, \"periods\": [\"all_time\"], \"rolling\": [\"7d\"]}}');
             SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 40) n))"
        ))
        .await;
        let pool = db.pool().await;
        let players = "SELECT (centile.lane_hash('p' || n) % 2)::smallint, 'p' || n FROM generate_series(1, 40) n";
        let players = sqlx::query_as(players).fetch_all(&pool).await.unwrap();
        let builder = PgConnection::connect(db.url()).await.unwrap();
        let batches = Batches::new(db.url()).unwrap();
        let mut board = Board { batches, pool, builder, ranking_id: 0, players, random };
        for _ in 0..8 {
            board.act().await;
        }
        // An earlier filling that did not end leaves standings behind.
        let window = "SELECT centile_store.open_window(1, '7d', now() + interval '1 day')";
        let window: i64 = sqlx::query_scalar(window).fetch_one(&board.pool).await.unwrap();
        let rebuilt: i64 = sqlx::query_scalar("SELECT id FROM centile_store.periods WHERE kind = 'all_time'")
            .fetch_one(&board.pool)
            .await
            .unwrap();
        for (period, is_filled) in [(window, false), (window, true), (rebuilt, true)] {
            if period == rebuilt {
                db.execute(
                    "SELECT testing.allow_damage();
                     UPDATE centile_store.leaderboard l SET rank_key = l.rank_key + 3
                     FROM centile_store.periods p WHERE p.kind = 'all_time' AND l.ranking_id = p.ranking_id AND l.user_id % 3 = 0;
                     DELETE FROM centile_store.leaderboard l
                     USING centile_store.periods p WHERE p.kind = 'all_time' AND l.ranking_id = p.ranking_id AND l.user_id % 3 = 1",
                )
                .await;
            }
            let begin = sqlx::query_scalar("SELECT centile_store.begin_rebuild($1)").bind(period);
            board.ranking_id = begin.fetch_one(&mut board.builder).await.unwrap();
            board.repair().await;
            if is_filled {
                board.fill().await;
            } else {
                let unlock = "SELECT pg_advisory_unlock_all()";
                sqlx::query(unlock).execute(&mut board.builder).await.unwrap();
            }
        }
        assert!(audit::rankings_are_sound(&board.pool).await > 0);
    }
}

/// The standings of a segment that closes late are those of its whole period, which is closed.
#[tokio::test]
async fn a_segment_of_a_closed_period_is_repaired_and_rebuilt() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('main', '{\"lanes\": 1, \"periods\": [\"week\"], \"segments\": [\"country\"]}');
         SELECT centile.put_user('p' || n, p_attributes => '{\"country\": \"DE\"}') FROM generate_series(1, 20) n;
         SELECT centile_store.open_periods(1, ARRAY[now()]);
         SELECT centile_store.open_segments(1, array_agg(id), array_agg('country:DE'::text)) FROM centile_store.periods;
         INSERT INTO centile_store.segment_members (board_id, user_id, segment, lane, batch, changed_at, is_member)
         SELECT 1, u.id, s, 0, 1, '-infinity', true FROM centile_store.users u, unnest('{\"\", country:DE}'::text[]) s;
         SELECT testing.submit_score('main', 'p' || n, n) FROM generate_series(1, 20) n;
         UPDATE centile_store.periods SET state = 'closed', ranking_id = NULL WHERE segment = '';
         SELECT testing.allow_damage();
         UPDATE centile_store.leaderboard l SET rank_key = 99
         FROM centile_store.periods p WHERE p.ranking_id = l.ranking_id AND l.user_id = 3;
         CREATE TABLE building AS SELECT centile_store.begin_rebuild(id) AS r FROM centile_store.periods WHERE segment <> '';
         SELECT centile_store.repair_players(r, d.lane, d.batch, d.user_id, ARRAY[d.user_id], ARRAY[d.rank_key], ARRAY[d.tie_key], ARRAY[d.only_zeros])
         FROM building CROSS JOIN LATERAL centile_store.differing_players(r) d;
         SELECT centile_store.fill_bounds(r), centile_store.fill_rows(r, 0::smallint) FROM building;
         SELECT centile_store.fill_rows(r, 0::smallint) FROM building;
         SELECT centile_store.swap_ranking(r) FROM building",
    )
    .await;
    let pool = db.pool().await;
    let counts = "SELECT c.entries, c.agree FROM centile.ranking_counts c";
    assert_eq!(sqlx::query_as::<_, (i64, bool)>(counts).fetch_all(&pool).await.unwrap(), [(20, true)]);
    let differing = "SELECT count(*) FROM building CROSS JOIN LATERAL centile_store.differing_players(r)";
    assert_eq!(sqlx::query_scalar::<_, i64>(differing).fetch_one(&pool).await.unwrap(), 0);
}
