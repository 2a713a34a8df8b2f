//! Boards as rows of a table, and as descriptions.

use serde_json::Value;

use crate::{
    Error, Result,
    cli::output::{self, fields, list, thousands},
    http::api::board::BoardResponse,
    model::board::{ArchivedKind, Board},
    model::combination::{Combination, CombinationFailure},
    model::name::Named as _,
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
        board.limits.lanes.to_string(),
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

/// Writes a value for people; an empty one is `none`.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => thousands(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(&items.iter().map(text).collect::<Vec<_>>(), "none"),
        Value::Object(members) => {
            list(&members.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect::<Vec<_>>(), "none")
        }
    }
}

/// Lists the settings of a board by their names in the HTTP API.
pub(super) fn description(board: &Board) -> Result<String> {
    let settings = serde_json::to_value(BoardResponse::from(board))
        .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
    let settings = settings.as_object().into_iter().flatten().filter(|(name, _)| *name != "combination");
    let value = |name: &str, value: &Value| match (name, text(value).as_str()) {
        ("kept_archives", _) => archives(board),
        ("events_per_minute" | "gain_max", "none") => "no limit".to_owned(),
        (_, text) => text.to_owned(),
    };
    let mut shown: Vec<_> = settings.map(|(name, set)| (name.as_str(), value(name, set))).collect();
    shown.sort_by_key(|(name, _)| (*name != "slug", *name != "title"));
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
    Ok(fields(&shown))
}
