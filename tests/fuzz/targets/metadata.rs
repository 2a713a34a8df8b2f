//! `make fuzz`, see `../properties.rs`.
#![no_main]

#[path = "../properties.rs"]
#[allow(dead_code, reason = "each program tries one of them")]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::metadata(data));
