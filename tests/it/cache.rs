//! The cache in Redis.

pub mod faults;
pub mod keys;
pub mod redis;
pub mod tops;
