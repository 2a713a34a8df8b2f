//! Adds metadata of score events, and of players, to rows that were just read.
//!
//! A row shows the metadata of the event that decides its score. The ledger keeps this event, so a
//! later statement still finds it, unless it has been voided in between. Then the row may show no
//! metadata, or those of an equal event.

use crate::{
    Result,
    model::{
        board::Board,
        rank::{Header, Row},
    },
    ranking::rankings::Rankings,
    store::{score::ShownEntry, user::PublicMembers},
};

/// Adds metadata to rows of an answer about `board` with this header.
pub(crate) async fn add<'a>(
    rankings: &Rankings,
    board: &Board,
    header: &Header,
    rows: impl IntoIterator<Item = &'a mut Row>,
) -> Result<()> {
    add_all(rankings, rows.into_iter().map(|row| (board, header, row)).collect()).await
}

/// Adds metadata to rows of any boards, each with the header of its answer, with one statement.
pub(crate) async fn add_all(rankings: &Rankings, rows: Vec<(&Board, &Header, &mut Row)>) -> Result<()> {
    let entries: Vec<ShownEntry<'_>> = rows.iter().map(|(board, header, row)| entry(board, header, row)).collect();
    let found = rankings.reader.entry_metadata(&entries).await?;
    for ((_, _, row), metadata) in rows.into_iter().zip(found) {
        row.metadata = Some(metadata);
    }
    Ok(())
}

/// Adds the public members of the players' profiles to rows, with one statement.
pub(crate) async fn add_profiles<'a>(
    rankings: &Rankings,
    public: &PublicMembers<'_>,
    rows: impl IntoIterator<Item = &'a mut Row>,
) -> Result<()> {
    let rows: Vec<&mut Row> = rows.into_iter().collect();
    let users: Vec<&str> = rows.iter().map(|row| &*row.user_id).collect();
    let profiles = match public.names {
        [] => vec![None; rows.len()],
        _ => rankings.reader.public_profiles(&users, public).await?,
    };
    for (row, profile) in rows.into_iter().zip(profiles) {
        row.profile = Some(profile);
    }
    Ok(())
}

fn entry<'a>(board: &Board, header: &'a Header, row: &'a Row) -> ShownEntry<'a> {
    ShownEntry {
        board_id: board.id,
        period: &header.period,
        user_id: &row.user_id,
        score: row.score,
        reached_at: row.reached_at,
        tiebreak: row.tiebreak,
    }
}
