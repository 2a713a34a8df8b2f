//! SQL of the rank indexes and the user directory: rounds, profiles, and loads of whole rankings.

mod part;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::{Buf as _, Bytes};
use chrono::{DateTime, Utc};
use futures::{TryStreamExt as _, future::try_join_all};
use sqlx::{Executor as _, PgConnection};
use tokio::{task::yield_now, time::timeout};

use crate::{
    Error, Result,
    model::{
        board::PeriodKind,
        id::{Batch, RankingId},
    },
    store::{
        IndexReader,
        index::part::{Part, PartState, epoch_changes, has_user, lane_moves},
        period::RankingRef,
        pool::Session,
        rank::Version,
        rows::{elements, paired},
    },
};

/// Timeout for the next rows of a load. Past it, the server is frozen or unreachable.
const ROWS_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for the first rows of a load, which PostgreSQL may have to sort.
const FIRST_ROWS_TIMEOUT: Duration = Duration::from_mins(5);

/// Row messages between two yields of a load: about a millisecond of work.
const YIELD_EVERY: u32 = 1_024;

/// Opens one snapshot, with plans that return keys in index order.
const BEGIN_LOAD: &str = "SET application_name = 'centile index';

    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL max_parallel_workers_per_gather = 0;
    SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_sort = off;
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000";

/// Lets a load sort the keys of a ranking without bucket rows, which no table has in order.
const SORT_LOAD: &str = "SET LOCAL enable_sort = on; SET LOCAL enable_seqscan = on; SET LOCAL work_mem = '128MB'";

/// Result of a round, read in one snapshot per server.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) epoch: String,
    /// The database's clock at the start of the statement.
    pub(crate) read_at: DateTime<Utc>,
    /// The snapshot of each server, in the connection's order: its session, and the transactions
    /// visible to it. `None` if a server is a standby.
    pub(crate) snapshots: Option<Vec<String>>,
    /// `None` if the snapshots equal those passed to [`RoundConnection::read`].
    pub(crate) state: Option<BoardState>,
}

/// The state of a board, and what has changed since the caller's batches.
#[derive(Debug)]
pub(crate) struct BoardState {
    /// Number of the last batch of each lane.
    pub(crate) batches: Vec<Batch>,
    pub(crate) revision: i64,
    /// The requested rankings that are still current.
    pub(crate) rankings: Vec<CurrentRanking>,
    /// Changes of entries. Those of one player are in the order of their batches. `None` when an index
    /// must reload.
    pub(crate) changes: Option<Vec<EntryChange>>,
    /// Changed profiles; `None` when the directory must be cleared.
    pub(crate) profiles: Option<Vec<StoredProfile>>,
}

/// A ranking that is its period's current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CurrentRanking {
    pub(crate) ranking_id: RankingId,
    pub(crate) period_id: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryChange {
    pub(crate) ranking_id: RankingId,
    /// Internal id of the player.
    pub(crate) user_id: i64,
    /// Rank key and tie key after the change; `None` for a removed entry.
    pub(crate) key: Option<(i64, i64)>,
}

/// A user's profile as shown in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredProfile {
    pub(crate) id: i64,
    /// The caller's own id of the user.
    pub(crate) external_id: String,
    pub(crate) name: String,
    pub(crate) avatar: Option<String>,
}

/// The profiles that have changed since an earlier revision.
#[derive(Debug)]
pub(crate) struct ChangedProfiles {
    pub(crate) epoch: String,
    pub(crate) revision: i64,
    /// `None` if there are too many, or if the revision went back.
    pub(crate) profiles: Option<Vec<StoredProfile>>,
}

/// A ranking of an open period, with the name of the period.
#[derive(Debug, Clone)]
pub(crate) struct NamedRanking {
    pub(crate) ranking: RankingRef,
    pub(crate) kind: PeriodKind,
    pub(crate) label: String,
}

/// A connection that runs one round after another; on a cluster, one to each server with lanes.
#[derive(Debug)]
pub(crate) struct RoundConnection {
    servers: Vec<RoundServer>,
}

/// A session with a server, and which lanes it has; `None` for all.
#[derive(Debug)]
struct RoundServer {
    held: Session,
    lanes: Option<Arc<[bool]>>,
}

impl RoundServer {
    /// Returns the batches of the lanes that the server has.
    fn batches(&self, batches: &[Batch]) -> Result<Vec<Option<i64>>> {
        let Some(lanes) = &self.lanes else { return Ok(batches.iter().map(|batch| Some(batch.0)).collect()) };
        let lanes = paired("batches and lanes", batches, &**lanes)?;
        Ok(lanes.map(|(batch, has)| has.then_some(batch.0)).collect())
    }

    /// Removes what belongs to lanes of other servers: after a move, this one may still have copies.
    fn own(&self, mut part: Part) -> Result<Part> {
        if let (Some(lanes), Some(state)) = (&self.lanes, &mut part.state) {
            for (batch, has) in paired("batches and lanes", &mut state.batches, &**lanes)? {
                *batch = batch.filter(|_| *has);
            }
            if let Some(profiles) = &mut state.profiles {
                profiles.retain(|profile| has_user(lanes, &profile.external_id));
            }
        }
        Ok(part)
    }
}

/// A snapshot from which an index loads, on its own connection. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct LoadSnapshot {
    connection: PgConnection,
    ranking: RankingRef,
    /// Whether one table or view has the keys of all buckets.
    has_one_table: bool,
    /// Profile revision of the snapshot.
    pub(crate) revision: i64,
}

/// Returns the [`Part`] of a row of `read_round`.
macro_rules! round_of {
    ($row:expr) => {{
        let row = $row;
        let state = match (row.batches, row.revision) {
            // The snapshot is that of the caller.
            (None, None) => None,
            (Some(batches), Some(revision)) => {
                let places = paired("rankings and periods", elements(row.ranking_ids), elements(row.period_ids))?;
                let changed = paired(
                    "rankings and users of changes",
                    elements(row.changed_rankings),
                    elements(row.changed_users),
                )?;
                let keys = paired("rank keys and tie keys", elements(row.rank_keys), elements(row.tie_keys))?;
                let changes = paired("changes and their keys", changed, keys)?.map(entry_change);
                let users = paired("users and their ids", elements(row.profile_ids), elements(row.external_ids))?;
                let shown = paired("names and avatars", elements(row.names), elements(row.avatars))?;
                let profiles = paired("users and their names", users, shown)?;
                Some(PartState {
                    batches,
                    revision,
                    rankings: places
                        .map(|(id, period_id)| CurrentRanking { ranking_id: RankingId(id), period_id })
                        .collect(),
                    changes: row
                        .has_all_changes
                        .ok_or_else(incomplete)?
                        .then(|| changes.collect::<Result<_>>())
                        .transpose()?,
                    profiles: row.has_all_profiles.ok_or_else(incomplete)?.then(|| {
                        profiles
                            .map(|((id, external_id), (name, avatar))| StoredProfile { id, external_id, name, avatar })
                            .collect()
                    }),
                })
            }
            _ => return Err(incomplete()),
        };
        Part { epoch: row.epoch, read_at: row.read_at, snapshot: row.snapshot, state }
    }};
}

/// Builds the change of an entry from its ranking and user, and its keys.
fn entry_change(((ranking_id, user_id), keys): ((i64, i64), (Option<i64>, Option<i64>))) -> Result<EntryChange> {
    let key = match keys {
        (Some(rank_key), Some(tie_key)) => Some((rank_key, tie_key)),
        (None, None) => None,
        _ => return Err(incomplete()),
    };
    Ok(EntryChange { ranking_id: RankingId(ranking_id), user_id, key })
}

fn incomplete() -> Error {
    Error::Internal("a round lacks a part of its state".to_owned())
}

impl IndexReader {
    /// Returns a connection for a round.
    pub(crate) async fn round_connection(&self) -> Result<RoundConnection> {
        let pools = self.round_pools().into_iter();
        let servers =
            pools.map(async |(pool, lanes)| Ok::<_, Error>(RoundServer { held: pool.check_out().await?, lanes }));
        Ok(RoundConnection { servers: try_join_all(servers).await? })
    }

    /// Returns users by internal ids and by the callers' ids, with the epoch and the profile
    /// revision.
    pub(crate) async fn profiles(
        &self,
        user_ids: &[i64],
        external_ids: &[String],
    ) -> Result<(String, i64, Vec<StoredProfile>)> {
        let pools = self.round_pools();
        let read = pools
            .iter()
            .map(|(pool, _)| sqlx::query_file!("sql/queries/profiles.sql", user_ids, external_ids).fetch_all(pool));
        let rows = try_join_all(read).await?;
        let mut epochs = rows.iter().flatten().map(|row| &row.epoch);
        let epoch = epochs.next().cloned();
        if epochs.any(|other| Some(other) != epoch.as_ref()) {
            return Err(epoch_changes());
        }
        let (epoch, revision) = epoch
            .zip(rows.iter().flatten().map(|row| row.revision).min())
            .ok_or_else(|| Error::Internal("there is no profile revision".to_owned()))?;
        let profiles = paired("servers and their users", rows, &pools)?.flat_map(|(rows, (_, lanes))| {
            rows.into_iter().filter_map(move |row| {
                let external_id = row.external_id?;
                // After a move, a server may still have copies.
                let is_own = lanes.as_ref().is_none_or(|lanes| has_user(lanes, &external_id));
                is_own.then_some(StoredProfile { id: row.id?, external_id, name: row.name?, avatar: row.avatar })
            })
        });
        let profiles: Vec<StoredProfile> = profiles.collect();
        if self.reader.servers.is_cluster()
            && user_ids.iter().any(|id| !profiles.iter().any(|profile| profile.id == *id))
        {
            return Err(lane_moves());
        }
        Ok((epoch, revision, profiles))
    }

    /// Returns the profiles that have changed since a revision.
    pub(crate) async fn changed_profiles(&self, revision: i64) -> Result<ChangedProfiles> {
        let query = sqlx::query_file!("sql/queries/changed_profiles.sql", revision);
        let row = query.fetch_one(&self.reader.readers).await?;
        let names = paired("names and avatars", elements(row.names), elements(row.avatars))?;
        let users = paired("ids of users", elements(row.profile_ids), elements(row.external_ids))?;
        let profiles = paired("users and their names", users, names)?
            .map(|((id, external_id), (name, avatar))| StoredProfile { id, external_id, name, avatar });
        let profiles = row.has_all_profiles.then(|| profiles.collect());
        Ok(ChangedProfiles { epoch: row.epoch, revision: row.revision, profiles })
    }

    /// Returns the current rankings of a board's open periods.
    pub(crate) async fn indexable_rankings(&self, board: i32) -> Result<Vec<NamedRanking>> {
        let rows =
            sqlx::query_file!("sql/queries/indexable_rankings.sql", board).fetch_all(&self.reader.readers).await?;
        rows.into_iter()
            .map(|row| {
                Ok(NamedRanking {
                    ranking: RankingRef {
                        board,
                        players_of: board,
                        period_id: row.period_id,
                        ranking_id: RankingId(row.ranking_id),
                        has_bucket_rows: row.has_bucket_rows,
                    },
                    kind: crate::store::period::kind(&row.kind)?,
                    label: row.label,
                })
            })
            .collect()
    }

    /// Takes a snapshot to load a ranking from; returns it with the version and the number of
    /// players.
    ///
    /// Returns `None` if the ranking was replaced. A ranking of `alone_from` or more players loads
    /// on one instance at a time: `None` while another instance loads one.
    pub(crate) async fn load_snapshot(
        &self,
        ranking: RankingRef,
        alone_from: u64,
    ) -> Result<Option<(LoadSnapshot, Version, u64)>> {
        let taken = timeout(ROWS_TIMEOUT, self.take_load_snapshot(ranking, alone_from)).await;
        taken.unwrap_or_else(|_| Err(Error::no_answer()))
    }

    async fn take_load_snapshot(
        &self,
        ranking: RankingRef,
        alone_from: u64,
    ) -> Result<Option<(LoadSnapshot, Version, u64)>> {
        let mut connection = self.reader.servers.unlimited_connection().await?;
        let players =
            sqlx::query_scalar!(r#"SELECT centile_store.player_count($1) AS "players!""#, ranking.ranking_id.0)
                .fetch_one(&mut connection)
                .await?;
        // Only one instance at a time loads a large ranking.
        if players.unsigned_abs() >= alone_from {
            let is_ours = sqlx::query_scalar!(r#"SELECT centile_store.try_index_lock() AS "is_ours!""#)
                .fetch_one(&mut connection)
                .await?;
            if !is_ours {
                return Ok(None);
            }
        }
        // Begin the snapshot, and read the state of the board in it.
        connection.execute(BEGIN_LOAD).await?;
        if !ranking.has_bucket_rows {
            connection.execute(SORT_LOAD).await?;
        }
        let has_one_table = self.reader.servers.is_cluster() || !ranking.has_bucket_rows;
        let mut snapshot = LoadSnapshot { connection, ranking, has_one_table, revision: 0 };
        let Round { epoch, state, .. } = snapshot.state().await?;
        let Some(state) = state.filter(|state| !state.rankings.is_empty()) else {
            return Ok(None);
        };
        // Read which batches the bucket rows contain.
        let batches: Vec<i64> = state.batches.iter().map(|batch| batch.0).collect();
        let bucket_rows = sqlx::query!(
            r#"SELECT centile_store.player_count(g.id) AS "players!", g.damaged_at IS NOT NULL AS "are_damaged!",
                      CASE WHEN g.has_bucket_rows THEN centile_store.applied_batches(g.board_id, g.lanes) ELSE $2 END AS "batches!"
               FROM centile_store.rankings g WHERE g.id = $1"#,
            ranking.ranking_id.0,
            &batches
        )
        .fetch_optional(&mut snapshot.connection)
        .await?;
        let Some(bucket_rows) = bucket_rows else { return Ok(None) };
        if bucket_rows.are_damaged {
            return Err(Error::Internal(
                "the bucket rows of the ranking are damaged; run `centile rebuild`".to_owned(),
            ));
        }
        snapshot.revision = state.revision;
        let version = Version { epoch, batches: Batch::from_numbers(bucket_rows.batches) };
        Ok(Some((snapshot, version, bucket_rows.players.unsigned_abs())))
    }
}

impl RoundConnection {
    /// Runs one round; see `centile_store.read_round`.
    pub(crate) async fn read_round(
        &mut self,
        board: i32,
        ranking_ids: &[RankingId],
        batches: &[Batch],
        revision: Option<i64>,
        snapshots: Option<&[String]>,
        (most_batches, most_changes): (i32, i64),
    ) -> Result<Round> {
        let ranking_ids: Vec<i64> = ranking_ids.iter().map(|id| id.0).collect();
        let ask = async |server: &mut RoundServer, snapshot: Option<&String>| {
            let batches = server.batches(batches)?;
            let query = sqlx::query_file!(
                "sql/queries/read_round.sql",
                board,
                &ranking_ids,
                &batches as &[Option<i64>],
                revision,
                most_batches,
                most_changes,
                snapshot,
            );
            let row = query.fetch_one(&mut server.held).await?;
            server.own(round_of!(row))
        };
        // Without a snapshot of each server, all read their whole states.
        let snapshots = snapshots.filter(|snapshots| snapshots.len() == self.servers.len()).unwrap_or(&[]);
        let parts = self.servers.iter_mut().enumerate().map(|(place, server)| ask(server, snapshots.get(place)));
        let mut parts = try_join_all(parts).await?;
        // `join` needs the states of all servers or of none, so read the unchanged ones, too.
        if parts.iter().any(|part| part.state.is_some()) {
            let servers = paired("servers and their states", &mut self.servers, &mut parts)?;
            let unchanged = servers.filter(|(_, part)| part.state.is_none());
            try_join_all(unchanged.map(async |(server, part)| {
                *part = ask(server, None).await?;
                Ok::<_, Error>(())
            }))
            .await?;
        }
        Part::join(parts)
    }

    /// Runs one round of several boards, in one snapshot. Returns it by board.
    pub(crate) async fn read_boards(
        &mut self,
        boards: &[AskedBoard],
        revision: i64,
        (most_batches, most_changes): (i32, i64),
    ) -> Result<HashMap<i32, Round>> {
        let ids: Vec<i32> = boards.iter().map(|asked| asked.board).collect();
        let ranking_ids: Vec<String> = boards
            .iter()
            .map(|asked| array_literal(&asked.ranking_ids.iter().map(|id| Some(id.0)).collect::<Vec<_>>()))
            .collect();
        let parts = self.servers.iter_mut().map(async |server| {
            let batches = boards.iter().map(|asked| Ok(array_literal(&server.batches(&asked.batches)?)));
            let batches: Vec<String> = batches.collect::<Result<_>>()?;
            let query = sqlx::query_file!(
                "sql/queries/read_rounds.sql",
                &ids,
                &ranking_ids,
                &batches,
                revision,
                most_batches,
                most_changes,
            );
            let rows = query.fetch_all(&mut server.held).await?;
            rows.into_iter().map(|row| Ok((row.board, server.own(round_of!(row))?))).collect::<Result<Vec<_>>>()
        });
        let mut by_board: HashMap<i32, Vec<Part>> = HashMap::new();
        for (board, part) in try_join_all(parts).await?.into_iter().flatten() {
            by_board.entry(board).or_default().push(part);
        }
        by_board.into_iter().map(|(board, parts)| Ok((board, Part::join(parts)?))).collect()
    }
}

/// Writes numbers as an array of PostgreSQL.
fn array_literal(numbers: &[Option<i64>]) -> String {
    let text = |number: &Option<i64>| number.map_or_else(|| "NULL".to_owned(), |number| number.to_string());
    let numbers: Vec<String> = numbers.iter().map(text).collect();
    format!("{{{}}}", numbers.join(","))
}

/// Parameters of a round of several boards, for one of them. See `centile_store.read_round`.
#[derive(Debug)]
pub(crate) struct AskedBoard {
    pub(crate) board: i32,
    pub(crate) ranking_ids: Vec<RankingId>,
    /// The batches that all these indexes have reached.
    pub(crate) batches: Vec<Batch>,
}

impl LoadSnapshot {
    async fn state(&mut self) -> Result<Round> {
        let Self { connection, ranking, .. } = self;
        let (ids, batches, revision, snapshot) =
            ([ranking.ranking_id.0], None::<&[Option<i64>]>, None::<i64>, None::<&str>);
        let query = sqlx::query_file!(
            "sql/queries/read_round.sql",
            ranking.board,
            &ids,
            batches as Option<&[Option<i64>]>,
            revision,
            0,
            0,
            snapshot
        );
        let part = round_of!(query.fetch_one(connection).await?);
        Part::join(vec![part])
    }

    /// Returns the table or view that has the keys of all buckets.
    fn keys_of(&self) -> &'static str {
        if self.ranking.has_bucket_rows { "leaderboard_bucket" } else { "leaderboard" }
    }

    /// Passes the ranking's keys to `take`, best first: rank key, tie key and internal user id.
    pub(crate) async fn keys(&mut self, mut take: impl FnMut(i64, i64, i64) -> Result<()> + Send) -> Result<()> {
        let ranking_id = self.ranking.ranking_id.0;
        let buckets = sqlx::query_scalar!("SELECT buckets FROM centile_store.rankings WHERE id = $1", ranking_id)
            .fetch_one(&mut self.connection)
            .await?;
        let tables: Vec<String> = if self.has_one_table {
            vec![self.keys_of().to_owned()]
        } else {
            buckets.into_iter().rev().map(|bucket| format!("leaderboard_bucket_{bucket:02}")).collect()
        };
        for table in tables {
            // COPY takes no parameters. Both values are the service's own.
            let copy = format!(
                "COPY (SELECT rank_key, tie_key, user_key FROM centile_store.{table} WHERE ranking_id = {ranking_id} \
                 ORDER BY ranking_id DESC, rank_key DESC, tie_key DESC, user_key DESC) TO STDOUT (FORMAT binary)"
            );
            self.copy(&copy, |row| {
                let (rank_key, tie_key, user_key) = (row.bigint()?, row.bigint()?, row.bigint()?);
                take(rank_key, tie_key, -user_key).map(|()| true)
            })
            .await?;
        }
        Ok(())
    }

    /// Passes the profiles of the ranking's players to `take`, until it returns false. Ends the
    /// snapshot.
    pub(crate) async fn profiles(mut self, mut take: impl FnMut(StoredProfile) -> bool + Send) -> Result<()> {
        let (ranking_id, keys_of) = (self.ranking.ranking_id.0, self.keys_of());
        let copy = format!(
            "COPY (SELECT u.id, u.external_id, u.name, u.avatar FROM centile_store.{keys_of} b JOIN centile_store.users u ON u.id = -b.user_key \
             WHERE b.ranking_id = {ranking_id}) TO STDOUT (FORMAT binary)"
        );
        self.copy(&copy, |row| {
            let id = row.bigint()?;
            let (external_id, name) = (row.text()?.ok_or_else(malformed)?, row.text()?.ok_or_else(malformed)?);
            Ok(take(StoredProfile { id, external_id, name, avatar: row.text()? }))
        })
        .await
    }

    /// Passes rows to `take` until it returns false. The connection is unusable after an early
    /// stop.
    async fn copy(&mut self, copy: &str, mut take: impl FnMut(&mut CopiedRow) -> Result<bool> + Send) -> Result<()> {
        let begun = timeout(ROWS_TIMEOUT, self.connection.copy_out_raw(copy)).await;
        let mut rows = begun.map_err(|_| Error::no_answer())??;
        let mut is_first = true;
        for turn in 1_u32.. {
            // A task that never yields would block other tasks of this thread.
            if turn.is_multiple_of(YIELD_EVERY) {
                yield_now().await;
            }
            let limit = if is_first { FIRST_ROWS_TIMEOUT } else { ROWS_TIMEOUT };
            let next = timeout(limit, rows.try_next()).await;
            let Some(mut data) = next.map_err(|_| Error::no_answer())?? else {
                return Ok(());
            };
            if is_first {
                skip_header(&mut data)?;
                is_first = false;
            }
            while data.has_remaining() {
                // The trailer has -1 in place of the number of columns.
                if data.try_get_i16().map_err(|_| malformed())? < 0 {
                    break;
                }
                let mut row = CopiedRow(data);
                if !take(&mut row)? {
                    return Ok(());
                }
                data = row.0;
            }
        }
        Ok(())
    }
}

/// The unread rest of a row in COPY's binary format. PostgreSQL sends one row per message.
struct CopiedRow(Bytes);

impl CopiedRow {
    fn field(&mut self) -> Result<Option<Bytes>> {
        let length = self.0.try_get_i32().map_err(|_| malformed())?;
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        if self.0.len() < length {
            return Err(malformed());
        }
        Ok(Some(self.0.split_to(length)))
    }

    fn bigint(&mut self) -> Result<i64> {
        let length = self.0.try_get_i32().map_err(|_| malformed())?;
        if length != 8 {
            return Err(malformed());
        }
        self.0.try_get_i64().map_err(|_| malformed())
    }

    fn text(&mut self) -> Result<Option<String>> {
        let field = self.field()?;
        field.map(|field| String::from_utf8(field.into()).map_err(|_| malformed())).transpose()
    }
}

/// Skips the header: 11 bytes of signature, 4 of flags, and the extension with its length.
fn skip_header(data: &mut Bytes) -> Result<()> {
    if !data.starts_with(b"PGCOPY\n\xff\r\n\0") || data.len() < 19 {
        return Err(malformed());
    }
    data.advance(15);
    let extension = usize::try_from(data.get_i32()).map_err(|_| malformed())?;
    if data.len() < extension {
        return Err(malformed());
    }
    data.advance(extension);
    Ok(())
}

fn malformed() -> Error {
    Error::Internal("PostgreSQL sent malformed COPY data".to_owned())
}
