//! 100 bucket tables as published. A rank is the number of players in the buckets above, counted
//! once a minute, plus a count in the player's own bucket. Bounds never change, and responses have
//! no version.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, PgConnection, PgPool};

use super::{Event, Peer, PeerResult, Pools, Row, SideRow, Standing, folded, scores_of};

/// SQL that creates tables and functions.
pub const TABLES: &str = include_str!("buckets.sql");

/// SQL that fills buckets of equal size from `given`.
pub const FILL: &str = "
    INSERT INTO bounds SELECT percentile_disc(ARRAY(SELECT n / 100.0 FROM generate_series(1, 99) AS n)) WITHIN GROUP (ORDER BY points)
                       FROM given;
    INSERT INTO users SELECT user_id, user_name, points, width_bucket(points, (SELECT lows FROM bounds)) FROM given;
    INSERT INTO buckets SELECT bucket, score, user_id FROM users ORDER BY bucket, score, user_id;
    ALTER TABLE users ADD PRIMARY KEY (user_id);
    CREATE INDEX buckets_score_idx ON buckets (score, user_id)";

const BUCKETS: usize = 100;
/// Maximum age of counts.
const LIFETIME: Duration = Duration::from_mins(1);

/// Statements that name a bucket's table, so that the other 99 are neither locked nor planned. A
/// sub-select reads names: the planner does not know the limit and would join with all users.
struct Statements {
    count: Arc<str>,
    around: Arc<str>,
    page: Arc<str>,
}

impl Statements {
    fn of(bucket: usize) -> Self {
        let table = format!("bucket_{bucket:02}");
        Self {
            count: format!("SELECT count(*) FROM {table} WHERE score > $1").into(),
            // Neighbours, nearest first, with the number of players between them and the requested
            // score.
            around: format!(
                "SELECT * FROM (
                     SELECT -1, (SELECT count(*) FROM {table} b WHERE b.score > $1 AND b.score <= n.score), n.user_id,
                            (SELECT u.user_name FROM users u WHERE u.user_id = n.user_id), n.score
                     FROM (SELECT * FROM {table} WHERE (score, user_id) > ($1, $2) ORDER BY score, user_id LIMIT $3) n
                     ORDER BY n.score, n.user_id) a
                 UNION ALL
                 SELECT * FROM (
                     SELECT 1, (SELECT count(*) FROM {table} b WHERE b.score <= $1 AND b.score > n.score), n.user_id,
                            (SELECT u.user_name FROM users u WHERE u.user_id = n.user_id), n.score
                     FROM (SELECT * FROM {table} WHERE (score, user_id) < ($1, $2) ORDER BY score DESC, user_id DESC LIMIT $3) n
                     ORDER BY n.score DESC, n.user_id DESC) b"
            )
            .into(),
            // The rank is the position minus the equal scores before it, which are all in the same
            // bucket.
            page: format!(
                "SELECT p.position - (SELECT count(*) FROM {table} e WHERE e.score = p.score AND e.user_id > p.user_id),
                        p.user_id, (SELECT u.user_name FROM users u WHERE u.user_id = p.user_id), p.score
                 FROM (SELECT k.user_id, k.score, $1 + row_number() OVER (ORDER BY k.score DESC, k.user_id DESC) AS position
                       FROM (SELECT user_id, score FROM {table} ORDER BY score DESC, user_id DESC OFFSET $1 LIMIT $2) k) p
                 ORDER BY p.position"
            )
            .into(),
        }
    }
}

/// Player counts of the buckets, and the time of counting.
#[derive(Clone)]
struct Counts {
    players: [i64; BUCKETS],
    at: Instant,
}

impl Counts {
    async fn read(pool: &PgPool) -> PeerResult<Self> {
        let at = Instant::now();
        let rows: Vec<(i16, i64)> =
            sqlx::query_as("SELECT bucket, count(*) FROM buckets GROUP BY bucket").fetch_all(pool).await?;
        let mut players = [0; BUCKETS];
        for (bucket, count) in rows {
            players[usize::try_from(bucket)?] = count;
        }
        Ok(Self { players, at })
    }

    fn above(&self, bucket: usize) -> i64 {
        self.players[bucket + 1..].iter().sum()
    }
}

pub struct Buckets {
    pools: Pools,
    statements: Vec<Statements>,
    counts: Arc<RwLock<Counts>>,
}

impl Buckets {
    pub async fn new(database_url: &str) -> PeerResult<Self> {
        let pools = Pools::new(database_url)?;
        let counts = Arc::new(RwLock::new(Counts::read(&pools.readers).await?));
        // Count in the background, so that no request waits.
        let (kept, pool) = (Arc::clone(&counts), pools.readers.clone());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LIFETIME).await;
                match Counts::read(&pool).await {
                    Ok(counts) => *kept.write().unwrap_or_else(PoisonError::into_inner) = counts,
                    Err(error) => eprintln!("bucket counts: {error}"),
                }
            }
        });
        Ok(Self { pools, statements: (0..BUCKETS).map(Statements::of).collect(), counts })
    }

    fn counts(&self) -> Counts {
        self.counts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the neighbours of a player, best first, across bucket bounds.
    async fn neighbours(
        &self,
        connection: &mut PgConnection,
        counts: &Counts,
        (bucket, me): (usize, &Row),
        around: i64,
    ) -> PeerResult<(Vec<Row>, Vec<Row>)> {
        let wanted = usize::try_from(around)?;
        let [mut above, mut below] = self.beside(connection, (bucket, me.rank), me, around).await?;
        for next in bucket + 1..BUCKETS {
            if above.len() >= wanted {
                break;
            }
            // All players of that bucket are above, so the player would rank after its last.
            let rank = 1 + counts.above(next) + counts.players[next];
            let [more, _] = self.beside(connection, (next, rank), me, around).await?;
            above.extend(more);
        }
        for next in (0..bucket).rev() {
            if below.len() >= wanted {
                break;
            }
            let [_, more] = self.beside(connection, (next, 1 + counts.above(next)), me, around).await?;
            below.extend(more);
        }
        above.truncate(wanted);
        above.reverse();
        below.truncate(wanted);
        Ok((above, below))
    }

    /// Returns the players of a bucket just above and below a place, nearest first, given its rank
    /// there.
    async fn beside(
        &self,
        connection: &mut PgConnection,
        (bucket, rank): (usize, i64),
        me: &Row,
        around: i64,
    ) -> PeerResult<[Vec<Row>; 2]> {
        let found: Vec<SideRow> = sqlx::query_as(AssertSqlSafe(Arc::clone(&self.statements[bucket].around)))
            .bind(me.score)
            .bind(&me.user_id)
            .bind(around)
            .fetch_all(connection)
            .await?;
        let mut sides = [Vec::new(), Vec::new()];
        for (side, between, user_id, user_name, score) in found {
            let row = Row { rank: rank + i64::from(side) * between, user_id, user_name: Some(user_name), score };
            sides[usize::from(side > 0)].push(row);
        }
        Ok(sides)
    }
}

impl Peer for Buckets {
    async fn standing(&self, user: String, around: i64) -> PeerResult<Option<Standing>> {
        let counts = self.counts();
        let mut connection = self.pools.readers.acquire().await?;
        let found: Option<(String, i64, i16)> =
            sqlx::query_as("SELECT user_name, score, bucket FROM users WHERE user_id = $1")
                .bind(&user)
                .fetch_optional(&mut *connection)
                .await?;
        let Some((user_name, score, bucket)) = found else { return Ok(None) };
        let bucket = usize::try_from(bucket)?;
        let higher: i64 = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.statements[bucket].count)))
            .bind(score)
            .fetch_one(&mut *connection)
            .await?;
        let row = Row { rank: 1 + counts.above(bucket) + higher, user_id: user, user_name: Some(user_name), score };
        let (above, below) = match around {
            0 => (Vec::new(), Vec::new()),
            _ => self.neighbours(&mut connection, &counts, (bucket, &row), around).await?,
        };
        let counts_age_ms = Some(u64::try_from(counts.at.elapsed().as_millis())?);
        Ok(Some(Standing { row, above, below, counts_age_ms }))
    }

    async fn page(&self, from: i64, limit: i64) -> PeerResult<Vec<Row>> {
        let counts = self.counts();
        let mut rows: Vec<Row> = Vec::new();
        let (mut skip, mut above) = (from - 1, 0);
        for (bucket, players) in counts.players.iter().enumerate().rev() {
            if skip < *players {
                let left = limit - i64::try_from(rows.len())?;
                let found: Vec<(i64, String, String, i64)> =
                    sqlx::query_as(AssertSqlSafe(Arc::clone(&self.statements[bucket].page)))
                        .bind(skip)
                        .bind(left)
                        .fetch_all(&self.pools.readers)
                        .await?;
                rows.extend(found.into_iter().map(|(place, user_id, user_name, score)| Row {
                    rank: above + place,
                    user_id,
                    user_name: Some(user_name),
                    score,
                }));
                if rows.len() >= usize::try_from(limit)? {
                    break;
                }
                skip = 0;
            } else {
                skip -= players;
            }
            above += players;
        }
        Ok(rows)
    }

    async fn write(&self, events: Vec<Event>) -> PeerResult<Vec<i64>> {
        if let [Event { user_id, points }] = &events[..] {
            let query = sqlx::query_scalar("SELECT add_score($1, $2)").bind(user_id).bind(points);
            return Ok(vec![query.fetch_one(&self.pools.writers).await?]);
        }
        let (users, points) = folded(&events);
        let query = sqlx::query_as("SELECT player, new_score FROM add_scores($1, $2)").bind(users).bind(points);
        let scores = query.fetch_all(&self.pools.writers).await?;
        scores_of(&events, scores)
    }
}
