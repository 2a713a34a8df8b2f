//! Charts of the buckets of a board's rankings.

use maud::{Markup, html};

use crate::{
    http::pages::{
        number::{count, decimal, grouped, number},
        ops::operation::Stored,
    },
    maintenance::rebalance::UNIT_MIN,
    model::operation::BucketStatus,
};

/// Size of a chart, in units that scale with the page.
const WIDTH: f64 = 400.0;

const HEIGHT: f64 = 100.0;

/// Minimum height of a bucket with players.
const LEAST: f64 = 1.5;

/// The buckets of the selected board's rankings.
pub(super) fn section(stored: &Stored) -> Markup {
    let Some((selected, buckets)) = &stored.selected else { return html! {} };
    let is_same = |one: &BucketStatus, other: &BucketStatus| (&one.kind, &one.label) == (&other.kind, &other.label);
    html! {
        section #buckets {
            h2 { "Buckets of board " (selected) }
            nav.boards-of aria-label="Board" {
                ul {
                    @for board in &stored.boards {
                        li { a href={ "?board=" (board.slug) "#buckets" } aria-current=[(board.slug == *selected).then_some("true")] { (board.slug) } }
                    }
                }
            }
            @if buckets.is_empty() { p.empty { "None of its periods has players." } }
            @else { p.quiet { "Worst scores on the left. The line marks the height of even buckets." } }
            div.rankings { @for ranking in buckets.chunk_by(is_same) { (bars(ranking)) } }
        }
    }
}

/// The buckets of a ranking as bars, worst scores on the left. A line marks the height of even
/// buckets.
fn bars(buckets: &[BucketStatus]) -> Markup {
    let Some(first) = buckets.first() else { return html! {} };
    let name = if first.kind == "all_time" { first.kind.clone() } else { format!("{}:{}", first.kind, first.label) };
    let players: i64 = buckets.iter().map(|bucket| bucket.players).sum();
    let used = buckets.iter().filter(|bucket| bucket.players > 0).count();
    let fullest = buckets.iter().map(|bucket| bucket.players).max().unwrap_or(0);
    let unit = (players as f64 / buckets.len() as f64).max(UNIT_MIN as f64);
    let width = WIDTH / buckets.len() as f64;
    let highest = (fullest as f64).max(1.0);
    html! {
        figure.buckets {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                aria-label={ (name) ": " (used) " of " (buckets.len()) " buckets have players, the fullest " (grouped(fullest)) } {
                @for (place, bucket) in buckets.iter().enumerate() {
                    @let height = if bucket.players > 0 { (HEIGHT * bucket.players as f64 / highest).max(LEAST) } else { 0.0 };
                    rect x=(decimal(place as f64 * width + width * 0.06)) y=(decimal(HEIGHT - height)) width=(decimal(width * 0.88)) height=(decimal(height)) {
                        title {
                            "bucket " (bucket.bucket) ": " (grouped(bucket.players)) " players"
                            @if let Some(from) = bucket.from_score { ", from score " (grouped(from)) }
                            @if let Some(to) = bucket.to_score { " to " (grouped(to)) }
                        }
                    }
                }
                @if unit <= highest {
                    @let y = decimal(HEIGHT - HEIGHT * unit / highest);
                    line.here x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                }
            }
            figcaption {
                strong { (name) }
                span { (number(players)) " players" }
                span { (count(used as u64)) " buckets" }
                span { "fullest " (number(fullest)) @if players > 0 { " (" (decimal(fullest as f64 / unit)) " × the even size)" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_as_high_as_it_is_full() {
        let bucket = |bucket: i16, players: i64| BucketStatus {
            kind: "week".into(),
            label: "2024-01-15".into(),
            bucket,
            players,
            from_score: None,
            to_score: None,
        };
        let text = bars(&[bucket(0, 0), bucket(1, 20), bucket(2, 2_000), bucket(3, 1_980)]).into_string();
        let heights: Vec<&str> =
            text.split(" height=\"").skip(1).map(|part| part.split('"').next().unwrap_or_default()).collect();
        assert_eq!(heights, ["0", "1.5", "100", "99"]);
        assert!(text.contains("y1=\"50\""), "a unit of 1,000 players is half of the fullest: {text}");
        assert!(text.contains("3 of 4 buckets have players"), "{text}");
    }
}
