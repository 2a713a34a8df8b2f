//! Kinds of requests in the cells.

use clap::ValueEnum;
use serde::Serialize;

use crate::system::BOARD;

/// Events per bulk request.
pub const BULK: u64 = 1_000;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// Rank of a random player, 32 connections
    Rank,
    /// The same with four neighbours on each side
    Around,
    /// The first ten
    Top,
    /// Ten from rank 500,000, or from the middle; the same for all callers
    Page,
    /// Ten from a random position
    Pages,
    /// One score at a time, one caller
    One,
    /// Scores from 256 callers
    Many,
    /// 1,000 scores per request, four callers
    Bulk,
}

impl Cell {
    pub fn title(self) -> &'static str {
        match self {
            Self::Rank => "rank of a random player",
            Self::Around => "a random player with ±4",
            Self::Top => "top 10",
            Self::Page => "one page far down",
            Self::Pages => "pages anywhere",
            Self::One => "scores, 1 caller",
            Self::Many => "scores, 256 callers",
            Self::Bulk => "scores, bulks of 1,000",
        }
    }

    pub fn connections(self) -> u32 {
        match self {
            Self::Rank | Self::Around | Self::Top | Self::Page | Self::Pages => 32,
            Self::One => 1,
            Self::Many => 256,
            Self::Bulk => 4,
        }
    }

    pub fn writes(self) -> bool {
        matches!(self, Self::One | Self::Many | Self::Bulk)
    }

    /// Returns the number of results that a request counts for.
    pub fn weight(self) -> f64 {
        if self == Self::Bulk { BULK as f64 } else { 1.0 }
    }

    /// Returns whether requests differ.
    pub fn varies(self) -> bool {
        !matches!(self, Self::Top | Self::Page)
    }

    /// Returns the request as a Lua expression.
    pub fn request(self, players: u64, page: u64) -> String {
        let scores = format!("/v1/boards/{BOARD}/scores");
        let event = format!(
            r#"'{{"user_id":"player-' .. math.random({players}) .. '","points":' .. math.random(0, 1000) .. '}}'"#
        );
        match self {
            Self::Rank => format!(
                "wrk.format('GET', '{scores}/player-' .. math.random({players}) .. '?around=0&period=all_time')"
            ),
            Self::Around => format!(
                "wrk.format('GET', '{scores}/player-' .. math.random({players}) .. '?around=4&period=all_time')"
            ),
            Self::Top => format!("wrk.format('GET', '{scores}?limit=10')"),
            Self::Page => format!("wrk.format('GET', '{scores}?from={page}&limit=10')"),
            Self::Pages => format!("wrk.format('GET', '{scores}?from=' .. math.random({players}) .. '&limit=10')"),
            Self::One | Self::Many => format!("wrk.format('POST', '{scores}', nil, {event})"),
            Self::Bulk => format!(
                r#"(function()
    local events = {{}}
    for n = 1, {BULK} do events[n] = {event} end
    return wrk.format('POST', '{scores}/batch', nil, '{{"events":[' .. table.concat(events, ',') .. ']}}')
  end)()"#
            ),
        }
    }
}
