//! Maps database errors to the service's errors.

use std::{fmt, io, time::Duration};

use sqlx::{error::DatabaseError, postgres::PgDatabaseError};

use crate::{Code, Error, Resource, Result};

/// Time after which a client retries while the clock is behind.
const CLOCK_RETRY: Duration = Duration::from_secs(5);

/// Constraint, the field that it concerns, and the error detail. Messages about rules of a board are
/// comments of their constraints in the database.
const CONSTRAINTS: [(&str, &str, &str); 17] = [
    (
        "boards_slug_form",
        "slug",
        "must be 1 to 40 characters: lower-case letters, digits, '-' and '_', beginning with a letter",
    ),
    (
        "boards_pattern_form",
        "pattern",
        "must be up to 39 lower-case letters, digits, '-' and '_', beginning with a letter, and '*' at the end",
    ),
    (
        "templates_name_form",
        "name",
        "must be 1 to 40 characters: lower-case letters, digits, '-' and '_', beginning with a letter",
    ),
    ("templates_max_boards_range", "max_boards", "must be 1 to 100000000"),
    ("users_reading_known", "reading", "must be public, key or default"),
    ("combinations_join_rule_known", "join", "must be union or intersection"),
    ("combinations_aggregate_known", "aggregate", "must be sum, min or max"),
    (
        "combinations_refresh_form",
        "refresh",
        "must be manual, on-close, after=10000, every=5m or a cron expression of five fields",
    ),
    ("combination_sources_period_form", "sources", "a period must be a selector such as week:previous"),
    ("combination_sources_weight_range", "sources", "a weight must be from -1000000 to 1000000, and not 0"),
    (
        "periods_season_form",
        "name",
        "must be 1 to 40 characters: lower-case letters, digits, '-' and '_', beginning with a letter or a digit; not previous, current or next",
    ),
    ("webhooks_url_form", "url", "must begin with https:// or http://, contain no spaces, and have at most 2048 bytes"),
    ("users_external_id_length", "user_id", "must have 1 to 128 bytes"),
    ("users_name_length", "name", "must have 1 to 128 bytes"),
    ("users_avatar_length", "avatar_url", "must have at most 1024 bytes"),
    ("users_metadata_object", "metadata", "must be a JSON object"),
    ("transaction_ids_length", "id", "must have 1 to 128 bytes"),
];

impl From<sqlx::Error> for Error {
    /// Maps connection errors to [`Error::Outage`] and [`Error::Overload`], SQLSTATEs raised by Centile's
    /// SQL as sql/README.md lists them, and violated constraints by name.
    ///
    /// Any other error is [`Error::Internal`].
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(database) = &error else {
            return match error {
                // `store::pool` has opened another connection meanwhile.
                sqlx::Error::Io(ref cause) if cause.kind() == io::ErrorKind::ResourceBusy => busy(&error),
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => outage(&error),
                sqlx::Error::PoolTimedOut => busy(&error),
                other => Self::Internal(other.to_string()),
            };
        };
        if let Some(constraint) = database.constraint() {
            if constraint == "boards_slug_key" {
                return Self::conflict(Code::BoardExists, "a board with this name already exists".to_owned());
            }
            if constraint == "api_keys_request_key" {
                return Self::retry(Code::ConcurrentChange, "the same request is being processed; retry");
            }
            if let Some((_, field, message)) = CONSTRAINTS.iter().find(|(name, ..)| *name == constraint) {
                return Self::invalid(*field, *message);
            }
        }
        let postgres = database.try_downcast_ref::<PgDatabaseError>();
        let detail = postgres.and_then(|postgres| postgres.detail()).unwrap_or_default();
        let hint = postgres.and_then(|postgres| postgres.hint());
        let message = database.message();
        match database.code().as_deref().unwrap_or_default() {
            "CB001" => {
                let code = detail.parse().unwrap_or(Code::ConcurrentChange);
                // The clock takes longer to catch up than another session takes to finish.
                let retry_after = if code == Code::ClockBehind { CLOCK_RETRY } else { Duration::ZERO };
                Self::Retry { code, message: message.to_owned(), retry_after }
            }
            // Another server of a cluster has the row's lane.
            "23514" if database.constraint().is_none() => {
                Self::retry(Code::ConcurrentChange, "a lane is being moved to another server; retry")
            }
            "CB404" => Self::NotFound {
                what: match detail {
                    "board" => Resource::Board,
                    "league" => Resource::League,
                    "user" => Resource::User,
                    "transaction" => Resource::Transaction,
                    "quarantined" => Resource::QuarantinedEvent,
                    "webhook" => Resource::Webhook,
                    "message" => Resource::Message,
                    "key" => Resource::Key,
                    "entry" => Resource::Score,
                    _ => Resource::Period,
                },
                name: message.split('\'').nth(1).unwrap_or(message).to_owned(),
                // Other hints address users of psql.
                hint: hint.filter(|_| ["period", "entry"].contains(&detail)).map(str::to_owned),
            },
            "CB403" => Self::Forbidden(message.to_owned()),
            "CB409" => Self::conflict(detail.parse().unwrap_or(Code::Conflict), message),
            "CB422" => Self::invalid(detail, hint.map_or(message.to_owned(), |hint| format!("{message}. {hint}"))),
            "22003" => Self::conflict(Code::ScoreOutOfRange, "the score would leave the range of 64 bits".to_owned()),
            "55P03" => Self::retry(
                Code::ConcurrentChange,
                "another session, such as a dump, holds a lock that this request needs; retry later",
            ),
            // A serialization failure or a deadlock: the transaction was rolled back.
            "40001" | "40P01" => {
                tracing::warn!(error = message, "PostgreSQL cancelled a transaction");
                Self::retry(Code::ConcurrentChange, "the request conflicted with another session; retry")
            }
            // A statement timeout.
            "57014" => busy(&error),
            // No connection slot, memory or disk space is free, or a limit is exceeded.
            code if code.starts_with("53") => busy(&error),
            // Connection failures, shutdown and start; a read-only server after a failover, an
            // idle-in-transaction timeout.
            code if ["08", "57"].contains(&&code[..2.min(code.len())]) || ["25006", "25P03"].contains(&code) => {
                outage(&error)
            }
            // Citus lost the connection to another server of a cluster.
            "XX000" if message.starts_with("failure on connection marked as essential") => outage(&error),
            _ if has_other_columns(database.as_ref()) => {
                Self::retry(Code::ConcurrentChange, "the schema has just been replaced; retry")
            }
            "42P01" if message.contains("\"centile_archive.") => Self::retry(
                Code::Unavailable,
                format!("an archive is missing ({message}); `centile verify` shows which"),
            ),
            "3F000" | "42P01" | "42883" => {
                tracing::error!(error = message, "the schema is missing or outdated: run `centile migrate`");
                Self::retry(Code::Unavailable, "the database has not been migrated yet")
            }
            code => Self::Internal(format!("{message} ({code})")),
        }
    }
}

/// Returns whether a migration has changed the result columns of a prepared statement.
///
/// Its SQLSTATE, 0A000, covers any unsupported feature, so the error is identified by the
/// PostgreSQL function that raises it.
pub(super) fn has_other_columns(error: &dyn DatabaseError) -> bool {
    let postgres = error.try_downcast_ref::<PgDatabaseError>();
    error.code().as_deref() == Some("0A000")
        && postgres.and_then(PgDatabaseError::routine) == Some("RevalidateCachedQuery")
}

/// Logs the cause. PostgreSQL is reachable, but did not answer in time.
pub(super) fn busy(cause: &dyn fmt::Display) -> Error {
    tracing::warn!(error = %cause, "PostgreSQL was too busy for a request");
    let (code, message) = (Code::DatabaseBusy, "the database is too busy".to_owned());
    Error::Overload { code, message, retry_after: Duration::from_secs(1) }
}

/// Logs the cause. The caller's error omits it, because it may show how the database is reached.
fn outage(cause: &sqlx::Error) -> Error {
    tracing::warn!(error = %cause, "request to PostgreSQL failed");
    Error::Outage("the database cannot be reached".to_owned())
}

/// Returns whether an error means that the connection was lost after a statement was sent.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        // `store::pool` had no connection to send it on.
        sqlx::Error::Io(cause) => cause.kind() != io::ErrorKind::NotConnected,
        // PostgreSQL ended the session, or a pooler has lost its connection.
        sqlx::Error::Database(cause) => {
            cause.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
        }
        _ => matches!(error, sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed),
    }
}

/// Maps the result of a statement that commits a write, which may have succeeded if the connection was
/// lost.
pub(super) fn written<T>(result: sqlx::Result<T>) -> Result<T> {
    result.map_err(|error| if is_lost(&error) { Error::from(error).after_write() } else { error.into() })
}
