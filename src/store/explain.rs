//! How a rank is made up.

use crate::{Result, model::explain::Step, store::Store};

impl Store {
    /// The steps on the way to a player's rank.
    pub(crate) async fn explain_rank(&self, board: &str, user_id: &str, period: &str) -> Result<Vec<Step>> {
        let steps = sqlx::query_as!(
            Step,
            r#"SELECT what AS "what!", value, time_ms::double precision AS "time_ms!", statement
               FROM centile.explain_rank($1, $2, $3) ORDER BY step"#,
            board,
            user_id,
            period
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(steps)
    }
}
