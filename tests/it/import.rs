//! Files in.

pub mod files;
mod friends;
