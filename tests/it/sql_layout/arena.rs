//! A board of one period with random rules, and players who come and play.

use std::collections::{BTreeMap, HashMap};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    sql_property::{
        layout::{Layout, check_ranking},
        same,
    },
    support::{
        TestDb, amount,
        layout::{self, Step},
        next_number,
        oracle::lane_of,
    },
};

/// How scores are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    Uniform,
    /// Three distinct scores.
    Three,
    Equal,
    /// Newcomers and old players alike have more than anybody before.
    Growing,
    /// Few large ones, many small ones, and one out of all proportion.
    FrontRunner,
}

impl Scores {
    pub const ALL: [Self; 5] = [Self::Uniform, Self::Three, Self::Equal, Self::Growing, Self::FrontRunner];
}

/// A player's rank and position by internal id.
type Places = HashMap<i64, (i64, i64)>;

pub struct Arena {
    pub connection: PgConnection,
    pub rng: StdRng,
    /// Which of the database's boards this is, from 1.
    pub number: i32,
    pub ranking_id: i64,
    url: String,
    slug: String,
    lanes: i16,
    shared: bool,
    target: i64,
    balance_from: i64,
    players: u32,
    high: i64,
}

impl Arena {
    /// Rules follow from the seed: mode, order, ties, lanes, first layout.
    pub async fn random(db: &TestDb, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut connection = PgConnection::connect(db.url()).await.unwrap();
        let (mode, ties) = *[("sum", "shared"), ("latest", "first"), ("latest", "tiebreak"), ("best", "shared")]
            .choose(&mut rng)
            .unwrap();
        let order = if rng.random() { "asc" } else { "desc" };
        let lanes = *[1, 3].choose(&mut rng).unwrap();
        let bounds: Vec<i64> = if rng.random() { vec![] } else { (0..20).map(|n| n * 50).collect() };
        let slug = format!("arena{}", next_number());
        let number: i32 = sqlx::query_scalar(
            "SELECT centile.create_board($1, p_mode => $2, p_order => $3, p_ties => $4, p_periods => '{all_time}', p_lanes => $5,
                                         p_layout_bounds => $6)",
        )
        .bind(&slug)
        .bind(mode)
        .bind(order)
        .bind(ties)
        .bind(lanes)
        .bind(bounds)
        .fetch_one(&mut connection)
        .await
        .unwrap();
        let statement = "SELECT centile.ensure_ledger_months(), centile.open_periods($1, ARRAY[now()])";
        sqlx::query(statement).bind(number).execute(&mut connection).await.unwrap();
        let ranking_id = current(&mut connection, number).await;
        let shared = ties == "shared";
        let (url, target, balance_from) = (db.url().to_owned(), 0, 0);
        let mut arena = Self {
            connection,
            rng,
            number,
            ranking_id,
            url,
            slug,
            lanes,
            shared,
            target,
            balance_from,
            players: 0,
            high: 0,
        };
        arena.aim(6, 50).await;
        arena
    }

    /// Sets the sizes to be kept.
    pub async fn aim(&mut self, target: i32, balance_from: i64) {
        layout::aim(&mut self.connection, &self.slug, target, balance_from).await;
        (self.target, self.balance_from) = (target.into(), balance_from);
    }

    /// So many newcomers score, and as many of those who are there play again.
    pub async fn play(&mut self, scores: Scores, newcomers: u32) {
        let mut events = Vec::new();
        for _ in 0..newcomers {
            let old = self.rng.random_range(0..=self.players);
            self.players += 1;
            for player in [old, self.players] {
                self.high += 7;
                let points = match scores {
                    Scores::Uniform => self.rng.random_range(-1_000..=1_000),
                    Scores::Three => *[-5, 0, 5].choose(&mut self.rng).unwrap(),
                    Scores::Equal if player == old && old > 0 => continue,
                    Scores::Equal => 3,
                    Scores::Growing => self.high,
                    Scores::FrontRunner if self.rng.random_ratio(1, 300) => 1_000_000_000_000_000,
                    Scores::FrontRunner => 1_000 / self.rng.random_range(1..=200),
                };
                events.push((player, points));
            }
        }
        for lane in 0..self.lanes {
            let of_lane =
                events.iter().copied().filter(|(player, _)| lane_of(&name(*player), self.lanes) == lane).collect();
            record(&mut self.connection, self.number, lane, of_lane).await;
        }
    }

    /// Starts writers with connections of their own. Each writes `batches` batches of a few scores, and goes on until `stop`.
    pub fn writers(&mut self, writers: u32, batches: u32, stop: &CancellationToken) -> Vec<JoinHandle<()>> {
        let mut all = Vec::new();
        for writer in 0..writers {
            let (url, board, lanes, stop) = (self.url.clone(), self.number, self.lanes, stop.clone());
            let mut rng = StdRng::seed_from_u64(self.rng.random());
            all.push(tokio::spawn(async move {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                for batch in 0.. {
                    if batch >= batches && stop.is_cancelled() {
                        return;
                    }
                    let events: Vec<_> = (0..20)
                        .map(|_| (rng.random_range(0..1_000) * writers + writer, rng.random_range(-500..500)))
                        .collect();
                    for lane in 0..lanes {
                        let of_lane = events
                            .iter()
                            .copied()
                            .filter(|(player, _)| lane_of(&name(*player), lanes) == lane)
                            .collect();
                        record(&mut connection, board, lane, of_lane).await;
                    }
                }
            }));
        }
        all
    }

    /// All but one player in so many are reset.
    pub async fn leave(&mut self, one_in: u32) {
        sqlx::query(
            "SELECT centile.reset_player($1, u.external_id, 'left')
             FROM centile_store.leaderboard l JOIN centile_store.users u ON u.id = l.user_id
             WHERE l.ranking_id = $2 AND u.id % $3 <> 0",
        )
        .bind(&self.slug)
        .bind(self.ranking_id)
        .bind(i64::from(one_in))
        .execute(&mut self.connection)
        .await
        .unwrap();
    }

    /// Splits and merges until nothing is left of that, without any move.
    pub async fn tidy(&mut self) {
        for step in layout::steps(&mut self.connection, self.ranking_id).await {
            while matches!(step, Step::Tidy(_))
                && layout::take(&mut self.connection, self.ranking_id, step).await.unwrap() != Some(0)
            {}
        }
    }

    /// Brings the layout into shape, for a test that is about what follows.
    pub async fn keep(&mut self) {
        layout::keep(&mut self.connection, self.ranking_id, async |_, _, _| {}).await;
    }

    /// Brings the layout into shape. Checks the rules after each step, ranks after some of them, and the shape at the end.
    pub async fn keep_and_check(&mut self) {
        let places = self.places().await;
        let many = amount(120, usize::MAX);
        self.check_ranks(&places, many).await;
        let (ranking_id, shared) = (self.ranking_id, self.shared);
        let (mut moved, mut steps) = (0, 0);
        let rng = &mut self.rng;
        layout::keep(&mut self.connection, ranking_id, async |connection, step, done| {
            check_ranking(connection, ranking_id, &format!("after {step:?}")).await;
            if rng.random_ratio(1, amount(5, 1)) {
                let some = if rng.random_ratio(1, 100) { many } else { 5 };
                check_ranks(connection, ranking_id, shared, &places, some, rng).await;
            }
            assert!(
                matches!(step, Step::Tidy(_)) || done.is_some(),
                "{step:?} was not possible, and nobody else is here"
            );
            steps += 1;
            moved += if matches!(step, Step::Move { .. }) { done.unwrap_or_default() } else { 0 };
        })
        .await;
        self.check_ranks(&places, many).await;
        self.check_shape(&format!("after {steps} steps and {moved} rows moved")).await;
        // Nothing is ever moved to and fro.
        let number = self.layout_number().await;
        assert_eq!(layout::keep(&mut self.connection, ranking_id, async |_, _, _| {}).await, 0);
        assert_eq!(self.layout_number().await, number);
    }

    async fn check_shape(&mut self, what: &str) {
        let layout = self.layout(what).await;
        let stripes = layout.stripes();
        let players: i64 = layout.buckets().iter().sum();
        let largest = stripes.iter().map(|stripe| stripe.1).max().unwrap();
        assert!(largest <= 2 * self.target, "a stripe of {largest} where {} are aimed at: {what}", self.target);
        for pair in stripes.windows(2) {
            let [(low, few), (high, more)] = pair else { unreachable!() };
            assert!(low != high || 2 * (few + more) >= self.target, "{pair:?} could be one: {what}");
        }
        if players >= self.balance_from {
            // Stripes are moved whole, to the bucket in whose hundredth of the players their middle lies: at either end of it
            // half a stripe may be too many. Where a share is at least two and a half targets, that is less than 1.8 shares.
            let hundredths = layout.buckets().into_iter().max().unwrap() * 100;
            let bound = (2 * players).max(players + 100 * largest);
            assert!(hundredths <= bound, "a bucket of {hundredths} hundredths where {players} play: {what}");
        }
    }

    async fn places(&mut self) -> Places {
        let order = if self.shared { "rank_key DESC" } else { "rank_key DESC, tie_key DESC, user_id" };
        let statement = format!(
            "SELECT user_id, rank() OVER (ORDER BY {order}),
                    row_number() OVER (ORDER BY rank_key DESC, tie_key DESC, user_id)
             FROM centile_store.leaderboard WHERE ranking_id = $1"
        );
        let rows: Vec<(i64, i64, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(self.ranking_id)
            .fetch_all(&mut self.connection)
            .await
            .unwrap();
        rows.into_iter().map(|(user, rank, position)| (user, (rank, position))).collect()
    }

    async fn check_ranks(&mut self, places: &Places, some: usize) {
        check_ranks(&mut self.connection, self.ranking_id, self.shared, places, some, &mut self.rng).await;
    }

    /// Builds the ranking anew beside the live one, and goes on with that.
    pub async fn rebuild(&mut self) {
        sqlx::query(
            "SELECT centile_store.fill_entries(r.ranking_id), centile_store.fill_buckets(r.ranking_id),
                    centile_store.swap_ranking(r.ranking_id, r.ledger_end)
             FROM centile_store.begin_rebuild((SELECT id FROM centile_store.periods WHERE board_id = $1)) r",
        )
        .bind(self.number)
        .execute(&mut self.connection)
        .await
        .unwrap();
        self.ranking_id = current(&mut self.connection, self.number).await;
    }

    /// The layout as it is, after a look at the rules.
    pub async fn layout(&mut self, what: &str) -> Layout {
        check_ranking(&mut self.connection, self.ranking_id, what).await
    }

    /// Players of the largest stripe of each bucket.
    pub async fn largest_stripes(&mut self) -> BTreeMap<i16, i64> {
        let mut largest = BTreeMap::new();
        for (bucket, players) in self.layout("the largest stripes").await.stripes() {
            let most: &mut i64 = largest.entry(bucket).or_default();
            *most = players.max(*most);
        }
        largest
    }

    pub async fn bucket_of(&mut self, bound: [i64; 3]) -> i16 {
        sqlx::query_scalar(
            "SELECT bucket FROM centile_store.stripes WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) = ($2, $3, $4)",
        )
        .bind(self.ranking_id)
        .bind(bound[0])
        .bind(bound[1])
        .bind(bound[2])
        .fetch_one(&mut self.connection)
        .await
        .unwrap()
    }

    async fn layout_number(&mut self) -> i32 {
        let statement = "SELECT layout FROM centile_store.rankings WHERE id = $1";
        sqlx::query_scalar(statement).bind(self.ranking_id).fetch_one(&mut self.connection).await.unwrap()
    }

    /// Pages that ranks of a hundred random players touch, all in all.
    pub async fn pages_read(&mut self) -> i64 {
        sqlx::query("VACUUM ANALYZE").execute(&mut self.connection).await.unwrap();
        let statement = format!(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
             SELECT a.* FROM (SELECT * FROM centile_store.leaderboard WHERE ranking_id = {0} ORDER BY hashint8(user_id) LIMIT 100) l
             CROSS JOIN LATERAL centile_store.above_in_bucket({0}, l.rank_key, l.tie_key, -l.user_id, {1}) a",
            self.ranking_id, self.lanes
        );
        let mut pages = 0;
        // The first time plans are made, too.
        for _ in 0..2 {
            let plan: serde_json::Value = sqlx::query_scalar(sqlx::AssertSqlSafe(statement.clone()))
                .fetch_one(&mut self.connection)
                .await
                .unwrap();
            pages = ["Shared Hit Blocks", "Shared Read Blocks"]
                .map(|name| plan[0]["Plan"][name].as_i64().unwrap())
                .iter()
                .sum();
        }
        pages
    }

    /// Everything that is stored of the ranking, as text.
    pub async fn dump(&mut self) -> Vec<String> {
        self.dump_of(self.ranking_id).await
    }

    /// As [`Self::dump`], of another ranking.
    pub async fn dump_of(&mut self, ranking_id: i64) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT x FROM (
                 SELECT 's' || s::text FROM centile_store.stripes s WHERE ranking_id = $1
                 UNION ALL SELECT 'c' || c::text FROM centile_store.stripe_counts c WHERE ranking_id = $1
                 UNION ALL SELECT 'b' || b::text FROM centile_store.bucket_counts b WHERE ranking_id = $1
                 UNION ALL SELECT 'r' || r::text FROM centile_store.leaderboard_bucket r WHERE ranking_id = $1
                 UNION ALL SELECT 'g' || layout::text FROM centile_store.rankings WHERE id = $1) AS x (x)
             ORDER BY x",
        )
        .bind(ranking_id)
        .fetch_all(&mut self.connection)
        .await
        .unwrap()
    }
}

/// Compares the ranks of some random players, or of all, with plain ones: counted as reports are, and as the service adds them up
/// from bucket counts and a look into the bucket; and who stands at each position with who should.
async fn check_ranks(
    connection: &mut PgConnection,
    ranking_id: i64,
    shared: bool,
    places: &Places,
    some: usize,
    rng: &mut StdRng,
) {
    let users: Vec<i64> = places.keys().copied().collect();
    let mut users: Vec<i64> = users.sample(rng, some.min(users.len())).copied().collect();
    users.sort_unstable();
    let found: Vec<(i64, i64, i64, i64, i64, Option<i64>)> = sqlx::query_as(
        // Looked up before anything is counted for them: else a plan may count for each pair of players.
        "WITH players AS MATERIALIZED (
             SELECT u.id, r.* FROM unnest($2::bigint[]) AS u (id) CROSS JOIN LATERAL centile_store.player_row($1, u.id) r)
         SELECT p.id, p.rank, p.position, -k.user_key, (1 + h.higher + a.in_stripe[2])::bigint,
                CASE WHEN $3 AND a.has_all_equals THEN 1 + h.higher + a.in_stripe[1] END::bigint
         FROM players p
         CROSS JOIN LATERAL centile_store.key_at($1, p.position) k
         CROSS JOIN LATERAL centile_store.above_in_bucket($1, p.rank_key, p.tie_key, -p.id,
             (SELECT g.lanes FROM centile_store.rankings g WHERE g.id = $1)) a
         CROSS JOIN LATERAL (
             SELECT coalesce(sum(c), 0) + CASE WHEN a.are_below THEN -a.other_stripes ELSE a.other_stripes END AS higher
             FROM unnest((centile_store.bucket_totals($1))[a.bucket + CASE WHEN a.are_below THEN 1 ELSE 2 END:]) AS c) h
         ORDER BY p.id",
    )
    .bind(ranking_id)
    .bind(&users)
    .bind(shared)
    .fetch_all(connection)
    .await
    .unwrap();
    let expected: Vec<_> = (users.iter().zip(&found))
        .map(|(user, found)| {
            let (rank, position) = places[user];
            (*user, rank, position, *user, position, found.5.map(|_| rank))
        })
        .collect();
    same(&found, &expected, if shared { "shared ranks" } else { "ranks" });
}

fn name(player: u32) -> String {
    format!("p{player}")
}

async fn current(connection: &mut PgConnection, board: i32) -> i64 {
    let statement = "SELECT ranking_id FROM centile_store.periods WHERE board_id = $1";
    sqlx::query_scalar(statement).bind(board).fetch_one(connection).await.unwrap()
}

/// One batch of a lane.
async fn record(connection: &mut PgConnection, board: i32, lane: i16, events: Vec<(u32, i64)>) {
    if events.is_empty() {
        return;
    }
    let (users, points): (Vec<String>, Vec<i64>) =
        events.into_iter().map(|(player, points)| (name(player), points)).unzip();
    sqlx::query("SELECT centile.ensure_users($1)").bind(&users).execute(&mut *connection).await.unwrap();
    let accepted: i64 = sqlx::query_scalar("SELECT count(*) FROM testing.record_scores($1, $2, $3, $4)")
        .bind(board)
        .bind(lane)
        .bind(&users)
        .bind(&points)
        .fetch_one(connection)
        .await
        .unwrap();
    assert_eq!(usize::try_from(accepted).unwrap(), users.len());
}
