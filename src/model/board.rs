//! Boards and their rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use utoipa::ToSchema;

use crate::{
    Error, Result,
    model::{
        combination::{Combination, CombinationChange, NewCombination},
        json::as_text,
        name::Named as _,
        presentation::{Presentation, PresentationChange},
        segment::Attribute,
        tag::Tag,
        tier::Tiers,
    },
};

/// How a player's score in a period follows from the player's score transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Mode {
    /// The sum of all points.
    Sum,
    /// The best single event.
    Best,
    /// The latest event.
    Latest,
    /// Computed from periods of other boards. Such a board has no events.
    Combined,
}

/// Which scores are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Order {
    /// Larger scores are better.
    Desc,
    /// Smaller scores are better (lap times).
    Asc,
}

/// How equal scores are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ties {
    /// Equal scores share a rank: 1, 2, 2, 4.
    Shared,
    /// The player who reached the score first is ahead.
    First,
    /// The larger `tiebreak` of the event is ahead, then the player who reached the score first.
    Tiebreak,
}

/// Access for readers of a board.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reading {
    /// Everyone.
    #[default]
    Public,
    /// Callers with a key for the board.
    Key,
}

/// Selects boards. The default selects all.
#[derive(Debug, Clone, Copy, Default)]
pub struct BoardFilter<'a> {
    /// Only boards with this tag.
    pub tag: Option<&'a Tag>,
    /// Only boards after this one.
    pub after: Option<&'a BoardSlug>,
    /// Only public boards and these.
    pub readable: Option<&'a [BoardSlug]>,
    /// Maximum number.
    pub limit: Option<usize>,
}

/// Treatment of an event that breaks a rule of its board against cheating.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OnViolation {
    /// The event is refused.
    #[default]
    Refuse,
    /// The event stays in quarantine until an administrator accepts or rejects it.
    Quarantine,
}

/// Which rankings have bucket rows, from which SQL reads ranks. A change takes effect for rankings
/// that are created from then on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Buckets {
    /// All.
    #[default]
    All,
    /// Those of all time. Only rank indexes answer for the others over HTTP.
    AllTime,
}

/// Kinds of period.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PeriodKind {
    /// All time, without start or end.
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
    /// A named period with an explicit start and end. An administrator creates each season.
    Season,
    /// The all-time ranking as of the end of a day, week or month.
    Snapshot,
    /// A window that ends with the current day or hour, such as the last seven days.
    Rolling,
}

impl PeriodKind {
    /// Returns the name of the period with this label, such as `week:2024-01-15`.
    pub(crate) fn period_name(self, label: &str) -> String {
        match self {
            Self::AllTime => self.name().to_owned(),
            kind => format!("{}:{label}", kind.name()),
        }
    }
}

/// Kinds that are not in a board's list of periods.
pub(crate) const UNLISTED_KINDS: [PeriodKind; 3] = [PeriodKind::Season, PeriodKind::Snapshot, PeriodKind::Rolling];

/// Kinds of period that end, and therefore have an archive after closing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ArchivedKind {
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Weeks.
    Week,
    /// Months.
    Month,
    /// Quarters.
    Quarter,
    /// Years.
    Year,
    /// Seasons.
    Season,
    /// Snapshots.
    Snapshot,
    /// Rolling windows.
    Rolling,
}

/// Kinds of period at whose end a board may archive its all-time ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SnapshotKind {
    /// At the end of each day.
    Day,
    /// At the end of each week.
    Week,
    /// At the end of each month.
    Month,
}

impl From<SnapshotKind> for PeriodKind {
    fn from(kind: SnapshotKind) -> Self {
        match kind {
            SnapshotKind::Day => Self::Day,
            SnapshotKind::Week => Self::Week,
            SnapshotKind::Month => Self::Month,
        }
    }
}

/// Length of a rolling window: a number of days from 2 to 366, or 24 hours. Text forms: `7d`, `24h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WindowLength {
    /// The 24 hours up to the end of the current hour.
    DayOfHours,
    /// This many days, the last of which is the current one.
    Days(u16),
}

impl FromStr for WindowLength {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let length = match text.strip_suffix('d').map(|days| (days, days.parse::<u16>())) {
            Some((text, Ok(days))) if (2..=366).contains(&days) && days.to_string() == text => Some(Self::Days(days)),
            None if text == "24h" => Some(Self::DayOfHours),
            _ => None,
        };
        length.ok_or_else(|| {
            Error::invalid("rolling", format!("{text:?} is not the length of a window: use 2d to 366d, or 24h"))
        })
    }
}

impl fmt::Display for WindowLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DayOfHours => f.write_str("24h"),
            Self::Days(days) => write!(f, "{days}d"),
        }
    }
}

as_text!(WindowLength, BoardSlug);

/// Number of closed periods of each kind that keep their archive, newest first. A kind that is
/// absent keeps all archives, except that rolling windows keep none.
pub type KeptArchives = BTreeMap<ArchivedKind, i32>;

/// Changes to [`KeptArchives`]: the new number of a kind, or `None` for its default: all, or none of
/// rolling windows. A kind that is absent does not change.
pub type KeptArchivesChange = BTreeMap<ArchivedKind, Option<i32>>;

/// Maximum gain of a player in a period, by kind; without a limit for a kind that is absent.
/// `rules/limits.rs` defines a gain.
pub type GainMax = BTreeMap<PeriodKind, i64>;

/// Changes to [`GainMax`]: the new limit of a kind, or `None` to remove it. A kind that is absent
/// does not change.
pub type GainMaxChange = BTreeMap<PeriodKind, Option<i64>>;

/// A board's name in URLs: 1 to 40 lower-case letters, digits, `-` and `_`, starting with a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardSlug(String);

impl BoardSlug {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BoardSlug {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let tail_is_good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if tail_is_good && text.len() <= 40 && text.starts_with(|c: char| c.is_ascii_lowercase()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid(
                "board",
                "a board's name must have 1 to 40 lower-case letters, digits, '-' and '_', and start with a letter",
            ))
        }
    }
}

impl fmt::Display for BoardSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Source of the bucket bounds of a ranking without players.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstLayout {
    /// Boundaries between ranges: 1 to 99 scores, strictly ascending.
    Bounds(Vec<i64>),
    /// 100 ranges of equal width from 0 to this score.
    ExpectedPoints(i64),
}

/// Default limit of points in both directions: the largest integer that every JSON reader
/// represents exactly (RFC 8259, section 6).
pub const DEFAULT_POINTS_BOUND: i64 = 9_007_199_254_740_991;

/// Default number of players in a frozen top.
pub const DEFAULT_FROZEN_TOP_SIZE: i32 = 100;

/// Maximum number of players in a frozen top.
pub const FROZEN_TOP_MAX: i32 = 1_000;

/// Maximum number of kept archives of a kind. To keep more, keep all.
pub const KEPT_ARCHIVES_MAX: i32 = 1_000_000;

/// Maximum limit of events per player and minute. To allow more, set no limit.
pub const EVENTS_PER_MINUTE_MAX: i32 = 10_000;

/// Default kinds of period of a board.
pub const DEFAULT_PERIODS: [PeriodKind; 4] =
    [PeriodKind::AllTime, PeriodKind::Day, PeriodKind::Week, PeriodKind::Month];

/// Properties of a new board.
#[derive(Debug, Clone)]
pub struct NewBoard {
    /// Name in URLs.
    pub slug: BoardSlug,
    /// Title for display; the slug when absent.
    pub title: Option<String>,
    /// How scores follow from events.
    pub mode: Mode,
    /// Which scores are better.
    pub order: Order,
    /// How equal scores are ranked.
    pub ties: Ties,
    /// Kinds of period; at least one, each at most once.
    pub periods: Vec<PeriodKind>,
    /// Writer lanes, 1 to 64; by default depends on the number of cores.
    pub lanes: Option<i16>,
    /// IANA time zone in which periods begin.
    pub time_zone: String,
    /// Minimum points of an event.
    pub points_min: i64,
    /// Maximum points of an event.
    pub points_max: i64,
    /// Bucket bounds of new rankings; one bucket when absent.
    pub first_layout: Option<FirstLayout>,
    /// Players in the frozen top of each closed period, 1 to [`FROZEN_TOP_MAX`].
    pub frozen_top_size: i32,
    /// Number of closed periods that keep their archive, by kind. `None` keeps all, or no rolling
    /// windows; so does a kind that is absent, except that hours keep 168 and snapshots 60.
    pub kept_archives: KeptArchivesChange,
    /// Access for readers.
    pub reading: Reading,
    /// Maximum events of a player in any 60 seconds, 1 to [`EVENTS_PER_MINUTE_MAX`]; no limit when
    /// absent.
    pub events_per_minute: Option<i32>,
    /// Maximum gain of a player in a period, by kind.
    pub gain_max: GainMax,
    /// Treatment of an event that breaks a rule against cheating.
    pub on_violation: OnViolation,
    /// When the all-time ranking is archived, if ever.
    pub snapshots: Option<SnapshotKind>,
    /// Lengths of the rolling windows.
    pub rolling: Vec<WindowLength>,
    /// Names that group boards.
    pub tags: BTreeSet<Tag>,
    /// Named parts of the rankings.
    pub tiers: Tiers,
    /// Attributes of users by which the board has separate rankings.
    pub segments: Vec<Attribute>,
    /// Which rankings have bucket rows.
    pub buckets: Buckets,
    /// How the board is shown.
    pub presentation: Presentation,
    /// How a combined board is computed; none for other boards.
    pub combination: Option<NewCombination>,
}

/// Changes to a board.
///
/// Changes that alter the meaning of scores are refused once events exist.
#[derive(Debug, Clone, Default)]
pub struct BoardChange {
    /// New title.
    pub title: Option<String>,
    /// New mode (refused once events exist).
    pub mode: Option<Mode>,
    /// New order (refused once events exist).
    pub order: Option<Order>,
    /// New rule for ties (refused once events exist).
    pub ties: Option<Ties>,
    /// New time zone (refused once events exist).
    pub time_zone: Option<String>,
    /// New number of lanes (refused once events exist).
    pub lanes: Option<i16>,
    /// New minimum points of an event.
    pub points_min: Option<i64>,
    /// New maximum points of an event.
    pub points_max: Option<i64>,
    /// New size of frozen tops, for periods closed after the change.
    pub frozen_top_size: Option<i32>,
    /// Changes to the number of closed periods that keep their archive.
    pub kept_archives: KeptArchivesChange,
    /// New access for readers.
    pub reading: Option<Reading>,
    /// New limit of events of a player in any 60 seconds; `Some(None)` removes it.
    pub events_per_minute: Option<Option<i32>>,
    /// Changes to the maximum gains.
    pub gain_max: GainMaxChange,
    /// New treatment of events that break a rule against cheating.
    pub on_violation: Option<OnViolation>,
    /// When the all-time ranking is archived; `Some(None)` for never.
    pub snapshots: Option<Option<SnapshotKind>>,
    /// New lengths of the rolling windows, instead of all earlier ones.
    pub rolling: Option<Vec<WindowLength>>,
    /// New tags, instead of all earlier ones.
    pub tags: Option<BTreeSet<Tag>>,
    /// New tiers, instead of all earlier ones.
    pub tiers: Option<Tiers>,
    /// New attributes with separate rankings, instead of all earlier ones (refused once events exist).
    pub segments: Option<Vec<Attribute>>,
    /// Which rankings have bucket rows, of those created from now on.
    pub buckets: Option<Buckets>,
    /// Changes to how the board is shown.
    pub presentation: PresentationChange,
    /// Changes to the computation of a combined board.
    pub combination: Option<CombinationChange>,
}

/// A board. Its JSON form leaves out the limits of its events, which not everyone may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = BoardRules)]
pub struct Board {
    /// Internal id.
    #[serde(rename(deserialize = "board_id"), skip_serializing)]
    #[schema(ignore)]
    pub id: i32,
    /// Name in URLs.
    #[schema(value_type = String, example = "arena")]
    pub slug: BoardSlug,
    /// Title shown to people.
    #[schema(example = "Arena")]
    pub title: String,
    /// How scores combine: `sum`, `best` or `latest`; `combined` for a board that is computed from
    /// others.
    #[schema(value_type = String, example = "sum")]
    pub mode: Mode,
    /// Which scores are better: `desc` for high ones, `asc` for low ones.
    #[serde(rename(deserialize = "score_order"))]
    #[schema(value_type = String, example = "desc")]
    pub order: Order,
    /// How equal scores are ranked: `shared`, `first` or `tiebreak`.
    #[schema(value_type = String, example = "shared")]
    pub ties: Ties,
    /// Kinds of period that the board keeps.
    #[schema(value_type = Vec<String>, example = json!(["all_time", "week"]))]
    pub periods: Vec<PeriodKind>,
    /// IANA time zone in which periods begin.
    #[schema(example = "UTC")]
    pub time_zone: String,
    /// Players in the frozen top of each closed period.
    #[schema(example = 100)]
    pub frozen_top_size: i32,
    /// Number of newest closed periods that keep their archive, by kind. A kind that is absent
    /// keeps all, except that rolling windows keep none.
    #[schema(value_type = BTreeMap<String, i32>, example = json!({"day": 30, "week": 52}))]
    pub kept_archives: KeptArchives,
    /// Readers of the board: `public` for everyone, `key` for holders of a key for it.
    #[schema(value_type = String, example = "public")]
    pub reading: Reading,
    /// `day`, `week` or `month` if the all-time ranking is archived at the end of each; null if not.
    #[schema(required = true, value_type = Option<String>, example = "week")]
    pub snapshots: Option<SnapshotKind>,
    /// Lengths of the rolling windows that the board keeps.
    #[schema(value_type = Vec<String>, example = json!(["7d"]))]
    pub rolling: Vec<WindowLength>,
    /// Names that group boards, in alphabetical order.
    #[schema(value_type = Vec<String>, example = json!(["moba", "operability"]))]
    pub tags: BTreeSet<Tag>,
    /// How the board is shown.
    #[serde(flatten)]
    pub presentation: Presentation,
    /// Named parts of the rankings, best first. A player has the first tier whose rule holds.
    #[schema(value_type = Vec<String>, example = json!(["gold: top 10 %", "silver: rank 5000"]))]
    pub tiers: Tiers,
    /// Attributes of players by which each period also has separate rankings.
    #[schema(value_type = Vec<String>, example = json!(["country"]))]
    pub segments: Vec<Attribute>,
    /// Which new rankings have bucket rows: `all`, or only those of `all_time`.
    #[schema(value_type = String, example = "all")]
    pub buckets: Buckets,
    /// When the board was created.
    pub created_at: DateTime<Utc>,
    /// How a combined board is computed; none for other boards.
    #[serde(skip)]
    pub combination: Option<Combination>,
    /// Number of writer lanes.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub lanes: i16,
    /// Minimum points of an event.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub points_min: i64,
    /// Maximum points of an event.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub points_max: i64,
    /// Maximum events of a player in any 60 seconds; no limit when absent.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub events_per_minute: Option<i32>,
    /// Maximum gain of a player in a period, by kind.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub gain_max: GainMax,
    /// Treatment of an event that breaks a rule against cheating.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub on_violation: OnViolation,
}
