//! `centile board`: creates, changes and shows boards.

mod labels;
mod show;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use clap::{
    ArgGroup, Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use strum::VariantNames;

use crate::{
    Code, Error, Result, boards,
    cli::{
        board::{
            labels::Labels,
            show::{description, row},
        },
        by::By,
        output::{self, table, thousands},
        with_instance,
    },
    config::{Config, named, value},
    http::api::board::BoardResponse,
    instance::Instance,
    model::board::{
        ArchivedKind, Board, BoardChange, BoardSlug, Buckets, DEFAULT_FROZEN_TOP_SIZE, DEFAULT_PERIODS,
        DEFAULT_POINTS_BOUND, EVENTS_PER_MINUTE_MAX, FROZEN_TOP_MAX, FirstLayout, GainMax, KEPT_ARCHIVES_MAX,
        KeptArchivesChange, Mode, NewBoard, OnViolation, Order, PeriodKind, Reading, SnapshotKind, Ties, WindowLength,
    },
    model::combination::{Aggregate, CombinationChange, Join, NewCombination, RefreshRule, Source},
    model::name::{self, Named as _},
    model::presentation::{Colour, Description, IconUrl, PresentationChange, ScoreFormat},
    model::segment::Attribute,
    model::tag::Tag,
    model::tier::{Tier, Tiers},
    periods::combining,
};

/// Subcommands of `centile board`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a board
    Create(Create),
    /// Create a board that is computed from periods of other boards, or change its computation
    ///
    /// The first ranking is computed at once.
    Combine(Combine),
    /// Change the settings of a board
    Change(Change),
    /// List the boards
    List {
        /// Only boards with this tag
        #[arg(long, value_name = "TAG", value_parser = value::<Tag>)]
        tag: Option<Tag>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the settings of a board
    Show {
        /// Name of the board in URLs
        #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
        slug: BoardSlug,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Settings of a new board.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name in URLs: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    /// Display title [default: the slug]
    #[arg(long)]
    title: Option<String>,
    /// How events combine into a player's score
    ///
    /// `sum` adds all points. `best` keeps the best event, `latest` the latest one.
    #[arg(long, value_parser = event_modes(), default_value = "sum")]
    mode: Mode,
    /// Sort order: higher scores (`desc`) or lower scores (`asc`, lap times) are better
    #[arg(long, value_parser = named::<Order>(), default_value = "desc")]
    order: Order,
    /// How to rank equal scores
    ///
    /// `shared`: they share a rank (1, 2, 2, 4). `first`: the earlier score is ahead. `tiebreak`:
    /// the event's larger tiebreak is ahead, then the earlier score.
    #[arg(long, value_parser = named::<Ties>(), default_value = "shared")]
    ties: Ties,
    /// Comma-separated kinds of period
    #[arg(long, value_name = "KINDS", value_parser = period_kinds(), value_delimiter = ',')]
    #[arg(default_values = DEFAULT_PERIODS.map(|kind| kind.name()))]
    periods: Vec<PeriodKind>,
    /// Writer lanes, 1 to 64 [default: depends on the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..=64))]
    lanes: Option<i16>,
    /// IANA time zone in which periods begin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// Minimum points of an event
    #[arg(long, value_name = "POINTS", default_value_t = -DEFAULT_POINTS_BOUND, allow_negative_numbers = true)]
    points_min: i64,
    /// Maximum points of an event
    #[arg(long, value_name = "POINTS", default_value_t = DEFAULT_POINTS_BOUND, allow_negative_numbers = true)]
    points_max: i64,
    /// Bucket bounds of new rankings: up to 99 comma-separated scores in ascending order
    #[arg(long, value_name = "SCORES", value_delimiter = ',', allow_hyphen_values = true)]
    layout_bounds: Vec<i64>,
    /// Expected maximum score: new rankings start with 100 buckets of equal width up to it
    #[arg(long, value_name = "SCORE", conflicts_with = "layout_bounds", allow_negative_numbers = true)]
    expected_points: Option<i64>,
    /// Size of the frozen top of each closed period, 1 to 1000
    #[arg(long = "frozen-top", value_name = "N", default_value_t = DEFAULT_FROZEN_TOP_SIZE)]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=i64::from(FROZEN_TOP_MAX)))]
    frozen_top_size: i32,
    /// Number of archives to keep per kind, such as week=52; repeat for each kind [default: 168
    /// hours, 60 snapshots, no rolling windows, all of other kinds]
    #[arg(long = "keep", value_name = "KIND=N", value_parser = kept)]
    kept_archives: Vec<(ArchivedKind, Option<i32>)>,
    /// Readers of the board; `key` requires a reader, server or admin key
    #[arg(long, value_parser = named::<Reading>(), default_value = "public")]
    reading: Reading,
    /// Maximum events per player in any 60 seconds, 1 to 10000 [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=i64::from(EVENTS_PER_MINUTE_MAX)))]
    events_per_minute: Option<i32>,
    /// Maximum gain per player and period, such as day=5000; repeat for each kind [default: none]
    #[arg(long = "gain-max", value_name = "KIND=POINTS", value_parser = gain)]
    gain_max: Vec<(PeriodKind, Option<i64>)>,
    /// Action for events that violate a limit
    ///
    /// Limits are the points range, --events-per-minute and --gain-max. `quarantine` holds an event
    /// until an administrator accepts or rejects it.
    #[arg(long, value_parser = named::<OnViolation>(), default_value = "refuse")]
    on_violation: OnViolation,
    /// Archive the all-time ranking at the end of each day, week or month [default: never]
    #[arg(long, value_parser = named::<SnapshotKind>())]
    snapshots: Option<SnapshotKind>,
    /// Comma-separated lengths of rolling windows: 2d to 366d, or 24h [default: none]
    #[arg(long, value_name = "LENGTHS", value_parser = value::<WindowLength>, value_delimiter = ',')]
    rolling: Vec<WindowLength>,
    /// Attribute of players by which each period also has separate rankings, such as country; repeat
    /// for each, up to 4
    ///
    /// The name has 1 to 32 lower-case letters, digits and `_`. `centile user set --attribute
    /// country=DE` sets the value of a player. Cannot be combined with --snapshots or --rolling, and
    /// cannot change once the board has events.
    #[arg(long = "segment", value_name = "ATTRIBUTE", value_parser = value::<Attribute>)]
    segments: Vec<Attribute>,
    /// Rankings with bucket rows: of all periods, or of `all_time` only
    ///
    /// `all_time` saves 40 % of PostgreSQL's time per score. Rank indexes alone then rank the other
    /// periods over HTTP: without an index, a read gets 503 `index_unavailable`.
    #[arg(long, value_parser = named::<Buckets>(), default_value = "all")]
    buckets: Buckets,
    #[command(flatten)]
    labels: Labels,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// A combined board.
#[derive(Debug, Args)]
pub(super) struct Combine {
    /// Name in URLs: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    /// Board, period and weight of a source, such as `arena@week:previous*2`; repeat for each
    ///
    /// The weight is a factor of the scores, 1 when absent.
    #[arg(long = "source", value_name = "BOARD@PERIOD[*WEIGHT]", value_parser = value::<Source>, required = true)]
    sources: Vec<Source>,
    /// Players of any source, or of every source
    #[arg(long, value_parser = named::<Join>(), default_value = "union")]
    join: Join,
    /// Sum, minimum or maximum of a player's scores in the sources
    #[arg(long, value_parser = named::<Aggregate>(), default_value = "sum")]
    aggregate: Aggregate,
    /// When to compute the board again
    ///
    /// `manual`: by `centile refresh`. `on-close`: after a period of a source was closed or an
    /// archive changed. `after=10000`: after this many scores in the boards of the sources.
    /// `every=5m`: this often, while the sources change. Or a cron expression of five fields in the
    /// board's time zone, such as `0 3 * * *`.
    #[arg(long, value_name = "WHEN", value_parser = value::<RefreshRule>, default_value = "manual")]
    refresh: RefreshRule,
    /// Change the computation of the existing board SLUG
    ///
    /// Keeps the title, order, ties and other settings of the board. `--join`, `--aggregate` and
    /// `--refresh` get their default values unless you give them. Readers get the previous ranking until the new one is
    /// computed.
    #[arg(long, conflicts_with_all = ["title", "order", "ties", "time_zone", "reading", "frozen_top_size", "tags",
        "score_format", "description", "icon_url", "colour", "tiers"])]
    replace: bool,
    /// Display title [default: the slug]
    #[arg(long)]
    title: Option<String>,
    /// Sort order: higher scores (`desc`) or lower scores (`asc`) are better
    #[arg(long, value_parser = named::<Order>(), default_value = "desc")]
    order: Order,
    /// How to rank equal scores
    ///
    /// `shared`: they share a rank. `first`: the player whose latest score in the sources is
    /// earlier is ahead.
    #[arg(long, value_parser = PossibleValuesParser::new(["shared", "first"]).try_map(|name| name.parse::<Ties>()), default_value = "shared")]
    ties: Ties,
    /// IANA time zone of the cron expression
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// Readers of the board; `key` requires a reader, server or admin key
    #[arg(long, value_parser = named::<Reading>(), default_value = "public")]
    reading: Reading,
    /// Size of the frozen top, 1 to 1000
    #[arg(long = "frozen-top", value_name = "N", default_value_t = DEFAULT_FROZEN_TOP_SIZE)]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=i64::from(FROZEN_TOP_MAX)))]
    frozen_top_size: i32,
    #[command(flatten)]
    labels: Labels,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// Changes to a board.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").required(true).multiple(true)
    .args(["title", "points_min", "points_max", "frozen_top_size", "kept_archives", "reading", "events_per_minute", "gain_max",
           "on_violation", "snapshots", "rolling", "buckets", "tags", "no_tags",
           "score_format", "description", "icon_url", "colour", "tiers", "no_tiers"])))]
pub(super) struct Change {
    /// Name of the board in URLs
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    /// New display title
    #[arg(long)]
    title: Option<String>,
    /// New minimum points of an event
    #[arg(long, value_name = "POINTS", allow_negative_numbers = true)]
    points_min: Option<i64>,
    /// New maximum points of an event
    #[arg(long, value_name = "POINTS", allow_negative_numbers = true)]
    points_max: Option<i64>,
    /// New size of the frozen top, 1 to 1000, for periods closed from now on
    #[arg(long = "frozen-top", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=i64::from(FROZEN_TOP_MAX)))]
    frozen_top_size: Option<i32>,
    /// Number of archives to keep per kind, such as week=52, week=all or rolling=none; repeat for each
    /// kind
    #[arg(long = "keep", value_name = "KIND=N", value_parser = kept)]
    kept_archives: Vec<(ArchivedKind, Option<i32>)>,
    /// Readers of the board
    #[arg(long, value_parser = named::<Reading>())]
    reading: Option<Reading>,
    /// Maximum events per player in any 60 seconds, 1 to 10000; `none` removes the limit
    #[arg(long, value_name = "N", value_parser = events_per_minute)]
    events_per_minute: Option<EventsPerMinute>,
    /// Maximum gain per player and period, such as day=5000, or day=none; repeat for each kind
    #[arg(long = "gain-max", value_name = "KIND=POINTS", value_parser = gain)]
    gain_max: Vec<(PeriodKind, Option<i64>)>,
    /// Action for events that violate a limit
    #[arg(long, value_parser = named::<OnViolation>())]
    on_violation: Option<OnViolation>,
    /// Archive the all-time ranking at the end of each day, week or month; `none` for never
    #[arg(long, value_name = "KIND", value_parser = snapshots)]
    snapshots: Option<Snapshots>,
    /// All lengths of rolling windows from now on: 2d to 366d, or 24h; `none` for none
    #[arg(long, value_name = "LENGTHS", value_parser = windows)]
    rolling: Option<Windows>,
    /// Rankings with bucket rows: of all periods, or of `all_time` only
    ///
    /// Takes effect for new periods. `centile rebuild` changes the ranking of an open period.
    #[arg(long, value_parser = named::<Buckets>())]
    buckets: Option<Buckets>,
    /// Tag that replaces all earlier tags; repeat the flag for up to 20 tags
    #[arg(long = "tag", value_name = "TAG", value_parser = value::<Tag>)]
    tags: Vec<Tag>,
    /// Remove all tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
    /// How scores are written: number, decimal:2, duration:ms or duration:s
    ///
    /// number and decimal take a unit after a space: `--score-format "number points"` shows 12345 as
    /// 12,345 points. decimal:2 shows it as 123.45, and duration:ms as 0:12.345.
    #[arg(long, value_name = "FORMAT", value_parser = value::<ScoreFormat>)]
    score_format: Option<ScoreFormat>,
    /// Text about the board; an empty text removes it
    #[arg(long, value_name = "TEXT", value_parser = or_removed::<Description>)]
    description: Option<OrRemoved<Description>>,
    /// Picture of the board: an https URL, or a path on the host of the service; an empty text removes it
    #[arg(long, value_name = "URL", value_parser = or_removed::<IconUrl>)]
    icon_url: Option<OrRemoved<IconUrl>>,
    /// Colour of the board, such as #1f6feb; an empty text removes it
    #[arg(long, value_name = "COLOUR", value_parser = or_removed::<Colour>)]
    colour: Option<OrRemoved<Colour>>,
    /// New tier, such as "gold: top 10 %"; replaces all; repeat for each, up to 20, best first
    ///
    /// Rules are `top 10 %` (0.01 to 100), `rank 100` and `score 5000` (5,000 or better). A player has
    /// the first tier whose rule holds. Closed periods keep their tiers.
    #[arg(long = "tier", value_name = "NAME: RULE", value_parser = value::<Tier>)]
    tiers: Vec<Tier>,
    /// Remove all tiers
    #[arg(long, conflicts_with = "tiers")]
    no_tiers: bool,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// Parses a mode of a board with events.
fn event_modes() -> impl TypedValueParser<Value = Mode> {
    let names = Mode::VARIANTS.iter().filter(|name| **name != Mode::Combined.name());
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Parses a kind of period that a board may keep. Seasons are created one by one; snapshots and
/// rolling windows have flags of their own.
fn period_kinds() -> impl TypedValueParser<Value = PeriodKind> {
    let special = [PeriodKind::Season, PeriodKind::Snapshot, PeriodKind::Rolling].map(PeriodKind::name);
    let names = PeriodKind::VARIANTS.iter().filter(move |name| !special.contains(*name));
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Parses `KIND=N`, the number of archives to keep; `all` is `None`.
fn kept(text: &str) -> Result<(ArchivedKind, Option<i32>), String> {
    let (kind, number) = text.split_once('=').ok_or("give a kind and a number, such as week=52, or week=all")?;
    let kind = name::parse("kind", kind).map_err(|error| error.to_string())?;
    // Of rolling windows, no number means none.
    let unlimited = if kind == ArchivedKind::Rolling { "none" } else { "all" };
    if number == unlimited {
        return Ok((kind, None));
    }
    let number = number.parse().ok().filter(|number| (1..=KEPT_ARCHIVES_MAX).contains(number));
    Ok((kind, Some(number.ok_or(format!("give {unlimited}, or a number from 1 to {KEPT_ARCHIVES_MAX}"))?)))
}

/// Rejects a kind given twice, because only one of its values could apply.
fn once_each<K: Ord, V>(flag: &str, given: Vec<(K, V)>) -> Result<BTreeMap<K, V>> {
    let count = given.len();
    let once: BTreeMap<_, _> = given.into_iter().collect();
    if once.len() == count { Ok(once) } else { Err(Error::invalid(flag, "contains a kind twice")) }
}

/// Maximum events per player and minute; `None` for no limit.
#[derive(Debug, Clone, Copy)]
struct EventsPerMinute(Option<i32>);

/// Parses the maximum number of events per minute; `none` is `None`.
fn events_per_minute(text: &str) -> Result<EventsPerMinute, String> {
    if text == "none" {
        return Ok(EventsPerMinute(None));
    }
    let number = text.parse().ok().filter(|number| (1..=EVENTS_PER_MINUTE_MAX).contains(number));
    number
        .map(|number| EventsPerMinute(Some(number)))
        .ok_or(format!("give none, or a number from 1 to {EVENTS_PER_MINUTE_MAX}"))
}

/// When the all-time ranking is archived; `None` for never.
#[derive(Debug, Clone, Copy)]
struct Snapshots(Option<SnapshotKind>);

/// Parses a kind of snapshot; `none` is `None`.
fn snapshots(text: &str) -> Result<Snapshots, String> {
    if text == "none" {
        return Ok(Snapshots(None));
    }
    text.parse().map(|kind| Snapshots(Some(kind))).map_err(|_| "give day, week, month or none".to_owned())
}

/// A new value, or none.
#[derive(Debug, Clone)]
struct OrRemoved<T>(Option<T>);

/// Parses a value; an empty text is `None`.
fn or_removed<T: FromStr<Err = Error>>(text: &str) -> Result<OrRemoved<T>, String> {
    if text.is_empty() { Ok(OrRemoved(None)) } else { value(text).map(|value| OrRemoved(Some(value))) }
}

/// Lengths of rolling windows.
#[derive(Debug, Clone)]
struct Windows(Vec<WindowLength>);

/// Parses lengths of windows with commas between them; `none` is an empty list.
fn windows(text: &str) -> Result<Windows, String> {
    if text == "none" {
        return Ok(Windows(Vec::new()));
    }
    text.split(',').map(value::<WindowLength>).collect::<Result<_, _>>().map(Windows)
}

/// Parses `KIND=POINTS`, the maximum gain in a period; `none` is `None`.
fn gain(text: &str) -> Result<(PeriodKind, Option<i64>), String> {
    let (kind, number) = text.split_once('=').ok_or("give a kind and a number, such as day=5000, or day=none")?;
    let kind = name::parse("kind", kind).map_err(|error| error.to_string())?;
    if number == "none" {
        return Ok((kind, None));
    }
    let number = number.parse().ok().filter(|number| (1..=DEFAULT_POINTS_BOUND).contains(number));
    Ok((kind, Some(number.ok_or(format!("give none, or a number from 1 to {DEFAULT_POINTS_BOUND}"))?)))
}

/// Runs a subcommand.
pub(super) async fn run(config: &Config, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => {
            let json = create.json;
            let board = with_instance(config, async |instance| create_board(instance, create).await).await?;
            if json {
                output::print_json(&BoardResponse::from(&board))
            } else {
                output::print(format!("board {} created", board.slug))
            }
        }
        Command::Combine(combine) => {
            let json = combine.json;
            let spinner = output::spinner("combining");
            let done = with_instance(config, async |instance| combine_board(instance, combine).await).await;
            spinner.finish_and_clear();
            let (board, refreshed) = done?;
            if json {
                output::print_json(&BoardResponse::from(&board))
            } else {
                output::print(format!("board {} combined: {} players", board.slug, thousands(refreshed.players)))
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
                snapshots: change.snapshots.map(|Snapshots(kind)| kind),
                rolling: change.rolling.map(|Windows(lengths)| lengths),
                buckets: change.buckets,
                tags: Some(change.tags.into_iter().collect())
                    .filter(|tags: &BTreeSet<_>| change.no_tags || !tags.is_empty()),
                presentation: PresentationChange {
                    score_format: change.score_format,
                    description: change.description.map(|OrRemoved(description)| description),
                    icon_url: change.icon_url.map(|OrRemoved(url)| url),
                    colour: change.colour.map(|OrRemoved(colour)| colour),
                },
                tiers: (change.no_tiers || !change.tiers.is_empty()).then(|| Tiers::new(change.tiers)).transpose()?,
                ..BoardChange::default()
            };
            let board =
                with_instance(config, async |instance| boards::update(&instance.boards, &slug, change, &by).await)
                    .await?;
            if json {
                output::print_json(&BoardResponse::from(&board))
            } else {
                output::print(format!("board {slug} changed"))
            }
        }
        Command::List { tag, json } => {
            let boards =
                with_instance(config, async |instance| boards::list(&instance.store, tag.as_ref()).await).await?;
            if json {
                return output::print_json(&boards.iter().map(BoardResponse::from).collect::<Vec<_>>());
            }
            if boards.is_empty() && tag.is_none() {
                output::note("There are no boards yet. Create one: centile board create SLUG");
            }
            let head = ["SLUG", "TITLE", "MODE", "ORDER", "TIES", "PERIODS", "LANES", "TIME ZONE", "TAGS"];
            output::print(table(head, boards.iter().map(row).collect()))
        }
        Command::Show { slug, json } => {
            let board = with_instance(config, async |instance| boards::find(&instance.boards, &slug).await).await?;
            if json { output::print_json(&BoardResponse::from(&*board)) } else { output::print(description(&board)) }
        }
    }
}

/// Creates a combined board, or changes one, and computes its ranking. If that fails, the board
/// remains.
async fn combine_board(instance: &Instance, combine: Combine) -> Result<(Board, combining::Combination)> {
    let by = combine.by.actor()?;
    let Combine { sources, join, aggregate, refresh, .. } = combine;
    let board = if combine.replace {
        let combination = CombinationChange {
            sources: Some(sources),
            join: Some(join),
            aggregate: Some(aggregate),
            refresh: Some(refresh),
        };
        let change = BoardChange { combination: Some(combination), ..BoardChange::default() };
        boards::update(&instance.boards, &combine.slug, change, &by).await?
    } else {
        let new = NewBoard {
            slug: combine.slug,
            title: combine.title,
            mode: Mode::Combined,
            order: combine.order,
            ties: combine.ties,
            periods: vec![PeriodKind::AllTime],
            lanes: None,
            time_zone: combine.time_zone,
            points_min: -DEFAULT_POINTS_BOUND,
            points_max: DEFAULT_POINTS_BOUND,
            first_layout: None,
            frozen_top_size: combine.frozen_top_size,
            kept_archives: KeptArchivesChange::new(),
            reading: combine.reading,
            events_per_minute: None,
            gain_max: GainMax::new(),
            on_violation: OnViolation::Refuse,
            snapshots: None,
            rolling: Vec::new(),
            presentation: combine.labels.presentation(),
            tags: combine.labels.tags.into_iter().collect(),
            tiers: Tiers::new(combine.labels.tiers)?,
            segments: Vec::new(),
            buckets: Buckets::All,
            combination: Some(NewCombination { sources, join, aggregate, refresh }),
        };
        boards::create(&instance.boards, new, &by).await?
    };
    let refreshed = combining::refresh(&instance.store, &instance.cache, &board, &by).await.map_err(|error| {
        let slug = &board.slug;
        Error::conflict(
            Code::Conflict,
            format!("board {slug} is stored, but not refreshed: {error}. Change it with `centile board combine {slug} --replace`"),
        )
    })?;
    boards::find(&instance.boards, &board.slug).await.map(|board| (Board::clone(&board), refreshed))
}

async fn create_board(instance: &Instance, create: Create) -> Result<Board> {
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
        kept_archives: once_each("kept_archives", create.kept_archives)?,
        reading: create.reading,
        events_per_minute: create.events_per_minute,
        gain_max: once_each("gain_max", create.gain_max)?
            .into_iter()
            .filter_map(|(kind, most)| Some((kind, most?)))
            .collect(),
        on_violation: create.on_violation,
        snapshots: create.snapshots,
        rolling: create.rolling,
        presentation: create.labels.presentation(),
        tags: create.labels.tags.into_iter().collect(),
        tiers: Tiers::new(create.labels.tiers)?,
        segments: create.segments,
        buckets: create.buckets,
        combination: None,
    };
    boards::create(&instance.boards, new, &by).await.map_err(|error| match error {
        Error::Invalid { field, message, .. } if field.starts_with("first_layout") => {
            Error::invalid(layout_flag, message)
        }
        other => other,
    })
}
