//! SQL that reads the ledger of a board in order.

use crate::{
    Result,
    model::{
        id::{Batch, Lane},
        metadata::Metadata,
        score::Transaction,
    },
    store::Reader,
};

/// Rows of a board's ledger, and the state of the snapshot that they come from.
#[derive(Debug)]
pub(crate) struct LedgerPage {
    pub(crate) epoch: String,
    /// Last batch of each lane.
    pub(crate) batches: Vec<Batch>,
    /// Highest id in the ledger, of all boards.
    pub(crate) ledger_end: i64,
    /// The rows, in the order of their ids.
    pub(crate) rows: Vec<Transaction>,
}

/// The end of the ledger, and the lanes of a board without running batches.
#[derive(Debug)]
pub(crate) struct SettledLanes {
    pub(crate) epoch: String,
    /// Highest id in the ledger, of all boards.
    pub(crate) ledger_end: i64,
    /// The lanes whose rows up to `ledger_end` are all committed.
    pub(crate) lanes: Vec<Lane>,
}

impl Reader {
    /// Returns up to `limit` rows of a board's ledger with ids above that of their lane in `ids`, in
    /// one snapshot. `None` if the board does not exist.
    pub(crate) async fn transactions_after(
        &self,
        board_id: i32,
        ids: &[i64],
        limit: i32,
    ) -> Result<Option<LedgerPage>> {
        let rows =
            sqlx::query_file!("sql/queries/transactions.sql", board_id, ids, limit).fetch_all(&self.readers).await?;
        let mut page = None;
        for row in rows {
            let page = page.get_or_insert_with(|| LedgerPage {
                epoch: row.epoch,
                batches: Batch::from_numbers(row.batches),
                ledger_end: row.ledger_end,
                rows: Vec::new(),
            });
            // All are missing in the only row of a page without transactions.
            let (Some(transaction_id), Some(lane), Some(batch)) = (row.transaction_id, row.lane, row.batch) else {
                continue;
            };
            let (Some(user_id), Some(kind), Some(occurred_at)) = (row.user_id, row.kind, row.occurred_at) else {
                continue;
            };
            page.rows.push(Transaction {
                transaction_id,
                lane: Lane(lane),
                batch: Batch(batch),
                user_id,
                kind,
                points: row.points,
                tiebreak: row.tiebreak,
                reason: row.reason,
                voids: row.voids,
                event_id: row.event_id,
                occurred_at,
                metadata: row.metadata.map(Metadata::stored),
            });
        }
        Ok(page)
    }

    /// Returns the end of the ledger. With `waits` it waits for running batches, and all lanes are
    /// settled.
    pub(crate) async fn settle_lanes(&self, board_id: i32, waits: bool) -> Result<SettledLanes> {
        let query = sqlx::query!(
            r#"SELECT centile.epoch() AS "epoch!", ledger_end AS "ledger_end!", lanes AS "lanes!"
               FROM centile_store.settle_lanes($1, $2)"#,
            board_id,
            waits
        )
        .map(|row| SettledLanes {
            epoch: row.epoch,
            ledger_end: row.ledger_end,
            lanes: row.lanes.into_iter().map(Lane).collect(),
        });
        Ok(query.fetch_one(&self.writers).await?)
    }
}
