//! The servers named in a database URL, and which of them is the primary.
//!
//! A URL may name several servers, as in libpq: `postgres://user@one:5432,two:5432/database`. One
//! is the primary; the others are replicas, one of which may take its place.

use std::{
    str::FromStr as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::time::timeout;

use crate::{Error, Result};

/// Timeout for asking a server, including the connection to it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The libpq parameter that selects a server by its role. Centile accepts only the primary.
const TARGET: &str = "target_session_attrs";

/// The servers of a database URL.
#[derive(Debug)]
pub(super) struct Hosts {
    all: Vec<PgConnectOptions>,
    primary: Mutex<Primary>,
}

/// The server that was the primary when last asked.
#[derive(Debug, Default)]
struct Primary {
    /// Its timeline, in hexadecimal; empty until it was asked.
    timeline: String,
    /// Its place in the URL.
    host: usize,
}

/// Connections that ask each server whether it is the primary.
pub(super) struct Probe<'a> {
    hosts: &'a Hosts,
    connections: Vec<Option<PgConnection>>,
}

impl Hosts {
    /// Parses a URL. The first server counts as the primary until they are asked.
    ///
    /// Returns [`Error::Invalid`] for a malformed URL, and for `target_session_attrs` other than
    /// `read-write` and `primary`.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let malformed = || {
            Error::invalid(
                "database_url",
                "must look like postgres://user:password@host:5432/database, or name several servers: host:5432,other:5432",
            )
        };
        let urls = split(url).ok_or_else(malformed)?;
        if let Some(target) = parameter(url, TARGET)
            && !["read-write", "primary"].contains(&target)
        {
            return Err(Error::invalid("database_url", format!("{TARGET} must be read-write or primary")));
        }
        let options = |url: String| {
            let options = PgConnectOptions::from_str(&url).map_err(|_| malformed())?;
            // PgBouncer refuses the startup parameters `options` and `extra_float_digits`; see
            // `SessionSettings`.
            Ok(options.application_name("centile").extra_float_digits(None))
        };
        Ok(Self { all: urls.into_iter().map(options).collect::<Result<_>>()?, primary: Mutex::default() })
    }

    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns whether no later timeline has been seen.
    pub(super) fn is_latest(&self, timeline: &str) -> bool {
        timeline >= self.primary.lock().unwrap_or_else(PoisonError::into_inner).timeline.as_str()
    }

    /// Returns the options for connections to the primary.
    pub(super) fn primary(&self) -> PgConnectOptions {
        self.all[self.primary.lock().unwrap_or_else(PoisonError::into_inner).host].clone()
    }

    pub(super) fn probe(&self) -> Probe<'_> {
        Probe { hosts: self, connections: self.all.iter().map(|_| None).collect() }
    }
}

impl Probe<'_> {
    /// Asks all servers. Returns the options of the primary if another server is the primary now.
    ///
    /// If two servers claim to be the primary, the one with the later timeline is: the other one
    /// dates from before a failover. A server with an earlier timeline than the latest one seen is
    /// ignored, too.
    pub(super) async fn new_primary(&mut self) -> Option<PgConnectOptions> {
        let Self { hosts, connections } = self;
        let answers = hosts.all.iter().zip(connections).map(|(options, connection)| async move {
            let asking = async {
                let mut asked = match connection.take() {
                    Some(asked) => asked,
                    None => options.clone().disable_statement_logging().connect().await?,
                };
                let timeline = timeline(&mut asked).await?;
                *connection = Some(asked);
                sqlx::Result::<_>::Ok(timeline)
            };
            timeout(ANSWER_TIMEOUT, asking).await.ok()?.ok().flatten()
        });
        let answers = join_all(answers).await.into_iter().enumerate();
        let mut primary = hosts.primary.lock().unwrap_or_else(PoisonError::into_inner);
        // If timelines are equal, the current primary stays.
        let (timeline, _, host) =
            answers.filter_map(|(host, timeline)| Some((timeline?, host == primary.host, host))).max()?;
        if timeline < primary.timeline {
            return None;
        }
        primary.timeline = timeline;
        if host == primary.host {
            return None;
        }
        primary.host = host;
        let options = &hosts.all[host];
        tracing::info!(host = options.get_host(), port = options.get_port(), "another server is the primary");
        Some(options.clone())
    }

    pub(super) async fn close(self) {
        for connection in self.connections.into_iter().flatten() {
            connection.close().await.ok();
        }
    }
}

/// Returns the timeline of a server, in hexadecimal; `None` for a replica.
pub(super) async fn timeline(connection: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar(
        "SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END",
    )
    .fetch_one(connection)
    .await
}

/// Splits a URL with several servers into one URL for each, without [`TARGET`]. Returns `None` if
/// it is not a URL.
fn split(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let at = if user.is_empty() { "" } else { "@" };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let query: Vec<&str> =
        query.split('&').filter(|one| !one.is_empty() && !one.starts_with(&format!("{TARGET}="))).collect();
    let question = if query.is_empty() { "" } else { "?" };
    let query = query.join("&");
    let url = |host: &str| format!("{scheme}://{user}{at}{host}{path}{question}{query}");
    Some(hosts.split(',').map(url).collect())
}

/// Returns the value of a parameter of a URL.
fn parameter<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    query.split('&').find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_or_several_servers() -> Result<()> {
        let places = |url: &str| -> Result<Vec<(String, u16)>> {
            Ok(Hosts::parse(url)?.all.iter().map(|one| (one.get_host().to_owned(), one.get_port())).collect())
        };
        let [one, two] = [("one".to_owned(), 5432), ("two".to_owned(), 6432)];
        for url in ["postgres://one/db", "postgres://one"] {
            assert_eq!(places(url)?, std::slice::from_ref(&one));
        }
        let several = "postgres://user:p%40ss@one,two:6432/db?sslmode=disable&target_session_attrs=read-write";
        assert_eq!(places(several)?, [one, two]);
        let hosts = Hosts::parse(several)?;
        assert!(hosts.are_several());
        assert_eq!((hosts.primary().get_username(), hosts.primary().get_database()), ("user", Some("db")));
        for wrong in ["one:5432", "postgres://one:x/db", "postgres://one,two/db?target_session_attrs=any"] {
            assert!(Hosts::parse(wrong).is_err(), "{wrong}");
        }
        Ok(())
    }
}
