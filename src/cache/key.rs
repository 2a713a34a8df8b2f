//! What the cache is asked for: every key there is, each with a stated lifetime.

use std::{fmt, time::Duration};

/// The name of a cached value, below the cache's prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CacheKey {
    /// The players of each bucket of a ranking at one version: `counts:{ranking}:{version}`, for 60 s.
    /// It never changes.
    Counts {
        /// The ranking.
        ranking: i64,
        /// The version of the counts; it carries the epoch.
        version: String,
    },
    /// The first players of a ranking, as served: `top:{epoch}:{ranking}:{size}`, for 60 s.
    /// The version is in the value.
    Top {
        /// The database's epoch.
        epoch: String,
        /// The ranking.
        ranking: i64,
        /// How many players.
        size: u32,
    },
    /// The first players of a closed period, the bytes as PostgreSQL has them:
    /// `closed:{epoch}:{period}:{revision}:top:{size}`, for a day. It never changes, and one of an old revision may name
    /// somebody who has asked to be forgotten since.
    Closed {
        /// The database's epoch.
        epoch: String,
        /// The period.
        period: i64,
        /// The archive's revision.
        revision: i64,
        /// How many players tops on the board are frozen with.
        size: u32,
    },
    /// A user's profile: `user:{user_id}`, for 300 s. The profile revision is in the value.
    User {
        /// The caller's id of the user.
        user_id: String,
    },
}

impl CacheKey {
    /// What it is a name of, for operators.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Counts { .. } => "counts",
            Self::Top { .. } => "top",
            Self::Closed { .. } => "closed",
            Self::User { .. } => "user",
        }
    }

    /// How long a value of this key may be kept.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        match self {
            Self::Counts { .. } | Self::Top { .. } => Duration::from_mins(1),
            Self::User { .. } => Duration::from_mins(5),
            Self::Closed { .. } => Duration::from_hours(24),
        }
    }
}

/// What every [`CacheKey::Closed`] of a period matches below `prefix`, as Redis writes patterns: of every epoch, revision and size.
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

/// Whether a key below `prefix` is a [`CacheKey::Closed`] of this period.
pub(super) fn is_of_closed(key: &str, prefix: &str, period: i64) -> bool {
    let parts = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(":closed:"));
    parts.and_then(|parts| parts.split(':').nth(1)).is_some_and(|found| found == period.to_string())
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts { ranking, version } => write!(f, "counts:{ranking}:{version}"),
            Self::Top { epoch, ranking, size } => write!(f, "top:{epoch}:{ranking}:{size}"),
            Self::Closed { epoch, period, revision, size } => {
                write!(f, "closed:{epoch}:{period}:{revision}:top:{size}")
            }
            Self::User { user_id } => write!(f, "user:{user_id}"),
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
            (CacheKey::Counts { ranking: 3, version: "7-1-5.12".to_owned() }, "counts:3:7-1-5.12", 60),
            (CacheKey::Top { epoch: epoch(), ranking: 3, size: 100 }, "top:7-1-5:3:100", 60),
            (CacheKey::Closed { epoch: epoch(), period: 4, revision: 2, size: 10 }, "closed:7-1-5:4:2:top:10", 86_400),
            (CacheKey::User { user_id: "a b:c".to_owned() }, "user:a b:c", 300),
        ];
        for (key, text, seconds) in cases {
            assert_eq!(key.to_string(), text);
            assert_eq!(key.lifetime(), Duration::from_secs(seconds), "{text}");
        }
    }
}
