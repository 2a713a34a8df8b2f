//! Reads of open periods, from the rank index or by SQL. Both give the same answers.
//!
//! If a function returns `None`, the caller must look the period up again: its ranking was
//! replaced, its index was dropped, or the user was erased during the read.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use futures::{StreamExt as _, stream::FuturesUnordered};

use crate::{
    Code, Result,
    model::{
        board::{Board, Order, Ties},
        period::PeriodSelector,
        rank::{Bar, RankChange, Row},
        tier::{Tier, TierCount, TierRule},
    },
    ranking::{
        Rankings,
        index::RankKey,
        indexes::{Access, IndexView, Loaded, key_of},
        period::{self, Resolved},
    },
    rules::{Standing, reached_at},
    store::{
        Store,
        index::StoredProfile,
        period::{PeriodSource, RankingRef, ResolvedPeriod},
        rank::{
            Group, LocalPart, LocalRow, LocalRows, RankingState, StoredKey, StoredPlayer, StoredRow, StoredStanding,
        },
    },
};

/// The ranking to read, with its board and period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open<'a> {
    /// The instance.
    pub(crate) rankings: &'a Rankings,
    /// The board.
    pub(crate) board: &'a Board,
    /// The period.
    pub(crate) resolved: &'a ResolvedPeriod,
    /// Its ranking.
    pub(crate) ranking: RankingRef,
    /// Whether one read serves many callers, as for a top list.
    pub(crate) is_shared: bool,
}

/// The first players and chosen players at one version.
pub(crate) struct LiveState {
    /// State that all rows belong to.
    pub(crate) state: RankingState,
    /// The first players.
    pub(crate) rows: Vec<Row>,
    /// The chosen players, in the order of the request.
    pub(crate) standings: Vec<StoredStanding>,
}

/// A player's row from an index, without the profile.
#[derive(Debug, Clone, Copy)]
struct IndexRow {
    key: RankKey,
    position: u64,
    rank: u64,
}

/// A player found in an index, with the neighbours.
struct Found {
    position: u64,
    worse: u64,
    index_rows: Vec<IndexRow>,
}

impl Open<'_> {
    async fn access(&self) -> Result<Access> {
        self.rankings.indexes.access(self.board.slug.as_str(), self.resolved, self.ranking, self.is_shared).await
    }

    /// Applies all batches that were committed before this call; then SQL may answer.
    pub(super) async fn applied(&self) -> Result<&Store> {
        self.rankings.indexes.apply(self.ranking.board).await?;
        Ok(&self.rankings.primary)
    }

    /// Returns the state alone.
    pub(crate) async fn state(&self) -> Result<Option<RankingState>> {
        match self.access().await? {
            Access::Index(view) => Ok(view.read(Loaded::state)),
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.ranking_state(self.resolved, self.ranking).await,
        }
    }

    /// Returns a page that starts at a position.
    pub(crate) async fn page(&self, from: i64, limit: i32) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        match self.access().await? {
            Access::Index(view) => self.rows(&view, limit, |_| from.max(1).unsigned_abs()).await,
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.page(self.resolved, self.ranking, from, limit).await,
        }
    }

    /// Returns the page that starts right below a key.
    pub(crate) async fn page_after(
        &self,
        key: StoredKey,
        limit: i32,
    ) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        match self.access().await? {
            Access::Index(view) => {
                let key = key_of(key);
                let below = |loaded: &Loaded| {
                    let above = loaded.index.count_above(&key);
                    above + 1 + u64::from(loaded.index.key(key.user_id) == Some(key))
                };
                self.rows(&view, limit, below).await
            }
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.page_after(self.resolved, self.ranking, key, limit).await,
        }
    }

    async fn rows(
        &self,
        view: &IndexView,
        limit: i32,
        from: impl FnOnce(&Loaded) -> u64,
    ) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        let limit = usize::try_from(limit).unwrap_or_default();
        let read = |loaded: &Loaded, revision| (loaded.state(revision), self.index_rows(loaded, from(loaded), limit));
        let Some((state, index_rows)) = view.read(read) else { return Ok(None) };
        let ids: Vec<u32> = index_rows.iter().map(|index_row| index_row.key.user_id).collect();
        let Some(profiles) = view.profiles(&ids).await? else { return Ok(None) };
        let rows = index_rows.iter().zip(profiles).map(|(index_row, profile)| self.stored_row(index_row, profile));
        Ok(Some((state, rows.collect())))
    }

    /// Returns a part of the ranking of a group, whose ids are read during the round.
    pub(crate) async fn local<'g>(
        &self,
        group: impl Future<Output = Result<&'g Group>>,
        part: LocalPart,
        limit: i32,
    ) -> Result<Option<(RankingState, LocalRows)>> {
        let (access, group) = tokio::try_join!(self.access(), group)?;
        match access {
            Access::Index(view) => self.local_from(&view, group, part, limit).await,
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.local(self.resolved, self.ranking, group, part, limit).await,
        }
    }

    async fn local_from(
        &self,
        view: &IndexView,
        group: &Group,
        part: LocalPart,
        limit: i32,
    ) -> Result<Option<(RankingState, LocalRows)>> {
        let limit = usize::try_from(limit).unwrap_or_default();
        let read = |loaded: &Loaded, revision| {
            let user_ids = group.user_ids.iter().filter_map(|&user_id| u32::try_from(user_id).ok());
            let mut keys: Vec<RankKey> = user_ids.filter_map(|user_id| loaded.index.key(user_id)).collect();
            keys.sort_unstable_by(|a, b| b.cmp(a));
            let row = |n: usize| {
                let key = keys[n];
                let better = match self.board.ties {
                    Ties::Shared => keys.partition_point(|other| other.rank_key > key.rank_key),
                    Ties::First | Ties::Tiebreak => n,
                };
                let index_row = self.find(loaded, key.user_id, 0)?.index_rows.pop()?;
                Some((n as u64 + 1, better as u64 + 1, index_row))
            };
            let found: Vec<_> = places(&keys, group, part, limit).filter_map(row).collect();
            (loaded.state(revision), keys.len() as u64, found)
        };
        let Some((state, players, found)) = view.read(read) else { return Ok(None) };
        let user_ids: Vec<u32> = found.iter().map(|(.., index_row)| index_row.key.user_id).collect();
        let Some(profiles) = view.profiles(&user_ids).await? else { return Ok(None) };
        let rows = found.iter().zip(profiles).map(|((place, local_rank, index_row), profile)| LocalRow {
            place: *place,
            local_rank: *local_rank,
            stored: self.stored_row(index_row, profile),
        });
        Ok(Some((state, LocalRows { players, rows: rows.collect() })))
    }

    /// Returns a player with up to `around` players above and below.
    pub(crate) async fn standing(&self, user_id: &str, around: i32) -> Result<Option<(RankingState, StoredStanding)>> {
        match self.access().await? {
            Access::Index(view) => {
                let Some(mut users) = view.find(&[user_id.to_owned()]).await? else { return Ok(None) };
                let user = users.pop().flatten();
                let around = u64::try_from(around).unwrap_or_default();
                let read = |loaded: &Loaded, revision| {
                    (loaded.state(revision), user.and_then(|user| self.find(loaded, user, around)))
                };
                let Some((state, found)) = view.read(read) else { return Ok(None) };
                let Some(found) = found else {
                    let standing = StoredStanding { user_exists: user.is_some(), player: None, rows: Vec::new() };
                    return Ok(Some((state, standing)));
                };
                let ids: Vec<u32> = found.index_rows.iter().map(|index_row| index_row.key.user_id).collect();
                let Some(profiles) = view.profiles(&ids).await? else { return Ok(None) };
                let rows = found.index_rows.iter().zip(profiles);
                let rows = rows
                    .map(|(index_row, profile)| self.row(index_row, profile.external_id, profile.name, profile.avatar));
                Ok(standing_of(&found, rows.collect(), user_id).map(|standing| (state, standing)))
            }
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => crate::ranking::sql::standing(self, user_id, around).await,
        }
    }

    /// Returns a player of an index without neighbours. The player is `None` without an entry.
    pub(crate) fn standing_in(
        &self,
        view: &IndexView,
        user: u32,
        profile: &StoredProfile,
    ) -> Option<(RankingState, Option<StoredStanding>)> {
        let (state, found) = view.read(|loaded, revision| (loaded.state(revision), self.find(loaded, user, 0)))?;
        let Some(found) = found else { return Some((state, None)) };
        let row = |index_row: &IndexRow| {
            let StoredProfile { external_id, name, avatar, .. } = profile.clone();
            self.row(index_row, external_id, name, avatar)
        };
        let rows = found.index_rows.iter().map(row).collect();
        Some((state, Some(standing_of(&found, rows, &profile.external_id)?)))
    }

    /// Returns chosen players, best first.
    pub(crate) async fn chosen(&self, user_ids: &[String]) -> Result<Option<(RankingState, Vec<Row>)>> {
        match self.access().await? {
            Access::Index(view) => Ok(self.live_from(&view, 0, user_ids, 0).await?.map(|found| {
                let players = found.standings.into_iter().filter_map(|standing| standing.player);
                let mut rows: Vec<Row> = players.map(|player| player.row).collect();
                rows.sort_unstable_by_key(|row| row.position);
                rows.dedup_by_key(|row| row.position);
                (found.state, rows)
            })),
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.chosen(self.resolved, self.ranking, user_ids).await,
        }
    }

    /// Returns the first `limit` players, and chosen players with up to `around` players above and
    /// below, all at one version.
    pub(crate) async fn live(&self, limit: u32, user_ids: &[String], around: u32) -> Result<Option<LiveState>> {
        match self.access().await? {
            Access::Index(view) => self.live_from(&view, limit, user_ids, around).await,
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => crate::ranking::sql::live(self, limit, user_ids, around).await,
        }
    }

    async fn live_from(
        &self,
        view: &IndexView,
        limit: u32,
        user_ids: &[String],
        around: u32,
    ) -> Result<Option<LiveState>> {
        let mut looked_up_at = view.read(|loaded, _| loaded.version.clone());
        let Some(mut users) = view.find(user_ids).await? else { return Ok(None) };
        let (state, first, found) = loop {
            let read = |loaded: &Loaded, revision| {
                let first = self.index_rows(loaded, 1, limit as usize);
                let found: Vec<Option<Found>> =
                    users.iter().map(|user| user.and_then(|user| self.find(loaded, user, u64::from(around)))).collect();
                (loaded.version.clone(), (loaded.state(revision), first, found))
            };
            let Some((version, answer)) = view.read(read) else { return Ok(None) };
            // A player who was unknown at this version or later has no entry at it.
            if users.iter().all(Option::is_some) || looked_up_at.as_ref() == Some(&version) {
                break answer;
            }
            looked_up_at = Some(version);
            let Some(again) = view.find(user_ids).await? else { return Ok(None) };
            if again == users {
                break answer;
            }
            users = again;
        };
        let index_rows = first.iter().chain(found.iter().flatten().flat_map(|found| &found.index_rows));
        let mut ids: Vec<u32> = index_rows.map(|index_row| index_row.key.user_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let Some(profiles) = view.profiles(&ids).await? else { return Ok(None) };
        // Otherwise the names may be newer than the revision that the state tells.
        if view.read(|_, revision| revision) != Some(state.revision) {
            return Ok(None);
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
            None => Some(StoredStanding { user_exists: user.is_some(), player: None, rows: Vec::new() }),
        });
        let Some(standings) = standings.collect() else { return Ok(None) };
        Ok(Some(LiveState { state, rows: rows(&first), standings }))
    }

    /// Returns the rank that a new player with this score would have: behind equals, except where
    /// ranks are shared.
    pub(crate) async fn newcomer(&self, score: i64) -> Result<Option<(RankingState, u64)>> {
        match self.access().await? {
            Access::Index(view) => Ok(view.read(|loaded, revision| {
                let key = rank_key(score, self.board.order);
                let above = match self.board.ties {
                    Ties::Shared => loaded.index.count_better(key),
                    Ties::First | Ties::Tiebreak => loaded.index.count_at_least(key),
                };
                (loaded.state(revision), above + 1)
            })),
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.newcomer(self.resolved, self.ranking, score).await,
        }
    }

    /// Returns percentiles and histogram.
    pub(crate) async fn distribution(&self) -> Result<Option<(RankingState, (Vec<(u8, i64)>, Vec<Bar>))>> {
        match self.access().await? {
            Access::Index(view) => Ok(view.read(|loaded, revision| {
                let order = self.board.order;
                (loaded.state(revision), (percentiles(loaded, order), histogram(loaded, order)))
            })),
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.distribution(self.resolved, self.ranking).await,
        }
    }

    /// Returns the players of each tier of the board.
    pub(crate) async fn tiers(&self) -> Result<Option<(RankingState, Vec<TierCount>)>> {
        match self.access().await? {
            Access::Index(view) => {
                Ok(view.read(|loaded, revision| (loaded.state(revision), tier_counts(loaded, self.board))))
            }
            Access::Replaced => Ok(None),
            Access::Sql(_permit) => self.applied().await?.tiers(self.resolved, self.ranking, &self.board.tiers).await,
        }
    }

    /// Returns up to `limit` players from a position on.
    fn index_rows(&self, loaded: &Loaded, from: u64, limit: usize) -> Vec<IndexRow> {
        let mut index_rows: Vec<IndexRow> = Vec::with_capacity(limit.min(1_000));
        if limit == 0 {
            return index_rows;
        }
        for (key, position) in loaded.index.range(from).take(limit).zip(from..) {
            let rank = match (self.board.ties, index_rows.last()) {
                (Ties::Shared, Some(last)) if last.key.rank_key == key.rank_key => last.rank,
                (Ties::First | Ties::Tiebreak, _) | (Ties::Shared, Some(_)) => position,
                (Ties::Shared, None) => loaded.index.count_better(key.rank_key) + 1,
            };
            index_rows.push(IndexRow { key, position, rank });
        }
        index_rows
    }

    /// Returns a player with up to `around` players above and below.
    fn find(&self, loaded: &Loaded, user_id: u32, around: u64) -> Option<Found> {
        let place = loaded.index.position(user_id)?;
        let (position, players) = (place.position, loaded.index.len() as u64);
        let (rank, no_worse) = match self.board.ties {
            Ties::Shared => (place.better + 1, place.no_worse),
            Ties::First | Ties::Tiebreak => (position, position),
        };
        let index_rows = if around == 0 {
            vec![IndexRow { key: place.key, position, rank }]
        } else {
            let from = position.saturating_sub(around).max(1);
            let limit = position - from + 1 + around;
            self.index_rows(loaded, from, usize::try_from(limit).unwrap_or(usize::MAX))
        };
        Some(Found { position, worse: players - no_worse, index_rows })
    }

    fn stored_row(&self, index_row: &IndexRow, profile: StoredProfile) -> StoredRow {
        let key = index_row.key;
        let row = self.row(index_row, profile.external_id, profile.name, profile.avatar);
        let key = StoredKey { rank_key: key.rank_key, tie_key: key.tie_key, internal_id: i64::from(key.user_id) };
        StoredRow { row, key }
    }

    fn row(&self, index_row: &IndexRow, user_id: String, user_name: String, avatar: Option<String>) -> Row {
        Row {
            position: index_row.position,
            rank: index_row.rank,
            user_id,
            user_name,
            avatar,
            score: score(index_row.key.rank_key, self.board.order),
            reached_at: reached_at(index_row.key.tie_key),
            metadata: None,
        }
    }
}

/// Returns the places, from 0, of a part of the ranking of a group. `keys` are best first.
fn places(keys: &[RankKey], group: &Group, part: LocalPart, limit: usize) -> Range<usize> {
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

/// Returns, for each standing, the current rank and the rank that its previous key would have now.
pub(crate) async fn rank_changes(
    rankings: &Rankings,
    board: &Board,
    standings: &[&Standing],
) -> Result<Vec<RankChange>> {
    let names: BTreeSet<&String> = standings.iter().map(|standing| &standing.period).collect();
    // Concurrently, so that all periods share one round.
    let mut found: FuturesUnordered<_> =
        names.into_iter().map(|name| async move { (name, access_of(rankings, board, name).await) }).collect();
    let mut views: HashMap<&str, IndexView> = HashMap::new();
    while let Some((name, access)) = found.next().await {
        match access {
            Ok(Some(Access::Index(view))) => {
                views.insert(name, view);
            }
            Err(error) if error.code() != Code::IndexUnavailable => return Err(error),
            // A period is closed or has no index yet, so SQL reads all of them that have bucket rows.
            // The permit is held until the statement ends.
            _permit => {
                drop(found);
                return rank_changes_by_sql(rankings, board, standings).await;
            }
        }
    }
    let change = |standing: &&Standing| {
        let user_id = u32::try_from(standing.user_id).ok()?;
        views.get(standing.period.as_str())?.read(|loaded, _| change(loaded, board, user_id, standing.was))
    };
    match standings.iter().map(change).collect() {
        Some(changes) => Ok(changes),
        None => rank_changes_by_sql(rankings, board, standings).await,
    }
}

async fn rank_changes_by_sql(rankings: &Rankings, board: &Board, standings: &[&Standing]) -> Result<Vec<RankChange>> {
    rankings.indexes.apply(board.id).await?;
    rankings.primary.rank_changes(board.id, standings).await
}

async fn access_of(rankings: &Rankings, board: &Board, name: &str) -> Result<Option<Access>> {
    let selector: PeriodSelector = name.parse()?;
    let Ok(Resolved::Players(resolved, PeriodSource::Live(ranking))) =
        period::resolve(rankings, board, &selector).await
    else {
        return Ok(None);
    };
    rankings.indexes.access(board.slug.as_str(), &resolved, ranking, false).await.map(Some)
}

/// Returns a player's rank, and the rank that the player's earlier key would have now. A rank is
/// `None` if its key does not exist.
fn change(loaded: &Loaded, board: &Board, user_id: u32, was: Option<(i64, i64)>) -> RankChange {
    let (index, ties) = (&loaded.index, board.ties);
    let own = index.key(user_id);
    let rank_of = |key: &RankKey| match ties {
        Ties::Shared => index.count_better(key.rank_key) + 1,
        Ties::First | Ties::Tiebreak => index.count_above(key) + 1,
    };
    let previous = was.map(|(rank_key, tie_key)| {
        let was = RankKey { rank_key, tie_key, user_id };
        // The player does not count as better than the player's own earlier key.
        let stands_above = own.is_some_and(|own| match ties {
            Ties::Shared => own.rank_key > was.rank_key,
            Ties::First | Ties::Tiebreak => own > was,
        });
        rank_of(&was) - u64::from(stands_above)
    });
    RankChange {
        rank: own.as_ref().map(rank_of),
        previous_rank: previous,
        score: own.map(|own| score(own.rank_key, board.order)),
        players: Some(index.len() as u64),
    }
}

/// Builds the standing of a player found as `user_id`. `None` if the user was erased during the
/// read.
fn standing_of(found: &Found, rows: Vec<Row>, user_id: &str) -> Option<StoredStanding> {
    let row = rows.iter().find(|row| row.position == found.position).filter(|row| row.user_id == user_id)?.clone();
    Some(StoredStanding { user_exists: true, player: Some(StoredPlayer { row, worse: found.worse }), rows })
}

/// Returns the score at each tenth percentile, worst to best, as `percentile_disc` does.
fn percentiles(loaded: &Loaded, order: Order) -> Vec<(u8, i64)> {
    let players = loaded.index.len() as u64;
    let at = |percent: u8| {
        let place = (u64::from(percent) * players).div_ceil(100).max(1);
        loaded.index.at((players + 1).checked_sub(place)?).map(|key| (percent, score(key.rank_key, order)))
    };
    (0..=100).step_by(10).filter_map(at).collect()
}

/// Returns up to 20 ranges of equal width from the worst score to the best, as
/// `centile_store.histogram` does.
fn histogram(loaded: &Loaded, order: Order) -> Vec<Bar> {
    const BARS: i128 = 20;
    let index = &loaded.index;
    let (Some(best), Some(worst)) = (index.at(1), index.at(index.len() as u64)) else { return Vec::new() };
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
fn tier_counts(loaded: &Loaded, board: &Board) -> Vec<TierCount> {
    let index = &loaded.index;
    let players = index.len() as u64;
    let up_to_rank = |last: u64| {
        let last = last.min(players);
        match (board.ties, (last > 0).then(|| index.at(last)).flatten()) {
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

fn score(rank_key: i64, order: Order) -> i64 {
    self::rank_key(rank_key, order)
}
