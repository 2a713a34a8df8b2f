//! SQL of score batches: reads the state that a batch starts from, and writes its results.

mod arguments;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    str::FromStr,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use sqlx::{postgres::types::PgInterval, types::Json};

use crate::{
    Code, Error, Result,
    model::{
        board::{GainMax, PeriodKind},
        id::{Batch, Lane, RankingId},
        metadata::Metadata,
    },
    rules::{
        AcceptedEvent, Content, Decisions, EarlierEvent, EarlierOutcome, Entry, EventSource, EventStanding, Facts,
        Gain, History, Pending, Period, Player, Rules, SegmentChange, Violation, limited_periods, rank_key,
    },
    store::{
        ScoreWriter,
        batch::arguments::{Columns, LoggedEntries, PendingEvent, PlayerStandings},
        error::written,
        layout::array_position,
        period,
        pool::Session,
        rows::{elements, paired},
    },
};

/// Days for which ids of events sent over HTTP are kept. Ids of imported events never expire.
const KEEP_IDS_DAYS: i32 = 7;

/// Maximum age of rules and periods that a writer uses again. It also bounds how late the writer
/// notices that the bucket rows of its lane are behind.
const CACHED_FOR: Duration = Duration::from_secs(1);

/// The distinct players of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchPlayers {
    /// The board of each: that of the batch or, in a batch of a template, one of its boards.
    pub(crate) boards: Vec<i32>,
    pub(crate) names: Vec<String>,
}

/// The state that a batch starts from.
#[derive(Debug)]
pub(crate) struct BatchStart {
    /// State on which decisions are based.
    pub(crate) facts: Facts,
    /// Age of the lane's oldest batch that is not applied to bucket rows; 0 without one.
    pub(crate) unapplied_seconds: f64,
    /// State that must be unchanged when the batch is written.
    state: LaneState,
    /// The periods whose standings are kept.
    live_periods: BTreeSet<i64>,
    /// The time until which the next batch may use the rules and periods; `None` if it may not.
    valid_until: Option<DateTime<Utc>>,
    /// When rules and periods were read.
    read_at: Instant,
}

/// A player as `batch_players` returns it. The arrays are `None` for a player without a row on the board.
#[derive(Debug, sqlx::Type)]
#[sqlx(type_name = "centile_store.player_state")]
struct PlayerState {
    user_id: Option<i64>,
    is_banned: Option<bool>,
    is_of_lane: Option<bool>,
    period_ids: Option<Vec<i64>>,
    rank_keys: Option<Vec<i64>>,
    tie_keys: Option<Vec<i64>>,
    zero_periods: Option<Vec<i64>>,
    is_gone: Option<bool>,
}

impl BatchStart {
    /// Returns the number of the lane's last batch.
    pub(crate) fn batch(&self) -> Batch {
        self.state.batch
    }

    /// Keeps the part of this state that the next batch may use, after the lane's batch `batch`.
    pub(crate) fn after(mut self, batch: Batch) -> Self {
        self.state.batch = batch;
        self.facts.players = Vec::new();
        self.facts.earlier_events = HashMap::new();
        self
    }
}

/// The state of a lane and of its board's structure, on one server.
#[derive(Debug, Clone, Copy)]
struct LaneState {
    revision: i64,
    batch: Batch,
    server_started_at: DateTime<Utc>,
}

impl LaneState {
    fn new(revision: i64, batch: Option<i64>, server_started_at: DateTime<Utc>) -> Result<Self> {
        Ok(Self { revision, batch: batch.map(Batch).ok_or_else(lanes_changed)?, server_started_at })
    }
}

/// Ids of a written batch.
#[derive(Debug)]
pub(crate) struct CommittedBatch {
    /// Number of the lane's last batch. A read of that batch or a later one sees these events.
    pub(crate) batch: Batch,
    /// Transaction ids of the accepted events, in their order.
    pub(crate) transaction_ids: Vec<i64>,
    /// Ids of the quarantined events, in their order.
    pub(crate) quarantine_ids: Vec<i64>,
}

#[derive(Debug)]
pub(crate) enum CommitOutcome {
    /// The batch is written. It is also committed, unless the session holds the lane's lock.
    Written(CommittedBatch),
    /// Nothing is written: the lane or the structure has changed since the batch started.
    Stale,
    /// Nothing is written: the ledger has no partition for the time of an event.
    MissingMonth,
}

/// A connection on which a batch is begun and committed.
#[derive(Debug)]
pub(crate) struct BatchSession {
    connection: Session,
    board_id: i32,
    lane: Lane,
    holds_lock: bool,
}

impl ScoreWriter {
    /// Returns a session for one batch.
    ///
    /// Without the lane's lock each call is a separate transaction, and
    /// [`BatchSession::commit_batch`] writes only if the lane is unchanged. With the lock the
    /// session is one transaction, which [`BatchSession::end`] ends.
    pub(crate) async fn batch_session(&self, board_id: i32, lane: Lane, holds_lock: bool) -> Result<BatchSession> {
        let pool = self.reader.servers.pool_of_lane(lane).unwrap_or_else(|| self.score_writers.clone());
        let mut connection = pool.check_out().await?;
        if holds_lock {
            connection.begin(&format!("SELECT centile_store.hold_lane({board_id}, {}::smallint)", lane.0)).await?;
        }
        Ok(BatchSession { connection, board_id, lane, holds_lock })
    }
}

impl BatchSession {
    /// Ends a session: commits or rolls back its transaction if it holds the lane's lock.
    pub(crate) async fn end(mut self, commits: bool) -> Result<()> {
        if self.holds_lock {
            if commits { written(self.connection.commit().await)? } else { self.connection.roll_back().await? }
        }
        Ok(())
    }

    /// Reads the state that a batch of these events starts from.
    pub(crate) async fn begin_batch(
        &mut self,
        source: EventSource,
        batch_players: &BatchPlayers,
        events: &[Pending<'_>],
    ) -> Result<BatchStart> {
        let users = &batch_players.names;
        let read_at = Instant::now();
        // Read everything in one statement. Events with ids may be in the ledger already.
        let with_id = |pending: &Pending| Some((array_position(pending.player), pending.event.id.clone()?));
        let (id_users, ids): (Vec<i32>, Vec<String>) = events.iter().filter_map(with_id).unzip();
        let (event_users, times) = (source == EventSource::Import).then(|| players_and_times(events)).unzip();
        let query = sqlx::query_file!(
            "sql/queries/begin_batch.sql",
            self.board_id,
            self.lane.0,
            &batch_players.boards,
            users,
            &id_users,
            &ids,
            event_users.as_deref(),
            times.as_deref() as Option<&[Option<DateTime<Utc>>]>,
        );
        let row = query.fetch_one(&mut self.connection).await?;
        if row.is_deleted {
            return Err(board_deleted());
        }
        let rules = Rules {
            mode: row.mode.parse().map_err(|_| unknown("mode"))?,
            order: row.score_order.parse().map_err(|_| unknown("order"))?,
            ties: row.ties.parse().map_err(|_| unknown("rule for ties"))?,
            tiebreak_order: parsed(row.tiebreak_order.as_deref(), "order of tiebreaks")?,
            tiebreak_sum: parsed(row.tiebreak_sum.as_deref(), "sum of tiebreaks")?,
            periods: row.periods.iter().map(|name| period::kind(name)).collect::<Result<_>>()?,
            points_min: row.points_min,
            points_max: row.points_max,
            events_per_minute: limit(row.events_per_minute)?,
            gain_max: row.gain_max.0,
            on_violation: row.on_violation.parse().map_err(|_| unknown("rule for violations"))?,
        };
        // Periods, with their segments.
        let mut periods = periods(
            elements(row.period_ids),
            &elements(row.period_kinds),
            &elements(row.period_labels),
            &elements(row.period_starts),
            &elements(row.period_ends),
            &elements(row.period_rankings),
            &elements(row.period_fillings),
        )?;
        let names =
            paired("periods and names of segments", elements(row.segment_periods), elements(row.segment_names))?;
        let segments = paired("names and rankings of segments", names, elements(row.segment_rankings))?;
        put_segments(&mut periods, segments);
        // Players, with their standings, segments and resets.
        let live_periods = row.live_periods.into_iter().collect();
        let mut players = players(row.players, batch_players, &live_periods)?;
        let members = paired("members and their segments", elements(row.member_users), elements(row.member_segments))?;
        let moves = paired("times and directions of moves", elements(row.member_times), elements(row.member_are_in))?;
        let members = paired("members and their moves", members, moves)?;
        put_members(&mut players, paired("members and new members", members, elements(row.member_are_new))?)?;
        for (user, at) in paired("resets and their times", elements(row.reset_users), elements(row.reset_times))? {
            players[index(user, users.len())?].resets.push(at);
        }
        let times = paired("periods and times", elements(row.tie_periods), elements(row.tie_times))?;
        put_times(&mut players, paired("players and times", elements(row.tie_users), times)?)?;
        let at = row.at.ok_or_else(lanes_changed)?;
        // Events with known ids, with their stored answers.
        let mut earlier_events = HashMap::new();
        let known_transactions = elements(row.known_transactions);
        let (known_quarantined, known_standings) = (elements(row.known_quarantined), elements(row.known_standings));
        let (points, tiebreaks) = (elements(row.known_points), elements(row.known_tiebreaks));
        let (reasons, known_times) = (elements(row.known_reasons), elements(row.known_times));
        let (broken, details) = (elements(row.known_rules), elements(row.known_details));
        let (metadata, known_ids) = (elements(row.known_metadata), elements(row.known_ids));
        let lengths = [known_transactions.len(), known_quarantined.len(), known_standings.len(), points.len()];
        let more = [tiebreaks.len(), reasons.len(), known_times.len(), broken.len(), details.len(), metadata.len()];
        if lengths.iter().chain(&more).any(|length| *length != known_ids.len()) {
            return Err(damaged());
        }
        for (n, id) in known_ids.into_iter().enumerate() {
            let id = index(id, ids.len())?;
            let answer = match known_transactions[n] {
                Some(transaction_id) => EarlierOutcome::Accepted(AcceptedEvent {
                    transaction_id,
                    at: known_times[n],
                    standings: known_standings[n].as_deref().map_or(Ok(Vec::new()), standings)?,
                }),
                None => quarantined(known_quarantined[n], broken[n].as_deref(), details[n].clone())?,
            };
            let content = Content {
                points: points[n].ok_or_else(damaged)?,
                tiebreak: tiebreaks[n],
                reason: reasons[n].clone(),
                at: known_times[n],
                metadata: metadata[n].clone().map(Metadata::stored),
            };
            earlier_events
                .insert((index(id_users[id], users.len())?, ids[id].clone()), EarlierEvent { content, answer });
        }
        Ok(BatchStart {
            state: LaneState::new(row.structure_revision, row.batch, row.server_started_at)?,
            // NULL if all batches are applied.
            unapplied_seconds: row.unapplied_seconds.unwrap_or(0.0),
            facts: Facts { rules, now: row.now, at, periods, players, earlier_events },
            live_periods,
            valid_until: row.valid_until,
            read_at,
        })
    }

    /// Begins a batch of live events with the rules and periods of this writer's last batch, and reads
    /// only the players.
    ///
    /// Returns `None` if that does not suffice, for example because another session has changed the
    /// lane or the structure: use [`BatchSession::begin_batch`].
    pub(crate) async fn next_batch(
        &mut self,
        mut begun: BatchStart,
        batch_players: &BatchPlayers,
        events: &[Pending<'_>],
    ) -> Result<Option<BatchStart>> {
        let Some(valid_until) = begun.valid_until.filter(|_| begun.read_at.elapsed() < CACHED_FOR) else {
            return Ok(None);
        };
        let BatchPlayers { boards, names } = batch_players;
        let with_id = |pending: &Pending| Some((pending.player, pending.event.id.clone()?));
        let (id_players, ids): (Vec<usize>, Vec<String>) = events.iter().filter_map(with_id).unzip();
        let (id_boards, id_users): (Vec<i32>, Vec<String>) =
            id_players.into_iter().map(|player| (boards[player], names[player].clone())).unzip();
        let query = sqlx::query_file!(
            "sql/queries/next_batch.sql",
            self.board_id,
            self.lane.0,
            boards,
            names,
            &id_boards,
            &id_users,
            &ids
        );
        let Some(row) = query.fetch_optional(&mut self.connection).await? else { return Ok(None) };
        let LaneState { revision, batch, server_started_at } = begun.state;
        let is_unchanged =
            (row.structure_revision, Batch(row.batch), row.server_started_at) == (revision, batch, server_started_at);
        if !is_unchanged || row.has_known_ids || row.now < row.last_at || row.now >= valid_until {
            return Ok(None);
        }
        begun.facts.players = players(row.players, batch_players, &begun.live_periods)?;
        (begun.facts.now, begun.facts.at) = (row.now, row.now);
        Ok(Some(begun))
    }

    /// Adds the history of the players of these live events, which the rules against cheating
    /// check.
    pub(crate) async fn read_history(&mut self, facts: &mut Facts, events: &[Pending<'_>]) -> Result<()> {
        let (boards, users): (Vec<i32>, Vec<Option<i64>>) =
            facts.players.iter().map(|player| (player.board_id, player.id)).unzip();
        let mut best: Vec<Option<i64>> = vec![None; users.len()];
        for Pending { player, event } in events {
            best[*player] = best[*player].max(rank_key(event.points, facts.rules.order));
        }
        let limited: Vec<(usize, i64)> = limited_periods(facts).collect();
        let (periods, limits): (Vec<i64>, Vec<i64>) =
            limited.iter().map(|(period, limit)| (facts.periods[*period].id, *limit)).unzip();
        let rows = sqlx::query!(
            r#"SELECT recent AS "recent!", waiting AS "waiting!", won AS "won: Vec<String>", bases AS "bases: Vec<Option<i64>>"
               FROM centile_store.player_histories($1, $2, $3, $4, $5, $6, $7)"#,
            self.board_id,
            &boards,
            &users as &[Option<i64>],
            &best as &[Option<i64>],
            &periods,
            &limits,
            facts.at,
        )
        .fetch_all(&mut self.connection)
        .await?;
        for (player, row) in paired("players and their histories", &mut facts.players, rows)? {
            player.history = History {
                recent: u32::try_from(row.recent).unwrap_or(u32::MAX),
                waiting: u32::try_from(row.waiting).unwrap_or(u32::MAX),
                gains: gains(&limited, elements(row.won), elements(row.bases))?,
            };
        }
        Ok(())
    }

    /// Writes the decisions, if the lane is still in the state that the batch started from.
    pub(crate) async fn commit_batch(
        &mut self,
        source: EventSource,
        begun: &BatchStart,
        events: &[Pending<'_>],
        decisions: &Decisions,
    ) -> Result<CommitOutcome> {
        let BatchStart { facts, state, .. } = begun;
        let columns = Columns::from_decisions(facts, source, events, decisions)?;
        let keep_ids =
            (source == EventSource::Live).then_some(PgInterval { months: 0, days: KEEP_IDS_DAYS, microseconds: 0 });
        let row = sqlx::query_file!(
            "sql/queries/commit_batch.sql",
            self.board_id,
            self.lane.0,
            state.revision,
            state.batch.0,
            state.server_started_at,
            facts.at,
            keep_ids,
            &columns.events as &[PendingEvent],
            &columns.players as &[PlayerStandings],
            columns.entries as LoggedEntries,
            columns.metadata.as_deref() as Option<&[Option<String>]>,
            &columns.entry_boards,
            &columns.member_users,
            &columns.member_segments,
        )
        .fetch_one(&mut self.connection)
        .await;
        let row = match row {
            // The statement succeeded before its result failed to decode, so it may be committed.
            Err(error @ (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))) => {
                tracing::error!(%error, "could not decode the result of a batch");
                return Err(Error::outcome_unknown());
            }
            Err(sqlx::Error::Database(error)) => match error.code().as_deref() {
                // A serialization failure or a deadlock: the batch starts again.
                Some("40001" | "40P01") => return Ok(CommitOutcome::Stale),
                // The ledger has no partition for the row.
                Some("23514") if error.constraint().is_none() => return Ok(CommitOutcome::MissingMonth),
                _ => return written(Err(sqlx::Error::Database(error))),
            },
            row => written(row)?,
        };
        Ok(row.batch.map_or(CommitOutcome::Stale, |batch| {
            CommitOutcome::Written(CommittedBatch {
                batch: Batch(batch),
                transaction_ids: elements(row.transaction_ids),
                quarantine_ids: elements(row.quarantine_ids),
            })
        }))
    }
}

/// Returns the players of imported events, and their times.
fn players_and_times(events: &[Pending<'_>]) -> (Vec<i32>, Vec<Option<DateTime<Utc>>>) {
    events.iter().map(|pending| (array_position(pending.player), pending.event.occurred_at)).unzip()
}

/// Builds the players with these names.
fn players(
    states: Vec<PlayerState>,
    batch_players: &BatchPlayers,
    live_periods: &BTreeSet<i64>,
) -> Result<Vec<Player>> {
    if states.iter().any(|state| state.is_of_lane == Some(false)) {
        return Err(lanes_changed());
    }
    let states = paired("players and their boards", states, &batch_players.boards)?;
    states.map(|(state, board)| Ok(Player { board_id: *board, ..player(state, live_periods)? })).collect()
}

/// Builds a player, and leaves out standings in closed periods.
fn player(state: PlayerState, live_periods: &BTreeSet<i64>) -> Result<Player> {
    // NULL if no standing has zeros alone.
    let zeros = state.zero_periods.unwrap_or_default();
    let mut entries = BTreeMap::new();
    // NULL for a player without a row on the board.
    let keys = paired("periods and rank keys", elements(state.period_ids), elements(state.rank_keys))?;
    for ((period, rank_key), tie_key) in paired("rank keys and tie keys", keys, elements(state.tie_keys))? {
        if live_periods.contains(&period) {
            entries.insert(period, Entry { rank_key, tie_key, only_zeros: zeros.contains(&period) });
        }
    }
    let is_banned = state.is_banned.ok_or_else(damaged)?;
    let is_gone = state.is_gone.ok_or_else(damaged)?;
    Ok(Player { id: state.user_id, is_banned, is_gone, entries, ..Player::default() })
}

/// Builds a player's gains in the periods with a limit. A gain that were missing or 0 by mistake would
/// let the player exceed the limit.
fn gains(limited: &[(usize, i64)], won: Vec<String>, bases: Vec<Option<i64>>) -> Result<Vec<Gain>> {
    let gains = paired("limits and gains", limited, paired("gains and their bases", won, bases)?)?;
    gains
        .map(|((period, limit), (won, base))| {
            Ok(Gain { period: *period, limit: *limit, won: won.parse().map_err(|_| damaged())?, base })
        })
        .collect()
}

fn damaged() -> Error {
    Error::Internal("the state of a batch is damaged: its columns do not fit together".to_owned())
}

/// The board was deleted after the request had found it.
pub(crate) fn board_deleted() -> Error {
    Error::retry(Code::ConcurrentChange, "the board has just been deleted")
}

/// A player belongs to another lane, or the lane no longer exists.
fn lanes_changed() -> Error {
    Error::retry(Code::ConcurrentChange, "the board's number of lanes has just changed; retry")
}

fn limit(events: Option<i32>) -> Result<Option<u32>> {
    events.map(u32::try_from).transpose().map_err(|_| unknown("limit of events"))
}

fn parsed<T: FromStr>(name: Option<&str>, what: &str) -> Result<Option<T>> {
    name.map(str::parse).transpose().map_err(|_| unknown(what))
}

fn unknown(what: &str) -> Error {
    Error::Internal(format!("the board has an unknown {what}"))
}

/// Adds rankings of segments to their periods: period id, segment and ranking.
fn put_segments(periods: &mut [Period], segments: impl Iterator<Item = ((i64, String), Option<i64>)>) {
    for ((id, segment), ranking) in segments {
        if let Some(period) = periods.iter_mut().find(|period| period.id == id) {
            period.segments.insert(segment, ranking.map(RankingId));
        }
    }
}

/// A change of a player's segments: place of the player, segment, change, and whether it is new.
type Member = (((i32, String), SegmentChange), bool);

/// Adds changes of segments to players.
fn put_members(players: &mut [Player], members: impl Iterator<Item = Member>) -> Result<()> {
    for (((user, segment), change), is_new) in members {
        let player = index(user, players.len())?;
        players[player].segments.add(segment, change, is_new);
    }
    Ok(())
}

/// Adds times of the events that decide standings: place of the player, period and time.
fn put_times(players: &mut [Player], times: impl Iterator<Item = (i32, (i64, DateTime<Utc>))>) -> Result<()> {
    for (user, (period, at)) in times {
        let player = index(user, players.len())?;
        players[player].decided_at.insert(period, at);
    }
    Ok(())
}

/// Builds the answer to an event in quarantine.
fn quarantined(id: Option<i64>, rule: Option<&str>, detail: Option<String>) -> Result<EarlierOutcome> {
    let quarantine_id = id.ok_or_else(damaged)?;
    let rule = rule.and_then(|rule| rule.parse().ok()).ok_or_else(|| {
        Error::Internal(format!("event {quarantine_id} is not in quarantine, or broke an unknown rule"))
    })?;
    Ok(EarlierOutcome::Quarantined {
        quarantine_id,
        violation: Violation { rule, detail: detail.ok_or_else(damaged)? },
    })
}

/// Returns the index of a 1-based PostgreSQL array position, below `length`.
fn index(place: i32, length: usize) -> Result<usize> {
    usize::try_from(place - 1).ok().filter(|index| *index < length).ok_or_else(damaged)
}

/// Builds periods from columns. A bound of `None` is infinite.
fn periods(
    ids: Vec<i64>,
    kinds: &[String],
    labels: &[String],
    starts: &[Option<DateTime<Utc>>],
    ends: &[Option<DateTime<Utc>>],
    rankings: &[Option<i64>],
    fillings: &[Option<i64>],
) -> Result<Vec<Period>> {
    if [kinds.len(), labels.len(), starts.len(), ends.len(), rankings.len()] != [ids.len(); 5]
        || ![0, ids.len()].contains(&fillings.len())
    {
        return Err(damaged());
    }
    let filled_to = |n: usize| fillings.get(n).copied().flatten();
    let period = |(n, id): (usize, i64)| {
        let kind = period::kind(&kinds[n])?;
        let name = kind.period_name(&labels[n]);
        let starts_at = starts[n].unwrap_or(DateTime::<Utc>::MIN_UTC);
        let ends_at = ends[n].unwrap_or(DateTime::<Utc>::MAX_UTC);
        // Of windows of the same length that hold the time, the one that ends first is current.
        let length = |period: usize| labels[period].split('-').next();
        let is_ahead = kind == PeriodKind::Rolling
            && (0..labels.len()).any(|other| {
                filled_to(other).is_none()
                    && kinds[other] == kinds[n]
                    && length(other) == length(n)
                    && ends[other] < ends[n]
            });
        Ok(Period {
            id,
            kind,
            name,
            starts_at,
            ends_at,
            ranking_id: rankings[n].map(RankingId),
            is_shown: !is_ahead && filled_to(n).is_none(),
            filled_to: filled_to(n),
            segments: HashMap::new(),
        })
    };
    ids.into_iter().enumerate().map(period).collect()
}

/// Parses standings as `begin_batch` returns them.
fn standings(json: &str) -> Result<Vec<EventStanding>> {
    serde_json::from_str(json).map_err(|error| Error::Internal(format!("cannot parse stored standings: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop there")]

    use super::*;

    #[test]
    fn a_state_that_does_not_fit_together_is_an_error() {
        assert_eq!((index(1, 2).ok(), index(2, 2).ok()), (Some(0), Some(1)));
        assert!([-1, 0, 3].into_iter().all(|place| index(place, 2).is_err()));
        let state = |is_banned, keys: &[i64]| PlayerState {
            user_id: Some(7),
            is_banned,
            is_of_lane: Some(true),
            period_ids: Some(vec![1, 2]),
            rank_keys: Some(keys.to_vec()),
            tie_keys: Some(vec![5, 6]),
            zero_periods: Some(vec![2]),
            is_gone: Some(false),
        };
        let live = BTreeSet::from([2]);
        let stored = player(state(Some(false), &[3, 0]), &live).unwrap().entries;
        assert_eq!(stored, BTreeMap::from([(2, Entry { rank_key: 0, tie_key: 6, only_zeros: true })]));
        assert!(player(state(None, &[3, 0]), &live).is_err(), "a player who may be banned");
        assert!(player(state(Some(false), &[3]), &live).is_err(), "a standing without a key");
        assert!(quarantined(None, Some("gain_too_large"), None).is_err());
    }

    #[test]
    fn an_unknown_gain_is_not_0() {
        let gain = |won: &str| gains(&[(0, 10)], vec![won.to_owned()], vec![None]);
        assert!(gain("-12345678901234567890").is_ok_and(|gains| gains[0].won == -12_345_678_901_234_567_890));
        assert!(gain("").is_err() && gain("1.5").is_err() && gain("NaN").is_err());
        assert!(gains(&[(0, 10)], Vec::new(), Vec::new()).is_err(), "a period with a limit and no gain");
        assert!(gains(&[(0, 10)], vec!["5".to_owned()], Vec::new()).is_err(), "a gain without a base");
    }
}
