//! The only callers of sqlx, a file per domain noun.

pub mod migrate;
