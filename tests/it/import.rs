//! Files and streams in.

pub mod files;
mod friends;
mod stream;
