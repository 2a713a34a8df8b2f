//! Ranks after a score: that of each new standing, and that which its previous key would have now.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;

use crate::{
    Code, Error, Result,
    model::{
        board::{Board, Ties},
        period::PeriodSelector,
        rank::RankChange,
    },
    ranking::{
        index_registry::{ReadPath, board::LoadedIndex},
        period::{self, PeriodResolution},
        rank_index::key::RankKey,
        rankings::Rankings,
        source::score,
    },
    rules::EventStanding,
    store::period::PeriodSource,
};

/// Returns, for each standing, the current rank and the rank that its previous key would have now.
pub(crate) async fn rank_changes(
    rankings: &Rankings,
    board: &Board,
    standings: &[&EventStanding],
) -> Result<Vec<RankChange>> {
    let names: BTreeSet<&str> = standings.iter().map(|standing| standing.period.as_str()).collect();
    // Concurrently, so that all periods share one round.
    let read_paths = join_all(names.iter().map(|name| read_path_of(rankings, board, name))).await;
    let mut views = HashMap::new();
    for (name, read_path) in names.into_iter().zip(read_paths) {
        match read_path {
            Ok(Some(ReadPath::Index(view))) => {
                views.insert(name, view);
            }
            Ok(None | Some(ReadPath::Sql(_)))
            | Err(Error::Replaced | Error::Retry { code: Code::IndexUnavailable | Code::ConcurrentChange, .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let change = |standing: &&EventStanding| {
        let user_id = u32::try_from(standing.user_id).ok()?;
        views.get(standing.period.as_str())?.read_index(|loaded, _| change(loaded, board, user_id, standing.was)).ok()
    };
    let changes: Vec<Option<RankChange>> = standings.iter().map(change).collect();
    // A period is closed or has no index yet, so SQL reads it, if it has bucket rows.
    let others = standings.iter().zip(&changes).filter(|(_, change)| change.is_none());
    let others: Vec<&EventStanding> = others.map(|(standing, _)| *standing).collect();
    let mut by_sql = Vec::new().into_iter();
    if !others.is_empty() {
        let _permit = rankings.indexes.sql_permit(board.owner).await?;
        rankings.indexes.apply(board.owner).await?;
        by_sql = rankings.primary.rank_changes(board.id, &others).await?.into_iter();
    }
    Ok(changes.into_iter().map(|change| change.or_else(|| by_sql.next()).unwrap_or_default()).collect())
}

async fn read_path_of(rankings: &Rankings, board: &Board, name: &str) -> Result<Option<ReadPath>> {
    let selector: PeriodSelector = name.parse()?;
    let Ok(PeriodResolution::Players(resolved, PeriodSource::Live(ranking))) =
        period::resolve(rankings, board, &selector).await
    else {
        return Ok(None);
    };
    rankings.indexes.read_path(board.slug.as_str(), &resolved, ranking, true).await.map(Some)
}

/// Returns a player's rank, and the rank that the player's earlier key would have now. A rank is
/// `None` if its key does not exist.
fn change(loaded: &LoadedIndex, board: &Board, user_id: u32, was: Option<(i64, i64)>) -> RankChange {
    let (index, ties) = (&loaded.index, board.ties);
    let own = index.key(user_id);
    let rank_of = |key: &RankKey| match ties {
        Ties::Shared => index.count_better(key.rank_key) + 1,
        Ties::First | Ties::Tiebreak | Ties::Second => index.count_above(key) + 1,
    };
    let previous = was.map(|(rank_key, tie_key)| {
        let was = RankKey { rank_key, tie_key, user_id };
        // The player does not count as better than the player's own earlier key.
        let stands_above = own.is_some_and(|own| match ties {
            Ties::Shared => own.rank_key > was.rank_key,
            Ties::First | Ties::Tiebreak | Ties::Second => own > was,
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
