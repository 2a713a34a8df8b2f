//! `centile board`: boards and their rules.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;

use crate::{
    Error, Result, boards,
    cli::{
        by::By,
        output::{self, fields, list, table, thousands},
        with_instance,
    },
    config::{Config, value},
    model::board::{
        ArchivedKind, Board, BoardChange, BoardSlug, DEFAULT_FROZEN_TOP_SIZE, DEFAULT_PERIODS, DEFAULT_POINTS_BOUND,
        EVENTS_PER_MINUTE_MAX, FROZEN_TOP_MAX, FirstLayout, GainMax, KEPT_ARCHIVES_MAX, KeptArchives, Mode, NewBoard,
        OnViolation, Order, PeriodKind, Reading, Ties,
    },
};

/// What can be done with boards.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a board
    Create(Create),
    /// Change a board: its title, its rules for events, what is kept of its closed periods, who may read it
    Change(Change),
    /// List all boards
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the rules of a board
    Show {
        /// Its name in URLs
        #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
        slug: BoardSlug,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The rules of a new board.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name in URLs: 1 to 40 lower-case letters, digits, `-` and `_`, beginning with a letter
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    /// Title for people; the slug unless given
    #[arg(long)]
    title: Option<String>,
    /// How a player's score in a period follows from the events
    #[arg(long, value_enum, default_value = "sum")]
    mode: Mode,
    /// Which scores are better
    #[arg(long, value_enum, default_value = "desc")]
    order: Order,
    /// What becomes of equal scores
    #[arg(long, value_enum, default_value = "shared")]
    ties: Ties,
    /// The kinds of period kept, with commas between
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',', default_values_t = DEFAULT_PERIODS)]
    periods: Vec<PeriodKind>,
    /// Writer lanes, 1 to 64; by the number of cores unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..=64))]
    lanes: Option<i16>,
    /// IANA time zone in which days, weeks and months begin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// Least points an event may carry
    #[arg(long, value_name = "POINTS", default_value_t = -DEFAULT_POINTS_BOUND, allow_negative_numbers = true)]
    points_min: i64,
    /// Most points an event may carry
    #[arg(long, value_name = "POINTS", default_value_t = DEFAULT_POINTS_BOUND, allow_negative_numbers = true)]
    points_max: i64,
    /// Scores between which the first ranges of a new ranking lie, ascending, with commas between; up to 99
    #[arg(long, value_name = "SCORES", value_delimiter = ',', allow_hyphen_values = true)]
    layout_bounds: Vec<i64>,
    /// Score up to which a new ranking begins with 100 ranges of equal width
    #[arg(long, value_name = "SCORE", conflicts_with = "layout_bounds", allow_negative_numbers = true)]
    expected_points: Option<i64>,
    /// Players in the top that is kept for good of each closed period, 1 to 1000
    #[arg(long = "frozen-top", value_name = "N", default_value_t = DEFAULT_FROZEN_TOP_SIZE)]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=i64::from(FROZEN_TOP_MAX)))]
    frozen_top_size: i32,
    /// How many closed periods of a kind keep their archive, such as week=52; again for each kind, all unless given
    #[arg(long = "keep", value_name = "KIND=N", value_parser = kept)]
    kept_archives: Vec<(ArchivedKind, Option<i32>)>,
    /// Who may read it; `key` asks for a reader, server or admin key
    #[arg(long, value_enum, default_value = "public")]
    reading: Reading,
    /// Most events of a player in any 60 seconds, 1 to 10000; any number unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=i64::from(EVENTS_PER_MINUTE_MAX)))]
    events_per_minute: Option<i32>,
    /// The most that a player may gain in a period of a kind, such as day=5000; again for each kind, anything unless given
    #[arg(long = "gain-max", value_name = "KIND=POINTS", value_parser = gain)]
    gain_max: Vec<(PeriodKind, Option<i64>)>,
    /// What becomes of an event that breaks the bounds of points or one of these two; `quarantine` keeps it until it is decided
    #[arg(long, value_enum, default_value = "refuse")]
    on_violation: OnViolation,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// What is to change.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").required(true).multiple(true)
    .args(["title", "points_min", "points_max", "frozen_top_size", "kept_archives", "reading", "events_per_minute", "gain_max",
           "on_violation"])))]
pub(super) struct Change {
    /// The board's name in URLs
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    /// New title for people
    #[arg(long)]
    title: Option<String>,
    /// New least points an event may carry
    #[arg(long, value_name = "POINTS", allow_negative_numbers = true)]
    points_min: Option<i64>,
    /// New most points an event may carry
    #[arg(long, value_name = "POINTS", allow_negative_numbers = true)]
    points_max: Option<i64>,
    /// Players in the top that is kept for good of each period closed from now on, 1 to 1000
    #[arg(long = "frozen-top", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=i64::from(FROZEN_TOP_MAX)))]
    frozen_top_size: Option<i32>,
    /// How many closed periods of a kind keep their archive, such as week=52, or week=all; again for each kind
    #[arg(long = "keep", value_name = "KIND=N", value_parser = kept)]
    kept_archives: Vec<(ArchivedKind, Option<i32>)>,
    /// Who may read it from now on
    #[arg(long, value_enum)]
    reading: Option<Reading>,
    /// Most events of a player in any 60 seconds, 1 to 10000, or none for any number again
    #[arg(long, value_name = "N", value_parser = events_per_minute)]
    events_per_minute: Option<EventsPerMinute>,
    /// The most that a player may gain in a period of a kind, such as day=5000, or day=none; again for each kind
    #[arg(long = "gain-max", value_name = "KIND=POINTS", value_parser = gain)]
    gain_max: Vec<(PeriodKind, Option<i64>)>,
    /// What becomes of an event that breaks a rule from now on
    #[arg(long, value_enum)]
    on_violation: Option<OnViolation>,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// Reads how many archives of a kind are kept; `all` is no number.
fn kept(text: &str) -> Result<(ArchivedKind, Option<i32>), String> {
    let (kind, number) = text.split_once('=').ok_or("give a kind and a number, such as week=52, or week=all")?;
    let kind = ArchivedKind::from_name(kind).ok_or_else(|| format!("{kind:?} is not day, week, month or season"))?;
    if number == "all" {
        return Ok((kind, None));
    }
    let number = number.parse().ok().filter(|number| (1..=KEPT_ARCHIVES_MAX).contains(number));
    Ok((kind, Some(number.ok_or(format!("give all, or a number from 1 to {KEPT_ARCHIVES_MAX}"))?)))
}

/// Refuses a kind that is given twice: one of the two would be lost.
fn once_each<K: Ord, V>(flag: &str, given: Vec<(K, V)>) -> Result<BTreeMap<K, V>> {
    let count = given.len();
    let once: BTreeMap<_, _> = given.into_iter().collect();
    if once.len() == count { Ok(once) } else { Err(Error::invalid(flag, "names a kind twice")) }
}

/// How many events of a player a board takes; `None` for any number.
#[derive(Debug, Clone, Copy)]
struct EventsPerMinute(Option<i32>);

/// Reads how many events of a player are taken; `none` is no number.
fn events_per_minute(text: &str) -> Result<EventsPerMinute, String> {
    if text == "none" {
        return Ok(EventsPerMinute(None));
    }
    let number = text.parse().ok().filter(|number| (1..=EVENTS_PER_MINUTE_MAX).contains(number));
    number
        .map(|number| EventsPerMinute(Some(number)))
        .ok_or(format!("give none, or a number from 1 to {EVENTS_PER_MINUTE_MAX}"))
}

/// Reads what a player may gain in a period of a kind; `none` is no limit.
fn gain(text: &str) -> Result<(PeriodKind, Option<i64>), String> {
    let (kind, number) = text.split_once('=').ok_or("give a kind and a number, such as day=5000, or day=none")?;
    let kind =
        PeriodKind::from_name(kind).ok_or_else(|| format!("{kind:?} is not all_time, day, week, month or season"))?;
    if number == "none" {
        return Ok((kind, None));
    }
    let number = number.parse().ok().filter(|number| (1..=DEFAULT_POINTS_BOUND).contains(number));
    Ok((kind, Some(number.ok_or(format!("give none, or a number from 1 to {DEFAULT_POINTS_BOUND}"))?)))
}

/// Does what `command` says.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
            let json = create.json;
            let board = with_instance(config, async |instance| make(instance, create).await).await?;
            if json {
                output::print_json(&Line::from(&board))
            } else {
                output::print(format!("board {} made", board.slug))
            }
        }
        Command::Change(change) => {
            let (slug, json, by) = (change.slug, change.json, change.by.actor()?);
            let change = BoardChange {
                title: change.title,
                points_min: change.points_min,
                points_max: change.points_max,
                frozen_top_size: change.frozen_top_size,
                kept_archives: once_each("kept_archives", change.kept_archives)?,
                reading: change.reading,
                events_per_minute: change.events_per_minute.map(|EventsPerMinute(events)| events),
                gain_max: once_each("gain_max", change.gain_max)?,
                on_violation: change.on_violation,
                ..BoardChange::default()
            };
            let board =
                with_instance(config, async |instance| boards::update(&instance.boards, &slug, change, &by).await)
                    .await?;
            if json { output::print_json(&Line::from(&board)) } else { output::print(format!("board {slug} changed")) }
        }
        Command::List { json } => {
            let boards = with_instance(config, async |instance| boards::list(&instance.store).await).await?;
            if json {
                return output::print_json(&boards.iter().map(Line::from).collect::<Vec<_>>());
            }
            if boards.is_empty() {
                output::note("There are no boards yet: centile board create SLUG");
            }
            let head = ["SLUG", "TITLE", "MODE", "ORDER", "TIES", "PERIODS", "LANES", "TIME ZONE"];
            output::print(table(head, boards.iter().map(row).collect()))
        }
        Command::Show { slug, json } => {
            let board = with_instance(config, async |instance| boards::find(&instance.boards, &slug).await).await?;
            if json { output::print_json(&Line::from(&*board)) } else { output::print(description(&board)) }
        }
    }
}

async fn make(instance: &crate::instance::Instance, create: Create) -> Result<Board> {
    let by = create.by.actor()?;
    let layout_flag = if create.expected_points.is_some() { "expected_points" } else { "layout_bounds" };
    let bounds = Some(create.layout_bounds).filter(|bounds| !bounds.is_empty()).map(FirstLayout::Bounds);
    let new = NewBoard {
        slug: create.slug,
        title: create.title,
        mode: create.mode,
        order: create.order,
        ties: create.ties,
        periods: create.periods,
        lanes: create.lanes,
        time_zone: create.time_zone,
        points_min: create.points_min,
        points_max: create.points_max,
        first_layout: create.expected_points.map(FirstLayout::ExpectedPoints).or(bounds),
        frozen_top_size: create.frozen_top_size,
        // All is what a new board keeps anyway.
        kept_archives: once_each("kept_archives", create.kept_archives)?
            .into_iter()
            .filter_map(|(kind, kept)| Some((kind, kept?)))
            .collect(),
        reading: create.reading,
        events_per_minute: create.events_per_minute,
        gain_max: once_each("gain_max", create.gain_max)?
            .into_iter()
            .filter_map(|(kind, most)| Some((kind, most?)))
            .collect(),
        on_violation: create.on_violation,
    };
    boards::create(&instance.boards, new, &by).await.map_err(|error| match error {
        Error::Invalid { field, message } if field.starts_with("first_layout") => Error::invalid(layout_flag, message),
        other => other,
    })
}

/// A board as JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
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
    created_at: DateTime<Utc>,
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
            created_at: board.created_at,
        }
    }
}

fn periods(board: &Board) -> String {
    list(&board.periods.iter().map(|kind| kind.name()).collect::<Vec<_>>(), "")
}

fn row(board: &Board) -> [String; 8] {
    [
        board.slug.to_string(),
        board.title.clone(),
        board.mode.name().to_owned(),
        board.order.name().to_owned(),
        board.ties.name().to_owned(),
        periods(board),
        board.lanes.to_string(),
        board.time_zone.clone(),
    ]
}

/// How many archives are kept.
fn archives(board: &Board) -> String {
    let limits: Vec<String> = board
        .kept_archives
        .iter()
        .map(|(kind, kept)| format!("the last {} of kind {}", thousands(kept), kind.name()))
        .collect();
    match limits.as_slice() {
        [] => "all are kept".to_owned(),
        limits => format!("{}, all others", list(limits, "")),
    }
}

/// What a player may gain.
fn gains(board: &Board) -> String {
    let limits: Vec<String> =
        board.gain_max.iter().map(|(kind, most)| format!("{} in {}", thousands(most), kind.name())).collect();
    list(&limits, "any")
}

fn description(board: &Board) -> String {
    fields(&[
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
                .map_or_else(|| "any number".to_owned(), |n| format!("{} per minute and player", thousands(n))),
        ),
        ("gain", gains(board)),
        ("violation", board.on_violation.name().to_owned()),
        ("made", output::time(Some(board.created_at))),
    ])
}
