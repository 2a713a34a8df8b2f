//! `/v1/boards`, `/v1/boards/{board}`: boards and their rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{Data, Payload},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::VariantNames;
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result, boards,
    http::{
        Api,
        api::{
            combination::{ChangeCombination, CombinationResponse, CreateCombination},
            problem::{ListProblems, ReadProblems, WriteProblems},
            reply,
        },
        extract::{
            body::{self, Integer},
            caller,
            first_layout::{FirstLayoutObject, FirstLayoutRequest},
            path::BoardPath,
            query::{self, ListQuery},
        },
    },
    model::{
        board::{
            ArchivedKind, Board, BoardChange, DEFAULT_FROZEN_TOP_SIZE, DEFAULT_PERIODS, DEFAULT_POINTS_BOUND,
            FirstLayout, GainMax, GainMaxChange, KeptArchives, KeptArchivesChange, Mode, NewBoard, OnViolation, Order,
            PeriodKind, Reading, SnapshotKind, Ties, WindowLength,
        },
        combination::{CombinationChange, NewCombination},
        presentation::{Presentation, PresentationChange},
        segment::Attribute,
        tag::Tag,
        tier::Tiers,
        user::check_text,
    },
};

/// The rules of a new board.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateBoard {
    /// Name in URLs.
    #[schema(example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    slug: String,
    /// Title shown to people; the slug when absent.
    #[schema(example = "Arena", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    title: Option<String>,
    /// How scores combine.
    mode: Mode,
    /// Which scores are better; `desc` when absent.
    order: Option<Order>,
    /// How equal scores are ranked; `shared` when absent.
    ties: Option<Ties>,
    /// Kinds of period that the board keeps, each once; `all_time`, `day`, `week` and `month` when
    /// absent.
    #[schema(value_type = Option<BTreeSet<KeptPeriod>>, example = json!(["all_time", "week"]), min_items = 1, max_items = 7)]
    periods: Option<Vec<PeriodKind>>,
    /// Number of writer lanes; chosen from the number of cores when absent.
    #[schema(value_type = Option<i16>, minimum = 1, maximum = 64)]
    lanes: Option<Integer<i16>>,
    /// IANA time zone in which periods begin; `UTC` when absent.
    #[schema(example = "Europe/Berlin", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    time_zone: Option<String>,
    /// Minimum points of an event; −(2⁵³ − 1) when absent.
    #[schema(value_type = Option<i64>, example = 0, minimum = -9_223_372_036_854_775_807i64)]
    points_min: Option<Integer>,
    /// Maximum points of an event; 2⁵³ − 1 when absent.
    #[schema(value_type = Option<i64>, example = 1_000, minimum = -9_223_372_036_854_775_807i64)]
    points_max: Option<Integer>,
    /// Bounds of the first score ranges of a ranking, used while there are no players to derive
    /// them from.
    #[schema(value_type = Option<FirstLayoutObject>)]
    first_layout: Option<FirstLayoutRequest>,
    /// Players in the frozen top of each closed period; 100 when absent.
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1_000)]
    frozen_top_size: Option<Integer<i32>>,
    /// Number of newest closed periods that keep their archive, by kind: from 1 to 1,000,000. A
    /// kind that is absent or null keeps all, except that hours keep 168, snapshots 60, and rolling
    /// windows none.
    #[schema(value_type = Option<BTreeMap<ArchivedKind, KeptNumber>>, example = json!({"day": 30, "week": 52}))]
    kept_archives: Option<BTreeMap<String, Option<Integer<i32>>>>,
    /// Readers of the board; `public` when absent.
    reading: Option<Reading>,
    /// Maximum events of a player in any 60 seconds; unlimited when absent.
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 10_000, example = 60)]
    events_per_minute: Option<Integer<i32>>,
    /// Maximum gain of a player in a period, by kind of period: from 1 to 2⁵³ − 1. A kind that is
    /// absent or null is unlimited. The kind is `season` or one that the board keeps.
    ///
    /// On `sum` boards the gain is what the player has won in the period; losses do not reduce it.
    /// On `best` and `latest` boards it is the improvement over the score at the start of the
    /// period. For a new player, it is the improvement over the first score.
    #[schema(value_type = Option<BTreeMap<PeriodKind, GainNumber>>, example = json!({"day": 5_000}))]
    gain_max: Option<BTreeMap<String, Option<Integer>>>,
    /// How to treat an event outside the points bounds, `events_per_minute` or `gain_max`; `refuse`
    /// when absent.
    on_violation: Option<OnViolation>,
    /// The end of each such period archives the all-time ranking, as `snapshot:week-2024-01-15`;
    /// never when absent. The board must keep `all_time`.
    snapshots: Option<SnapshotKind>,
    /// Lengths of rolling windows, up to 8: `2d` to `366d` for days, `24h` for hours. The period
    /// `rolling:7d` is then the seven days that end with the current one.
    #[schema(value_type = Option<Vec<String>>, example = json!(["7d", "24h"]), max_items = 8)]
    rolling: Option<Vec<String>>,
    /// Names that group boards, up to 20: 1 to 40 lower-case letters, digits, `-` and `_`, beginning
    /// with a letter or a digit.
    #[schema(value_type = Option<Vec<TagText>>, example = json!(["moba"]), max_items = 20)]
    tags: Option<Vec<String>>,
    /// How scores are written for people: `number`, `decimal:2` (12345 is 123.45), `duration:ms` or
    /// `duration:s`. `number` and `decimal` may have a unit after a space, such as `number points`.
    /// `number` when absent.
    #[schema(value_type = Option<ScoreFormatText>)]
    score_format: Option<String>,
    /// Text about the board, up to 1,000 bytes.
    #[schema(value_type = Option<DescriptionText>)]
    description: Option<String>,
    /// Picture of the board: an https URL, or a path on the host of the service, up to 1,024 bytes.
    /// Pages show the picture only if this is a path.
    #[schema(value_type = Option<IconUrlText>)]
    icon_url: Option<String>,
    /// Colour of the board, for decoration.
    #[schema(value_type = Option<ColourText>)]
    colour: Option<String>,
    /// Named parts of the rankings, up to 20, best first, with different names: `gold: top 10 %` (0.01
    /// to 100, with up to two decimals), `gold: rank 100` or `gold: score 5000` (5,000 or better). A
    /// player has the first tier whose rule holds.
    #[schema(value_type = Option<Vec<TierText>>, example = json!(["gold: top 10 %", "silver: rank 5000"]), max_items = 20)]
    tiers: Option<Vec<String>>,
    /// Attributes of players, up to 4, by which each period also has separate rankings:
    /// `segment=country:DE` then reads the ranking of the players whose attribute `country` is `DE`.
    /// Names have 1 to 32 lower-case letters, digits and `_`. A board with segments has neither
    /// `snapshots` nor `rolling`.
    #[schema(value_type = Option<Vec<AttributeText>>, example = json!(["country"]), max_items = 4)]
    segments: Option<Vec<String>>,
    /// How a board of mode `combined` is computed. Such a board keeps `all_time` only; of the other
    /// fields it has title, order, ties, time zone, frozen top, reading, tags, score format,
    /// description, icon, colour and tiers.
    combination: Option<CreateCombination>,
}

impl CreateBoard {
    /// Refuses rules about events for a board that has none.
    fn check_combined(&self) -> Result<()> {
        let given = [
            ("periods", self.periods.is_some()),
            ("lanes", self.lanes.is_some()),
            ("points_min", self.points_min.is_some()),
            ("points_max", self.points_max.is_some()),
            ("first_layout", self.first_layout.is_some()),
            ("kept_archives", self.kept_archives.is_some()),
            ("events_per_minute", self.events_per_minute.is_some()),
            ("gain_max", self.gain_max.is_some()),
            ("on_violation", self.on_violation.is_some()),
            ("snapshots", self.snapshots.is_some()),
            ("rolling", self.rolling.is_some()),
            ("segments", self.segments.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given && self.mode == Mode::Combined) {
            Some((field, _)) => Err(Error::invalid(field, "does not apply to a combined board")),
            None => Ok(()),
        }
    }
}

impl TryFrom<CreateBoard> for NewBoard {
    type Error = Error;

    fn try_from(request: CreateBoard) -> Result<Self> {
        request.check_combined()?;
        check_time_zone(request.time_zone.as_deref())?;
        Ok(Self {
            slug: request.slug.parse().map_err(|error: Error| error.in_field("slug"))?,
            title: request.title,
            mode: request.mode,
            order: request.order.unwrap_or(Order::Desc),
            ties: request.ties.unwrap_or(Ties::Shared),
            periods: request.periods.unwrap_or_else(|| DEFAULT_PERIODS.to_vec()),
            lanes: request.lanes.map(|Integer(lanes)| lanes),
            time_zone: request.time_zone.unwrap_or_else(|| "UTC".to_owned()),
            points_min: request.points_min.map_or(-DEFAULT_POINTS_BOUND, |Integer(points)| points),
            points_max: request.points_max.map_or(DEFAULT_POINTS_BOUND, |Integer(points)| points),
            first_layout: request.first_layout.map(FirstLayout::from),
            frozen_top_size: request.frozen_top_size.map_or(DEFAULT_FROZEN_TOP_SIZE, |Integer(size)| size),
            // A new board keeps all archives by default.
            kept_archives: kept_archives(request.kept_archives)?
                .into_iter()
                .filter_map(|(kind, kept)| Some((kind, kept?)))
                .collect(),
            reading: request.reading.unwrap_or_default(),
            events_per_minute: request.events_per_minute.map(|Integer(events)| events),
            gain_max: gain_max(request.gain_max)?.into_iter().filter_map(|(kind, most)| Some((kind, most?))).collect(),
            on_violation: request.on_violation.unwrap_or_default(),
            snapshots: request.snapshots,
            rolling: windows(&request.rolling.unwrap_or_default())?,
            tags: tags(&request.tags.unwrap_or_default())?,
            presentation: Presentation {
                score_format: parsed(request.score_format.as_deref())?.unwrap_or_default(),
                description: parsed(request.description.as_deref())?,
                icon_url: parsed(request.icon_url.as_deref())?,
                colour: parsed(request.colour.as_deref())?,
            },
            tiers: Tiers::parse(&request.tiers.unwrap_or_default())?,
            segments: attributes(&request.segments.unwrap_or_default())?,
            combination: request.combination.map(NewCombination::try_from).transpose()?,
        })
    }
}

/// Parses lengths of windows.
fn windows(lengths: &[String]) -> Result<Vec<WindowLength>> {
    lengths.iter().map(|length| length.parse()).collect()
}

/// Parses an optional text.
fn parsed<T: FromStr<Err = Error>>(text: Option<&str>) -> Result<Option<T>> {
    text.map(str::parse).transpose()
}

/// How scores are written for people.
#[derive(Debug, ToSchema)]
#[schema(
    as = ScoreFormat,
    example = "decimal:2",
    max_length = 64,
    pattern = r"^((number|decimal:([1-9]|1[0-8]))( [^ \x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^ \x00-\x1f\x7f-\x9f])?)?|duration:(ms|s))$"
)]
#[expect(dead_code, reason = "describes a valid format")]
struct ScoreFormatText(String);

/// Text about a board.
#[derive(Debug, ToSchema)]
#[schema(as = Description, example = "Kills per match", min_length = 1, max_length = 1000, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
#[expect(dead_code, reason = "describes a valid text")]
struct DescriptionText(String);

/// An https URL, or a path on the host of the service.
#[derive(Debug, ToSchema)]
#[schema(
    as = IconUrl,
    example = "https://example.com/arena.png",
    max_length = 1024,
    pattern = r#"^(https://[!-"$-.0-9;->A-\[\]-~][!-"$-.0->A-\[\]-~]*([/?#][!-\[\]-~]*)?|/[!-.0-\[\]-~][!-\[\]-~]*)$"#
)]
#[expect(dead_code, reason = "describes a valid address")]
struct IconUrlText(String);

/// A colour.
#[derive(Debug, ToSchema)]
#[schema(as = Colour, example = "#1f6feb", pattern = "^#[0-9A-Fa-f]{6}$")]
#[expect(dead_code, reason = "describes a valid colour")]
struct ColourText(String);

/// A tier: a name of 1 to 40 characters, a colon, and a rule. Spaces around them do not matter.
#[derive(Debug, ToSchema)]
#[schema(
    as = Tier,
    example = "gold: top 10 %",
    pattern = r"^ *[^: \x00-\x1f\x7f-\x9f]([^:\x00-\x1f\x7f-\x9f]{0,38}[^: \x00-\x1f\x7f-\x9f])? *: *(top +(100(\.0{1,2})?|[1-9][0-9]?(\.[0-9]{1,2})?|0\.([1-9][0-9]?|0[1-9])) *%|rank +[1-9][0-9]{0,17}|score +(0|-?[1-9][0-9]{0,17})) *$"
)]
#[expect(dead_code, reason = "describes a valid tier")]
struct TierText(String);

/// A name that groups boards.
#[derive(Debug, ToSchema)]
#[schema(as = Tag, example = "moba", min_length = 1, max_length = 40, pattern = "^[a-z0-9][a-z0-9_-]*$")]
#[expect(dead_code, reason = "describes a valid tag")]
pub(crate) struct TagText(String);

/// The name of an attribute of players.
#[derive(Debug, ToSchema)]
#[schema(as = Attribute, example = "country", min_length = 1, max_length = 32, pattern = "^[a-z0-9_]+$")]
#[expect(dead_code, reason = "describes a valid name")]
struct AttributeText(String);

/// Parses names of attributes.
fn attributes(names: &[String]) -> Result<Vec<Attribute>> {
    let parsed = names.iter().enumerate();
    parsed.map(|(n, name)| name.parse().map_err(|error: Error| error.in_field(format!("segments[{n}]")))).collect()
}

/// Parses tags. A repeated tag counts once.
fn tags(tags: &[String]) -> Result<BTreeSet<Tag>> {
    let parsed = tags.iter().enumerate();
    parsed.map(|(n, tag)| tag.parse().map_err(|error: Error| error.in_field(format!("tags[{n}]")))).collect()
}

/// Rejects text that PostgreSQL cannot store. PostgreSQL decides which zones exist.
fn check_time_zone(name: Option<&str>) -> Result<()> {
    name.map_or(Ok(()), |name| check_text("time_zone", name, 128))
}

/// Number of closed periods of a kind that keep their archive.
#[derive(Debug, ToSchema)]
#[schema(minimum = 1, maximum = 1_000_000)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
struct KeptNumber(Option<i32>);

/// Maximum gain of a player in a period of one kind.
#[derive(Debug, ToSchema)]
#[schema(minimum = 1, maximum = 9_007_199_254_740_991i64)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
struct GainNumber(Option<i64>);

/// Kinds of period that open automatically. Seasons are created one by one.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the values that the domain accepts")]
#[serde(rename_all = "snake_case")]
enum KeptPeriod {
    /// The whole life of the board.
    AllTime,
    /// An hour of the board's time zone.
    Hour,
    /// A calendar day in the board's time zone.
    Day,
    /// An ISO week, from Monday, in the board's time zone.
    Week,
    /// A calendar month in the board's time zone.
    Month,
    /// A calendar quarter in the board's time zone.
    Quarter,
    /// A calendar year in the board's time zone.
    Year,
}

/// Parses the number of archives to keep, by kind. The kinds are strings up to this point, because
/// serde cannot name an invalid key of any other type.
fn kept_archives(given: Option<BTreeMap<String, Option<Integer<i32>>>>) -> Result<KeptArchivesChange> {
    let known = given.into_iter().flatten().map(|(name, kept)| match name.parse() {
        Ok(kind) => Ok((kind, kept.map(|Integer(kept)| kept))),
        Err(_) => Err(unknown_kind::<ArchivedKind>(format!("kept_archives.{name}"))),
    });
    known.collect()
}

fn unknown_kind<K: VariantNames>(field: String) -> Error {
    Error::invalid(field, format!("is not one of: {}", K::VARIANTS.join(", ")))
}

/// Parses the maximum gains, by kind of period.
fn gain_max(given: Option<BTreeMap<String, Option<Integer>>>) -> Result<GainMaxChange> {
    let known = given.into_iter().flatten().map(|(name, most)| match name.parse() {
        Ok(kind) => Ok((kind, most.map(|Integer(most)| most))),
        Err(_) => Err(unknown_kind::<PeriodKind>(format!("gain_max.{name}"))),
    });
    known.collect()
}

/// Changes to a board. An absent field stays unchanged. Mode, order, ties, time zone, lanes and
/// segments cannot change once events exist.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateBoard {
    /// New title.
    #[schema(example = "Arena, season two", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    title: Option<String>,
    /// New mode.
    mode: Option<Mode>,
    /// New order.
    order: Option<Order>,
    /// New rule for ties.
    ties: Option<Ties>,
    /// New IANA time zone.
    #[schema(example = "Europe/Berlin", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    time_zone: Option<String>,
    /// New number of writer lanes.
    #[schema(value_type = Option<i16>, minimum = 1, maximum = 64)]
    lanes: Option<Integer<i16>>,
    /// New minimum points of an event.
    #[schema(value_type = Option<i64>, minimum = -9_223_372_036_854_775_807i64)]
    points_min: Option<Integer>,
    /// New maximum points of an event.
    #[schema(value_type = Option<i64>, minimum = -9_223_372_036_854_775_807i64)]
    points_max: Option<Integer>,
    /// New size of the frozen top, for periods closed from now on.
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1_000)]
    frozen_top_size: Option<Integer<i32>>,
    /// Number of newest closed periods that keep their archive, by kind: from 1 to 1,000,000, or
    /// null for all (of rolling windows: none). An absent kind stays unchanged.
    #[schema(value_type = Option<BTreeMap<ArchivedKind, KeptNumber>>, example = json!({"day": 30, "week": null}))]
    kept_archives: Option<BTreeMap<String, Option<Integer<i32>>>>,
    /// Readers of the board from now on.
    reading: Option<Reading>,
    /// New maximum of a player's events in any 60 seconds; null removes the limit.
    #[serde(default, deserialize_with = "body::present")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 10_000)]
    events_per_minute: Option<Option<Integer<i32>>>,
    /// Maximum gain of a player in a period, by kind of period: from 1 to 2⁵³ − 1, or null for no
    /// limit. An absent kind stays unchanged.
    #[schema(value_type = Option<BTreeMap<PeriodKind, GainNumber>>, example = json!({"day": 5_000, "week": null}))]
    gain_max: Option<BTreeMap<String, Option<Integer>>>,
    /// How to treat an event that breaks a rule from now on.
    on_violation: Option<OnViolation>,
    /// When to archive the all-time ranking from now on; null for never.
    #[serde(default, deserialize_with = "body::present")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    #[schema(value_type = Option<SnapshotKind>)]
    snapshots: Option<Option<SnapshotKind>>,
    /// Lengths of rolling windows from now on, instead of all earlier ones.
    #[schema(value_type = Option<Vec<String>>, example = json!(["7d", "24h"]), max_items = 8)]
    rolling: Option<Vec<String>>,
    /// Tags from now on, instead of all earlier ones.
    #[schema(value_type = Option<Vec<TagText>>, example = json!(["moba", "operability"]), max_items = 20)]
    tags: Option<Vec<String>>,
    /// New format of scores.
    #[schema(value_type = Option<ScoreFormatText>)]
    score_format: Option<String>,
    /// New text about the board; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    #[schema(value_type = Option<DescriptionText>)]
    description: Option<Option<String>>,
    /// New picture; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    #[schema(value_type = Option<IconUrlText>)]
    icon_url: Option<Option<String>>,
    /// New colour; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[expect(clippy::option_option, reason = "absent, null and a value mean three different things")]
    #[schema(value_type = Option<ColourText>)]
    colour: Option<Option<String>>,
    /// Tiers from now on, instead of all earlier ones. Closed periods keep theirs; a combined board
    /// gets the new ones with its next refresh.
    #[schema(value_type = Option<Vec<TierText>>, example = json!(["gold: top 10 %"]), max_items = 20)]
    tiers: Option<Vec<String>>,
    /// Attributes by which each period also has separate rankings, instead of all earlier ones.
    #[schema(value_type = Option<Vec<AttributeText>>, example = json!(["country"]), max_items = 4)]
    segments: Option<Vec<String>>,
    /// Changes to a combined board. A change to its sources, join or aggregate makes a refresh due at
    /// once; until then, readers get the previous ranking.
    combination: Option<ChangeCombination>,
}

impl TryFrom<UpdateBoard> for BoardChange {
    type Error = Error;

    fn try_from(request: UpdateBoard) -> Result<Self> {
        check_time_zone(request.time_zone.as_deref())?;
        Ok(Self {
            title: request.title,
            mode: request.mode,
            order: request.order,
            ties: request.ties,
            time_zone: request.time_zone,
            lanes: request.lanes.map(|Integer(lanes)| lanes),
            points_min: request.points_min.map(|Integer(points)| points),
            points_max: request.points_max.map(|Integer(points)| points),
            frozen_top_size: request.frozen_top_size.map(|Integer(size)| size),
            kept_archives: kept_archives(request.kept_archives)?,
            reading: request.reading,
            events_per_minute: request.events_per_minute.map(|given| given.map(|Integer(events)| events)),
            gain_max: gain_max(request.gain_max)?,
            on_violation: request.on_violation,
            snapshots: request.snapshots,
            rolling: request.rolling.as_deref().map(windows).transpose()?,
            tags: request.tags.as_deref().map(tags).transpose()?,
            presentation: PresentationChange {
                score_format: parsed(request.score_format.as_deref())?,
                description: request.description.as_ref().map(|text| parsed(text.as_deref())).transpose()?,
                icon_url: request.icon_url.as_ref().map(|url| parsed(url.as_deref())).transpose()?,
                colour: request.colour.as_ref().map(|colour| parsed(colour.as_deref())).transpose()?,
            },
            tiers: request.tiers.as_deref().map(Tiers::parse).transpose()?,
            segments: request.segments.as_deref().map(attributes).transpose()?,
            combination: request.combination.map(CombinationChange::try_from).transpose()?,
        })
    }
}

/// A board. Only holders of a server or admin key for the board see its limits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardResponse {
    /// Name in URLs.
    #[schema(example = "arena")]
    slug: String,
    /// Title shown to people.
    #[schema(example = "Arena")]
    title: String,
    /// How scores combine: `sum`, `best` or `latest`; `combined` for a board that is computed from
    /// others.
    #[schema(value_type = String, example = "sum")]
    mode: Mode,
    /// Which scores are better: `desc` for high ones, `asc` for low ones.
    #[schema(value_type = String, example = "desc")]
    order: Order,
    /// How equal scores are ranked: `shared`, `first` or `tiebreak`.
    #[schema(value_type = String, example = "shared")]
    ties: Ties,
    /// Kinds of period that the board keeps.
    #[schema(value_type = Vec<String>, example = json!(["all_time", "week"]))]
    periods: Vec<PeriodKind>,
    /// IANA time zone in which periods begin.
    #[schema(example = "UTC")]
    time_zone: String,
    /// Players in the frozen top of each closed period.
    #[schema(example = 100)]
    frozen_top_size: i32,
    /// Number of newest closed periods that keep their archive, by kind. A kind that is absent
    /// keeps all, except that rolling windows keep none.
    #[schema(value_type = BTreeMap<String, i32>, example = json!({"day": 30, "week": 52}))]
    kept_archives: KeptArchives,
    /// Readers of the board: `public` for everyone, `key` for holders of a key for it.
    #[schema(value_type = String, example = "public")]
    reading: Reading,
    /// `day`, `week` or `month` if the all-time ranking is archived at the end of each; null if not.
    #[schema(required = true, value_type = Option<String>, example = "week")]
    snapshots: Option<SnapshotKind>,
    /// Lengths of the rolling windows that the board keeps.
    #[schema(value_type = Vec<String>, example = json!(["7d"]))]
    rolling: Vec<WindowLength>,
    /// Names that group boards, in alphabetical order.
    #[schema(value_type = Vec<String>, example = json!(["moba", "operability"]))]
    tags: BTreeSet<Tag>,
    /// How scores are written for people, such as `number`, `decimal:2`, `number points` or
    /// `duration:ms`. Calls that return scores add `score_text` on request.
    #[schema(example = "number points")]
    score_format: String,
    /// Text about the board.
    #[schema(required = true, example = "Kills per match")]
    description: Option<String>,
    /// Picture of the board: an https URL, or a path on the host of the service.
    #[schema(required = true, example = "https://example.com/arena.png")]
    icon_url: Option<String>,
    /// Colour of the board, in lower case.
    #[schema(required = true, example = "#1f6feb")]
    colour: Option<String>,
    /// Named parts of the rankings, best first. A player has the first tier whose rule holds.
    #[schema(example = json!(["gold: top 10 %", "silver: rank 5000"]))]
    tiers: Vec<String>,
    /// Attributes of players by which each period also has separate rankings.
    #[schema(value_type = Vec<String>, example = json!(["country"]))]
    segments: Vec<Attribute>,
    /// How a combined board is computed. Absent for other boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    combination: Option<CombinationResponse>,
    /// When the board was created.
    created_at: DateTime<Utc>,
    #[serde(flatten)]
    limits: Option<LimitsResponse>,
}

/// Limits of the events of a board, and its lanes. Absent without a server or admin key for the board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsResponse {
    /// Number of writer lanes.
    #[schema(required = false)]
    lanes: i16,
    /// Minimum points of an event.
    #[schema(required = false)]
    points_min: i64,
    /// Maximum points of an event.
    #[schema(required = false)]
    points_max: i64,
    /// Maximum events of a player in any 60 seconds; null for no limit.
    #[schema(required = false, example = 60)]
    events_per_minute: Option<i32>,
    /// Maximum gain of a player in a period, by kind of period. A kind that is absent is unlimited.
    #[schema(required = false, value_type = BTreeMap<String, i64>, example = json!({"day": 5_000}))]
    gain_max: GainMax,
    /// How the board treats an event that breaks a rule: `refuse` or `quarantine`.
    #[schema(required = false, value_type = String, example = "refuse")]
    on_violation: OnViolation,
}

impl BoardResponse {
    /// Describes `board` to everyone.
    fn public(board: &Board) -> Self {
        Self {
            slug: board.slug.to_string(),
            title: board.title.clone(),
            mode: board.mode,
            order: board.order,
            ties: board.ties,
            periods: board.periods.clone(),
            time_zone: board.time_zone.clone(),
            frozen_top_size: board.frozen_top_size,
            kept_archives: board.kept_archives.clone(),
            reading: board.reading,
            snapshots: board.snapshots,
            rolling: board.rolling.clone(),
            tags: board.tags.clone(),
            score_format: board.presentation.score_format.to_string(),
            description: board.presentation.description.as_ref().map(ToString::to_string),
            icon_url: board.presentation.icon_url.as_ref().map(ToString::to_string),
            colour: board.presentation.colour.as_ref().map(ToString::to_string),
            tiers: board.tiers.iter().map(ToString::to_string).collect(),
            segments: board.segments.clone(),
            combination: board.combination.as_ref().map(CombinationResponse::public),
            created_at: board.created_at,
            limits: None,
        }
    }
}

impl From<&Board> for BoardResponse {
    /// Describes `board` to a holder of a server or admin key.
    fn from(board: &Board) -> Self {
        let limits = LimitsResponse {
            lanes: board.lanes,
            points_min: board.points_min,
            points_max: board.points_max,
            events_per_minute: board.events_per_minute,
            gain_max: board.gain_max.clone(),
            on_violation: board.on_violation,
        };
        let combination = board.combination.as_ref().map(CombinationResponse::from);
        Self { limits: Some(limits), combination, ..Self::public(board) }
    }
}

/// Selects boards, and a page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BoardsQuery {
    /// Only boards with this tag.
    #[param(value_type = Option<TagText>)]
    tag: Option<String>,
    /// Maximum rows of the page.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u64>,
    /// `next_cursor` of an earlier page.
    #[param(min_length = 1)]
    cursor: Option<String>,
}

/// A page of boards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardsResponse {
    /// The boards, by slug.
    data: Vec<BoardResponse>,
    /// `cursor` of the next page; null after the last board.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Create a board
///
/// Needs an admin key.
#[utoipa::path(
    post, path = "/v1/boards", operation_id = "create_board", tag = "boards", security(("key" = [])),
    request_body = CreateBoard,
    responses(
        (status = 201, description = "The board was created.", body = BoardResponse,
            headers(("Location" = String, description = "Path of the board."))),
        WriteProblems,
    ),
)]
pub(crate) async fn create(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    query::none(&request)?;
    let new: CreateBoard = body::json(&api, &request, payload).await?;
    let board = boards::create(&api.instance.boards, new.try_into()?, &by).await?;
    let location = header::HeaderValue::try_from(format!("/v1/boards/{}", board.slug))
        .map_err(|error| Error::Internal(format!("cannot build the path of board {}: {error}", board.slug)))?;
    let mut response = reply::written(StatusCode::CREATED, &BoardResponse::from(&board));
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// List the boards
///
/// Lists the boards that everyone may read and, with a key, the boards of the key.
#[utoipa::path(
    get, path = "/v1/boards", operation_id = "list_boards", tag = "boards", security((), ("key" = [])),
    params(BoardsQuery),
    responses((status = 200, description = "The boards, by slug.", body = BoardsResponse), ListProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let BoardsQuery { tag, limit, cursor } = query::parse(&request)?;
    let (tag, list) = (query::tag(tag.as_deref())?, ListQuery { limit, cursor });
    let key = caller::given(&api, &request).await?;
    let boards = caller::readable_boards(&api, key.as_deref(), tag.as_ref()).await?;
    let (boards, next) = list.page(boards, |board| board.slug.as_str())?;
    let shown = |board: &Board| {
        let is_server = key.as_ref().is_some_and(|key| key.may_write(&board.slug).is_ok());
        if is_server { BoardResponse::from(board) } else { BoardResponse::public(board) }
    };
    let data = boards.iter().map(shown).collect();
    Ok(reply::read(&BoardsResponse { data, next_cursor: next }))
}

/// Show a board
#[utoipa::path(
    get, path = "/v1/boards/{board}", operation_id = "show_board", tag = "boards",
    security((), ("key" = [])), params(BoardPath),
    responses((status = 200, description = "The board.", body = BoardResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    query::none(&request)?;
    let path = BoardPath::of(&request)?;
    let board = caller::readable(&api, &request, &path.board).await?;
    let is_server = caller::is_server(&api, &request, Some(&path.board)).await?;
    Ok(reply::read(&if is_server { BoardResponse::from(&*board) } else { BoardResponse::public(&board) }))
}

/// Change a board
///
/// Needs an admin key. Mode, order, ties, time zone, lanes and segments cannot change once events
/// exist.
#[utoipa::path(
    patch, path = "/v1/boards/{board}", operation_id = "update_board", tag = "boards", security(("key" = [])),
    params(BoardPath), request_body = UpdateBoard,
    responses((status = 200, description = "The changed board.", body = BoardResponse), WriteProblems),
)]
pub(crate) async fn update(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::of(&request)?;
    query::none(&request)?;
    let change: UpdateBoard = body::json(&api, &request, payload).await?;
    let board = boards::update(&api.instance.boards, &path.board, change.try_into()?, &by).await?;
    Ok(reply::written(StatusCode::OK, &BoardResponse::from(&board)))
}
