//! SQL of small rankings: those of boards of templates that have no bucket rows.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::{
    Result,
    model::id::{Batch, RankingId},
    store::{
        IndexReader,
        rank::Version,
        rows::{elements, paired},
    },
};

/// A ranking of a template's board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SmallRef {
    pub(crate) board_id: i32,
    pub(crate) period_id: i64,
}

/// Rankings of a template, as one statement has read them.
#[derive(Debug)]
pub(crate) struct SmallRead {
    /// The database's clock at the start of the statement.
    pub(crate) read_at: DateTime<Utc>,
    pub(crate) version: Version,
    /// The profile revision.
    pub(crate) revision: i64,
    /// Rankings that have changed since the version that the caller passed; `None` if any may have.
    pub(crate) changed: Option<Vec<RankingId>>,
    /// Those of the asked rankings that are current, with their ids; `None` for a board without scores.
    pub(crate) current: Vec<(SmallRef, Option<RankingId>)>,
    /// Rank key, tie key and internal id of each player, in any order. Has the current rankings that the
    /// caller does not keep, or that have changed.
    pub(crate) read: HashMap<RankingId, Vec<(i64, i64, i64)>>,
}

impl IndexReader {
    /// Reads rankings of boards of a template that have no bucket rows.
    ///
    /// `asked`: the rankings, with their ids if the caller keeps them. `known`: the version that these and
    /// all other rankings that it keeps have reached.
    pub(crate) async fn small_rankings(
        &self,
        template_id: i32,
        asked: &[(SmallRef, Option<RankingId>)],
        known: Option<&Version>,
    ) -> Result<SmallRead> {
        let (boards, periods): (Vec<i32>, Vec<i64>) = asked.iter().map(|(of, _)| (of.board_id, of.period_id)).unzip();
        let kept: Vec<i64> = asked.iter().map(|(_, kept)| kept.map_or(0, |id| id.0)).collect();
        let batches: Option<Vec<i64>> = known.map(|known| known.batches.iter().map(|batch| batch.0).collect());
        let query = sqlx::query_file!(
            "sql/queries/small_rankings.sql",
            template_id,
            &boards,
            &periods,
            &kept,
            known.map(|known| &*known.epoch),
            batches.as_deref()
        );
        let row = query.fetch_one(&self.reader.readers).await?;
        let ids = |ids| elements(ids).into_iter().map(RankingId);
        let mut read: HashMap<RankingId, Vec<_>> = ids(row.read_ids).map(|id| (id, Vec::new())).collect();
        let players = paired("rankings and players", ids(row.player_rankings), elements(row.user_ids))?;
        let keys = paired("rank keys and tie keys", elements(row.rank_keys), elements(row.tie_keys))?;
        for ((ranking_id, user_id), (rank_key, tie_key)) in paired("players and keys", players, keys)? {
            read.entry(ranking_id).or_default().push((rank_key, tie_key, user_id));
        }
        let current = paired("places and rankings", elements(row.places), elements(row.ranking_ids))?;
        let current = current.filter_map(|(place, id)| {
            let (of, _) = asked.get(usize::try_from(place).ok()?.checked_sub(1)?)?;
            Some((*of, Some(RankingId(id)).filter(|id| id.0 != 0)))
        });
        Ok(SmallRead {
            read_at: row.read_at,
            version: Version { epoch: row.epoch, batches: Batch::from_numbers(row.batches) },
            revision: row.revision,
            changed: row.has_all_changes.unwrap_or_default().then(|| ids(row.changed_ids).collect()),
            current: current.collect(),
            read,
        })
    }
}
