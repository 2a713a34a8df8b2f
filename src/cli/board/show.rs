//! Boards as JSON, as rows of a table, and as descriptions.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    cli::output::{self, fields, list, thousands},
    model::board::{
        ArchivedKind, Board, BoardSlug, Buckets, GainMax, KeptArchives, Mode, OnViolation, Order, PeriodKind, Reading,
        SnapshotKind, Ties, WindowLength,
    },
    model::combination::{Aggregate, Combination, Join},
    model::name::Named as _,
    model::presentation::{Colour, Description, IconUrl, Presentation},
    model::segment::Attribute,
    model::tag::Tag,
};

/// A board as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    slug: &'a BoardSlug,
    title: &'a str,
    mode: Mode,
    order: Order,
    ties: Ties,
    periods: &'a [PeriodKind],
    lanes: i16,
    time_zone: &'a str,
    points_min: i64,
    points_max: i64,
    frozen_top_size: i32,
    kept_archives: &'a KeptArchives,
    reading: Reading,
    events_per_minute: Option<i32>,
    gain_max: &'a GainMax,
    on_violation: OnViolation,
    snapshots: Option<SnapshotKind>,
    rolling: &'a [WindowLength],
    tags: &'a BTreeSet<Tag>,
    score_format: String,
    description: Option<&'a str>,
    icon_url: Option<&'a str>,
    colour: Option<&'a str>,
    tiers: Vec<String>,
    segments: &'a [Attribute],
    buckets: Buckets,
    #[serde(skip_serializing_if = "Option::is_none")]
    combination: Option<CombinationLine<'a>>,
    created_at: DateTime<Utc>,
}

/// The computation of a combined board as JSON.
#[derive(Debug, Serialize)]
struct CombinationLine<'a> {
    join: Join,
    aggregate: Aggregate,
    sources: Vec<String>,
    refresh: String,
    as_of: Option<DateTime<Utc>>,
    failed_at: Option<DateTime<Utc>>,
    failure: Option<&'a str>,
}

impl<'a> From<&'a Combination> for CombinationLine<'a> {
    fn from(Combination { rules, as_of, failure }: &'a Combination) -> Self {
        Self {
            join: rules.join,
            aggregate: rules.aggregate,
            sources: rules.sources.iter().map(ToString::to_string).collect(),
            refresh: rules.refresh.to_string(),
            as_of: *as_of,
            failed_at: failure.as_ref().map(|(at, _)| *at),
            failure: failure.as_ref().map(|(_, detail)| detail.as_str()),
        }
    }
}

impl<'a> From<&'a Board> for Line<'a> {
    fn from(board: &'a Board) -> Self {
        Self {
            slug: &board.slug,
            title: &board.title,
            mode: board.mode,
            order: board.order,
            ties: board.ties,
            periods: &board.periods,
            lanes: board.lanes,
            time_zone: &board.time_zone,
            points_min: board.points_min,
            points_max: board.points_max,
            frozen_top_size: board.frozen_top_size,
            kept_archives: &board.kept_archives,
            reading: board.reading,
            events_per_minute: board.events_per_minute,
            gain_max: &board.gain_max,
            on_violation: board.on_violation,
            snapshots: board.snapshots,
            rolling: &board.rolling,
            tags: &board.tags,
            score_format: board.presentation.score_format.to_string(),
            description: board.presentation.description.as_ref().map(Description::as_str),
            icon_url: board.presentation.icon_url.as_ref().map(IconUrl::as_str),
            colour: board.presentation.colour.as_ref().map(Colour::as_str),
            tiers: board.tiers.iter().map(ToString::to_string).collect(),
            segments: &board.segments,
            buckets: board.buckets,
            combination: board.combination.as_ref().map(CombinationLine::from),
            created_at: board.created_at,
        }
    }
}

fn periods(board: &Board) -> String {
    list(&board.periods.iter().map(|kind| kind.name()).collect::<Vec<_>>(), "")
}

/// Lists the tags of a board; `none` for a board without tags.
fn tags(board: &Board, none: &str) -> String {
    list(&board.tags.iter().map(Tag::as_str).collect::<Vec<_>>(), none)
}

pub(super) fn row(board: &Board) -> [String; 9] {
    [
        board.slug.to_string(),
        board.title.clone(),
        board.mode.name().to_owned(),
        board.order.name().to_owned(),
        board.ties.name().to_owned(),
        periods(board),
        board.lanes.to_string(),
        board.time_zone.clone(),
        tags(board, ""),
    ]
}

/// Describes how many archives a board keeps.
fn archives(board: &Board) -> String {
    let mut limits: Vec<String> =
        board.kept_archives.iter().map(|(kind, kept)| format!("{}: newest {}", kind.name(), thousands(kept))).collect();
    if !board.rolling.is_empty() && !board.kept_archives.contains_key(&ArchivedKind::Rolling) {
        limits.push("rolling: none".to_owned());
    }
    match limits.as_slice() {
        [] => "keep all".to_owned(),
        limits => format!("{}, others: all", list(limits, "")),
    }
}

/// Describes the maximum gain of a player.
fn gains(board: &Board) -> String {
    let limits: Vec<String> =
        board.gain_max.iter().map(|(kind, most)| format!("{} per {}", thousands(most), kind.name())).collect();
    list(&limits, "no limit")
}

pub(super) fn description(board: &Board) -> String {
    let mut shown = vec![
        ("slug", board.slug.to_string()),
        ("title", board.title.clone()),
        ("mode", board.mode.name().to_owned()),
        ("order", board.order.name().to_owned()),
        ("ties", board.ties.name().to_owned()),
        ("periods", periods(board)),
        ("lanes", board.lanes.to_string()),
        ("time zone", board.time_zone.clone()),
        ("points", format!("{} to {}", thousands(board.points_min), thousands(board.points_max))),
        ("frozen top", thousands(board.frozen_top_size)),
        ("archives", archives(board)),
        ("reading", board.reading.name().to_owned()),
        (
            "events",
            board
                .events_per_minute
                .map_or_else(|| "no limit".to_owned(), |n| format!("{} per minute and player", thousands(n))),
        ),
        ("gain", gains(board)),
        ("violation", board.on_violation.name().to_owned()),
        ("snapshots", board.snapshots.map_or("none", |kind| kind.name()).to_owned()),
        ("rolling", list(&board.rolling.iter().map(ToString::to_string).collect::<Vec<_>>(), "none")),
        ("buckets", board.buckets.name().to_owned()),
        ("tags", tags(board, "none")),
        ("format", board.presentation.score_format.to_string()),
        ("created", output::time(Some(board.created_at))),
    ];
    let Presentation { description, icon_url, colour, .. } = &board.presentation;
    shown.extend(description.iter().map(|description| ("about", description.to_string())));
    shown.extend(icon_url.iter().map(|url| ("icon", url.to_string())));
    shown.extend(colour.iter().map(|colour| ("colour", colour.to_string())));
    shown.extend(board.tiers.iter().map(|tier| ("tier", tier.to_string())));
    shown.extend(board.segments.iter().map(|attribute| ("segment", attribute.to_string())));
    if let Some(Combination { rules, as_of, failure }) = &board.combination {
        let sources: Vec<String> = rules.sources.iter().map(ToString::to_string).collect();
        shown.extend([
            ("sources", sources.join(", ")),
            ("combined", format!("{} of the {}", rules.aggregate.name(), rules.join.name())),
            ("refresh", rules.refresh.to_string()),
            ("as of", as_of.map_or_else(|| "not computed yet".to_owned(), |at| output::time(Some(at)))),
        ]);
        if let Some((at, detail)) = failure {
            shown.push(("failed", format!("{}: {detail}", output::time(Some(*at)))));
        }
    }
    fields(&shown)
}
