//! Files in.

pub mod files;
