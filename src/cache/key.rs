//! Keys of the cache. `docs/caching.md` lists them.

use std::{fmt, time::Duration};

use strum::VariantNames;

/// Kinds of cached values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantNames)]
pub enum CacheKind {
    /// Players in each bucket of an open period's ranking.
    Counts,
    /// The first players of an open period.
    Top {
        /// Number of players in the list.
        size: u32,
    },
    /// The frozen top of a closed period, in the bytes of PostgreSQL.
    ClosedTop,
}

/// The name of a cached value, without the cache's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    pub(super) kind: CacheKind,
    text: String,
}

impl CacheKind {
    /// Returns the key of this value of a period. `period` is its full name, with the segment.
    #[must_use]
    pub fn of(self, board: &str, period: &str) -> CacheKey {
        let text = match self {
            Self::Counts => format!("{board}:counts:{period}"),
            Self::Top { size } => format!("{board}:top:{size}:{period}"),
            Self::ClosedTop => format!("{board}:closed_top:{period}"),
        };
        CacheKey { kind: self, text }
    }

    /// Returns the label of metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Top { .. } => "top",
            Self::ClosedTop => "closed",
        }
    }

    /// Returns the time after which a value expires. Closed tops do not expire.
    #[must_use]
    pub fn lifetime(self) -> Option<Duration> {
        match self {
            Self::Counts | Self::Top { .. } => Some(Duration::from_mins(1)),
            Self::ClosedTop => None,
        }
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
