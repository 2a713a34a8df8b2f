//! `centile board`: boards and their rules.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    output::{self, fields, list, table, thousands},
    with_service,
};
use crate::{
    Error, Result,
    board::{
        self, Board, BoardSlug, DEFAULT_PERIODS, DEFAULT_POINTS_BOUND, FirstLayout, Mode, NewBoard, Order, PeriodKind,
        Ties,
    },
    config::{Config, value},
};

/// What can be done with boards.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a board
    Create(Create),
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
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
}

/// Does what `command` says.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
            let json = create.json;
            let board = with_service(config, async |service| make(service, create).await).await?;
            if json {
                output::print_json(&Line::from(&board))
            } else {
                output::print(format!("board {} made", board.slug))
            }
        }
        Command::List { json } => {
            let boards = with_service(config, async |service| board::list(service).await).await?;
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
            let board = with_service(config, async |service| board::find(service, &slug).await).await?;
            if json { output::print_json(&Line::from(&*board)) } else { output::print(description(&board)) }
        }
    }
}

async fn make(service: &crate::service::Service, create: Create) -> Result<Board> {
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
    };
    board::create(service, new).await.map_err(|error| match error {
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
        ("made", output::time(Some(board.created_at))),
    ])
}
