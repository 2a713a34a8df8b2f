//! Format of a value in Redis. A frame contains its key; a frame that does not match is a miss.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 4 | `CTL` and the version of this format |
//! | 8 | checksum of all bytes after it: FNV-1a, 64 bits, big-endian |
//! | 4 | length of the key, big-endian |
//! | … | the full key, with its prefix |
//! | … | the value |
//!
//! The check detects garbage, truncation and a value under the wrong key. It does not detect forged
//! values: protect Redis with a password.

const FORMAT: [u8; 4] = *b"CTL\x01";

/// Bytes before the key.
const HEADER_BYTES: usize = 16;

/// Returns the bytes to store for `value` under `key`.
pub(super) fn wrap(key: &str, value: &[u8]) -> Vec<u8> {
    // A key beyond 4 GiB does not match when it is read, which is a miss.
    let key_length = u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes();
    let checksum = checksum([&key_length, key.as_bytes(), value]);
    let mut frame = Vec::with_capacity(HEADER_BYTES + key.len() + value.len());
    frame.extend_from_slice(&FORMAT);
    frame.extend_from_slice(&checksum.to_be_bytes());
    frame.extend_from_slice(&key_length);
    frame.extend_from_slice(key.as_bytes());
    frame.extend_from_slice(value);
    frame
}

/// Returns the value in `frame`, if the frame is intact and belongs to `key`.
pub(super) fn unwrap(key: &str, mut frame: Vec<u8>) -> Option<Vec<u8>> {
    let rest = frame.strip_prefix(&FORMAT)?;
    let (stored_checksum, rest) = rest.split_first_chunk()?;
    let (key_length, named) = rest.split_first_chunk()?;
    let value = named.strip_prefix(key.as_bytes())?;
    let is_ours = usize::try_from(u32::from_be_bytes(*key_length)) == Ok(key.len());
    if !is_ours || u64::from_be_bytes(*stored_checksum) != checksum([key_length, key.as_bytes(), value]) {
        return None;
    }
    frame.drain(..HEADER_BYTES + key.len());
    Some(frame)
}

/// Returns the FNV-1a hash of the concatenated parts.
fn checksum(parts: [&[u8]; 3]) -> u64 {
    parts
        .into_iter()
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_returns_its_value_for_its_key_only() {
        for value in [&b""[..], b"x", &[0, 255, 10, 13], &vec![7; 100_000]] {
            let frame = wrap("p:user:ann", value);
            assert_eq!(unwrap("p:user:ann", frame.clone()).as_deref(), Some(value));
            for other in ["p:user:an", "p:user:anna", "q:user:ann", ""] {
                assert_eq!(unwrap(other, frame.clone()), None, "{other}");
            }
        }
    }

    #[test]
    fn a_different_split_into_key_and_value_does_not_match() {
        assert_eq!(unwrap("ab", wrap("a", b"bc")), None);
        assert_eq!(unwrap("a", wrap("ab", b"c")), None);
    }

    #[test]
    fn a_changed_missing_or_added_byte_is_detected() {
        let frame = wrap("p:counts:1:v", b"some counts");
        for at in 0..frame.len() {
            assert_eq!(unwrap("p:counts:1:v", frame[..at].to_vec()), None, "cut at {at}");
            for bit in 0..8 {
                let mut changed = frame.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(unwrap("p:counts:1:v", changed), None, "byte {at}, bit {bit}");
            }
        }
        let mut longer = frame;
        longer.push(0);
        assert_eq!(unwrap("p:counts:1:v", longer), None);
    }

    #[test]
    fn garbage_is_a_miss() {
        for garbage in [&b""[..], b"garbage", b"CTL\x01", b"CTL\x02 and more than sixteen bytes", &[0; 64]] {
            assert_eq!(unwrap("k", garbage.to_vec()), None);
        }
    }
}
