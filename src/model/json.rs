//! JSON of callers.
//!
//! sqlx enables the feature `raw_value` of `serde_json`. With it, `Value` parses the text of a member
//! `$serde_json::private::RawValue` once more, with a new limit of depth, so that a short text can
//! overflow the stack. So JSON of callers becomes an [`Object`], and what PostgreSQL has stored of it
//! stays text.

use std::{collections::BTreeMap, fmt, marker::PhantomData, str::FromStr};

/// Writes types in JSON as the text that they display, and reads them from it.
macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|error: $crate::Error| serde::de::Error::custom(error.without_field()))
            }
        }
    )+};
}
pub(crate) use as_text;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor},
};
use serde_json::{Map, Value, value::RawValue};
use strum::VariantNames;

/// Largest integer that every JSON reader represents exactly (RFC 8259, section 6).
pub(crate) const EXACT_MAX: i64 = 9_007_199_254_740_991;

/// Maximum levels of objects and arrays: the limit of `serde_json`.
pub(crate) const DEPTH_MAX: usize = 127;

/// Maximum characters of a rejected number that an error repeats.
const SHOWN_MAX_CHARS: usize = 40;

/// A JSON object, in which no key has a special meaning. If a key repeats, the last value counts.
#[derive(Debug)]
pub(crate) struct Object(Map<String, Value>);

impl fmt::Display for Object {
    /// Writes no spaces between tokens, and the members in order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Object {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Plain::deserialize(deserializer)? {
            Plain(Value::Object(members)) => Ok(Self(members)),
            Plain(_) => Err(D::Error::custom("must be a JSON object")),
        }
    }
}

/// A JSON value, parsed without the special key.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Plain;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E: Error>(self) -> Result<Plain, E> {
                Ok(Plain(Value::Null))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Plain, E> {
                Ok(Plain(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Plain, A::Error> {
                let mut values = Vec::new();
                while let Some(Plain(value)) = items.next_element()? {
                    values.push(value);
                }
                Ok(Plain(values.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Plain, A::Error> {
                let mut values = Map::new();
                while let Some((key, Plain(value))) = members.next_entry()? {
                    values.insert(key, value);
                }
                Ok(Plain(values.into()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A whole JSON number, as JSON Schema defines it: `1000`, `1000.0` and `1e3` are equal.
///
/// `1.5` and `"5"` are refused. A number in plain digits may be anything that fits a `T`. A number
/// with a fraction or an exponent must be below 2⁵³. Most programs read it as a double, and a
/// double of 2⁵³ or more represents several whole numbers (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer<T = i64>(pub(crate) T);

impl<'de, T: TryFrom<i64>> Deserialize<'de> for Integer<T> {
    /// Reads the number's text, because a rounded double can be whole when the number is not.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        // The beginning of a long number is enough.
        let shown: String = text.chars().take(SHOWN_MAX_CHARS).collect();
        let expected = format!("a whole number of {} bits", 8 * size_of::<T>());
        let refused = |unexpected: Unexpected<'_>| D::Error::invalid_value(unexpected, &expected.as_str());
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return Err(D::Error::invalid_type(unexpected(text), &expected.as_str()));
        }
        let number = match text.parse::<i64>() {
            Ok(number) => number,
            Err(_) if !text.contains(['.', 'e', 'E']) => {
                return Err(refused(Unexpected::Other(&format!("integer `{shown}`"))));
            }
            Err(_) => whole(text).ok_or_else(|| {
                let number = format!("floating point `{shown}`");
                D::Error::invalid_type(Unexpected::Other(&number), &expected.as_str())
            })?,
        };
        T::try_from(number).map(Integer).map_err(|_| refused(Unexpected::Signed(number)))
    }
}

/// Returns the value of a JSON number with a fraction or an exponent, or `None` if it is not whole
/// or is 2⁵³ or more.
fn whole(text: &str) -> Option<i64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (digits, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_negative = digits.starts_with('-');
    let digits = format!("{}{fraction}", digits.trim_start_matches('-'));
    let significant = digits.trim_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // Trailing zeros multiply the significant digits by a power of ten.
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let zeros = exponent.parse::<i64>().ok()?.checked_add(i64::try_from(trailing).ok()?)?;
    let zeros = zeros.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let power = 10_i64.checked_pow(u32::try_from(zeros).ok()?)?;
    let value = significant.parse::<i64>().ok()?.checked_mul(power)?;
    (value <= EXACT_MAX).then_some(if is_negative { -value } else { value })
}

/// Returns the type of a JSON value that is not a number.
fn unexpected(text: &str) -> Unexpected<'_> {
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).map_or(Unexpected::Other("string"), Unexpected::Str),
        Some(b't') => Unexpected::Bool(true),
        Some(b'f') => Unexpected::Bool(false),
        Some(b'[') => Unexpected::Seq,
        Some(b'{') => Unexpected::Map,
        _ => Unexpected::Unit,
    }
}

/// The caller's id of a player or an event. A whole number is read as its decimal text, because many
/// databases number their users.
pub(crate) struct Id(pub(crate) String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a whole number of 64 bits")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Id, E> {
                Ok(Id(text))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

/// Reads an [`Id`].
pub(crate) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Id::deserialize(deserializer).map(|Id(text)| text)
}

/// Reads an [`Id`], or `null`.
pub(crate) fn optional_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer).map(|id| id.map(|Id(text)| text))
}

/// Reads a list of [`Id`]s.
pub(crate) fn ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Vec::deserialize(deserializer).map(|ids| ids.into_iter().map(|Id(text)| text).collect())
}

/// Reads a whole number in the forms of [`Integer`].
pub(crate) fn whole_number<'de, D: Deserializer<'de>, N: TryFrom<i64>>(deserializer: D) -> Result<N, D::Error> {
    Integer::deserialize(deserializer).map(|Integer(number)| number)
}

/// Reads whole numbers in the forms of [`Integer`].
pub(crate) fn integer_list<'de, D: Deserializer<'de>, N: TryFrom<i64>>(deserializer: D) -> Result<Vec<N>, D::Error> {
    let numbers = Vec::<Integer<N>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|Integer(number)| number).collect())
}

/// Reads a whole number in the forms of [`Integer`], or `null`.
pub(crate) fn integer<'de, D: Deserializer<'de>, N: TryFrom<i64>>(deserializer: D) -> Result<Option<N>, D::Error> {
    Option::<Integer<N>>::deserialize(deserializer).map(|number| number.map(|Integer(number)| number))
}

/// Like [`integer`], for a field for which absence and `null` differ.
pub(crate) fn nullable_integer<'de, D, N>(deserializer: D) -> Result<Option<Option<N>>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64>,
{
    integer(deserializer).map(Some)
}

/// Reads an object of whole numbers in the forms of [`Integer`], or `null`, by kind.
pub(crate) fn integers<'de, D, K, N>(deserializer: D) -> Result<BTreeMap<K, Option<N>>, D::Error>
where
    D: Deserializer<'de>,
    K: FromStr + VariantNames + Ord,
    N: TryFrom<i64>,
{
    Option::<ByKind<K, N>>::deserialize(deserializer)
        .map(|numbers| numbers.map(|ByKind(numbers)| numbers).unwrap_or_default())
}

struct ByKind<K, N>(BTreeMap<K, Option<N>>);

impl<'de, K: FromStr + VariantNames + Ord, N: TryFrom<i64>> Deserialize<'de> for ByKind<K, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<K, N>(PhantomData<(K, N)>);
        impl<'de, K: FromStr + VariantNames + Ord, N: TryFrom<i64>> Visitor<'de> for Members<K, N> {
            type Value = ByKind<K, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut numbers = BTreeMap::new();
                while let Some(name) = members.next_key::<String>()? {
                    let (kind, number) = members.next_value_seed(Member(name, PhantomData))?;
                    numbers.insert(kind, number);
                }
                Ok(ByKind(numbers))
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// A member of an object. The kind is parsed with its value, so that an error names both.
struct Member<K, N>(String, PhantomData<(K, N)>);

impl<'de, K: FromStr + VariantNames, N: TryFrom<i64>> DeserializeSeed<'de> for Member<K, N> {
    type Value = (K, Option<N>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let unknown = |_| D::Error::custom(format!("is not one of: {}", K::VARIANTS.join(", ")));
        let kind = self.0.parse().map_err(unknown)?;
        Ok((kind, integer(deserializer)?))
    }
}

/// Reads a field for which absence and `null` differ.
///
/// An absent field gives `None` (by `#[serde(default)]`), `null` gives `Some(None)`.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// Returns whether arrays and objects nest more than `depth` deep. The answer means nothing if
/// `text` is not JSON.
pub(crate) fn is_deeper(text: &str, depth: usize) -> bool {
    let (mut open, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => open += 1,
            b']' | b'}' if !is_string => open = open.saturating_sub(1),
            _ => {}
        }
        if open > depth {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_the_brackets_open_at_once() {
        for (text, depth) in [
            ("", 0),
            ("1", 0),
            ("[]", 1),
            ("[[],[],{}]", 2),
            (r#"{"a":[{"b":1}]}"#, 3),
            (r#"["[[[", "\"[[[", "\\", [1]]"#, 2),
            ("]]][[", 2),
        ] {
            assert!(!is_deeper(text, depth), "{text}");
            assert!(depth == 0 || is_deeper(text, depth - 1), "{text}");
        }
    }

    #[test]
    fn no_key_has_a_special_meaning() {
        for text in [
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
            r#"{"x":[{"$serde_json::private::RawValue":"[[[["}]}"#,
            r#"{"x":{"$serde_json::private::RawValue":1}}"#,
        ] {
            assert_eq!(text.parse::<Object>().ok().map(|object| object.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(nested(DEPTH_MAX).parse::<Object>().is_ok());
        assert!(nested(DEPTH_MAX + 1).parse::<Object>().is_err());
    }
}
