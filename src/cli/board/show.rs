//! Boards as rows of a table, and as descriptions.

use crate::{
    cli::output::{self, fields, list, thousands},
    model::board::{ArchivedKind, Board},
    model::combination::{Combination, CombinationFailure},
    model::name::Named as _,
    model::presentation::Presentation,
    model::tag::Tag,
};

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
    if let Some(Combination { join, aggregate, sources, refresh, as_of, failure }) = &board.combination {
        let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
        shown.extend([
            ("sources", sources.join(", ")),
            ("combined", format!("{} of the {}", aggregate.name(), join.name())),
            ("refresh", refresh.to_string()),
            ("as of", as_of.map_or_else(|| "not computed yet".to_owned(), |at| output::time(Some(at)))),
        ]);
        if let Some(CombinationFailure { at, detail }) = failure {
            shown.push(("failed", format!("{}: {detail}", output::time(Some(*at)))));
        }
    }
    fields(&shown)
}
