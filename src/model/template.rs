//! Templates: rules of boards that their first score creates.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::board::{Board, BoardSettings};

/// A template as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub name: String,
    /// The beginning of the names of its boards, and `*`.
    pub pattern: String,
    /// Number of its boards.
    pub boards: i32,
    pub max_boards: i32,
    /// A board with its rules, whose slug is the pattern without `*`.
    pub board: Board,
}

/// A new template, or a change of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateSettings {
    /// The beginning of the names of its boards, and `*`. Cannot change. No two templates may share a
    /// name.
    #[schema(example = "level-*", min_length = 2, max_length = 40, pattern = "^[a-z][a-z0-9_-]*[*]$")]
    pub pattern: String,
    /// Maximum number of boards; 1,000,000 by default. Beyond it, scores on new names are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 100_000_000, default = 1_000_000)]
    pub max_boards: Option<i32>,
    /// The rules of its boards, with the same defaults, except for `slug`.
    #[serde(default)]
    pub rules: BoardSettings,
}
