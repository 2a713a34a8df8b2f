//! SQL of boards.

use std::str::FromStr;

use chrono::{DateTime, Utc};
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
        combination::{Aggregate, Combination, Join},
        name::Named as _,
        presentation::{Colour, Description, IconUrl, Presentation},
        tag::Tag,
        tier::Tiers,
    },
    store::{
        Store,
        combination::{self, StoredCombination},
        undamaged,
    },
};

/// A row of `centile.boards`.
struct StoredBoard {
    id: i32,
    slug: String,
    title: String,
    mode: String,
    score_order: String,
    ties: String,
    periods: Vec<String>,
    lanes: i16,
    time_zone: String,
    points_min: i64,
    points_max: i64,
    frozen_top_size: i32,
    kept_archives: String,
    reading: String,
    events_per_minute: Option<i32>,
    gain_max: String,
    on_violation: String,
    snapshots: Option<String>,
    rolling: Vec<String>,
    tags: Vec<String>,
    score_format: String,
    description: Option<String>,
    icon_url: Option<String>,
    colour: Option<String>,
    tiers: Vec<String>,
    segments: Vec<String>,
    buckets: String,
    combination: Option<Json<StoredCombination>>,
    created_at: DateTime<Utc>,
}

impl TryFrom<StoredBoard> for Board {
    type Error = Error;

    fn try_from(stored: StoredBoard) -> Result<Self> {
        let unknown = |what: &str| Error::Internal(format!("board {} has an unknown {what}", stored.slug));
        Ok(Self {
            id: stored.id,
            mode: stored.mode.parse().map_err(|_| unknown("mode"))?,
            order: stored.score_order.parse().map_err(|_| unknown("order"))?,
            ties: stored.ties.parse().map_err(|_| unknown("rule for ties"))?,
            periods: stored.periods.iter().filter_map(|name| name.parse().ok()).collect(),
            kept_archives: serde_json::from_str(&stored.kept_archives).map_err(|_| unknown("limit of archives"))?,
            reading: stored.reading.parse().map_err(|_| unknown("rule for reading"))?,
            gain_max: serde_json::from_str(&stored.gain_max).map_err(|_| unknown("limit of gains"))?,
            on_violation: stored.on_violation.parse().map_err(|_| unknown("rule for violations"))?,
            snapshots: stored
                .snapshots
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(|_| unknown("rule for snapshots"))?,
            rolling: stored
                .rolling
                .iter()
                .map(|length| length.parse())
                .collect::<Result<_>>()
                .map_err(|_| unknown("rolling window"))?,
            tags: stored.tags.iter().map(|tag| tag.parse()).collect::<Result<_>>().map_err(|_| unknown("tag"))?,
            presentation: Presentation {
                score_format: stored.score_format.parse().map_err(|_| unknown("score format"))?,
                description: shown("description", stored.description.as_deref()),
                icon_url: shown("icon", stored.icon_url.as_deref()),
                colour: shown("colour", stored.colour.as_deref()),
            },
            tiers: Tiers::parse(&stored.tiers).map_err(|_| unknown("tier"))?,
            segments: stored
                .segments
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_>>()
                .map_err(|_| unknown("segment"))?,
            buckets: stored.buckets.parse().map_err(|_| unknown("rule for buckets"))?,
            combination: stored
                .combination
                .map(|Json(combination)| Combination::try_from(combination))
                .transpose()
                .map_err(|error| Error::Internal(format!("board {}: {error}", stored.slug)))?,
            slug: stored.slug.parse().map_err(|_| unknown("form of slug"))?,
            title: stored.title,
            lanes: stored.lanes,
            time_zone: stored.time_zone,
            points_min: stored.points_min,
            points_max: stored.points_max,
            frozen_top_size: stored.frozen_top_size,
            events_per_minute: stored.events_per_minute,
            created_at: stored.created_at,
        })
    }
}

/// Parses a text that only decorates a board. Leaves out one that was written by SQL and is invalid
/// here.
fn shown<T: FromStr<Err = Error>>(what: &str, text: Option<&str>) -> Option<T> {
    text?.parse().inspect_err(|error| tracing::warn!(%error, "a board has an invalid {what}")).ok()
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
