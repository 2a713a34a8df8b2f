//! Trials that take too long for the test suite: faults at full length, overload, a soak. Run by
//! `make torture`, or one by one: `cargo test --release --test torture -- --nocapture kill`.
//!
//! Each trial writes its requirement and its measurements to `target/torture/report.md`, also if it
//! fails.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed trial must stop at once")]
#![allow(clippy::print_stdout, reason = "the report is printed for the user")]

mod batch_log;
mod clock;
#[path = "../../benches/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the load and what reads it; benchmarks use the rest")]
mod common;
mod disk;
mod fuzz;
mod kill;
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
mod subscribers;
#[path = "../it/support/mod.rs"]
mod support;
mod time_limits;
