//! A player and the player's friends, ranked among each other.
//!
//! One statement reads their ids while a round of the rank index runs. Only the players of the page
//! get a rank among all players.

use tokio::sync::OnceCell;

use crate::{
    Error, Resource, Result,
    model::{
        board::Board,
        friend::FriendsOf,
        period::PeriodSelector,
        rank::{Header, LocalPage, LocalStart, PageStart},
    },
    ranking::{cursor::Cursor, rankings::Rankings, read::no_entry, source},
    store::rank::{LocalPart, LocalRows, PlayerGroup},
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
    let page = source::with_source(rankings, board, selector, false, |source| async move {
        let (state, local) = source.local(group().await?, part, limit).await?;
        Ok(page_of(board, source.header(&state), local))
    });
    // Reads the group during the round.
    let (page, _) = tokio::try_join!(page, group())?;
    if *start == LocalStart::Around && page.rows.is_empty() {
        return Err(no_entry(&friends.user_id, selector, true));
    }
    Ok(page)
}

async fn group_of(rankings: &Rankings, friends: &FriendsOf) -> Result<PlayerGroup> {
    let group = rankings.reader.friend_ids(friends).await?;
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
