//! `centile board`: creates, changes and shows boards.

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
        board::show::{description, row},
        by::By,
        output::{self, table, thousands},
        with_instance,
    },
    config::{Config, named, value},
    http::api::board::BoardResponse,
    instance::Instance,
    model::{
        board::{
            ArchivedKind, Board, BoardFilter, BoardSettings, BoardSlug, Buckets, KEPT_ARCHIVES_MAX, Mode, OnViolation,
            Order, PeriodKind, Reading, SnapshotKind, TiebreakSum, Ties, WindowLength,
        },
        combination::{Aggregate, CombinationSettings, Join, RefreshRule, Source},
        first_layout::FirstLayout,
        json::EXACT_MAX,
        name::{self, Named as _},
        presentation::{Colour, Description, IconUrl, ScoreFormat},
        segment::Attribute,
        tag::Tag,
        tier::{Tier, Tiers},
    },
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
    ///
    /// A setting without a flag stays as it is. `--tag` and `--tier` replace all earlier values.
    Change(Change),
    /// Delete a board with all its scores
    ///
    /// Its name is free at once. The service, or `centile maintain`, removes the scores, which cannot be
    /// restored.
    Delete {
        /// Name of the board in URLs
        #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
        slug: BoardSlug,
        /// The same name again
        #[arg(long, value_name = "SLUG", value_parser = value::<BoardSlug>)]
        confirm: BoardSlug,
        #[command(flatten)]
        by: By,
    },
    /// List the boards
    List {
        /// Only boards with this tag
        #[arg(long, value_name = "TAG", value_parser = value::<Tag>)]
        tag: Option<Tag>,
        /// Boards of this template, which the list otherwise leaves out
        #[arg(long, value_name = "NAME")]
        template: Option<String>,
        /// Only boards whose name begins with this text
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        prefix: String,
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

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name in URLs: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    #[command(flatten)]
    rules: RuleFlags,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

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
    /// `--refresh` get their defaults unless you give them. Readers get the previous ranking until
    /// the new one is computed.
    #[arg(long, conflicts_with_all = ["RankingFlags", "DisplayFlags"])]
    replace: bool,
    #[command(flatten)]
    ranking: RankingFlags,
    #[command(flatten)]
    display: DisplayFlags,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

#[derive(Debug, Args)]
#[command(group(changes()))]
pub(super) struct Change {
    /// Name of the board in URLs
    #[arg(value_name = "SLUG", value_parser = value::<BoardSlug>)]
    slug: BoardSlug,
    #[command(flatten)]
    events: EventFlags,
    #[command(flatten)]
    display: DisplayFlags,
    /// Remove all tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
    /// Remove all tiers
    #[arg(long, conflicts_with = "tiers")]
    no_tiers: bool,
    /// Print the board as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    by: By,
}

/// Rules of a new board.
#[derive(Debug, Args)]
pub(super) struct RuleFlags {
    /// How events combine into a player's score [new board: sum]
    ///
    /// `sum` adds all points. `best` keeps the best event, `latest` the latest one.
    #[arg(long, value_parser = event_modes())]
    mode: Option<Mode>,
    /// Comma-separated kinds of period [default: `all_time,day,week,month`]
    #[arg(long, value_name = "KINDS", value_parser = period_kinds(), value_delimiter = ',')]
    periods: Option<Vec<PeriodKind>>,
    /// Writer lanes, 1 to 64 [default: depends on the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..=64))]
    lanes: Option<i16>,
    /// Bucket bounds of new rankings: up to 99 comma-separated scores in ascending order
    #[arg(long, value_name = "SCORES", value_delimiter = ',', allow_hyphen_values = true)]
    layout_bounds: Vec<i64>,
    /// Expected maximum score: new rankings start with 100 buckets of equal width up to it
    #[arg(long, value_name = "SCORE", conflicts_with = "layout_bounds", allow_negative_numbers = true)]
    expected_points: Option<i64>,
    /// Attribute of players by which each period also has separate rankings, such as country; repeat
    /// for each, up to 4
    ///
    /// The name has 1 to 32 lower-case letters, digits and `_`. `centile user set --attribute
    /// country=DE` sets the value of a player. Cannot be combined with --snapshots or --rolling, and
    /// cannot change once the board has events.
    #[arg(long = "segment", value_name = "ATTRIBUTE", value_parser = value::<Attribute>)]
    segments: Vec<Attribute>,
    #[command(flatten)]
    ranking: RankingFlags,
    #[command(flatten)]
    events: EventFlags,
    #[command(flatten)]
    display: DisplayFlags,
}

impl RuleFlags {
    pub(super) fn settings(self) -> Result<BoardSettings> {
        let bounds = Some(self.layout_bounds).filter(|bounds| !bounds.is_empty()).map(FirstLayout::Bounds);
        Ok(self.display.add_to(BoardSettings {
            mode: self.mode,
            order: self.ranking.order,
            ties: self.ranking.ties,
            time_zone: self.ranking.time_zone,
            periods: self.periods,
            lanes: self.lanes,
            first_layout: self.expected_points.map(FirstLayout::ExpectedPoints).or(bounds),
            segments: Some(self.segments),
            ..self.events.settings()?
        }))
    }
}

/// How a new board ranks.
#[derive(Debug, Args)]
struct RankingFlags {
    /// Sort order: higher scores (`desc`) or lower scores (`asc`, lap times) are better [new board: desc]
    #[arg(long, value_parser = named::<Order>())]
    order: Option<Order>,
    /// How to rank equal scores [new board: shared]
    ///
    /// `shared`: they share a rank (1, 2, 2, 4). `first`: the earlier score is ahead. `tiebreak`:
    /// the event's larger tiebreak is ahead, then the earlier score. `second`: the better second number,
    /// which events have as their tiebreak. Combined boards have `shared` or `first`.
    #[arg(long, value_parser = named::<Ties>())]
    ties: Option<Ties>,
    /// IANA time zone of periods, or of a cron expression [new board: UTC]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
}

/// Rules about events, and what the board keeps of them.
#[derive(Debug, Args)]
struct EventFlags {
    /// Minimum points of an event
    #[arg(long, value_name = "POINTS", allow_negative_numbers = true)]
    points_min: Option<i64>,
    /// Maximum points of an event
    #[arg(long, value_name = "POINTS", allow_negative_numbers = true)]
    points_max: Option<i64>,
    /// Number of archives to keep per kind, such as week=52, week=all or rolling=none; repeat for each
    /// kind
    ///
    /// A new board keeps 168 hours, 60 snapshots, no rolling windows, and all archives of other kinds.
    #[arg(long = "keep", value_name = "KIND=N", value_parser = parse_kept_archives)]
    kept_archives: Vec<(ArchivedKind, Option<i32>)>,
    /// Maximum events per player in any 60 seconds, 1 to 10000, or `none` [new board: none]
    #[arg(long, value_name = "N", value_parser = events_per_minute)]
    events_per_minute: Option<OrNone<i32>>,
    /// Maximum gain per player and period, such as day=5000, or day=none; repeat for each kind
    #[arg(long = "gain-max", value_name = "KIND=POINTS", value_parser = gain)]
    gain_max: Vec<(PeriodKind, Option<i64>)>,
    /// Action for events that violate a limit [new board: refuse]
    ///
    /// Limits are the points range, --events-per-minute and --gain-max. `quarantine` holds an event
    /// until an administrator accepts or rejects it.
    #[arg(long, value_parser = named::<OnViolation>())]
    on_violation: Option<OnViolation>,
    /// Archive the all-time ranking at the end of each day, week or month, or `none` [new board: none]
    #[arg(long, value_name = "KIND", value_parser = snapshots)]
    snapshots: Option<OrNone<SnapshotKind>>,
    /// All lengths of rolling windows: 2d to 366d, or 24h; `none` for none [new board: none]
    #[arg(long, value_name = "LENGTHS", value_parser = windows)]
    rolling: Option<Windows>,
    /// Rankings with bucket rows: of all periods, or of `all_time` only [new board: all]
    ///
    /// `all_time` saves 40 % of PostgreSQL's time per score. Rank indexes alone then rank the other
    /// periods over HTTP: without an index, a read gets 503 `index_unavailable`. A change takes effect
    /// for new periods; `centile rebuild` changes the ranking of an open one.
    #[arg(long, value_parser = named::<Buckets>())]
    buckets: Option<Buckets>,
    /// Kind of period that requests without a period read [new board: `all_time`, or its first kind]
    #[arg(long, value_name = "KIND", value_parser = period_kinds())]
    default_period: Option<PeriodKind>,
    /// Whether `centile refresh --due` and the service refresh archives that lack a correction [new
    /// board: false]
    #[arg(long, value_name = "BOOL")]
    refresh_corrected: Option<bool>,
    /// Larger or smaller second numbers are better, with ties `second` [new board: desc]
    #[arg(long, value_parser = named::<Order>())]
    tiebreak_order: Option<Order>,
    /// Whether second numbers of a `sum` board are added, or replaced by the latest [new board: added]
    #[arg(long, value_parser = named::<TiebreakSum>())]
    tiebreak_sum: Option<TiebreakSum>,
}

impl EventFlags {
    fn settings(self) -> Result<BoardSettings> {
        Ok(BoardSettings {
            points_min: self.points_min,
            points_max: self.points_max,
            kept_archives: once_each("kept_archives", self.kept_archives)?,
            events_per_minute: self.events_per_minute.map(|OrNone(events)| events),
            gain_max: once_each("gain_max", self.gain_max)?,
            on_violation: self.on_violation,
            snapshots: self.snapshots.map(|OrNone(kind)| kind),
            rolling: self.rolling.map(|Windows(lengths)| lengths),
            buckets: self.buckets,
            default_period: self.default_period,
            refresh_corrected: self.refresh_corrected,
            tiebreak_order: self.tiebreak_order,
            tiebreak_sum: self.tiebreak_sum,
            ..BoardSettings::default()
        })
    }
}

/// How a board is shown, and to whom.
#[derive(Debug, Args)]
struct DisplayFlags {
    /// Display title [new board: the slug]
    #[arg(long)]
    title: Option<String>,
    /// Readers of the board; `key` requires a reader, server or admin key [new board: public]
    #[arg(long, value_parser = named::<Reading>())]
    reading: Option<Reading>,
    /// Size of the frozen top of each period that closes from now on, 1 to 1000 [new board: 100]
    #[arg(long = "frozen-top", value_name = "N", value_parser = clap::value_parser!(i32).range(1..=1_000))]
    frozen_top_size: Option<i32>,
    /// Tag that groups boards; repeat the flag for up to 20 tags
    ///
    /// 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter or a digit.
    #[arg(long = "tag", value_name = "TAG", value_parser = value::<Tag>)]
    tags: Vec<Tag>,
    /// How scores are written: number, decimal:2, duration:ms or duration:s [new board: number]
    ///
    /// number and decimal take a unit after a space: `--score-format "number points"` shows 12345 as
    /// 12,345 points. decimal:2 shows it as 123.45, and duration:ms as 0:12.345.
    #[arg(long, value_name = "FORMAT", value_parser = value::<ScoreFormat>)]
    score_format: Option<ScoreFormat>,
    /// Text about the board; an empty text removes it
    #[arg(long, value_name = "TEXT", value_parser = or_removed::<Description>)]
    description: Option<OrNone<Description>>,
    /// Picture of the board: an https URL, or a path on the host of the service; an empty text removes it
    #[arg(long, value_name = "URL", value_parser = or_removed::<IconUrl>)]
    icon_url: Option<OrNone<IconUrl>>,
    /// Colour of the board, such as #1f6feb; an empty text removes it
    #[arg(long, value_name = "COLOUR", value_parser = or_removed::<Colour>)]
    colour: Option<OrNone<Colour>>,
    /// Tier, such as "gold: top 10 %"; repeat for each, up to 20, best first
    ///
    /// Rules are `top 10 %` (0.01 to 100), `rank 100` and `score 5000` (5,000 or better). A player has
    /// the first tier whose rule holds. Closed periods keep their tiers.
    #[arg(long = "tier", value_name = "NAME: RULE", value_parser = value::<Tier>)]
    tiers: Vec<Tier>,
}

impl DisplayFlags {
    fn add_to(self, settings: BoardSettings) -> BoardSettings {
        let tags: BTreeSet<_> = self.tags.into_iter().collect();
        BoardSettings {
            title: self.title,
            reading: self.reading,
            frozen_top_size: self.frozen_top_size,
            tags: Some(tags).filter(|tags| !tags.is_empty()),
            score_format: self.score_format,
            description: self.description.map(|OrNone(description)| description),
            icon_url: self.icon_url.map(|OrNone(url)| url),
            colour: self.colour.map(|OrNone(colour)| colour),
            tiers: (!self.tiers.is_empty()).then(|| self.tiers.into()),
            ..settings
        }
    }
}

/// The flags of a change, of which at least one is required.
fn changes() -> ArgGroup {
    let flags = DisplayFlags::augment_args(EventFlags::augment_args(clap::Command::new("flags")));
    let names = flags.get_arguments().map(|flag| flag.get_id().clone());
    ArgGroup::new("changes").required(true).multiple(true).args(names).args(["no_tags", "no_tiers"])
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
fn parse_kept_archives(text: &str) -> Result<(ArchivedKind, Option<i32>), String> {
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

/// A new value, or none.
#[derive(Debug, Clone)]
struct OrNone<T>(Option<T>);

/// Parses a kind of snapshot, or `none`.
fn snapshots(text: &str) -> Result<OrNone<SnapshotKind>, String> {
    if text == "none" {
        return Ok(OrNone(None));
    }
    text.parse().map(|kind| OrNone(Some(kind))).map_err(|_| "give day, week, month or none".to_owned())
}

/// Parses the maximum number of events per minute, or `none`.
fn events_per_minute(text: &str) -> Result<OrNone<i32>, String> {
    if text == "none" {
        return Ok(OrNone(None));
    }
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.map(|number| OrNone(Some(number))).ok_or_else(|| "give none, or a number from 1 to 10000".to_owned())
}

/// Parses a value; an empty text is `None`.
fn or_removed<T: FromStr<Err = Error>>(text: &str) -> Result<OrNone<T>, String> {
    if text.is_empty() { Ok(OrNone(None)) } else { value(text).map(|value| OrNone(Some(value))) }
}

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
    let number = number.parse().ok().filter(|number| (1..=EXACT_MAX).contains(number));
    Ok((kind, Some(number.ok_or(format!("give none, or a number from 1 to {EXACT_MAX}"))?)))
}

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
            let mut settings = change.display.add_to(change.events.settings()?);
            if change.no_tags {
                settings.tags = Some(BTreeSet::new());
            }
            if change.no_tiers {
                settings.tiers = Some(Tiers::default());
            }
            let board = with_instance(config, async |instance| {
                boards::update(&instance.store.admin, &instance.boards, &slug, &settings, &by).await
            })
            .await?;
            if json {
                output::print_json(&BoardResponse::from(&board))
            } else {
                output::print(format!("board {slug} changed"))
            }
        }
        Command::Delete { slug, confirm, by } => {
            if slug != confirm {
                return Err(Error::invalid("confirm", format!("must be {slug}, the name of the board")));
            }
            let by = by.actor()?;
            with_instance(config, async |instance| {
                boards::delete(&instance.store.admin, &instance.boards, &slug, &by).await
            })
            .await?;
            output::print(format!("board {slug} deleted"))
        }
        Command::List { tag, template, prefix, json } => {
            let filter = BoardFilter {
                tag: tag.as_ref(),
                template: template.as_deref(),
                prefix: &prefix,
                ..BoardFilter::default()
            };
            let boards = with_instance(config, async |instance| {
                if let Some(template) = &template {
                    boards::template(&instance.store.reader, template).await?;
                }
                boards::list(&instance.store.reader, filter).await
            })
            .await?;
            if json {
                return output::print_json(&boards.iter().map(BoardResponse::from).collect::<Vec<_>>());
            }
            if boards.is_empty() && tag.is_none() && template.is_none() && prefix.is_empty() {
                output::note("There are no boards yet. Create one: centile board create SLUG");
            }
            let head = ["SLUG", "TITLE", "MODE", "ORDER", "TIES", "PERIODS", "LANES", "TIME ZONE", "TAGS"];
            output::print(table(head, boards.iter().map(row).collect()))
        }
        Command::Show { slug, json } => {
            let board = with_instance(config, async |instance| boards::find(&instance.boards, &slug).await).await?;
            if json { output::print_json(&BoardResponse::from(&*board)) } else { output::print(description(&board)?) }
        }
    }
}

/// Creates a combined board, or changes one, and computes its ranking. If that fails, the board
/// remains.
async fn combine_board(instance: &Instance, combine: Combine) -> Result<(Board, combining::RefreshedBoard)> {
    let by = combine.by.actor()?;
    let Combine { slug, sources, join, aggregate, refresh, replace, ranking, display, .. } = combine;
    let combination = CombinationSettings {
        sources: Some(sources),
        join: Some(join),
        aggregate: Some(aggregate),
        refresh: Some(refresh),
    };
    let settings = display.add_to(BoardSettings {
        order: ranking.order,
        ties: ranking.ties,
        time_zone: ranking.time_zone,
        combination: Some(combination),
        ..BoardSettings::default()
    });
    let board = if replace {
        boards::update(&instance.store.admin, &instance.boards, &slug, &settings, &by).await?
    } else {
        let settings = BoardSettings { mode: Some(Mode::Combined), ..settings };
        boards::create(&instance.store.admin, &instance.boards, slug, settings, &by).await?
    };
    let refreshed = combining::refresh(&instance.store.admin, &instance.cache, &board, &by).await.map_err(|error| {
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
    let layout_flag = if create.rules.expected_points.is_some() { "expected_points" } else { "layout_bounds" };
    let settings = create.rules.settings()?;
    let settings = BoardSettings { mode: settings.mode.or(Some(Mode::Sum)), ..settings };
    let created = boards::create(&instance.store.admin, &instance.boards, create.slug, settings, &by).await;
    created.map_err(|error| match error {
        Error::Invalid { field, message, .. } if field.starts_with("first_layout") => {
            Error::invalid(layout_flag, message)
        }
        other => other,
    })
}
