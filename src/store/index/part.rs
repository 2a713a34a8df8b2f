//! The answers of several servers to one round, and how they are joined.

use chrono::{DateTime, Utc};

use crate::{
    Code, Error, Result,
    model::{id::Batch, user::lane_hash},
    store::{
        index::{BoardState, CurrentRanking, EntryChange, Round, StoredProfile},
        rows::paired,
    },
};

/// The answer of one server to a round.
pub(super) struct Part {
    pub(super) epoch: String,
    pub(super) read_at: DateTime<Utc>,
    pub(super) snapshot: Option<String>,
    pub(super) state: Option<PartState>,
}

/// The state of a board on one server.
pub(super) struct PartState {
    /// `None` for lanes that the server does not have.
    pub(super) batches: Vec<Option<i64>>,
    pub(super) revision: i64,
    pub(super) rankings: Vec<CurrentRanking>,
    pub(super) changes: Option<Vec<EntryChange>>,
    pub(super) profiles: Option<Vec<StoredProfile>>,
}

impl Part {
    /// Joins the answers of all servers. Either all have a state, or none has changed. Fails while a
    /// lane is being moved or the epoch changes.
    pub(super) fn join(parts: Vec<Self>) -> Result<Round> {
        let mut parts = parts.into_iter();
        let Some(Self { epoch, mut read_at, snapshot, mut state }) = parts.next() else {
            return Err(lane_moves());
        };
        let mut snapshots = snapshot.map(|snapshot| vec![snapshot]);
        for part in parts {
            if part.epoch != epoch {
                return Err(epoch_changes());
            }
            read_at = read_at.max(part.read_at);
            snapshots = snapshots.zip(part.snapshot).map(|(snapshots, other)| [snapshots, vec![other]].concat());
            state = match (state, part.state) {
                (Some(one), Some(other)) => Some(one.join(other)?),
                (None, None) => None,
                _ => return Err(Error::Internal("a round has the states of some servers only".to_owned())),
            };
        }
        let state = state.map(|state| {
            let PartState { batches, revision, rankings, changes, profiles } = state;
            let batches =
                batches.into_iter().map(|batch| batch.map(Batch)).collect::<Option<_>>().ok_or_else(lane_moves)?;
            Ok::<_, Error>(BoardState { batches, revision, rankings, changes, profiles })
        });
        Ok(Round { epoch, read_at, snapshots, state: state.transpose()? })
    }
}

impl PartState {
    /// Joins the states of two servers. Only rankings that are current on both remain: a server may
    /// learn a little later that a ranking was replaced.
    fn join(self, other: Self) -> Result<Self> {
        let rankings = self.rankings.into_iter().filter(|one| other.rankings.contains(one)).collect();
        let batches = paired("lanes of two servers", self.batches, other.batches)?;
        Ok(Self {
            batches: batches.map(|(one, two)| one.or(two)).collect(),
            revision: self.revision.min(other.revision),
            rankings,
            changes: self.changes.zip(other.changes).map(|(one, two)| [one, two].concat()),
            profiles: self.profiles.zip(other.profiles).map(|(one, two)| [one, two].concat()),
        })
    }
}

/// The error while a lane is on no server.
pub(super) fn lane_moves() -> Error {
    Error::retry(Code::ConcurrentChange, "a lane is being moved to another server; retry")
}

/// The error until all servers know the new epoch.
pub(super) fn epoch_changes() -> Error {
    Error::retry(Code::ConcurrentChange, "a server of the cluster has failed over; retry")
}

/// Returns whether a player's lane is among the lanes of a server.
pub(super) fn has_user(lanes: &[bool], user_id: &str) -> bool {
    lanes.get(usize::from(lane_hash(user_id)) % lanes.len().max(1)).is_some_and(|has| *has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(snapshot: Option<&str>, batches: Option<Vec<Option<i64>>>) -> Part {
        let state = batches.map(|batches| PartState {
            batches,
            revision: 1,
            rankings: Vec::new(),
            changes: None,
            profiles: None,
        });
        let snapshot = snapshot.map(ToOwned::to_owned);
        Part { epoch: "e".to_owned(), read_at: DateTime::UNIX_EPOCH, snapshot, state }
    }

    #[test]
    fn the_round_of_a_cluster_has_the_snapshots_of_all_servers() -> Result<()> {
        for (snapshots, joined) in
            [([Some("a"), Some("b")], Some(vec!["a".to_owned(), "b".to_owned()])), ([Some("a"), None], None)]
        {
            let round = Part::join(snapshots.map(|snapshot| part(snapshot, None)).into())?;
            assert_eq!((round.snapshots, round.state.is_none()), (joined, true));
        }
        Ok(())
    }

    #[test]
    fn a_lane_that_no_server_has_is_being_moved() -> Result<()> {
        let join = |one, other| Part::join(vec![part(None, Some(one)), part(None, Some(other))]);
        let round = join(vec![Some(4), None], vec![None, Some(7)])?;
        assert_eq!(round.state.map(|state| state.batches), Some(Batch::from_numbers(vec![4, 7])));
        let moving = join(vec![Some(4), None], vec![None, None]);
        assert!(matches!(moving, Err(Error::Retry { code: Code::ConcurrentChange, .. })), "{moving:?}");
        let partial = Part::join(vec![part(None, Some(vec![Some(4)])), part(None, None)]);
        assert!(matches!(partial, Err(Error::Internal(_))), "{partial:?}");
        assert!(matches!(join(vec![Some(4), None], vec![None]), Err(Error::Internal(_))));
        Ok(())
    }
}
