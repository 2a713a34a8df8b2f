//! A pooler that hands out a server's session for one transaction only, as `PgBouncer` does in transaction mode.
//!
//! Nothing of a session outlives a transaction there, so every statement is one of its own, which begins with the settings that
//! it counts on. It is parsed under no name: the next one may come to a session where the name is another's, or nobody's.
//! Whatever needs a session for itself goes past the pooler.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use futures::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, Connection as _, Either, Execute, Executor as _, PgConnection, Postgres, Row as _, SqlStr,
    error::BoxDynError,
    postgres::{PgArguments, PgConnectOptions, PgQueryResult, PgRow, PgStatement},
};
use tokio::time::timeout;

use crate::{Error, Result, model::settings::Settings};

/// How long each of both ways to the database may take to answer at the start.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How to connect to a pooler: without anything that it would have to know of (`options`, `extra_float_digits`).
pub(super) fn options(url: &str) -> Result<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| Error::invalid("database_url", "must look like postgres://user:password@host:6432/database"))?;
    Ok(options.application_name("centile").extra_float_digits(None).statement_cache_capacity(0))
}

/// What every transaction begins with.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    text: Arc<str>,
    /// How long to wait until it is made.
    patience: Duration,
}

impl Opening {
    /// Makes these settings, as (name, value), for the transaction; and the epoch, which stays known to the server's session.
    pub(super) fn new(settings: &[(&str, &str)], patience: Duration) -> Self {
        let mut text = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT set_config('centile.epoch', CASE WHEN pg_is_in_recovery() THEN '' ELSE centile.epoch() END, false)".to_owned();
        for (name, value) in settings {
            // Names and values of this program.
            text.extend([", set_config('", name, "', '", value, "', true)"]);
        }
        Self { text: text.into(), patience }
    }

    /// Its statements.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Runs a statement in a transaction of its own. Given up half-way, it is rolled back when its
    /// connection goes back. While `is_beginning` is set, sqlx does not know of the transaction, and the
    /// connection must be closed.
    pub(super) async fn steps<'q, E: Execute<'q, Postgres> + 'q>(
        &self,
        connection: &mut PgConnection,
        query: E,
        is_beginning: &mut bool,
    ) -> sqlx::Result<Vec<Either<PgQueryResult, PgRow>>> {
        // Whoever begins may have to wait until others give a session back, as for a connection elsewhere.
        *is_beginning = true;
        let begun = timeout(self.patience, connection.begin_with(AssertSqlSafe(Arc::clone(&self.text)))).await;
        let mut transaction = begun.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        *is_beginning = false;
        let steps = transaction.fetch_many(Nameless(query)).try_collect().await?;
        transaction.commit().await?;
        Ok(steps)
    }
}

/// A statement that is parsed each time, under no name.
pub(super) struct Nameless<E>(pub(super) E);

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Nameless<E> {
    fn sql(self) -> SqlStr {
        self.0.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.0.statement()
    }

    fn take_arguments(&mut self) -> std::result::Result<Option<PgArguments>, BoxDynError> {
        self.0.take_arguments()
    }

    fn persistent(&self) -> bool {
        false
    }
}

/// Refuses a pooler that leads to another database than the direct way does: what is closed there would be read here.
///
/// [`Error::Conflict`] when they differ; [`Error::Unavailable`] when either does not answer.
pub(crate) async fn check(settings: &Settings) -> Result<()> {
    let Some(pooler) = &settings.pooler_url else { return Ok(()) };
    let (through, past) = futures::try_join!(epoch(pooler.as_str()), epoch(settings.database_url.as_str()))?;
    if through == past {
        return Ok(());
    }
    Err(Error::Conflict("DATABASE_URL and DATABASE_DIRECT_URL lead to different databases".to_owned()))
}

async fn epoch(url: &str) -> Result<String> {
    let asked = async {
        let mut connection = PgConnection::connect_with(&options(url)?).await?;
        let row = sqlx::raw_sql("SELECT centile.epoch()").fetch_one(&mut connection).await?;
        let epoch = row.try_get(0)?;
        connection.close().await.ok();
        Ok(epoch)
    };
    timeout(ANSWERS_WITHIN, asked)
        .await
        .unwrap_or_else(|_| Err(Error::unavailable("the pooler or the database does not answer")))
}
