//! Compressed text.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

/// `text` as gzip (RFC 1952), small rather than soon; `None` should it not be possible.
pub(crate) fn small(text: &[u8]) -> Option<Vec<u8>> {
    compressed(text, Compression::best())
}

/// `text` as gzip, soon rather than small.
pub(crate) fn soon(text: &[u8]) -> Option<Vec<u8>> {
    compressed(text, Compression::fast())
}

fn compressed(text: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 3), level);
    // Into memory, where nothing fails.
    encoder.write_all(text).and_then(|()| encoder.finish()).ok()
}
