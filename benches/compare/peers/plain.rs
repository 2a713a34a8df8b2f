//! Plain SQL: one table with an index on the score. A rank is a count of all players with more
//! points.

use super::{Event, Peer, PeerResult, Pools, Row, Standing, folded, scores_of, standing};

/// SQL that creates the table.
pub const TABLES: &str = "CREATE TABLE scores (user_id text NOT NULL, user_name text NOT NULL, score bigint NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)";

/// SQL that fills the table from `given`. The index includes the id, so that the order is total and
/// far pages need only the index.
pub const FILL: &str = "
    INSERT INTO scores SELECT user_id, user_name, points FROM given;
    ALTER TABLE scores ADD PRIMARY KEY (user_id);
    CREATE INDEX scores_score_idx ON scores (score, user_id)";

const RANK: &str = "
    SELECT 0, (SELECT count(*) + 1 FROM scores o WHERE o.score > s.score), s.user_id, s.user_name, s.score
    FROM scores s WHERE s.user_id = $1";

/// Derives the neighbours' ranks from the player's rank, and counts only the players between.
const AROUND: &str = "
    WITH me AS MATERIALIZED (
        SELECT (SELECT count(*) + 1 FROM scores o WHERE o.score > s.score) AS rank, s.user_id, s.user_name, s.score
        FROM scores s WHERE s.user_id = $1)
    SELECT 0, me.rank, me.user_id, me.user_name, me.score FROM me
    UNION ALL
    SELECT -1, me.rank - (SELECT count(*) FROM scores b WHERE b.score > me.score AND b.score <= n.score),
           n.user_id, n.user_name, n.score
    FROM me, LATERAL (SELECT * FROM scores s WHERE (s.score, s.user_id) > (me.score, me.user_id)
                      ORDER BY s.score, s.user_id LIMIT $2) n
    UNION ALL
    SELECT 1, me.rank + (SELECT count(*) FROM scores b WHERE b.score <= me.score AND b.score > n.score),
           n.user_id, n.user_name, n.score
    FROM me, LATERAL (SELECT * FROM scores s WHERE (s.score, s.user_id) < (me.score, me.user_id)
                      ORDER BY s.score DESC, s.user_id DESC LIMIT $2) n";

/// OFFSET skips in the index. The rank is the position minus the equal scores before it. A
/// sub-select reads names: the planner does not know the limit and would join with the whole table.
const PAGE: &str = "
    SELECT p.position - (SELECT count(*) FROM scores e WHERE e.score = p.score AND e.user_id > p.user_id),
           p.user_id, (SELECT s.user_name FROM scores s WHERE s.user_id = p.user_id), p.score
    FROM (SELECT k.user_id, k.score, $1 + row_number() OVER (ORDER BY k.score DESC, k.user_id DESC) AS position
          FROM (SELECT user_id, score FROM scores ORDER BY score DESC, user_id DESC OFFSET $1 LIMIT $2) k) p
    ORDER BY p.position";

const ADD_ONE: &str = "
    INSERT INTO scores AS s (user_id, user_name, score) VALUES ($1, $1, $2)
    ON CONFLICT (user_id) DO UPDATE SET score = s.score + excluded.score RETURNING s.score";

/// Writes in the order of the ids to avoid deadlocks.
const ADD_MANY: &str = "
    INSERT INTO scores AS s (user_id, user_name, score)
    SELECT e.user_id, e.user_id, e.points FROM unnest($1::text[], $2::bigint[]) AS e(user_id, points) ORDER BY e.user_id
    ON CONFLICT (user_id) DO UPDATE SET score = s.score + excluded.score RETURNING s.user_id, s.score";

pub struct Plain {
    pools: Pools,
}

impl Plain {
    pub fn new(database_url: &str) -> PeerResult<Self> {
        Ok(Self { pools: Pools::new(database_url)? })
    }
}

impl Peer for Plain {
    async fn standing(&self, user: String, around: i64) -> PeerResult<Option<Standing>> {
        let query =
            if around == 0 { sqlx::query_as(RANK).bind(user) } else { sqlx::query_as(AROUND).bind(user).bind(around) };
        Ok(standing(query.fetch_all(&self.pools.readers).await?))
    }

    async fn page(&self, from: i64, limit: i64) -> PeerResult<Vec<Row>> {
        let rows: Vec<(i64, String, String, i64)> =
            sqlx::query_as(PAGE).bind(from - 1).bind(limit).fetch_all(&self.pools.readers).await?;
        let row = |(rank, user_id, user_name, score)| Row { rank, user_id, user_name: Some(user_name), score };
        Ok(rows.into_iter().map(row).collect())
    }

    async fn write(&self, events: Vec<Event>) -> PeerResult<Vec<i64>> {
        if let [Event { user_id, points }] = &events[..] {
            return Ok(vec![
                sqlx::query_scalar(ADD_ONE).bind(user_id).bind(points).fetch_one(&self.pools.writers).await?,
            ]);
        }
        let (users, points) = folded(&events);
        let scores = sqlx::query_as(ADD_MANY).bind(users).bind(points).fetch_all(&self.pools.writers).await?;
        scores_of(&events, scores)
    }
}
