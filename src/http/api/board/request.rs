//! Rules of a board, as a caller sets them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use strum::VariantNames;
use utoipa::ToSchema;

use crate::{
    Error, Result,
    http::api::{
        board::first_layout::{FirstLayoutObject, FirstLayoutRequest},
        body::{self, Integer},
        combination::{ChangeCombination, CreateCombination},
    },
    model::{
        board::{
            ArchivedKind, BoardChange, BoardSlug, Buckets, DEFAULT_FROZEN_TOP_SIZE, DEFAULT_PERIODS,
            DEFAULT_POINTS_BOUND, FirstLayout, GainMaxChange, KeptArchivesChange, Mode, NewBoard, OnViolation, Order,
            PeriodKind, Reading, SnapshotKind, Ties, WindowLength,
        },
        combination::{CombinationChange, NewCombination},
        presentation::{Colour, Description, IconUrl, Presentation, PresentationChange, ScoreFormat},
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
    #[schema(value_type = String, example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    slug: BoardSlug,
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
    /// Number of newest closed periods that keep their archive, by kind: from 1 to 1,000,000, or
    /// null for all (of rolling windows: none). A kind that is absent is like null, except that
    /// hours keep 168 and snapshots 60.
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
    rolling: Option<Vec<WindowLength>>,
    /// Names that group boards, up to 20: 1 to 40 lower-case letters, digits, `-` and `_`, beginning
    /// with a letter or a digit.
    #[schema(value_type = Option<Vec<TagText>>, example = json!(["moba"]), max_items = 20)]
    tags: Option<BTreeSet<Tag>>,
    /// How scores are written for people: `number`, `decimal:2` (12345 is 123.45), `duration:ms` or
    /// `duration:s`. `number` and `decimal` may have a unit after a space, such as `number points`.
    /// `number` when absent.
    #[schema(value_type = Option<ScoreFormatText>)]
    score_format: Option<ScoreFormat>,
    /// Text about the board, up to 1,000 bytes.
    #[schema(value_type = Option<DescriptionText>)]
    description: Option<Description>,
    /// Picture of the board: an https URL, or a path on the host of the service, up to 1,024 bytes.
    /// Pages show the picture only if this is a path.
    #[schema(value_type = Option<IconUrlText>)]
    icon_url: Option<IconUrl>,
    /// Colour of the board, for decoration.
    #[schema(value_type = Option<ColourText>)]
    colour: Option<Colour>,
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
    segments: Option<Vec<Attribute>>,
    /// Which rankings have bucket rows; `all` when absent. `all_time` saves 40 % of PostgreSQL's time
    /// per score. Rank indexes in memory alone then rank the other periods; while one is not ready, a
    /// read gets 503 `index_unavailable`.
    buckets: Option<Buckets>,
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
            ("buckets", self.buckets.is_some()),
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
            slug: request.slug,
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
            kept_archives: kept_archives(request.kept_archives)?,
            reading: request.reading.unwrap_or_default(),
            events_per_minute: request.events_per_minute.map(|Integer(events)| events),
            gain_max: gain_max(request.gain_max)?.into_iter().filter_map(|(kind, most)| Some((kind, most?))).collect(),
            on_violation: request.on_violation.unwrap_or_default(),
            snapshots: request.snapshots,
            rolling: request.rolling.unwrap_or_default(),
            tags: request.tags.unwrap_or_default(),
            presentation: Presentation {
                score_format: request.score_format.unwrap_or_default(),
                description: request.description,
                icon_url: request.icon_url,
                colour: request.colour,
            },
            tiers: Tiers::parse(&request.tiers.unwrap_or_default())?,
            segments: request.segments.unwrap_or_default(),
            buckets: request.buckets.unwrap_or_default(),
            combination: request.combination.map(NewCombination::try_from).transpose()?,
        })
    }
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
    #[schema(value_type = Option<SnapshotKind>)]
    snapshots: Option<Option<SnapshotKind>>,
    /// Lengths of rolling windows from now on, instead of all earlier ones.
    #[schema(value_type = Option<Vec<String>>, example = json!(["7d", "24h"]), max_items = 8)]
    rolling: Option<Vec<WindowLength>>,
    /// Tags from now on, instead of all earlier ones.
    #[schema(value_type = Option<Vec<TagText>>, example = json!(["moba", "operability"]), max_items = 20)]
    tags: Option<BTreeSet<Tag>>,
    /// New format of scores.
    #[schema(value_type = Option<ScoreFormatText>)]
    score_format: Option<ScoreFormat>,
    /// New text about the board; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[schema(value_type = Option<DescriptionText>)]
    description: Option<Option<Description>>,
    /// New picture; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[schema(value_type = Option<IconUrlText>)]
    icon_url: Option<Option<IconUrl>>,
    /// New colour; null removes it.
    #[serde(default, deserialize_with = "body::present")]
    #[schema(value_type = Option<ColourText>)]
    colour: Option<Option<Colour>>,
    /// Tiers from now on, instead of all earlier ones. Closed periods keep theirs; a combined board
    /// gets the new ones with its next refresh.
    #[schema(value_type = Option<Vec<TierText>>, example = json!(["gold: top 10 %"]), max_items = 20)]
    tiers: Option<Vec<String>>,
    /// Attributes by which each period also has separate rankings, instead of all earlier ones.
    #[schema(value_type = Option<Vec<AttributeText>>, example = json!(["country"]), max_items = 4)]
    segments: Option<Vec<Attribute>>,
    /// Which rankings get bucket rows. Applies to new periods, and to open ones once `centile rebuild`
    /// has run.
    buckets: Option<Buckets>,
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
            rolling: request.rolling,
            tags: request.tags,
            presentation: PresentationChange {
                score_format: request.score_format,
                description: request.description,
                icon_url: request.icon_url,
                colour: request.colour,
            },
            tiers: request.tiers.as_deref().map(Tiers::parse).transpose()?,
            segments: request.segments,
            buckets: request.buckets,
            combination: request.combination.map(CombinationChange::try_from).transpose()?,
        })
    }
}
