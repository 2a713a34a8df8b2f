//! PostgreSQL: schema, roles, backups, outages.

pub mod backup;
pub mod contract;
pub mod deadlocks;
pub mod generated;
pub mod network;
pub mod pooler;
pub mod property;
pub mod restart;
pub mod roles;
pub mod views;
