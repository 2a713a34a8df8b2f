//! Rankings of open periods: in memory as rank indexes, and by SQL while there is none.

mod batcher;
mod directory;
mod index;
mod indexes;
mod load;
pub(crate) mod memory;
mod open;
mod sql;
mod users;

pub(crate) use indexes::{IndexStatus, Indexes};
pub(crate) use open::{Open, rank_changes};
