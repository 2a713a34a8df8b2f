//! Imports friends of players. Each chunk of lines is one transaction.

use std::sync::Arc;

use crate::{
    Code, Error, Result,
    import::{EdgeFile, ImportProgress, Rejects},
    model::{act::Actor, friend::FRIENDS_MAX},
    store::{Administrator, ScoreWriter, friend::EdgeResult},
};

/// Adds all edges of `source`, which is named `name`, and creates unknown players.
///
/// Refused lines go to `rejects`. `progress` can be watched meanwhile, and has the final counts
/// afterwards. After an error, a second import of the same file adds the rest.
pub(crate) async fn import_friends(
    admin: &Administrator,
    score_writer: &ScoreWriter,
    name: &str,
    source: EdgeFile,
    by: &Actor,
    rejects: Rejects,
    progress: &Arc<ImportProgress>,
) -> Result<()> {
    admin.record_friends_import(name, by).await?;
    let mut chunks = source.read_chunks(Arc::new(()));
    while let Some(chunk) = chunks.recv().await {
        let chunk = chunk?;
        for reject in chunk.rejects {
            rejects.add(reject.number, &reject.raw, &reject.reason, progress)?;
        }
        let lines = chunk.lines.iter();
        let (user_ids, friend_ids): (Vec<String>, Vec<String>) =
            lines.map(|line| (line.record.user_id.to_string(), line.record.friend_id.to_string())).unzip();
        let all = [&user_ids[..], &friend_ids].concat();
        // In a separate transaction, because boards share players.
        score_writer.ensure_users(&all, &vec![None; all.len()]).await?;
        let results = admin.add_friends(&user_ids, &friend_ids).await?;
        let (mut accepted, mut repeated) = (0, 0);
        for (line, result) in chunk.lines.iter().zip(results) {
            match refusal(line.record.user_id.as_str(), result) {
                Some(reason) => rejects.add(line.number, &line.raw, &reason, progress)?,
                None if result == EdgeResult::Added => accepted += 1,
                None => repeated += 1,
            }
        }
        progress.add_written(accepted, repeated);
    }
    rejects.flush()
}

/// Returns the reason why an edge was not added.
fn refusal(user_id: &str, result: EdgeResult) -> Option<Error> {
    match result {
        EdgeResult::Added | EdgeResult::Repeated => None,
        EdgeResult::SamePlayer => Some(Error::invalid("friend_id", "must be another player")),
        EdgeResult::Missing | EdgeResult::Erased => {
            Some(Error::conflict(Code::UserErased, "the player or the friend was erased"))
        }
        EdgeResult::Full => Some(Error::conflict(
            Code::TooManyFriends,
            format!("user {user_id:?} has {FRIENDS_MAX} friends, which is the maximum"),
        )),
    }
}
