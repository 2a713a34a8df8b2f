//! A player and the player's friends, ranked among each other.
//!
//! One statement reads their ids while a round of the rank index runs. Only the players of the page
//! get a rank among all players.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::{
    Error, Resource, Result,
    model::{
        board::Board,
        friend::FriendsOf,
        period::{Period, PeriodSelector},
        rank::{Header, LocalPage, LocalStart, PageStart},
    },
    ranking::{
        Open, Rankings,
        cursor::Cursor,
        read::{header, no_entry, of_archive, of_ranking, on_period},
    },
    store::{
        period::{PeriodSource, ResolvedPeriod},
        rank::{Group, LocalPart, LocalRows, RankingState},
    },
};

/// Returns a page of a player and the player's friends.
///
/// [`Error::NotFound`] if the player does not exist, or if the page lies around the player, who has
/// no entry.
pub async fn page(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    friends: &FriendsOf,
    start: &LocalStart,
    limit: u32,
) -> Result<LocalPage> {
    let cursor = match start {
        LocalStart::Page(PageStart::Cursor(text)) => Some(Cursor::parse(text, board, selector)?),
        _ => None,
    };
    // The cursor names its period: a cursor for `week` stays in the week of the first page.
    let selector = cursor.as_ref().map_or(selector, |cursor| &cursor.selector);
    let part = match (start, &cursor) {
        (LocalStart::Around, _) => LocalPart::Around,
        (_, Some(cursor)) => LocalPart::After(cursor.key),
        (LocalStart::Page(PageStart::Position(from)), _) => LocalPart::From(i64::try_from(*from).unwrap_or(i64::MAX)),
        (LocalStart::Page(PageStart::Cursor(_)), None) => LocalPart::From(1),
    };
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    // Read once, even if the period is looked up again.
    let known = OnceCell::new();
    let group = || known.get_or_try_init(|| group_of(rankings, friends));
    let read = |resolved: Arc<ResolvedPeriod>, source| async move {
        let found = match source {
            PeriodSource::Live(ranking) => {
                let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: false };
                open.local(group(), part, limit).await?.map(|found| of_ranking(&resolved.period, found))
            }
            PeriodSource::Archive(archive) => {
                let found = rankings.store.archive_local(&resolved, archive, group().await?, part, limit).await?;
                found.map(|found| of_archive(&resolved, found))
            }
        };
        Ok(found.map(|(header, local)| page_of(board, header, local)))
    };
    let empty = |period: Period, state: RankingState| {
        Ok(page_of(board, header(&period, &state), LocalRows { players: 0, rows: Vec::new() }))
    };
    let page = on_period(rankings, board, selector, read, empty).await?;
    // A period without scores has not read it.
    group().await?;
    if *start == LocalStart::Around && page.rows.is_empty() {
        return Err(no_entry(&friends.user_id, selector, true));
    }
    Ok(page)
}

async fn group_of(rankings: &Rankings, friends: &FriendsOf) -> Result<Group> {
    let group = rankings.store.friend_ids(friends).await?;
    group.ok_or_else(|| Error::not_found(Resource::User, friends.user_id.as_str()))
}

fn page_of(board: &Board, header: Header, local: LocalRows) -> LocalPage {
    let next = local
        .rows
        .last()
        .filter(|last| last.place < local.players)
        .map(|last| Cursor::text(board, &header.period, last.stored.key));
    let local_ranks = local.rows.iter().map(|row| row.local_rank).collect();
    let rows = local.rows.into_iter().map(|row| row.stored.row).collect();
    LocalPage { header, local_players: local.players, rows, local_ranks, next }
}
