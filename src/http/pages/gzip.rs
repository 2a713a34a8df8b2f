//! Compression of text.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

/// Compresses `text` as gzip (RFC 1952) at the best level, or returns `None` on failure.
pub(crate) fn small(text: &[u8]) -> Option<Vec<u8>> {
    compressed(text, Compression::best())
}

/// Compresses `text` as gzip at the fastest level.
pub(crate) fn soon(text: &[u8]) -> Option<Vec<u8>> {
    compressed(text, Compression::fast())
}

fn compressed(text: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 3), level);
    // Writing to memory does not fail.
    encoder.write_all(text).and_then(|()| encoder.finish()).ok()
}
