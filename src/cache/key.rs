//! Keys of the cache, each with a fixed lifetime.

use std::{fmt, time::Duration};

/// The name of a cached value, without the cache's prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CacheKey {
    /// Players in each bucket of a ranking at one version: `counts:{ranking}:{version}`, for 60 s.
    /// The value never changes.
    Counts {
        /// Id of the ranking.
        ranking: i64,
        /// The version of the counts; it carries the epoch.
        version: String,
    },
    /// A top list of a ranking, which each instance renders: `top:{epoch}:{ranking}:{size}`, for 60 s.
    /// The value contains the version.
    Top {
        /// Epoch of the database.
        epoch: String,
        /// Id of the ranking.
        ranking: i64,
        /// Number of players in the list.
        size: u32,
    },
    /// The frozen top of a closed period, in the bytes of PostgreSQL:
    /// `closed:{epoch}:{period}:{revision}:top:{size}`, for a day.
    ///
    /// The value never changes. That of an old revision may name a user who has been erased since.
    Closed {
        /// Epoch of the database.
        epoch: String,
        /// Id of the period.
        period: i64,
        /// Revision of the archive.
        revision: i64,
        /// Size of the board's frozen tops.
        size: u32,
    },
}

impl CacheKey {
    /// Returns the kind of value, for metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Counts { .. } => "counts",
            Self::Top { .. } => "top",
            Self::Closed { .. } => "closed",
        }
    }

    /// Returns the time after which the value expires.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        match self {
            Self::Counts { .. } | Self::Top { .. } => Duration::from_mins(1),
            Self::Closed { .. } => Duration::from_hours(24),
        }
    }
}

/// Returns a Redis pattern that matches every [`CacheKey::Closed`] of a period below `prefix`: all
/// epochs, revisions and sizes.
pub(super) fn closed_pattern(prefix: &str, period: i64) -> String {
    let mut pattern = String::new();
    for character in prefix.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    format!("{pattern}:closed:*:{period}:*")
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts { ranking, version } => write!(f, "bucket_counts:{ranking}:{version}"),
            Self::Top { epoch, ranking, size } => write!(f, "top:{epoch}:{ranking}:{size}"),
            Self::Closed { epoch, period, revision, size } => {
                write!(f, "closed:{epoch}:{period}:{revision}:top:{size}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_lifetimes_are_as_designed() {
        let epoch = || "7-1-5".to_owned();
        let cases = [
            (CacheKey::Counts { ranking: 3, version: "7-1-5.12".to_owned() }, "bucket_counts:3:7-1-5.12", 60),
            (CacheKey::Top { epoch: epoch(), ranking: 3, size: 100 }, "top:7-1-5:3:100", 60),
            (CacheKey::Closed { epoch: epoch(), period: 4, revision: 2, size: 10 }, "closed:7-1-5:4:2:top:10", 86_400),
        ];
        for (key, text, seconds) in cases {
            assert_eq!(key.to_string(), text);
            assert_eq!(key.lifetime(), Duration::from_secs(seconds), "{text}");
        }
    }
}
