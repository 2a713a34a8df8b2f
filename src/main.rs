//! The `centile` binary: one program, one command per job.

fn main() {}
