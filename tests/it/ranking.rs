//! Reads of rankings and the rank index.

pub mod index;
pub mod look_ups;
pub mod real_data;
pub mod replica;
pub mod round;
