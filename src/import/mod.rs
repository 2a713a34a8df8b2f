//! Imports events with times of their own, and friends of players, from files, while live writes
//! continue.
//!
//! A thread reads and checks lines (`source`, `record`, `event`). Players, ledger partitions and
//! periods are created for some thousand lines at a time (`prepare`). A task per lane writes the
//! events in file order (`lane`). Rejected lines go to the rejects (`rejects`). Bounded channels
//! connect the stages, so that a file of any size needs little memory. Friends (`edge`, `friends`)
//! need no lanes.

mod edge;
mod event;
mod friends;
mod lane;
mod prepare;
mod progress;
mod record;
mod rejects;
mod source;
pub(crate) mod stream;
mod text;

pub use progress::{Counts, ImportProgress};
pub use rejects::Rejects;

pub(crate) use event::ImportedEvent;
pub(crate) use friends::import_friends;
pub(crate) use record::Record;
pub(crate) use source::{EdgeFile, EventFile, RecordFile};

use std::sync::Arc;

use crate::{
    Result,
    import::{lane::Lanes, prepare::Preparation},
    model::{act::Actor, board::Board},
    rules::Refusal,
    store::Store,
};

/// Write connections of an import: three quarters suffice for the concurrent batches and `prepare`.
pub const WRITE_CONNECTIONS: u32 = (lane::MAX_CONCURRENT_BATCHES + 1) * 4 / 3;

#[derive(Debug, Clone)]
pub struct Options {
    /// The actor in the audit log.
    pub by: Actor,
    /// Whether existing players take the last name that the file has for them. New players always
    /// take a name.
    pub update_names: bool,
    /// Events per transaction of a lane.
    pub batch_size: usize,
}

/// A line of the file that was parsed as a record.
#[derive(Debug)]
pub(crate) struct ImportedLine<R = ImportedEvent> {
    /// Line number in the file, from 1; that of the first line if quotes span several.
    pub(crate) number: u64,
    /// The line as written in the file.
    raw: Box<[u8]>,
    pub(crate) record: R,
}

/// Imports all events of `source`, which is named `name`.
///
/// No period of the board is closed until the import has ended. Refused lines go to `rejects`.
/// `progress` can be watched meanwhile, and has the final counts afterwards.
///
/// An error stops the import: accepted events stay, and lines with an id may be imported again
/// without counting twice.
pub(crate) async fn import_events(
    Store { admin, score_writer, bucket_writer, .. }: &Store,
    board: &Arc<Board>,
    name: &str,
    source: EventFile,
    options: Options,
    rejects: Rejects,
    progress: &Arc<ImportProgress>,
) -> Result<()> {
    let rejects = Arc::new(rejects);
    score_writer.ensure_ledger_months().await?;
    let mut open_import = admin.begin_import(board.id, name, &options.by).await?;
    let mut preparation = Preparation::new(admin, score_writer, board, options.update_names).await?;
    let mut lanes = Lanes::start(score_writer, bucket_writer, board, options.batch_size, &rejects, progress);
    let mut chunks = source.read_chunks(Arc::clone(board));
    let result = async {
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            for reject in chunk.rejects {
                rejects.add(reject.number, &reject.raw, &reject.reason, progress)?;
            }
            open_import.check().await?;
            let (ready, future_lines) = preparation.prepare(chunk.lines).await?;
            let reason = Refusal::TimeInFuture.error(board);
            for line in future_lines {
                rejects.add(line.number, &line.raw, &reason, progress)?;
            }
            if !lanes.take(ready).await? {
                break;
            }
        }
        Ok(())
    };
    let result = result.await;
    // The error of a failed lane is the cause; the reading side only fails in consequence.
    lanes.finish().await.and(result).and(rejects.flush())?;
    admin.end_import(open_import).await
}
