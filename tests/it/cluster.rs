//! Clusters with Citus. Each test starts its own servers.

pub mod copy;
pub mod failover;
pub mod ids;
pub mod killed_close;
pub mod killed_rebuild;
pub mod past;
pub mod server_down;
pub mod stream;
pub mod under_load;
