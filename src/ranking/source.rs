//! Reads of a period from the source that answers: the rank index, bucket tables or archive by SQL.
//! All give the same answers.
//!
//! [`Error::Replaced`] means that the ranking or archive was replaced, the index dropped, or the user
//! erased during the read.

use std::{collections::HashMap, ops::Range, sync::Arc};

use chrono::{DateTime, Utc};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    Error, Result,
    model::{
        board::{Board, Order, Ties},
        period::PeriodSelector,
        rank::{Bar, Header, Row},
        tier::{Tier, TierCount, TierRule},
        user::UserId,
    },
    ranking::{
        index_registry::{IndexView, ReadPath, board::LoadedIndex, key_of},
        period::{self, PeriodResolution},
        rank_index::key::RankKey,
        rankings::Rankings,
        sql::{self, LiveState},
    },
    rules::shown_tie,
    store::{
        Reader,
        index::StoredProfile,
        period::{PeriodSource, RankingRef, ResolvedPeriod},
        rank::{
            LocalPart, LocalRow, LocalRows, PlayerGroup, RankingState, StoredKey, StoredPlayer, StoredRow,
            StoredStanding,
        },
        small::SmallRef,
    },
};

/// A period to read, with the source that answers.
#[derive(Debug)]
pub(crate) struct RankSource<'a> {
    pub(crate) rankings: &'a Rankings,
    pub(crate) board: &'a Board,
    pub(crate) resolved: Arc<ResolvedPeriod>,
    kind: SourceKind,
}

/// Where the answer comes from.
#[derive(Debug)]
enum SourceKind {
    /// The rank index of an open period.
    Index(IndexView),
    /// A statement on bucket tables or an archive. The permit limits concurrent statements.
    Sql(PeriodSource, #[expect(dead_code, reason = "held until the statement ends")] Option<OwnedSemaphorePermit>),
    /// The period has no scores.
    Empty(RankingState),
}

/// A player's row from an index, without the profile.
#[derive(Debug, Clone, Copy)]
struct IndexRow {
    key: RankKey,
    position: u64,
    rank: u64,
}

/// A player found in an index, with the neighbours.
struct IndexStanding {
    position: u64,
    worse: u64,
    index_rows: Vec<IndexRow>,
}

/// Passes the source of the period that `selector` means to `read`, again if it returns
/// [`Error::Replaced`]. Set `is_shared` for a read that serves many callers, such as a top list.
pub(crate) async fn with_source<'a, T, F: Future<Output = Result<T>>>(
    rankings: &'a Rankings,
    board: &'a Board,
    selector: &PeriodSelector,
    is_shared: bool,
    read: impl Fn(RankSource<'a>) -> F,
) -> Result<T> {
    let read = &read;
    if let Some(source) = small_source(rankings, board, selector).await? {
        match read(source).await {
            // The epoch or a profile has changed.
            Err(Error::Replaced) => rankings.periods.forget(board.owner, selector),
            found => return found,
        }
    }
    period::read_current(rankings, board, selector, |resolved| async move {
        // Choose the source that answers.
        let (resolved, kind) = match resolved {
            PeriodResolution::Empty(resolved, state) => (resolved, SourceKind::Empty(state)),
            PeriodResolution::Players(resolved, source @ PeriodSource::Archive(_)) => {
                (resolved, SourceKind::Sql(source, None))
            }
            PeriodResolution::Players(resolved, source @ PeriodSource::Live(ranking)) => {
                match rankings.indexes.read_path(board.slug.as_str(), &resolved, ranking, is_shared).await? {
                    ReadPath::Index(view) => (resolved, SourceKind::Index(view)),
                    ReadPath::Sql(permit) => (resolved, SourceKind::Sql(source, permit)),
                }
            }
        };
        read(RankSource { rankings, board, resolved, kind }).await
    })
    .await
}

/// Returns a ranking of a template's board, if it is small: the template has the same periods, so that
/// most boards need no look-up of their own.
async fn small_source<'a>(
    rankings: &'a Rankings,
    board: &'a Board,
    selector: &PeriodSelector,
) -> Result<Option<RankSource<'a>>> {
    let key = (board.id, selector.clone());
    let is_current = matches!(selector, PeriodSelector::Current(_));
    if board.template.is_none() || board.is_future() || !is_current || rankings.periods.get(&key).is_some() {
        return Ok(None);
    }
    let key = (board.owner, key.1);
    let found = if let Some((resolved, PeriodSource::Live(ranking))) = rankings.periods.get(&key) {
        (resolved, ranking)
    } else {
        let template = Board { id: board.owner, ..board.clone() };
        match period::resolve(rankings, &template, selector).await? {
            PeriodResolution::Players(resolved, PeriodSource::Live(ranking)) => (resolved, ranking),
            _ => return Ok(None),
        }
    };
    let (resolved, RankingRef { period_id, .. }) = found;
    let of = SmallRef { board_id: board.id, period_id };
    match rankings.indexes.small_view(&resolved, board.owner, of).await {
        Ok(view) => Ok(Some(RankSource::from_index(rankings, board, resolved, view))),
        Err(Error::Replaced) => {
            rankings.periods.forget(board.owner, selector);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl<'a> RankSource<'a> {
    /// Creates the source of an index after a round.
    pub(super) fn from_index(
        rankings: &'a Rankings,
        board: &'a Board,
        resolved: Arc<ResolvedPeriod>,
        view: IndexView,
    ) -> Self {
        Self { rankings, board, resolved, kind: SourceKind::Index(view) }
    }

    /// Returns the connections for a statement, once it covers all batches committed before this call.
    async fn reader(&self, source: PeriodSource) -> Result<&'a Reader> {
        match source {
            PeriodSource::Live(ranking) => self.rankings.applied(ranking).await,
            PeriodSource::Archive(_) => Ok(&self.rankings.reader),
        }
    }

    /// Returns the header of an answer in this state.
    pub(crate) fn header(&self, state: &RankingState) -> Header {
        state.header(&self.resolved)
    }

    pub(crate) async fn state(&self) -> Result<RankingState> {
        match &self.kind {
            SourceKind::Index(view) => view.read_index(LoadedIndex::state),
            SourceKind::Sql(source, _) => self.reader(*source).await?.state(&self.resolved, *source).await,
            SourceKind::Empty(state) => Ok(state.clone()),
        }
    }

    /// Returns a page that starts at a position.
    pub(crate) async fn page(&self, from: i64, limit: i32) -> Result<(RankingState, Vec<StoredRow>)> {
        match &self.kind {
            SourceKind::Index(view) => self.rows(view, limit, |_| from.max(1).unsigned_abs()).await,
            SourceKind::Sql(source, _) => self.reader(*source).await?.page(&self.resolved, *source, from, limit).await,
            SourceKind::Empty(state) => Ok((state.clone(), Vec::new())),
        }
    }

    /// Returns the page that starts right below a key.
    pub(crate) async fn page_after(&self, key: StoredKey, limit: i32) -> Result<(RankingState, Vec<StoredRow>)> {
        match &self.kind {
            SourceKind::Index(view) => {
                let key = key_of(key);
                let below = |loaded: &LoadedIndex| {
                    let above = loaded.index.count_above(&key);
                    above + 1 + u64::from(loaded.index.key(key.user_id) == Some(key))
                };
                self.rows(view, limit, below).await
            }
            SourceKind::Sql(source, _) => {
                self.reader(*source).await?.page_after(&self.resolved, *source, key, limit).await
            }
            SourceKind::Empty(state) => Ok((state.clone(), Vec::new())),
        }
    }

    async fn rows(
        &self,
        view: &IndexView,
        limit: i32,
        from: impl FnOnce(&LoadedIndex) -> u64,
    ) -> Result<(RankingState, Vec<StoredRow>)> {
        let limit = usize::try_from(limit).unwrap_or_default();
        let read =
            |loaded: &LoadedIndex, revision| (loaded.state(revision), self.index_rows(loaded, from(loaded), limit));
        let (state, index_rows) = view.read_index(read)?;
        let ids: Vec<u32> = index_rows.iter().map(|index_row| index_row.key.user_id).collect();
        let profiles = view.profiles(&ids).await?;
        let rows = index_rows.iter().zip(profiles).map(|(index_row, profile)| self.stored_row(index_row, profile));
        Ok((state, rows.collect()))
    }

    /// Returns a part of the ranking of a group.
    pub(crate) async fn local(
        &self,
        group: &PlayerGroup,
        part: LocalPart,
        limit: i32,
    ) -> Result<(RankingState, LocalRows)> {
        match &self.kind {
            SourceKind::Index(view) => self.local_from(view, group, part, limit).await,
            SourceKind::Sql(source, _) => {
                self.reader(*source).await?.local(&self.resolved, *source, group, part, limit).await
            }
            SourceKind::Empty(state) => Ok((state.clone(), LocalRows { players: 0, rows: Vec::new() })),
        }
    }

    async fn local_from(
        &self,
        view: &IndexView,
        group: &PlayerGroup,
        part: LocalPart,
        limit: i32,
    ) -> Result<(RankingState, LocalRows)> {
        let limit = usize::try_from(limit).unwrap_or_default();
        let read = |loaded: &LoadedIndex, revision| {
            let user_ids = group.user_ids.iter().filter_map(|&user_id| u32::try_from(user_id).ok());
            let mut keys: Vec<RankKey> = user_ids.filter_map(|user_id| loaded.index.key(user_id)).collect();
            keys.sort_unstable_by(|a, b| b.cmp(a));
            let row = |n: usize| {
                let key = keys[n];
                let better = match self.board.ties {
                    Ties::Shared => keys.partition_point(|other| other.rank_key > key.rank_key),
                    Ties::First | Ties::Tiebreak | Ties::Second => n,
                };
                let index_row = self.find(loaded, key.user_id, 0)?.index_rows.pop()?;
                Some((n as u64 + 1, better as u64 + 1, index_row))
            };
            let found: Vec<_> = local_range(&keys, group, part, limit).filter_map(row).collect();
            (loaded.state(revision), keys.len() as u64, found)
        };
        let (state, players, found) = view.read_index(read)?;
        let user_ids: Vec<u32> = found.iter().map(|(.., index_row)| index_row.key.user_id).collect();
        let profiles = view.profiles(&user_ids).await?;
        let rows = found.iter().zip(profiles).map(|((place, local_rank, index_row), profile)| LocalRow {
            place: *place,
            local_rank: *local_rank,
            stored: self.stored_row(index_row, profile),
        });
        Ok((state, LocalRows { players, rows: rows.collect() }))
    }

    /// Returns a player with up to `around` players above and below.
    pub(crate) async fn standing(&self, user_id: &UserId, around: i32) -> Result<(RankingState, StoredStanding)> {
        match &self.kind {
            SourceKind::Index(view) => {
                let user = view.find(&[user_id.to_string()]).await?.pop().flatten();
                let around = u64::try_from(around).unwrap_or_default();
                let read = |loaded: &LoadedIndex, revision| {
                    (loaded.state(revision), user.and_then(|user| self.find(loaded, user, around)))
                };
                let (state, found) = view.read_index(read)?;
                let Some(found) = found else {
                    return Ok((state, StoredStanding::none(user.is_some())));
                };
                let ids: Vec<u32> = found.index_rows.iter().map(|index_row| index_row.key.user_id).collect();
                let rows = found.index_rows.iter().zip(view.profiles(&ids).await?);
                let rows = rows
                    .map(|(index_row, profile)| self.row(index_row, profile.external_id, profile.name, profile.avatar));
                Ok((state, standing_of(&found, rows.collect(), user_id.as_str())?))
            }
            SourceKind::Sql(PeriodSource::Live(ranking), _) => {
                sql::standing(self.rankings, self.board, &self.resolved, *ranking, user_id.as_str(), around).await
            }
            SourceKind::Sql(PeriodSource::Archive(archive), _) => {
                self.rankings.reader.archive_standing(&self.resolved, *archive, user_id.as_str(), around).await
            }
            SourceKind::Empty(state) => {
                let user = self.rankings.reader.user(user_id.as_str()).await?;
                Ok((state.clone(), StoredStanding::none(user.is_some())))
            }
        }
    }

    /// Returns a player of the index without neighbours. The player is `None` without an entry.
    pub(crate) fn standing_in(
        &self,
        view: &IndexView,
        user: u32,
        profile: &StoredProfile,
    ) -> Result<(RankingState, Option<StoredStanding>)> {
        let (state, found) =
            view.read_index(|loaded, revision| (loaded.state(revision), self.find(loaded, user, 0)))?;
        let Some(found) = found else { return Ok((state, None)) };
        let row = |index_row: &IndexRow| {
            let StoredProfile { external_id, name, avatar, .. } = profile.clone();
            self.row(index_row, external_id, name, avatar)
        };
        let rows = found.index_rows.iter().map(row).collect();
        Ok((state, Some(standing_of(&found, rows, &profile.external_id)?)))
    }

    /// Returns the profiles of players, and the time of the round, if an index answers and has these keys.
    pub(super) async fn profiles_if(&self, keys: Vec<RankKey>) -> Result<Option<(Vec<StoredProfile>, DateTime<Utc>)>> {
        let SourceKind::Index(view) = &self.kind else { return Ok(None) };
        let has = |loaded: &LoadedIndex, _| keys.iter().all(|key| loaded.index.key(key.user_id) == Some(*key));
        if !view.read_index(has)? {
            return Ok(None);
        }
        let user_ids: Vec<u32> = keys.iter().map(|key| key.user_id).collect();
        Ok(Some((view.profiles(&user_ids).await?, view.read_at())))
    }

    /// Returns chosen players, best first.
    pub(crate) async fn chosen(&self, user_ids: &[String]) -> Result<(RankingState, Vec<Row>)> {
        match &self.kind {
            SourceKind::Index(view) => {
                let found = self.live_from(view, 0, user_ids, 0).await?;
                let players = found.standings.into_iter().filter_map(|standing| standing.player);
                let mut rows: Vec<Row> = players.map(|player| player.row).collect();
                rows.sort_unstable_by_key(|row| row.position);
                rows.dedup_by_key(|row| row.position);
                Ok((found.state, rows))
            }
            SourceKind::Sql(source, _) => self.reader(*source).await?.chosen(&self.resolved, *source, user_ids).await,
            SourceKind::Empty(state) => Ok((state.clone(), Vec::new())),
        }
    }

    /// Returns the first `limit` players of an open period, and chosen players with up to `around`
    /// players above and below, all at one version.
    pub(crate) async fn live(&self, limit: u32, user_ids: &[String], around: u32) -> Result<LiveState> {
        match &self.kind {
            SourceKind::Index(view) => self.live_from(view, limit, user_ids, around).await,
            SourceKind::Sql(PeriodSource::Live(ranking), _) => {
                sql::live(self.rankings, self.board, &self.resolved, *ranking, limit, user_ids, around).await
            }
            SourceKind::Sql(PeriodSource::Archive(_), _) => {
                Err(Error::Internal("an archive is not read as an open period".to_owned()))
            }
            SourceKind::Empty(state) => {
                let standings = user_ids.iter().map(|_| StoredStanding::none(false)).collect();
                Ok(LiveState { state: state.clone(), rows: Vec::new(), standings })
            }
        }
    }

    async fn live_from(&self, view: &IndexView, limit: u32, user_ids: &[String], around: u32) -> Result<LiveState> {
        // Read all players at one version. Look up the chosen ones again if that
        // version is newer than the look-up.
        let mut looked_up_at = view.read_index(|loaded, _| loaded.version.clone()).ok();
        let mut users = view.find(user_ids).await?;
        let (state, first, found) = loop {
            let read = |loaded: &LoadedIndex, revision| {
                let first = self.index_rows(loaded, 1, limit as usize);
                let found: Vec<Option<IndexStanding>> =
                    users.iter().map(|user| user.and_then(|user| self.find(loaded, user, u64::from(around)))).collect();
                (loaded.version.clone(), (loaded.state(revision), first, found))
            };
            let (version, answer) = view.read_index(read)?;
            // A player who was unknown at this version or later has no entry at it.
            if users.iter().all(Option::is_some) || looked_up_at.as_ref() == Some(&version) {
                break answer;
            }
            looked_up_at = Some(version);
            let again = view.find(user_ids).await?;
            if again == users {
                break answer;
            }
            users = again;
        };
        // Add the profiles, at the revision of that state.
        let index_rows = first.iter().chain(found.iter().flatten().flat_map(|found| &found.index_rows));
        let mut ids: Vec<u32> = index_rows.map(|index_row| index_row.key.user_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let profiles = view.profiles(&ids).await?;
        // Otherwise the names may be newer than the revision that the state tells.
        if view.read_index(|_, revision| revision)? != state.revision {
            return Err(Error::Replaced);
        }
        let profiles: HashMap<u32, _> = ids.into_iter().zip(profiles).collect();
        let rows = |index_rows: &[IndexRow]| -> Vec<Row> {
            let row = |index_row: &IndexRow| {
                let profile = profiles.get(&index_row.key.user_id)?.clone();
                Some(self.row(index_row, profile.external_id, profile.name, profile.avatar))
            };
            index_rows.iter().filter_map(row).collect()
        };
        let standings = found.iter().zip(users.iter().zip(user_ids)).map(|(found, (user, user_id))| match found {
            Some(found) => standing_of(found, rows(&found.index_rows), user_id),
            None => Ok(StoredStanding::none(user.is_some())),
        });
        let first = first.iter().filter_map(|row| Some(self.stored_row(row, profiles.get(&row.key.user_id)?.clone())));
        Ok(LiveState { standings: standings.collect::<Result<_>>()?, state, rows: first.collect() })
    }

    /// Returns the first `limit` players, and a player with up to `around` players above and below, at
    /// one version.
    pub(crate) async fn top_and_standing(
        &self,
        limit: u32,
        user_id: &UserId,
        around: u32,
    ) -> Result<(RankingState, Vec<StoredRow>, StoredStanding)> {
        if let SourceKind::Sql(PeriodSource::Archive(_), _) = &self.kind {
            let (state, rows) = self.page(1, i32::try_from(limit).unwrap_or(i32::MAX)).await?;
            let (again, standing) = self.standing(user_id, i32::try_from(around).unwrap_or(i32::MAX)).await?;
            // A correction between the two statements changes the revision of the archive.
            return if again.etag() == state.etag() { Ok((state, rows, standing)) } else { Err(Error::Replaced) };
        }
        let LiveState { state, rows, mut standings } = self.live(limit, &[user_id.to_string()], around).await?;
        let standing = standings.pop().ok_or_else(|| Error::Internal("a chosen player is missing".to_owned()))?;
        Ok((state, rows, standing))
    }

    /// Returns the rank that a new player with this score would have: behind equals, except where
    /// ranks are shared.
    pub(crate) async fn newcomer(&self, score: i64) -> Result<(RankingState, u64)> {
        match &self.kind {
            SourceKind::Index(view) => view.read_index(|loaded, revision| {
                let key = rank_key(score, self.board.order);
                let above = match self.board.ties {
                    Ties::Shared => loaded.index.count_better(key),
                    Ties::First | Ties::Tiebreak | Ties::Second => loaded.index.count_at_least(key),
                };
                (loaded.state(revision), above + 1)
            }),
            SourceKind::Sql(source, _) => self.reader(*source).await?.newcomer(&self.resolved, *source, score).await,
            SourceKind::Empty(state) => Ok((state.clone(), 1)),
        }
    }

    /// Returns the percentiles and the histogram of the scores.
    pub(crate) async fn distribution(&self) -> Result<(RankingState, (Vec<(u8, i64)>, Vec<Bar>))> {
        match &self.kind {
            SourceKind::Index(view) => view.read_index(|loaded, revision| {
                let order = self.board.order;
                (loaded.state(revision), (percentiles(loaded, order), histogram(loaded, order)))
            }),
            SourceKind::Sql(source, _) => self.reader(*source).await?.distribution(&self.resolved, *source).await,
            SourceKind::Empty(state) => Ok((state.clone(), (Vec::new(), Vec::new()))),
        }
    }

    /// Returns the players of each tier of the board or, if the period is closed, of the period.
    pub(crate) async fn tiers(&self) -> Result<(RankingState, Vec<TierCount>)> {
        let tiers = &self.board.tiers;
        match &self.kind {
            SourceKind::Index(view) => {
                view.read_index(|loaded, revision| (loaded.state(revision), tier_counts(loaded, self.board)))
            }
            SourceKind::Sql(source, _) => self.reader(*source).await?.tiers(&self.resolved, *source, tiers).await,
            SourceKind::Empty(state) => {
                let none =
                    |tier: &Tier| TierCount { tier: tier.name().to_owned(), rule: tier.rule().to_string(), players: 0 };
                Ok((state.clone(), tiers.iter().map(none).collect()))
            }
        }
    }

    /// Returns up to `limit` players from a position on.
    fn index_rows(&self, loaded: &LoadedIndex, from: u64, limit: usize) -> Vec<IndexRow> {
        let mut index_rows: Vec<IndexRow> = Vec::with_capacity(limit.min(1_000));
        if limit == 0 {
            return index_rows;
        }
        for (key, position) in loaded.index.range(from).take(limit).zip(from..) {
            let rank = match (self.board.ties, index_rows.last()) {
                (Ties::Shared, Some(last)) if last.key.rank_key == key.rank_key => last.rank,
                (Ties::First | Ties::Tiebreak | Ties::Second, _) | (Ties::Shared, Some(_)) => position,
                (Ties::Shared, None) => loaded.index.count_better(key.rank_key) + 1,
            };
            index_rows.push(IndexRow { key, position, rank });
        }
        index_rows
    }

    /// Returns a player with up to `around` players above and below.
    fn find(&self, loaded: &LoadedIndex, user_id: u32, around: u64) -> Option<IndexStanding> {
        let place = loaded.index.position(user_id)?;
        let (position, players) = (place.position, loaded.index.len() as u64);
        let (rank, no_worse) = match self.board.ties {
            Ties::Shared => (place.better + 1, place.no_worse),
            Ties::First | Ties::Tiebreak | Ties::Second => (position, position),
        };
        let index_rows = if around == 0 {
            vec![IndexRow { key: place.key, position, rank }]
        } else {
            let from = position.saturating_sub(around).max(1);
            let limit = position - from + 1 + around;
            self.index_rows(loaded, from, usize::try_from(limit).unwrap_or(usize::MAX))
        };
        Some(IndexStanding { position, worse: players - no_worse, index_rows })
    }

    fn stored_row(&self, index_row: &IndexRow, profile: StoredProfile) -> StoredRow {
        let key = index_row.key;
        let row = self.row(index_row, profile.external_id, profile.name, profile.avatar);
        let key = StoredKey { rank_key: key.rank_key, tie_key: key.tie_key, internal_id: i64::from(key.user_id) };
        StoredRow { row, key }
    }

    fn row(&self, index_row: &IndexRow, user_id: String, user_name: String, avatar: Option<String>) -> Row {
        let (reached_at, tiebreak) = shown_tie(index_row.key.tie_key, self.board.tiebreak_order);
        Row {
            position: index_row.position,
            rank: index_row.rank,
            user_id,
            user_name,
            avatar,
            score: score(index_row.key.rank_key, self.board.order),
            reached_at,
            tiebreak,
            metadata: None,
            profile: None,
        }
    }
}

/// Returns the places, from 0, of a part of the ranking of a group. `keys` are best first.
fn local_range(keys: &[RankKey], group: &PlayerGroup, part: LocalPart, limit: usize) -> Range<usize> {
    let (start, size) = match part {
        LocalPart::From(from) => (usize::try_from(from - 1).unwrap_or_default(), limit),
        LocalPart::After(key) => {
            let key = key_of(key);
            (keys.partition_point(|other| *other >= key), limit)
        }
        LocalPart::Around => match keys.iter().position(|key| i64::from(key.user_id) == group.owner) {
            Some(place) => (place.saturating_sub(limit), place.min(limit) + 1 + limit),
            None => return 0..0,
        },
    };
    start.min(keys.len())..start.saturating_add(size).min(keys.len())
}

/// Builds the standing of a player found as `user_id`. [`Error::Replaced`] if the user was erased
/// during the read.
fn standing_of(found: &IndexStanding, rows: Vec<Row>, user_id: &str) -> Result<StoredStanding> {
    let row = rows.iter().find(|row| row.position == found.position).filter(|row| row.user_id == user_id);
    let row = row.ok_or(Error::Replaced)?.clone();
    Ok(StoredStanding { user_exists: true, player: Some(StoredPlayer { row, worse: found.worse }), rows })
}

/// Returns the score at each tenth percentile, worst to best, as `percentile_disc` does.
fn percentiles(loaded: &LoadedIndex, order: Order) -> Vec<(u8, i64)> {
    let players = loaded.index.len() as u64;
    let at = |percent: u8| {
        let place = (u64::from(percent) * players).div_ceil(100).max(1);
        loaded.index.key_at((players + 1).checked_sub(place)?).map(|key| (percent, score(key.rank_key, order)))
    };
    (0..=100).step_by(10).filter_map(at).collect()
}

/// Returns up to 20 ranges of equal width from the worst score to the best, as
/// `centile_store.histogram` does.
fn histogram(loaded: &LoadedIndex, order: Order) -> Vec<Bar> {
    const BARS: i128 = 20;
    let index = &loaded.index;
    let (Some(best), Some(worst)) = (index.key_at(1), index.key_at(index.len() as u64)) else { return Vec::new() };
    let (low, high) = (i128::from(worst.rank_key), i128::from(best.rank_key));
    let width = (high - low + BARS) / BARS;
    let edges: Vec<i128> = (0..BARS).map(|n| low + n * width).take_while(|edge| *edge <= high).collect();
    let in_range = |edge: i128| i64::try_from(edge).unwrap_or(i64::MAX);
    let at_least = |edge: i128| index.count_at_least(in_range(edge));
    let bar = |n: usize| {
        let (from, next) = (edges[n], edges.get(n + 1));
        let above = next.map_or(0, |next| at_least(*next));
        let to = (from + width - 1).min(high);
        Bar {
            from_score: score(in_range(from), order),
            to_score: score(in_range(to), order),
            players: at_least(from) - above,
        }
    };
    (0..edges.len()).map(bar).collect()
}

/// Counts the players of each tier: those whom its rule selects and no better tier has. Agrees with
/// `centile_store.tier_counts`.
fn tier_counts(loaded: &LoadedIndex, board: &Board) -> Vec<TierCount> {
    let index = &loaded.index;
    let players = index.len() as u64;
    let up_to_rank = |last: u64| {
        let last = last.min(players);
        match (board.ties, (last > 0).then(|| index.key_at(last)).flatten()) {
            (Ties::Shared, Some(worst)) => index.count_at_least(worst.rank_key),
            _ => last,
        }
    };
    let mut end = 0;
    let count = |tier: &Tier| {
        let taken = match tier.rule() {
            TierRule::Top(share) => {
                up_to_rank(u64::try_from(u128::from(share) * u128::from(players) / 10_000).unwrap_or(u64::MAX))
            }
            TierRule::Rank(last) => up_to_rank(last),
            TierRule::Score(least) => index.count_at_least(rank_key(least, board.order)),
        };
        let better = end;
        end = end.max(taken);
        TierCount { tier: tier.name().to_owned(), rule: tier.rule().to_string(), players: end - better }
    };
    board.tiers.iter().map(count).collect()
}

/// Converts a score to a rank key, or back, by negation if smaller scores are better. `i64::MIN` is
/// never stored, so saturation does not matter.
fn rank_key(score: i64, order: Order) -> i64 {
    match order {
        Order::Desc => score,
        Order::Asc => score.saturating_neg(),
    }
}

pub(super) fn score(rank_key: i64, order: Order) -> i64 {
    self::rank_key(rank_key, order)
}
