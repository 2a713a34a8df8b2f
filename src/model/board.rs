//! Boards and their rules.

pub use crate::model::rule::{
    ArchivedKind, BoardPattern, BoardSlug, Buckets, Mode, OnViolation, Order, PeriodKind, Reading, SnapshotKind,
    TiebreakSum, Ties, WindowLength,
};

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Result,
    model::{
        combination::{Combination, CombinationSettings},
        first_layout::{FirstLayout, FirstLayoutObject},
        json,
        name::Named,
        period::PeriodSelector,
        presentation::{Colour, Description, IconUrl, Presentation, ScoreFormat, ScoreFormatText},
        segment::Attribute,
        tag::Tag,
        tier::{TierText, Tiers},
    },
};

/// Selects boards. The default selects all.
#[derive(Debug, Clone, Copy, Default)]
pub struct BoardFilter<'a> {
    pub tag: Option<&'a Tag>,
    /// Boards of this template; `None` selects boards of their own.
    pub template: Option<&'a str>,
    /// Beginning of the slugs.
    pub prefix: &'a str,
    /// Only boards after this one.
    pub after: Option<&'a BoardSlug>,
    /// Only public boards and these.
    pub readable: Option<&'a [BoardPattern]>,
    pub limit: Option<usize>,
}

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

/// Maximum number of kept archives of a kind. To keep more, keep all.
pub const KEPT_ARCHIVES_MAX: i32 = 1_000_000;

/// Rules of a new board, or changes to the rules of a board. `None` means the default, or no change.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardSettings {
    /// Name in URLs. Required for a new board, and only allowed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "arena", min_length = 1, max_length = 40, pattern = "^[a-z][a-z0-9_-]*$")]
    pub slug: Option<BoardSlug>,
    /// Title shown to people; the slug by default.
    #[schema(example = "Arena", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub title: Option<String>,
    /// How scores combine. Cannot change once events exist.
    pub mode: Option<Mode>,
    /// Which scores are better; `desc` by default. Cannot change once events exist.
    pub order: Option<Order>,
    /// How equal scores are ranked; `shared` by default. Cannot change once events exist.
    pub ties: Option<Ties>,
    /// Which second numbers are better, with ties `second`; `desc` by default. Cannot change once events
    /// exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiebreak_order: Option<Order>,
    /// How second numbers combine on a `sum` board with ties `second`; `added` by default. Cannot change
    /// once events exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiebreak_sum: Option<TiebreakSum>,
    /// Kinds of period that the board keeps, each once; `all_time`, `day`, `week` and `month` by
    /// default. Cannot change.
    #[schema(value_type = Option<BTreeSet<RecurringKind>>, example = json!(["all_time", "week"]), min_items = 1, max_items = 7)]
    pub periods: Option<Vec<PeriodKind>>,
    /// Number of writer lanes; by default, it depends on the number of cores. Cannot change once
    /// events exist.
    #[serde(default, deserialize_with = "json::integer")]
    #[schema(value_type = Option<i16>, minimum = 1, maximum = 64)]
    pub lanes: Option<i16>,
    /// IANA time zone in which periods begin; `UTC` by default. Cannot change once events exist.
    #[schema(example = "Europe/Berlin", min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub time_zone: Option<String>,
    /// Minimum points of an event; −(2⁵³ − 1) by default.
    #[serde(default, deserialize_with = "json::integer")]
    #[schema(value_type = Option<i64>, example = 0, minimum = -9_223_372_036_854_775_807i64)]
    pub points_min: Option<i64>,
    /// Maximum points of an event; 2⁵³ − 1 by default.
    #[serde(default, deserialize_with = "json::integer")]
    #[schema(value_type = Option<i64>, example = 1_000, minimum = -9_223_372_036_854_775_807i64)]
    pub points_max: Option<i64>,
    /// Bounds of the first buckets of a ranking, used while there are no players to derive them from;
    /// one bucket by default. Cannot change.
    #[schema(value_type = Option<FirstLayoutObject>)]
    pub first_layout: Option<FirstLayout>,
    /// Players in the frozen top of each closed period; 100 by default. A change applies to periods
    /// that close later.
    #[serde(default, deserialize_with = "json::integer")]
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1_000)]
    pub frozen_top_size: Option<i32>,
    /// Number of newest closed periods that keep their archive, by kind: from 1 to 1,000,000, or
    /// null for all (of rolling windows: none). A new board with hours keeps 168 of them, and one
    /// with snapshots keeps 60; other kinds are like null. A change leaves absent kinds as they are.
    #[serde(default, deserialize_with = "json::integers", skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Option<BTreeMap<ArchivedKind, KeptArchivesNumber>>, example = json!({"day": 30, "week": 52}))]
    pub kept_archives: KeptArchivesChange,
    /// Readers of the board; `public` by default.
    pub reading: Option<Reading>,
    /// Maximum events of a player in any 60 seconds. null, the default, is no limit.
    #[serde(default, deserialize_with = "json::nullable_integer", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 10_000, example = 60)]
    pub events_per_minute: Option<Option<i32>>,
    /// Maximum gain of a player in a period, by kind of period: from 1 to 2⁵³ − 1, or null for no
    /// limit, the default. A change leaves absent kinds as they are. The kind is `season` or one that
    /// the board keeps.
    ///
    /// On `sum` boards the gain is what the player has won in the period; losses do not reduce it.
    /// On `best` and `latest` boards it is the improvement over the score at the start of the
    /// period. For a new player, it is the improvement over the first score.
    #[serde(default, deserialize_with = "json::integers", skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Option<BTreeMap<PeriodKind, GainNumber>>, example = json!({"day": 5_000}))]
    pub gain_max: GainMaxChange,
    /// How to treat an event outside the points bounds, `events_per_minute` or `gain_max`; `refuse` by
    /// default.
    pub on_violation: Option<OnViolation>,
    /// The service archives the all-time ranking at the end of each day, week or month, as
    /// `snapshot:week-2024-01-15`. null, the default, turns this off. The board must keep `all_time`.
    #[serde(default, deserialize_with = "json::nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SnapshotKind>)]
    pub snapshots: Option<Option<SnapshotKind>>,
    /// Lengths of rolling windows, up to 8: `2d` to `366d` for days, `24h` for hours. The period
    /// `rolling:7d` is then the seven days that end with the current one.
    #[schema(value_type = Option<Vec<String>>, example = json!(["7d", "24h"]), max_items = 8)]
    pub rolling: Option<Vec<WindowLength>>,
    /// Names that group boards, up to 20: 1 to 40 lower-case letters, digits, `-` and `_`, starting
    /// with a letter or a digit.
    #[schema(example = json!(["moba"]), max_items = 20)]
    pub tags: Option<BTreeSet<Tag>>,
    /// How scores are written for people: `number`, `decimal:2` (12345 is 123.45), `duration:ms` or
    /// `duration:s`. `number` and `decimal` may have a unit after a space, such as `number points`.
    /// `number` by default.
    #[schema(value_type = Option<ScoreFormatText>)]
    pub score_format: Option<ScoreFormat>,
    /// Text about the board, up to 1,000 bytes; null for none.
    #[serde(default, deserialize_with = "json::nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Description>)]
    pub description: Option<Option<Description>>,
    /// Picture of the board: an https URL, or a path on the host of the service, up to 1,024 bytes;
    /// null for none. Pages show the picture only if this is a path.
    #[serde(default, deserialize_with = "json::nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<IconUrl>)]
    pub icon_url: Option<Option<IconUrl>>,
    /// Colour of the board, for decoration; null for none.
    #[serde(default, deserialize_with = "json::nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Colour>)]
    pub colour: Option<Option<Colour>>,
    /// Named parts of the rankings, up to 20, best first, with different names: `gold: top 10 %` (0.01
    /// to 100, with up to two decimals), `gold: rank 100` or `gold: score 5000` (5,000 or better). A
    /// player has the first tier whose rule holds. After a change, closed periods keep their tiers, and
    /// a combined board gets the new ones with its next refresh.
    #[schema(value_type = Option<Vec<TierText>>, example = json!(["gold: top 10 %", "silver: rank 5000"]), max_items = 20)]
    pub tiers: Option<Tiers>,
    /// Attributes of players, up to 4, by which each period also has separate rankings:
    /// `segment=country:DE` then reads the ranking of the players whose attribute `country` is `DE`.
    /// Names have 1 to 32 lower-case letters, digits and `_`. A board with segments has neither
    /// `snapshots` nor `rolling`. Cannot change once events exist.
    #[schema(example = json!(["country"]), max_items = 4)]
    pub segments: Option<Vec<Attribute>>,
    /// Which rankings have bucket rows; `all` by default. `all_time` saves 40 % of PostgreSQL's time
    /// per score. Rank indexes in memory alone then rank the other periods; while one is not ready, a
    /// read gets 503 `index_unavailable`. A change applies to new periods, and to open ones once
    /// `centile rebuild` has run.
    pub buckets: Option<Buckets>,
    /// Kind of period that requests without `period` read; `all_time` by default, or the first kind on a
    /// board without it. It must be one that the board keeps.
    #[schema(value_type = Option<RecurringKind>)]
    pub default_period: Option<PeriodKind>,
    /// Whether the service refreshes archives that lack a correction; false by default. Otherwise an
    /// operator does, with `centile refresh`.
    pub refresh_corrected: Option<bool>,
    /// How a board of mode `combined` is computed. Such a board has one period, `all_time`. It may set
    /// title, order, ties, time zone, frozen top, reading, tags, score format, description, icon,
    /// colour and tiers. A change to sources, join or aggregate makes a refresh due at once. Until it
    /// ends, readers get the previous ranking.
    pub combination: Option<CombinationSettings>,
}

/// Number of closed periods of a kind that keep their archive.
#[derive(Debug, ToSchema)]
#[schema(minimum = 1, maximum = 1_000_000)]
#[expect(dead_code, reason = "describes a valid number")]
struct KeptArchivesNumber(Option<i32>);

/// Maximum gain of a player in a period of one kind.
#[derive(Debug, ToSchema)]
#[schema(minimum = 1, maximum = 9_007_199_254_740_991i64)]
#[expect(dead_code, reason = "describes a valid number")]
struct GainNumber(Option<i64>);

/// Kinds of period that open automatically. Seasons are created one by one.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes valid kinds")]
#[serde(rename_all = "snake_case")]
enum RecurringKind {
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

/// A board, as a row of `centile.boards` deserializes. Responses leave out its limits, which only
/// servers and administrators see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = BoardRules)]
pub struct Board {
    /// Internal id.
    #[serde(rename(deserialize = "board_id"), skip_serializing)]
    #[schema(ignore)]
    pub id: i32,
    /// Internal id of the board whose lanes, log and periods this board uses: itself, or its template.
    #[serde(rename(deserialize = "owner_id"), skip_serializing)]
    #[schema(ignore)]
    pub owner: i32,
    /// Revision of the owner's structure, which each change of its rules and each deletion of a board raises.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub structure_revision: i64,
    /// Template of the board; absent for a board of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "level")]
    pub template: Option<String>,
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
    /// How equal scores are ranked: `shared`, `first`, `tiebreak` or `second`.
    #[schema(value_type = String, example = "shared")]
    pub ties: Ties,
    /// Which second numbers are better: `desc` for high ones, `asc` for low ones. Present with ties
    /// `second`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, example = "asc")]
    pub tiebreak_order: Option<Order>,
    /// How second numbers combine: `added`, or `replaced` by the latest. Present on `sum` boards with ties
    /// `second`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, example = "added")]
    pub tiebreak_sum: Option<TiebreakSum>,
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
    /// Kind of period that requests without `period` read.
    #[schema(value_type = String, example = "all_time")]
    pub default_period: PeriodKind,
    /// Whether the service refreshes archives that lack a correction.
    #[schema(example = false)]
    pub refresh_corrected: bool,
    /// When the board was created.
    pub created_at: DateTime<Utc>,
    /// How a combined board is computed; none for other boards.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    pub combination: Option<Combination>,
    /// Rules that only servers and administrators see.
    #[serde(flatten, skip_serializing)]
    #[schema(ignore)]
    pub limits: Limits,
}

impl Board {
    /// Names the rules that order a ranking. They may change while the board has no scores, and tell the
    /// answers of an outdated board from those of the current one.
    pub(crate) fn order_tag(&self) -> String {
        let tiebreaks = self.tiebreak_order.map(Named::name);
        [Some(self.order.name()), Some(self.ties.name()), tiebreaks].into_iter().flatten().collect::<Vec<_>>().join(".")
    }

    /// Returns whether the board's first score will create it. Its id is the negative one of its template,
    /// which no row has.
    pub(crate) fn is_future(&self) -> bool {
        self.id < 0
    }

    /// Returns the period of a request that names none.
    pub(crate) fn default_selector(&self) -> PeriodSelector {
        PeriodSelector::Current(self.default_period)
    }
}

/// Limits of the events of a board, and its lanes. Absent without a server or admin key for the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LimitsResponse)]
pub struct Limits {
    /// Number of writer lanes.
    #[schema(required = false)]
    pub lanes: i16,
    /// Minimum points of an event.
    #[schema(required = false)]
    pub points_min: i64,
    /// Maximum points of an event.
    #[schema(required = false)]
    pub points_max: i64,
    /// Maximum events of a player in any 60 seconds; null for no limit.
    #[schema(required = false, example = 60)]
    pub events_per_minute: Option<i32>,
    /// Maximum gain of a player in a period, by kind of period. A kind that is absent is unlimited.
    #[schema(required = false, value_type = BTreeMap<String, i64>, example = json!({"day": 5_000}))]
    pub gain_max: GainMax,
    /// How the board treats an event that breaks a rule: `refuse` or `quarantine`.
    #[schema(required = false, value_type = String, example = "refuse")]
    pub on_violation: OnViolation,
}

/// A public board with one period, for tests.
#[doc(hidden)]
pub fn example(slug: &str) -> Result<Board> {
    Ok(Board {
        id: 1,
        owner: 1,
        structure_revision: 0,
        template: None,
        slug: slug.parse()?,
        title: "Main".to_owned(),
        mode: Mode::Sum,
        order: Order::Desc,
        ties: Ties::Shared,
        tiebreak_order: None,
        tiebreak_sum: None,
        periods: vec![PeriodKind::AllTime],
        time_zone: "UTC".to_owned(),
        frozen_top_size: 100,
        kept_archives: KeptArchives::new(),
        reading: Reading::Public,
        snapshots: None,
        rolling: Vec::new(),
        tags: BTreeSet::new(),
        presentation: Presentation::default(),
        tiers: Tiers::default(),
        segments: Vec::new(),
        buckets: Buckets::All,
        default_period: PeriodKind::AllTime,
        refresh_corrected: false,
        created_at: DateTime::UNIX_EPOCH,
        combination: None,
        limits: Limits {
            lanes: 1,
            points_min: 0,
            points_max: 100,
            events_per_minute: None,
            gain_max: GainMax::new(),
            on_violation: OnViolation::Refuse,
        },
    })
}
