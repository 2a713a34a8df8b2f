//! Text of a value in Redis: a JSON object. Its first member is a checksum of the key and of all
//! other members, such as `{"checksum":"84f30c7ac0c44b06","version":"7.a4.2","closed_top":{…}}`.
//!
//! The checksum detects garbage, truncation and a value of another key. It does not detect forged
//! values: protect Redis with a password.

use serde::{Serialize, de::DeserializeOwned};

/// Text before the 16 digits of the checksum.
const START: &str = r#"{"checksum":""#;

/// Returns the text to store for `value`, an object, under `key`. `None` if it has no members.
pub(super) fn encode<T: Serialize>(key: &str, value: &T) -> Option<String> {
    let object = serde_json::to_string(value).ok()?;
    let members = object.strip_prefix('{').filter(|members| members.starts_with('"'))?;
    let rest = format!("\",{members}");
    Some(format!("{START}{}{rest}", checksum(key, rest.as_bytes())))
}

/// Returns the value in `text`, if the text is intact and belongs to `key`.
pub(super) fn decode<T: DeserializeOwned>(key: &str, text: &[u8]) -> Option<T> {
    let (digits, rest) = text.strip_prefix(START.as_bytes())?.split_at_checked(16)?;
    let is_ours = digits == checksum(key, rest).as_bytes();
    is_ours.then(|| serde_json::from_slice(text).ok()).flatten()
}

/// Returns the FNV-1a hash, 64 bits in hexadecimal, of the key, a zero byte and the rest.
fn checksum(key: &str, rest: &[u8]) -> String {
    let bytes = key.bytes().chain([0]).chain(rest.iter().copied());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = "p:main:counts:week:2024-01-15";

    #[test]
    fn a_text_returns_its_value_for_its_key_only() {
        for value in [json!({"a": 1}), json!({"a": [], "b": "\"}\n\0é"}), json!({"": "x".repeat(100_000)})] {
            let text = encode(KEY, &value).unwrap_or_default();
            let found: Value = decode(KEY, text.as_bytes()).unwrap_or_default();
            assert!(
                value.as_object().into_iter().flatten().all(|(name, member)| found[name] == *member),
                "{text:.200}"
            );
            for other in ["p:main:counts:week:2024-01-1", "p:main:counts:week:2024-01-150", "q:main:top:1:week", ""] {
                assert_eq!(decode::<Value>(other, text.as_bytes()), None, "{other}");
            }
        }
        for not_stored in [json!({}), json!([1]), json!("x"), json!(7)] {
            assert_eq!(encode(KEY, &not_stored), None);
        }
    }

    #[test]
    fn the_text_is_json_with_the_checksum_first() {
        let text = encode("p:arena:closed_top:day:2024-01-15", &json!({"version": "7.a4.2"}));
        assert_eq!(text.as_deref(), Some(r#"{"checksum":"e54792642742ab14","version":"7.a4.2"}"#));
    }

    #[test]
    fn a_changed_missing_or_added_byte_is_detected() {
        let text = encode(KEY, &json!({"counts": [1, 2, 3]})).unwrap_or_default().into_bytes();
        for at in 0..text.len() {
            assert_eq!(decode::<Value>(KEY, &text[..at]), None, "cut at {at}");
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(decode::<Value>(KEY, &changed), None, "byte {at}, bit {bit}");
            }
        }
        let longer = [&text[..], b" "].concat();
        assert_eq!(decode::<Value>(KEY, &longer), None);
    }

    #[test]
    fn garbage_is_a_miss() {
        for garbage in
            [&b""[..], b"garbage", b"{}", br#"{"checksum":""#, br#"{"checksum":"0000000000000000"}"#, &[0; 64]]
        {
            assert_eq!(decode::<Value>(KEY, garbage), None);
        }
    }
}
