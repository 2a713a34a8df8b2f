//! Times pure computation of requests, without servers. `make bench-computation` runs it.

use std::{error::Error, hint::black_box};

use centile::{
    tested,
    timed::{
        self, AnsweredBy, Board, Header, Limits, Page, Period, PeriodKind, PeriodSelector, PeriodState, Row, UserId,
    },
};
use chrono::{DateTime, Utc};
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    let board = board()?;
    keys(&mut criterion, &board)?;
    lanes(&mut criterion, &board)?;
    tops(&mut criterion, &board)?;
    criterion.final_summary();
    Ok(())
}

/// Packs rank keys into cursors and back.
fn keys(criterion: &mut Criterion, board: &Board) -> Result<(), Box<dyn Error>> {
    let (period, selector) = (period(), PeriodSelector::default());
    let key = [1_234_567, (1 << 50) + 12_345, 7_654_321];
    let cursor = timed::pack_key(board, &period, key);
    if timed::unpack_key(&cursor, board, &selector)? != key {
        return Err("a key changed by packing".into());
    }
    let mut group = criterion.benchmark_group("keys");
    group.bench_function("pack", |bencher| bencher.iter(|| timed::pack_key(board, &period, black_box(key))));
    group.bench_function("unpack", |bencher| bencher.iter(|| timed::unpack_key(black_box(&cursor), board, &selector)));
    group.finish();
    Ok(())
}

/// Computes the lane of a player.
fn lanes(criterion: &mut Criterion, board: &Board) -> Result<(), Box<dyn Error>> {
    let player: UserId = "player-1234567".parse()?;
    criterion.bench_function("lane", |bencher| bencher.iter(|| timed::lane_of(black_box(&player), board)));
    Ok(())
}

/// Renders top lists as JSON.
fn tops(criterion: &mut Criterion, board: &Board) -> Result<(), Box<dyn Error>> {
    let mut group = criterion.benchmark_group("tops");
    for size in [10, 100, 1_000] {
        let page = page(size);
        group.throughput(Throughput::Bytes(timed::top_body(board, &page)?.len() as u64));
        group.bench_with_input(BenchmarkId::new("body", size), &page, |bencher, page| {
            bencher.iter(|| timed::top_body(board, black_box(page)));
        });
    }
    group.finish();
    Ok(())
}

fn board() -> Result<Board, Box<dyn Error>> {
    let board = tested::board("arena")?;
    Ok(Board {
        periods: vec![PeriodKind::AllTime, PeriodKind::Week, PeriodKind::Month],
        limits: Limits { lanes: 4, points_min: -1_000_000, points_max: 1_000_000, ..board.limits },
        ..board
    })
}

fn period() -> Period {
    Period {
        kind: PeriodKind::AllTime,
        label: "all_time".to_owned(),
        starts_at: None,
        ends_at: None,
        state: PeriodState::Open,
        segment: None,
    }
}

fn page(size: u64) -> Page {
    let row = |position| Row {
        position,
        rank: position,
        user_id: format!("player-{position}"),
        user_name: format!("Player {position}"),
        avatar: None,
        score: 1_000_000,
        reached_at: Some(DateTime::<Utc>::UNIX_EPOCH),
        tiebreak: None,
        metadata: None,
        profile: None,
    };
    let version = "4288b18ab3c2.22841e5fd0c1a3b7".to_owned();
    Page {
        header: Header {
            period: period(),
            version,
            players: 1_000_000,
            etag: None,
            answered_by: AnsweredBy::Index,
            combined: None,
            tiers: None,
        },
        rows: (1..=size).map(row).collect(),
        next: None,
    }
}
