//! Reading a ranking: pages, ranks, neighbours, friends, the distribution.
//!
//! Every answer is exact for the version it names.

use std::{cmp::Ordering, collections::HashSet, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    board::{Board, Ties},
    period::{self, Meant, Period, PeriodSelector},
    service::Service,
    store::{
        period::{MeantPeriod, RankingRef},
        rank::{BucketStanding, RankingState, StoredKey, StoredRow, Version},
    },
    user::UserId,
};

/// What every answer about a ranking carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The period that is meant.
    pub period: Period,
    /// The state that the answer is exact for; opaque, equal means equal state.
    pub version: String,
    /// Players in the ranking.
    pub players: u64,
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
    let read = |meant: Arc<MeantPeriod>, ranking| {
        let (key, start) = (cursor.as_ref().map(|cursor| cursor.key), &start);
        async move {
            let found = match (key, start) {
                (Some(key), _) => service.store.page_after(&meant, ranking, key, limit).await?,
                (None, PageStart::Position(from)) => {
                    let from = i64::try_from(*from).unwrap_or(i64::MAX);
                    service.store.page(&meant, ranking, from, limit).await?
                }
                (None, PageStart::Cursor(_)) => None,
            };
            Ok(found.map(|(state, rows)| page_of(board, &meant.period, &state, rows)))
        }
    };
    on_ranking(service, board, selector, read, |period, state| Ok(page_of(board, &period, &state, Vec::new()))).await
}

/// Rows as a page; there is a next one unless the last row is the last player's.
pub(crate) fn page_of(board: &Board, period: &Period, state: &RankingState, rows: Vec<StoredRow>) -> Page {
    let next =
        rows.last().filter(|last| last.row.position < state.players).map(|last| Cursor::text(board, period, last.key));
    Page { header: header(period, state), rows: rows.into_iter().map(|stored| stored.row).collect(), next }
}

/// Where the next page of a period begins: after this key.
struct Cursor {
    selector: PeriodSelector,
    key: StoredKey,
}

impl Cursor {
    /// Opaque to callers; says board, period and key.
    fn text(board: &Board, period: &Period, key: StoredKey) -> String {
        let StoredKey { rank_key, tie_key, internal_id } = key;
        URL_SAFE_NO_PAD.encode(format!("{}|{}|{rank_key}|{tie_key}|{internal_id}", board.id, period.name()))
    }

    /// Refuses what is no cursor of this board and kind of period.
    fn parse(text: &str, board: &Board, selector: &PeriodSelector) -> Result<Self> {
        let refused = || Error::invalid("cursor", format!("is not the `next` of an earlier page of {selector}"));
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let plain = String::from_utf8(bytes).map_err(|_| refused())?;
        let parts: Vec<&str> = plain.split('|').collect();
        let [board_id, period, rank_key, tie_key, internal_id] = parts[..] else { return Err(refused()) };
        let number = |text: &str| text.parse::<i64>().map_err(|_| refused());
        let named: PeriodSelector = period.parse().map_err(|_| refused())?;
        let is_meant = match selector {
            PeriodSelector::Labelled(..) => *selector == named,
            _ => selector.kind() == named.kind(),
        };
        if board_id != board.id.to_string() || !is_meant {
            return Err(refused());
        }
        let key =
            StoredKey { rank_key: number(rank_key)?, tie_key: number(tie_key)?, internal_id: number(internal_id)? };
        // Internal ids begin at 1, so the user key below it is a number still.
        if key.internal_id < 1 || key.internal_id == i64::MAX {
            return Err(refused());
        }
        Ok(Self { selector: named, key })
    }
}

fn header(period: &Period, state: &RankingState) -> Header {
    Header { period: period.clone(), version: state.version.text(), players: state.players }
}

/// How often a ranking that turns out to be replaced is looked up again.
const MOST_LOOK_UPS: usize = 4;

/// Reads from the ranking that `selector` means. When the statement finds that it is no longer the current one, the
/// period is looked up again; `empty` answers for a period in which nobody has scored.
async fn on_ranking<T, F>(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    read: impl Fn(Arc<MeantPeriod>, RankingRef) -> F,
    empty: impl FnOnce(Period, RankingState) -> Result<T>,
) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    for _ in 0..MOST_LOOK_UPS {
        match period::meant(service, board, selector).await? {
            Meant::Empty(period, state) => return empty(period, state),
            Meant::Ranking(meant, ranking) => {
                if let Some(answer) = read(meant, ranking).await? {
                    return Ok(answer);
                }
                service.periods.forget(board.id, selector);
            }
        }
    }
    Err(Error::unavailable(format!("{selector} changes hands just now")))
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
    if around == 0
        && let Some(standing) = standing_alone(service, board, selector, user_id).await?
    {
        return Ok(standing);
    }
    let around = i32::try_from(around).unwrap_or(i32::MAX);
    let read = |meant: Arc<MeantPeriod>, ranking| async move {
        let found = service.store.standing(&meant, ranking, user_id.as_str(), around).await?;
        let Some(found) = found else { return Ok(None) };
        let player = found.player.ok_or_else(|| no_entry(user_id, selector, found.user_exists))?;
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for row in found.rows {
            match row.position.cmp(&player.row.position) {
                Ordering::Less => above.push(row),
                Ordering::Greater => below.push(row),
                Ordering::Equal => {}
            }
        }
        let header = header(&meant.period, &found.state);
        let percentile = percentile(player.worse, found.state.players);
        Ok(Some(Standing { header, player: player.row, percentile, above, below }))
    };
    on_ranking(service, board, selector, read, |_, _| Err(no_entry(user_id, selector, true))).await
}

/// A standing without neighbours by the shortest way: one statement that counts within the player's bucket, and bucket
/// counts that are known by their version, or that the statement brings along. `None` when players who share the rank
/// reach into another stripe: then the statement that looks everywhere has to answer.
async fn standing_alone(
    service: &Service,
    board: &Board,
    selector: &PeriodSelector,
    user_id: &UserId,
) -> Result<Option<Standing>> {
    let is_shared = board.ties == Ties::Shared;
    let read = |meant: Arc<MeantPeriod>, ranking| async move {
        let known = service.counts.known(service, ranking).await?;
        let version = known.as_ref().map(|known| &known.version);
        let Some(found) = service.store.rank(&meant, ranking, user_id.as_str(), version).await? else {
            return Ok(None);
        };
        let (Some(score), Some(reached_at)) = (found.score, found.reached_at) else {
            return Err(no_entry(user_id, selector, found.user_exists));
        };
        let version = Version { epoch: found.epoch.clone(), layout: found.layout, batches: found.batches.clone() };
        let counts = match (&found.counts, known) {
            (Some(counts), _) => service.counts.learn(service, ranking, version, counts).await,
            (None, Some(known)) if known.version == version => known,
            // Known of an earlier life of the database: once more, without.
            _ => {
                service.counts.forget(ranking);
                return Ok(None);
            }
        };
        if is_shared && found.has_all_equals != Some(true) {
            return Ok(Some(None));
        }
        let above = Above::of(&found, &counts.counts, is_shared)
            .ok_or_else(|| Error::Internal("a rank's counts do not fit its bucket counts".to_owned()))?;
        let players = counts.players();
        Ok(Some(Some(Standing {
            header: Header { period: meant.period.clone(), version: counts.version.text(), players },
            player: Row {
                position: above.own + 1,
                rank: above.better + 1,
                user_id: found.external_id.unwrap_or_default(),
                user_name: found.name.unwrap_or_default(),
                avatar: found.avatar,
                score,
                reached_at,
            },
            percentile: percentile(players.saturating_sub(above.no_worse), players),
            above: Vec::new(),
            below: Vec::new(),
        })))
    };
    on_ranking(service, board, selector, read, |_, _| Err(no_entry(user_id, selector, true))).await
}

/// How many players stand above a player, in three senses.
struct Above {
    /// Above the player's own key.
    own: u64,
    /// With a better rank.
    better: u64,
    /// With the same rank or a better one, the player included.
    no_worse: u64,
}

impl Above {
    /// From a look into the player's bucket and the bucket counts of the same state.
    fn of(found: &BucketStanding, counts: &[i64], is_shared: bool) -> Option<Self> {
        let bucket = usize::try_from(found.bucket?).ok()?;
        let higher = counts.get(bucket + 1..)?.iter().sum::<i64>() + found.higher_stripes?;
        let [better, own, no_worse] = found.in_stripe.as_deref()? else { return None };
        let above = |in_stripe: i64| u64::try_from(higher + in_stripe).ok();
        let own = above(*own)?;
        if is_shared {
            Some(Self { own, better: above(*better)?, no_worse: above(*no_worse)? })
        } else {
            Some(Self { own, better: own, no_worse: own + 1 })
        }
    }
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
    let read = |meant: Arc<MeantPeriod>, ranking| {
        let (wanted, chosen_of) = (&wanted, &chosen_of);
        async move {
            let found = service.store.chosen(&meant, ranking, wanted).await?;
            Ok(found.map(|(state, rows)| chosen_of(header(&meant.period, &state), rows)))
        }
    };
    on_ranking(service, board, selector, read, |period, state| Ok(chosen_of(header(&period, &state), Vec::new()))).await
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
    let read = |meant: Arc<MeantPeriod>, ranking| async move {
        let found = service.store.newcomer(&meant, ranking, score).await?;
        Ok(found.map(|(state, rank)| (header(&meant.period, &state), rank)))
    };
    on_ranking(service, board, selector, read, |period, state| Ok((header(&period, &state), 1))).await
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
    let read = |meant: Arc<MeantPeriod>, ranking| async move {
        let found = service.store.distribution(&meant, ranking).await?;
        Ok(found.map(|(state, percentiles, histogram)| Distribution {
            header: header(&meant.period, &state),
            percentiles,
            histogram,
        }))
    };
    let empty = |period: Period, state: RankingState| {
        Ok(Distribution { header: header(&period, &state), percentiles: Vec::new(), histogram: Vec::new() })
    };
    on_ranking(service, board, selector, read, empty).await
}
