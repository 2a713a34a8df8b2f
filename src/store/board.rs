//! SQL of boards.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::{
            Board, BoardChange, BoardFilter, BoardSlug, Buckets, Mode, NewBoard, OnViolation, Order, Reading,
            SnapshotKind, Ties,
        },
        combination::{Aggregate, Join},
        name::Named as _,
        presentation::{Colour, Description, IconUrl},
        tag::Tag,
    },
    store::{
        Store,
        combination::{self, StoredCombination},
        undamaged,
    },
};

/// A row of `centile.boards`, as JSON.
struct StoredBoard {
    slug: String,
    rules: String,
    combination: Option<Json<StoredCombination>>,
}

impl TryFrom<StoredBoard> for Board {
    type Error = Error;

    fn try_from(StoredBoard { slug, rules, combination }: StoredBoard) -> Result<Self> {
        let damaged = |error: &dyn Display| Error::Internal(format!("board {slug} is damaged: {error}"));
        let board: Self = serde_json::from_str(&rules).map_err(|error| damaged(&error))?;
        let combination = combination.map(|Json(combination)| combination.try_into()).transpose();
        Ok(Self { combination: combination.map_err(|error: Error| damaged(&error))?, ..board })
    }
}

/// Returns the text that changes a value in `centile.update_board`: an empty one removes it.
fn changed_text<T: ToString>(value: Option<&Option<T>>) -> Option<String> {
    value.map(|value| value.as_ref().map(ToString::to_string).unwrap_or_default())
}

fn json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|error| Error::Internal(format!("cannot be serialized as JSON: {error}")))
}

fn texts<'a, T: ToString + 'a>(items: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    items.into_iter().map(ToString::to_string).collect()
}

impl Store {
    /// Returns the selected boards by slug, without damaged ones, and the slug of the last row if the
    /// limit leaves out further boards.
    pub(crate) async fn boards(&self, filter: BoardFilter<'_>) -> Result<(Vec<Board>, Option<String>)> {
        let mut rows = self.stored_boards(None, filter).await?;
        let is_last = filter.limit.is_none_or(|limit| rows.len() <= limit);
        rows.truncate(filter.limit.unwrap_or(usize::MAX));
        let next = rows.last().filter(|_| !is_last).map(|row| row.slug.clone());
        let boards = rows.into_iter().map(|row| (format!("board {}", row.slug), Board::try_from(row)));
        Ok((undamaged(boards), next))
    }

    /// Returns the board with this slug.
    pub(crate) async fn board(&self, slug: &BoardSlug) -> Result<Option<Board>> {
        let mut rows = self.stored_boards(Some(slug), BoardFilter::default()).await?;
        rows.pop().map(Board::try_from).transpose()
    }

    /// Returns the row of one board, or those of the selected boards and of the next one.
    async fn stored_boards(&self, slug: Option<&BoardSlug>, filter: BoardFilter<'_>) -> Result<Vec<StoredBoard>> {
        let readable = filter.readable.map(texts);
        let query = sqlx::query_file_as!(
            StoredBoard,
            "sql/queries/boards.sql",
            slug.map(BoardSlug::as_str),
            filter.tag.map(Tag::as_str),
            filter.after.map_or("", BoardSlug::as_str),
            readable.as_deref(),
            filter.limit.map(|limit| i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1))),
        );
        self.read_coordinator(query.fetch_all(&self.readers)).await
    }

    /// Returns id and slug of the boards that have events. Reads from the primary, which knows all of
    /// them.
    pub(crate) async fn boards_with_events(&self) -> Result<Vec<(i32, String)>> {
        let boards = sqlx::query!("SELECT id, slug FROM centile_store.boards WHERE mode <> 'combined' ORDER BY slug")
            .fetch_all(&self.writers)
            .await?;
        Ok(boards.into_iter().map(|board| (board.id, board.slug)).collect())
    }

    /// Returns a board that requires a key and is none of these.
    pub(crate) async fn private_board(&self, but: &[BoardSlug]) -> Result<Option<BoardSlug>> {
        let query = sqlx::query_scalar!(
            "SELECT slug FROM centile_store.boards WHERE reading = 'key' AND slug <> ALL ($1) LIMIT 1",
            &texts(but)
        );
        self.read_coordinator(query.fetch_optional(&self.readers)).await?.map(|slug| slug.parse()).transpose()
    }

    pub(crate) async fn create_board(
        &self,
        new: &NewBoard,
        lanes: i16,
        layout_bounds: &[i64],
        by: &Actor,
    ) -> Result<()> {
        if let Some(combination) = &new.combination {
            sqlx::query!(
                "SELECT centile.combine_board($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
                new.slug.as_str(),
                combination::json(&combination.sources),
                combination.join.name(),
                combination.aggregate.name(),
                combination.refresh.to_string(),
                new.title,
                new.order.name(),
                new.ties.name(),
                new.time_zone,
                new.reading.name(),
                new.frozen_top_size,
                by.as_str(),
                &texts(&new.tags),
                new.presentation.score_format.to_string(),
                new.presentation.description.as_ref().map(Description::as_str),
                new.presentation.icon_url.as_ref().map(IconUrl::as_str),
                new.presentation.colour.as_ref().map(Colour::as_str),
                &texts(&new.tiers),
            )
            .fetch_one(&self.writers)
            .await?;
            return Ok(());
        }
        let periods: Vec<String> = new.periods.iter().map(|kind| kind.name().to_owned()).collect();
        sqlx::query!(
            "SELECT centile.create_board($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)",
            new.slug.as_str(),
            new.title,
            new.mode.name(),
            new.order.name(),
            new.ties.name(),
            &periods,
            lanes,
            new.time_zone,
            new.points_min,
            new.points_max,
            layout_bounds,
            new.frozen_top_size,
            json(&new.kept_archives)?,
            new.reading.name(),
            new.events_per_minute,
            json(&new.gain_max)?,
            new.on_violation.name(),
            new.snapshots.map(SnapshotKind::name),
            &texts(&new.rolling),
            by.as_str(),
            &texts(&new.tags),
            new.presentation.score_format.to_string(),
            new.presentation.description.as_ref().map(Description::as_str),
            new.presentation.icon_url.as_ref().map(IconUrl::as_str),
            new.presentation.colour.as_ref().map(Colour::as_str),
            &texts(&new.tiers),
            &texts(&new.segments),
            new.buckets.name(),
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(())
    }

    pub(crate) async fn update_board(&self, slug: &str, change: &BoardChange, by: &Actor) -> Result<()> {
        let rolling = change.rolling.as_ref().map(texts);
        let tags = change.tags.as_ref().map(texts);
        let tiers = change.tiers.as_ref().map(texts);
        let segments = change.segments.as_ref().map(texts);
        let presentation = &change.presentation;
        let combination = change.combination.as_ref();
        sqlx::query!(
            "SELECT centile.update_board($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $24, $25, $26, $27, $28, $29, $30, $31),
                    CASE WHEN $19 THEN centile.change_combination($1, $20, $21, $22, $23, $18) END",
            slug,
            change.title,
            change.mode.map(Mode::name),
            change.order.map(Order::name),
            change.ties.map(Ties::name),
            change.lanes,
            change.time_zone,
            change.points_min,
            change.points_max,
            change.frozen_top_size,
            json(&change.kept_archives)?,
            change.reading.map(Reading::name),
            // 0 removes the limit.
            change.events_per_minute.map(Option::unwrap_or_default),
            json(&change.gain_max)?,
            change.on_violation.map(OnViolation::name),
            // `none` removes the snapshots.
            change.snapshots.map(|kind| kind.map_or("none", SnapshotKind::name)),
            rolling.as_deref(),
            by.as_str(),
            combination.is_some(),
            combination.and_then(|combination| combination.sources.as_deref()).map(combination::json),
            combination.and_then(|combination| combination.join).map(Join::name),
            combination.and_then(|combination| combination.aggregate).map(Aggregate::name),
            combination.and_then(|combination| combination.refresh.as_ref()).map(ToString::to_string),
            tags.as_deref(),
            presentation.score_format.as_ref().map(ToString::to_string),
            changed_text(presentation.description.as_ref()),
            changed_text(presentation.icon_url.as_ref()),
            changed_text(presentation.colour.as_ref()),
            tiers.as_deref(),
            segments.as_deref(),
            change.buckets.map(Buckets::name),
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(())
    }
}
