//! Signed requests.
//!
//! A signature proves that the caller knows the key's signing secret, not only the key's text,
//! which proxies and logs may have seen. It also proves that the request is unchanged and recent.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{
    Code, Error, Result,
    model::{
        encryption::{self, MasterKeys},
        key::hex,
        secret,
    },
};

/// Prefix of a secret's text.
const SECRET_PREFIX: &str = "ctls_";

/// Bytes of a secret, and of a signature.
const BYTES: usize = 32;

/// Maximum difference between the time of a signature and now, in seconds, either way. It covers
/// differences of clocks and transmission times.
const TOLERANCE_SECONDS: u64 = 300;

/// Secret that signs the requests of a key. Its text is `ctls_` and hexadecimal digits. Never log
/// it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret([u8; BYTES]);

impl SigningSecret {
    /// Creates a secret from the operating system's random numbers.
    pub(crate) fn random() -> Result<Self> {
        secret::random().map(Self)
    }

    /// Returns the secret's text, for the holder of the key only.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{SECRET_PREFIX}{}", hex(&self.0))
    }

    /// Encrypts the secret for the key with this id.
    pub(crate) fn encrypt(&self, keys: &MasterKeys, key_id: &str) -> Result<Vec<u8>> {
        keys.encrypt(&purpose(key_id), &self.0)
    }

    /// Decrypts the secret of the key with this id.
    pub(crate) fn decrypt(keys: Option<&MasterKeys>, key_id: &str, encrypted: &[u8]) -> Result<Self> {
        let purpose = purpose(key_id);
        let bytes = encryption::decrypt(keys, &purpose, encrypted)?;
        bytes.try_into().map(Self).map_err(|_| Error::Internal(format!("the secret of {purpose} has a wrong length")))
    }
}

impl From<[u8; BYTES]> for SigningSecret {
    fn from(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }
}

/// Returns the purpose that a key's secret is encrypted for.
pub(crate) fn purpose(key_id: &str) -> String {
    format!("key {key_id}")
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret")
    }
}

/// The signature of a request whose body has not arrived yet.
pub(crate) struct Signature {
    /// HMAC over the parts received so far.
    mac: Hmac<Sha256>,
    expected: [u8; BYTES],
}

impl Signature {
    /// Parses `Centile-Signature: t=SECONDS,v1=HEX`.
    ///
    /// HEX is the HMAC-SHA256 (RFC 2104) of `SECONDS.METHOD.TARGET.BODY`. TARGET is path and query
    /// as sent, SECONDS and `now` count from 1970. [`Error::Unauthorized`] if the header is missing
    /// or malformed, or if its time is too far from `now`.
    ///
    /// Dots separate the parts without ambiguity, although target and body may contain dots. The
    /// body of a signed request is JSON or empty. No JSON text has the form of the end of a target,
    /// a dot and JSON, or contains JSON right after a dot. Otherwise quotes would be unbalanced, or
    /// a number would end in a dot.
    pub(crate) fn read(
        secret: &SigningSecret,
        header: Option<&str>,
        method: &str,
        target: &str,
        now: i64,
    ) -> Result<Self> {
        let header = header.ok_or_else(|| {
            Error::unauthorized(
                Code::SignatureInvalid,
                "requests with this key must be signed; Centile-Signature: t=SECONDS,v1=HEX is missing",
            )
        })?;
        let (time, expected) = parse(header).ok_or_else(|| {
            Error::unauthorized(
                Code::SignatureInvalid,
                "Centile-Signature must be t=SECONDS,v1=HEX with 64 hexadecimal digits",
            )
        })?;
        let age = now.saturating_sub(time.parse().unwrap_or(i64::MAX));
        if age.unsigned_abs() > TOLERANCE_SECONDS {
            return Err(Error::unauthorized(
                Code::SignatureInvalid,
                format!(
                    "the time of the signature is {} s {}; at most {TOLERANCE_SECONDS} s are allowed",
                    age.unsigned_abs(),
                    if age > 0 { "in the past" } else { "in the future" }
                ),
            ));
        }
        // HMAC accepts keys of any length (RFC 2104, section 2); other algorithms may fail here.
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0)
            .map_err(|error| Error::Internal(format!("a signature cannot be checked: {error}")))?;
        for part in [time, method, target] {
            mac.update(part.as_bytes());
            mac.update(b".");
        }
        Ok(Self { mac, expected })
    }

    /// Returns the signature's bytes if it matches with this body. [`Error::Unauthorized`]
    /// otherwise. Compares in constant time.
    pub(crate) fn over(mut self, body: &[u8]) -> Result<[u8; BYTES]> {
        self.mac.update(body);
        self.mac.verify_slice(&self.expected).map(|()| self.expected).map_err(|_| {
            Error::unauthorized(Code::SignatureInvalid,
                "the signature does not match: v1 must be the HMAC-SHA256 of SECONDS.METHOD.PATH?QUERY.BODY, exactly as sent",
            )
        })
    }
}

/// Returns time and signature of a header, and ignores unknown elements. The time stays text, because its digits are part of the
/// signed text.
fn parse(header: &str) -> Option<(&str, [u8; BYTES])> {
    let (mut time, mut digits) = (None, None);
    for element in header.split(',') {
        let (name, value) = element.split_once('=')?;
        let place = match name {
            "t" => &mut time,
            "v1" => &mut digits,
            // Later versions may add signatures of another kind.
            _ => continue,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    let (time, digits) = (time?, digits?);
    // Parsing an i64 would also accept a sign.
    if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit()) || digits.len() != BYTES * 2 {
        return None;
    }
    let mut expected = [0; BYTES];
    for (byte, pair) in expected.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some((time, expected))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use sha2::Digest as _;

    use super::*;

    const NOW: i64 = 1_700_000_000;
    const TARGET: &str = "/v1/boards/arena/scores?ranks=true";
    const BODY: &[u8] = br#"{"user_id":"ada","points":50,"id":"match-7:ada"}"#;
    /// From Python: `hmac.new(bytes(range(32)), b'1700000000.POST.' + TARGET + b'.' + BODY,
    /// 'sha256').hexdigest()`.
    const HEX: &str = "a604a79a62cd20a9c54308b64f9e8aba5c6fea32dc7897f9413d46a6e8d40414";

    fn read(header: Option<&str>, method: &str, target: &str, now: i64) -> Result<Signature> {
        let mut secret = [0; BYTES];
        (0..).zip(&mut secret).for_each(|(number, byte)| *byte = number);
        Signature::read(&SigningSecret(secret), header, method, target, now)
    }

    #[test]
    fn a_signature_covers_time_method_target_and_body() -> Result<()> {
        let header = format!("t={NOW},v1={HEX}");
        let of = |method, target| read(Some(&header), method, target, NOW);
        of("POST", TARGET)?.over(BODY)?;
        let later = header.replace("t=1700000000", "t=1700000001");
        assert!(read(Some(&later), "POST", TARGET, NOW)?.over(BODY).is_err());
        for (method, target, body) in [
            ("PUT", TARGET, BODY),
            ("post", TARGET, BODY),
            ("POST", "/v1/boards/arena/scores", BODY),
            ("POST", "/v1/boards/arena/scores?ranks=tru", BODY),
            ("POST", TARGET, &BODY[1..]),
            ("POST", TARGET, b""),
        ] {
            assert!(matches!(of(method, target)?.over(body), Err(Error::Unauthorized { .. })), "{method} {target}");
        }
        Ok(())
    }

    #[test]
    fn a_signature_is_valid_for_five_minutes_either_way() {
        let header = format!("t={NOW},v1={HEX}");
        for (now, refusal) in [
            (NOW - 301, Some("301 s in the future")),
            (NOW - 300, None),
            (NOW + 300, None),
            (NOW + 301, Some("301 s in the past")),
            (i64::MIN, Some("in the future")),
        ] {
            let refused = read(Some(&header), "POST", TARGET, now).err().map(|error| error.to_string());
            let is_right = match (&refused, refusal) {
                (Some(refused), Some(words)) => refused.contains(words),
                (None, None) => true,
                _ => false,
            };
            assert!(is_right, "{now}: {refused:?}");
        }
    }

    #[test]
    fn a_malformed_signature_is_refused_and_not_repeated() {
        let refused = read(None, "POST", TARGET, NOW).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|refused| refused.contains("missing")));
        let (short, long, other) = (&HEX[1..], format!("{HEX}0"), format!("{}g", &HEX[1..]));
        for header in [
            "",
            "t=",
            "sesame",
            &format!("v1={HEX}"),
            &format!("t=,v1={HEX}"),
            &format!("t=+{NOW},v1={HEX}"),
            &format!("t={NOW}, v1={HEX}"),
            &format!("t={NOW},v1={short}"),
            &format!("t={NOW},v1={long}"),
            &format!("t={NOW},v1={other}"),
            &format!("t={NOW},v1=\u{e9}{}", &HEX[2..]),
            &format!("t={NOW},v0={HEX}"),
            &format!("t={NOW},v1={HEX},v1={HEX}"),
        ] {
            let refused =
                read(Some(header), "POST", TARGET, NOW).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.starts_with("Centile-Signature must be"), "{header}: {refused}");
        }
        // A time beyond 64 bits is too far from now.
        assert!(read(Some(&format!("t=99999999999999999999999999,v1={HEX}")), "POST", TARGET, NOW).is_err());
        // Hexadecimal digits may be upper-case.
        assert!(read(Some(&format!("t={NOW},v1={}", HEX.to_uppercase())), "POST", TARGET, NOW).is_ok());
    }

    #[test]
    fn a_secret_is_encrypted_and_never_shown() -> Result<()> {
        let secret = SigningSecret::random()?;
        assert_ne!(secret, SigningSecret::random()?);
        assert_eq!(format!("{secret:?}"), "SigningSecret");
        assert_eq!(secret.text().len(), SECRET_PREFIX.len() + BYTES * 2);
        let keys: MasterKeys = BASE64_STANDARD.encode(Sha256::digest("a master key")).parse()?;
        let encrypted = secret.encrypt(&keys, "0011223344556677")?;
        assert_eq!(SigningSecret::decrypt(Some(&keys), "0011223344556677", &encrypted)?, secret);
        assert!(SigningSecret::decrypt(Some(&keys), "7766554433221100", &encrypted).is_err());
        assert!(SigningSecret::decrypt(None, "0011223344556677", &encrypted).is_err());
        Ok(())
    }
}
