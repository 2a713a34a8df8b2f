//! Import: events from a file, with times of their own, while live writes go on.
//!
//! A thread reads and checks lines (`source`, `event`). What events need before they can be written is made for some
//! thousands at a time: players, months of the ledger, periods (`prepare`). A task per lane writes them in file order
//! (`lane`). What cannot be taken goes to the rejects (`rejects`). The channels between them are bounded, so that a file of
//! any size takes little memory.

mod event;
mod lane;
mod prepare;
mod progress;
mod rejects;
mod source;
mod text;

pub use progress::{Counts, Progress};
pub use rejects::Rejects;
pub use source::{Format, Source};

use std::sync::Arc;

use crate::{
    Result,
    import::{event::Event, lane::Lanes, prepare::Preparation},
    model::{act::Actor, board::Board},
    rules::Refusal,
    store::Store,
};

/// Connections for writing that an import makes use of: one for each batch under way, one for what batches need first.
pub const WRITE_CONNECTIONS: u32 = lane::BATCHES_AT_ONCE + 1;

/// How to import.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who imports.
    pub by: Actor,
    /// Whether players who exist take the last name that the file has for them; only new ones take a name otherwise.
    pub update_names: bool,
    /// Events of one lane that are written in one transaction.
    pub batch_size: usize,
}

/// A line of the file that has been read as an event.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its number in the file, from 1; that of its first line where quotes hold line ends.
    pub(crate) number: u64,
    /// As it stands in the file.
    raw: Box<[u8]>,
    /// What it says.
    pub(crate) event: Event,
}

/// Imports all that `source`, called `name`, has. Until it has ended, no period of the board is closed. Lines that cannot be taken go to `rejects`; `progress` can be watched meanwhile and has
/// the final counts afterwards. An error ends the import where it is: what was accepted by then stays, and lines with an id
/// may be imported again without counting twice.
pub(crate) async fn run(
    store: &Store,
    board: &Arc<Board>,
    name: &str,
    source: Source,
    options: Options,
    rejects: Rejects,
    progress: &Arc<Progress>,
) -> Result<()> {
    let rejects = Arc::new(rejects);
    store.ensure_ledger_months().await?;
    let mut announced = store.begin_import(board.id, name, &options.by).await?;
    let mut preparation = Preparation::new(store, board, options.update_names).await?;
    let mut lanes = Lanes::start(store, board, options.batch_size, &rejects, progress);
    let mut chunks = source.read(Arc::clone(board));
    let result = async {
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk?;
            for reject in chunk.rejects {
                rejects.add(reject.number, &reject.raw, &reject.reason, progress)?;
            }
            announced.check().await?;
            let (ready, future) = preparation.prepare(chunk.lines).await?;
            let reason = Refusal::TimeInFuture.error(board);
            for line in future {
                rejects.add(line.number, &line.raw, &reason, progress)?;
            }
            if !lanes.take(ready).await {
                break;
            }
        }
        Ok(())
    };
    let result = result.await;
    // A lane that failed says why; that nobody took its events any more is only a consequence.
    lanes.finish().await.and(result).and(rejects.flush())?;
    store.end_import(announced).await
}
