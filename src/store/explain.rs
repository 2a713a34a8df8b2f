//! SQL that explains how a rank is computed.

use crate::{Result, model::explain::ExplainStep, store::Reader};

impl Reader {
    /// Returns the steps by which a player's rank is computed.
    pub(crate) async fn explain_rank(
        &self,
        board: &str,
        user_id: &str,
        period: Option<&str>,
    ) -> Result<Vec<ExplainStep>> {
        let query = sqlx::query_as!(
            ExplainStep,
            r#"SELECT what AS "what!", value, time_ms::double precision AS "time_ms!", statement
               FROM centile.explain_rank($1, $2, $3) ORDER BY step"#,
            board,
            user_id,
            period
        );
        Ok(query.fetch_all(&self.readers).await?)
    }
}
