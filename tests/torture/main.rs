//! What takes longer than anybody waits for tests: faults at full length, overload, a soak. Run by `make torture`, or one by one:
//! `cargo test --release --test torture -- --nocapture kill`.
//!
//! Each trial says what was asked and what was measured in `target/torture/report.md`, also when it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed trial is to stop right there")]
#![allow(clippy::print_stdout, reason = "the report is for whoever runs this")]

mod clock;
#[path = "../../benches/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the load and what reads it; benchmarks use the rest")]
mod common;
mod disk;
mod feed;
mod fuzz;
mod kill;
mod listeners;
mod network;
mod overload;
mod page;
mod probe;
mod redis;
mod replay;
mod report;
mod schemathesis;
mod soak;
mod stopped;
#[path = "../it/support/mod.rs"]
mod support;
mod time_limits;
