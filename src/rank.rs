//! Reading a ranking, or the archive of a closed period: pages, ranks, neighbours, friends, the distribution.
//!
//! Every answer is exact for the version it names.

use std::{collections::HashSet, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    board::Board,
    cursor::Cursor,
    period::{self, Meant, Period, PeriodSelector},
    ranking::Open,
    service::Service,
    store::{
        archive::ArchiveState,
        export::{Snapshot, State},
        period::{MeantPeriod, Source},
        rank::{RankingState, StoredRow, StoredStanding},
    },
    user::UserId,
};

/// Source of an answer about a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The rank index of this instance.
    Index,
    /// A statement, on the tables or on an archive.
    Sql,
}

impl AnsweredBy {
    /// Its name in the header `X-Centile-Source`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Sql => "sql",
        }
    }
}

/// What every answer about a ranking carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The period that is meant.
    pub period: Period,
    /// The state that the answer is exact for; opaque, equal means equal state.
    pub version: String,
    /// Players in the ranking.
    pub players: u64,
    /// Of a closed period: entity tag, without quotes, of what is answered to this question.
    pub etag: Option<String>,
    /// What answered.
    pub answered_by: AnsweredBy,
}

/// One player's line in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Row {
    /// Place in the total order, from 1, never shared.
    pub position: u64,
    /// Rank, shared among equals on `shared` boards.
    pub rank: u64,
    /// The caller's id of the player.
    pub user_id: String,
    /// Name.
    pub user_name: String,
    /// Address of a picture.
    pub avatar: Option<String>,
    /// Score.
    pub score: i64,
    /// When the score was reached.
    pub reached_at: DateTime<Utc>,
}

/// A page of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Period, version, players.
    pub header: Header,
    /// The rows, best first.
    pub rows: Vec<Row>,
    /// Cursor of the next page; absent after the last player.
    pub next: Option<String>,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// At this position, from 1.
    Position(u64),
    /// After the last row of an earlier page.
    Cursor(String),
}

/// A page, at any depth, for the cost of the first.
pub async fn page(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    start: PageStart,
    limit: u32,
) -> Result<Page> {
    let cursor = match &start {
        PageStart::Cursor(text) => Some(Cursor::parse(text, board, selector)?),
        PageStart::Position(_) => None,
    };
    // A cursor names the period it belongs to: `week` goes on with the week that its first page showed.
    let selector = cursor.as_ref().map_or(selector, |cursor| &cursor.selector);
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let from = match start {
        PageStart::Position(from) => i64::try_from(from).unwrap_or(i64::MAX),
        PageStart::Cursor(_) => 1,
    };
    let read = |meant: Arc<MeantPeriod>, source| {
        let key = cursor.as_ref().map(|cursor| cursor.key);
        async move {
            let (store, period) = (&service.store, &meant.period);
            let found = match (source, key) {
                (Source::Live(ranking), None) => Open { service, board, meant: &meant, ranking, is_shared: false }
                    .page(from, limit)
                    .await?
                    .map(|found| of_ranking(period, found)),
                (Source::Live(ranking), Some(key)) => Open { service, board, meant: &meant, ranking, is_shared: false }
                    .page_after(key, limit)
                    .await?
                    .map(|found| of_ranking(period, found)),
                (Source::Archive(archive), None) => {
                    store.archive_page(&meant, archive, from, limit).await?.map(|found| of_archive(period, found))
                }
                (Source::Archive(archive), Some(key)) => {
                    store.archive_page_after(&meant, archive, key, limit).await?.map(|found| of_archive(period, found))
                }
            };
            Ok(found.map(|(header, rows)| page_of(board, header, rows)))
        }
    };
    let empty = |period: Period, state: RankingState| Ok(page_of(board, header(&period, &state), Vec::new()));
    on_period(service, board, selector, read, empty).await
}

/// Rows as a page; there is a next one unless the last row is the last player's.
pub(crate) fn page_of(board: &Board, header: Header, rows: Vec<StoredRow>) -> Page {
    let next = rows
        .last()
        .filter(|last| last.row.position < header.players)
        .map(|last| Cursor::text(board, &header.period, last.key));
    Page { header, rows: rows.into_iter().map(|stored| stored.row).collect(), next }
}

/// The beginning of an answer from a ranking.
pub(crate) fn header(period: &Period, state: &RankingState) -> Header {
    Header {
        period: period.clone(),
        version: state.version.text(),
        players: state.players,
        etag: None,
        answered_by: state.answered_by,
    }
}

/// The beginning of an answer from an archive.
pub(crate) fn archive_header(period: &Period, state: &ArchiveState) -> Header {
    Header {
        period: period.clone(),
        version: state.version(),
        players: state.players,
        etag: Some(state.etag()),
        answered_by: AnsweredBy::Sql,
    }
}

fn of_ranking<T>(period: &Period, (state, found): (RankingState, T)) -> (Header, T) {
    (header(period, &state), found)
}

fn of_archive<T>(period: &Period, (state, found): (ArchiveState, T)) -> (Header, T) {
    (archive_header(period, &state), found)
}

/// How often a ranking or an archive that turns out to be replaced is looked up again.
const MOST_LOOK_UPS: usize = 4;

/// Reads from the ranking or the archive that `selector` means. When the statement finds that it is no longer the current
/// one, the period is looked up again; `empty` answers for a period in which nobody has scored.
async fn on_period<T, F>(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    read: impl Fn(Arc<MeantPeriod>, Source) -> F,
    empty: impl FnOnce(Period, RankingState) -> Result<T>,
) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    for _ in 0..MOST_LOOK_UPS {
        match period::meant(service, board, selector).await? {
            Meant::Empty(period, state) => return empty(period, state),
            Meant::Players(meant, source) => {
                if let Some(answer) = read(meant, source).await? {
                    return Ok(answer);
                }
                service.periods.forget(board.id, selector);
            }
        }
    }
    Err(Error::unavailable(format!("{selector} changes hands just now")))
}

/// What `selector` means, in a snapshot; without one when nobody has scored in it.
pub(crate) async fn snapshot(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<(Header, Option<Snapshot>)> {
    let read = |meant: Arc<MeantPeriod>, source| async move {
        let found = service.store.snapshot(&meant, source).await?;
        Ok(found.map(|(snapshot, state)| {
            let header = match state {
                State::Live(state) => header(&meant.period, &state),
                State::Archive(state) => archive_header(&meant.period, &state),
            };
            (header, Some(snapshot))
        }))
    };
    on_period(service, board, selector, read, |period, state| Ok((header(&period, &state), None))).await
}

/// One player's standing with the players around.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Period, version, players.
    pub header: Header,
    /// The player's own line.
    pub player: Row,
    /// 100 × players strictly worse ÷ max(players − 1, 1).
    pub percentile: f64,
    /// Up to n players above, best first.
    pub above: Vec<Row>,
    /// Up to n players below, best first.
    pub below: Vec<Row>,
}

/// A player's standing and the `around` players above and below. [`Error::NotFound`] when the player has no entry.
pub async fn standing(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    user_id: &UserId,
    around: u32,
) -> Result<Standing> {
    let around = i32::try_from(around).unwrap_or(i32::MAX);
    let read = |meant: Arc<MeantPeriod>, source| async move {
        let (user, period) = (user_id.as_str(), &meant.period);
        let found = match source {
            Source::Live(ranking) => {
                let open = Open { service, board, meant: &meant, ranking, is_shared: false };
                open.standing(user, around).await?.map(|found| of_ranking(period, found))
            }
            Source::Archive(archive) => {
                let found = service.store.archive_standing(&meant, archive, user, around).await?;
                found.map(|found| of_archive(period, found))
            }
        };
        let Some((header, found)) = found else { return Ok(None) };
        let user_exists = found.user_exists;
        let standing = standing_of(header, found).ok_or_else(|| no_entry(user_id, selector, user_exists))?;
        Ok(Some(Some(standing)))
    };
    match on_period(service, board, selector, read, |_, _| Ok(None)).await? {
        Some(standing) => Ok(standing),
        None => Err(no_entry(user_id, selector, service.store.user(user_id.as_str()).await?.is_some())),
    }
}

/// A player as found, with the neighbours apart; `None` without an entry.
pub(crate) fn standing_of(header: Header, found: StoredStanding) -> Option<Standing> {
    let player = found.player?;
    let others = found.rows.into_iter().filter(|row| row.position != player.row.position);
    let (above, below) = others.partition(|row| row.position < player.row.position);
    let percentile = percentile(player.worse, header.players);
    Some(Standing { header, player: player.row, percentile, above, below })
}

/// 100 × players strictly worse ÷ max(players − 1, 1).
fn percentile(worse: u64, players: u64) -> f64 {
    100.0 * worse as f64 / players.saturating_sub(1).max(1) as f64
}

fn no_entry(user_id: &UserId, selector: &PeriodSelector, user_exists: bool) -> Error {
    Error::NotFound {
        what: "user",
        name: user_id.to_string(),
        hint: user_exists.then(|| format!("the player has no score in {selector}")),
    }
}

/// Chosen players, best first, with their place among each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Period, version, players.
    pub header: Header,
    /// Their lines, best first; the n-th has place n among them (equals share on `shared` boards: see `places`).
    pub rows: Vec<Row>,
    /// Place of each row among the chosen ones.
    pub places: Vec<u64>,
    /// Ids asked for that have no entry, in the order asked.
    pub missing: Vec<String>,
}

/// Just these players: friends.
pub async fn chosen(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    user_ids: &[UserId],
) -> Result<Chosen> {
    let wanted: Vec<String> = user_ids.iter().map(ToString::to_string).collect();
    let chosen_of = |header: Header, rows: Vec<Row>| {
        let mut places: Vec<u64> = Vec::with_capacity(rows.len());
        for (n, row) in rows.iter().enumerate() {
            // Rows come best first: equals in rank are equals among the chosen.
            let is_equal = n > 0 && rows[n - 1].rank == row.rank;
            places.push(if is_equal { places[n - 1] } else { n as u64 + 1 });
        }
        let found: HashSet<&str> = rows.iter().map(|row| row.user_id.as_str()).collect();
        let missing = wanted.iter().filter(|id| !found.contains(id.as_str())).cloned().collect();
        Chosen { header, rows, places, missing }
    };
    let read = |meant: Arc<MeantPeriod>, source| {
        let (store, wanted, chosen_of) = (&service.store, &wanted, &chosen_of);
        async move {
            let period = &meant.period;
            let found = match source {
                Source::Live(ranking) => {
                    let open = Open { service, board, meant: &meant, ranking, is_shared: false };
                    open.chosen(wanted).await?.map(|found| of_ranking(period, found))
                }
                Source::Archive(archive) => {
                    store.archive_chosen(&meant, archive, wanted).await?.map(|found| of_archive(period, found))
                }
            };
            Ok(found.map(|(header, rows)| chosen_of(header, rows)))
        }
    };
    on_period(service, board, selector, read, |period, state| Ok(chosen_of(header(&period, &state), Vec::new()))).await
}

/// The rank that a newcomer with this score would have now, behind equals except on `shared` boards.
pub async fn newcomer(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    score: i64,
) -> Result<(Header, u64)> {
    if score == i64::MIN {
        return Err(Error::invalid("score", "is below the least score there can be"));
    }
    let read = |meant: Arc<MeantPeriod>, source| async move {
        let period = &meant.period;
        Ok(match source {
            Source::Live(ranking) => {
                let open = Open { service, board, meant: &meant, ranking, is_shared: false };
                open.newcomer(score).await?.map(|found| of_ranking(period, found))
            }
            Source::Archive(archive) => {
                service.store.archive_newcomer(&meant, archive, score).await?.map(|found| of_archive(period, found))
            }
        })
    };
    on_period(service, board, selector, read, |period, state| Ok((header(&period, &state), 1))).await
}

/// How scores are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Period, version, players.
    pub header: Header,
    /// (percentile, score) at 0, 10, …, 100, by `percentile_disc`, worst to best; empty without players.
    pub percentiles: Vec<(u8, i64)>,
    /// Histogram: up to 20 ranges of equal width from the worst score to the best.
    pub histogram: Vec<Bar>,
}

/// One range of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Bar {
    /// Least good score of the range.
    pub from_score: i64,
    /// Best score of the range.
    pub to_score: i64,
    /// Players in the range.
    pub players: u64,
}

/// Percentiles and histogram.
pub async fn distribution(service: &Service, board: &Board, selector: &PeriodSelector) -> Result<Distribution> {
    let read = |meant: Arc<MeantPeriod>, source| async move {
        let (store, period) = (&service.store, &meant.period);
        let found = match source {
            Source::Live(ranking) => {
                let open = Open { service, board, meant: &meant, ranking, is_shared: false };
                open.distribution().await?.map(|found| of_ranking(period, found))
            }
            Source::Archive(archive) => {
                store.archive_distribution(&meant, archive).await?.map(|found| of_archive(period, found))
            }
        };
        Ok(found.map(|(header, (percentiles, histogram))| Distribution { header, percentiles, histogram }))
    };
    let empty = |period: Period, state: RankingState| {
        Ok(Distribution { header: header(&period, &state), percentiles: Vec::new(), histogram: Vec::new() })
    };
    on_period(service, board, selector, read, empty).await
}
