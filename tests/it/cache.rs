//! The cache in Redis.

pub mod faults;
pub mod redis;
pub mod tops;
