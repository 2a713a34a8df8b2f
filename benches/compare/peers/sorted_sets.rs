//! Redis sorted sets with a ledger in PostgreSQL. A score is committed to the ledger, then added to
//! three sets. Reads use Redis only.

use std::{collections::HashMap, sync::Arc};

use deadpool_redis::redis::{Pipeline, pipe};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use sqlx::PgPool;

use super::{
    Event, Peer, PeerResult, Pools, Row, Standing, folded,
    lane::Lanes,
    redis::{Connection, Redis, RedisClient},
    scores_of,
};

/// The sets of the live periods. Scores go to all; reads use the first.
pub const SETS: [&str; 3] = ["bench:all_time", "bench:week", "bench:month"];

/// Concurrent scores of a request if each has its own transaction.
const AT_ONCE: usize = 6;

/// SQL that creates ledger and totals.
pub const TABLES: &str = "
    CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY, user_id text NOT NULL, points bigint NOT NULL,
                         occurred_at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE totals (user_id text NOT NULL, score bigint NOT NULL) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)";

/// SQL that fills the ledger from `given` with a row per player, as Centile's import does.
pub const FILL: &str = "
    INSERT INTO ledger (user_id, points) SELECT user_id, points FROM given;
    INSERT INTO totals SELECT user_id, points FROM given;
    ALTER TABLE ledger ADD PRIMARY KEY (id);
    ALTER TABLE totals ADD PRIMARY KEY (user_id)";

/// One statement, one round trip, one transaction.
const ADD_ONE: &str = "
    WITH row AS (INSERT INTO ledger (user_id, points) VALUES ($1, $2))
    INSERT INTO totals AS t (user_id, score) VALUES ($1, $2)
    ON CONFLICT (user_id) DO UPDATE SET score = t.score + excluded.score RETURNING t.score";

/// Writes a ledger row per event and a total per player, in the order of the ids.
const ADD_MANY: &str = "
    WITH rows AS (INSERT INTO ledger (user_id, points) SELECT * FROM unnest($1::text[], $2::bigint[]))
    INSERT INTO totals AS t (user_id, score)
    SELECT e.user_id, e.points FROM unnest($3::text[], $4::bigint[]) AS e(user_id, points) ORDER BY e.user_id
    ON CONFLICT (user_id) DO UPDATE SET score = t.score + excluded.score RETURNING t.user_id, t.score";

/// State shared by writers and readers.
pub struct Store {
    writers: PgPool,
    redis: Redis,
}

/// Returns the key of a player's hash.
pub fn user_key(user: &str) -> String {
    format!("user:{user}")
}

impl Store {
    /// Commits events, then adds them to the sets, folded per player as in the totals.
    pub async fn write(&self, events: &[Event]) -> PeerResult<Vec<i64>> {
        let (users, points) = folded(events);
        let scores = if let [Event { user_id, points }] = events {
            vec![sqlx::query_scalar(ADD_ONE).bind(user_id).bind(points).fetch_one(&self.writers).await?]
        } else {
            let each: (Vec<&str>, Vec<i64>) = events.iter().map(|event| (event.user_id.as_str(), event.points)).unzip();
            let query = sqlx::query_as(ADD_MANY).bind(each.0).bind(each.1).bind(&users).bind(&points);
            scores_of(events, query.fetch_all(&self.writers).await?)?
        };
        let mut commands = pipe();
        for (user, points) in users.iter().zip(points) {
            for set in SETS {
                commands.cmd("ZINCRBY").arg(set).arg(points).arg(user).ignore();
            }
        }
        self.redis.connection().await?.run::<()>(&commands).await?;
        Ok(scores)
    }
}

pub struct SortedSets {
    store: Arc<Store>,
    /// The batch writers, if batching.
    lanes: Option<Lanes>,
}

impl SortedSets {
    pub async fn new(
        database_url: &str,
        redis_url: &str,
        client: RedisClient,
        lanes: Option<usize>,
    ) -> PeerResult<Self> {
        // All connections write, because nothing is read from PostgreSQL.
        let writers = Pools::for_writing(database_url)?;
        let store = Arc::new(Store { writers, redis: Redis::connect(redis_url, client).await? });
        let lanes = lanes.map(|lanes| Lanes::start(&store, lanes));
        Ok(Self { store, lanes })
    }
}

/// Returns rows from a position, counted from 0.
async fn rows(redis: &mut Connection, from: i64, to: i64) -> PeerResult<Vec<Row>> {
    let mut range = pipe();
    range.cmd("ZREVRANGE").arg(SETS[0]).arg(from).arg(to).arg("WITHSCORES");
    let (found,): (Vec<(String, f64)>,) = redis.run(&range).await?;
    let mut hashes = Pipeline::with_capacity(found.len());
    for (user, _) in &found {
        hashes.cmd("HGETALL").arg(user_key(user));
    }
    let users: Vec<HashMap<String, String>> = if found.is_empty() { Vec::new() } else { redis.run(&hashes).await? };
    let named = found.into_iter().zip(users);
    let rows = (from + 1..).zip(named).map(|(rank, ((user_id, score), mut user))| Row {
        rank,
        user_id,
        user_name: user.remove("name"),
        score: whole(score),
    });
    Ok(rows.collect())
}

impl Peer for SortedSets {
    async fn standing(&self, user: String, around: i64) -> PeerResult<Option<Standing>> {
        let mut commands = pipe();
        commands.cmd("ZREVRANK").arg(SETS[0]).arg(&user).cmd("ZSCORE").arg(SETS[0]).arg(&user);
        let mut redis = self.store.redis.connection().await?;
        let (Some(place), Some(score)) = redis.run::<(Option<i64>, Option<f64>)>(&commands).await? else {
            return Ok(None);
        };
        let player = Row { rank: place + 1, user_id: user, user_name: None, score: whole(score) };
        if around == 0 {
            return Ok(Some(Standing { row: player, above: Vec::new(), below: Vec::new(), counts_age_ms: None }));
        }
        let mut above = rows(&mut redis, (place - around).max(0), place + around).await?;
        // Positions may have changed meanwhile, so drop the player by id.
        let at = above.iter().position(|row| row.user_id == player.user_id);
        let mut below = above.split_off(at.unwrap_or(above.len() / 2));
        let row = if at.is_some() { below.remove(0) } else { player };
        Ok(Some(Standing { row, above, below, counts_age_ms: None }))
    }

    async fn page(&self, from: i64, limit: i64) -> PeerResult<Vec<Row>> {
        rows(&mut self.store.redis.connection().await?, from - 1, from + limit - 2).await
    }

    async fn write(&self, events: Vec<Event>) -> PeerResult<Vec<i64>> {
        if let Some(lanes) = &self.lanes {
            return lanes.write(events).await;
        }
        // A separate task: if the caller disconnects, the sets must still get the committed score.
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let each = stream::iter(events).map(async |event| store.write(&[event]).await);
            each.buffered(AT_ONCE).try_concat().await
        })
        .await?
    }
}

/// Converts a score of Redis, a double exact up to 2⁵³.
#[expect(clippy::cast_possible_truncation, reason = "points are whole numbers")]
fn whole(score: f64) -> i64 {
    score as i64
}
