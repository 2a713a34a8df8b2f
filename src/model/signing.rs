//! Signed requests: proof that a request comes from somebody who knows more than the key's text, which proxies and logs may have seen,
//! that nobody has changed it on the way, and that it was made just now.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::TryRng as _;
use sha2::Sha256;

use crate::{
    Error, Result,
    model::{key::hex, seal::MasterKeys},
};

/// What the text of a secret begins with.
const SECRET_PREFIX: &str = "ctls_";

/// Bytes of a secret, and of a signature.
const BYTES: usize = 32;

/// How far the time of a signature may be from now, in seconds, either way: clocks differ, and requests take their time.
const TOLERANCE_SECONDS: u64 = 300;

/// What the requests of a key are signed with. Never logged; as text, `ctls_` and its bytes as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret([u8; BYTES]);

impl SigningSecret {
    /// A new one, from the operating system.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = [0; BYTES];
        rand::rngs::SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
        Ok(Self(bytes))
    }

    /// Its text, for the holder of the key and nobody else.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{SECRET_PREFIX}{}", hex(&self.0))
    }

    /// Sealed for the key of this id.
    pub(crate) fn seal(&self, keys: &MasterKeys, key_id: &str) -> Result<Vec<u8>> {
        keys.seal(&purpose(key_id), &self.0)
    }

    /// The one that was sealed for the key of this id.
    pub(crate) fn open(keys: Option<&MasterKeys>, key_id: &str, sealed: &[u8]) -> Result<Self> {
        let purpose = purpose(key_id);
        let keys = keys
            .ok_or_else(|| Error::Internal(format!("the secret of {purpose} is sealed, and there is no master key")))?;
        let bytes = keys.open(&purpose, sealed)?;
        bytes.try_into().map(Self).map_err(|_| Error::Internal(format!("the secret of {purpose} is of another length")))
    }
}

impl From<[u8; BYTES]> for SigningSecret {
    fn from(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }
}

/// What the secret of a key is sealed for.
pub(crate) fn purpose(key_id: &str) -> String {
    format!("key {key_id}")
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret")
    }
}

/// The signature of a request whose body is still to come.
pub(crate) struct Signature {
    /// Over the request, as far as it is known.
    mac: Hmac<Sha256>,
    given: [u8; BYTES],
}

impl Signature {
    /// Reads `Centile-Signature: t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 (RFC 2104) over `SECONDS.METHOD.TARGET.BODY`; the target is
    /// path and query as they were sent. [`Error::Unauthorized`] when there is none, when it cannot be read, or is of another time than
    /// `now`, in seconds since 1970.
    ///
    /// Dots do for a border, although target and body may hold some. The body of a signed request is JSON or nothing, and no JSON is found
    /// after a dot within JSON, nor made of the end of a target, a dot and JSON: quotes would not come in pairs, or a number end in a dot.
    pub(crate) fn read(
        secret: &SigningSecret,
        header: Option<&str>,
        method: &str,
        target: &str,
        now: i64,
    ) -> Result<Self> {
        let header = header.ok_or_else(|| {
            Error::Unauthorized(
                "this key signs its requests, and Centile-Signature: t=SECONDS,v1=HEX is missing".to_owned(),
            )
        })?;
        let (time, given) = parse(header).ok_or_else(|| {
            Error::Unauthorized("Centile-Signature must be t=SECONDS,v1=HEX, with 64 hexadecimal digits".to_owned())
        })?;
        let age = now.saturating_sub(time.parse().unwrap_or(i64::MAX));
        if age.unsigned_abs() > TOLERANCE_SECONDS {
            return Err(Error::Unauthorized(format!(
                "the signature was made {} s {}: {TOLERANCE_SECONDS} s are allowed either way",
                age.unsigned_abs(),
                if age > 0 { "ago" } else { "from now" }
            )));
        }
        // A key of any length will do (RFC 2104, section 2); the error is there for other algorithms.
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0)
            .map_err(|error| Error::Internal(format!("cannot check a signature: {error}")))?;
        for part in [time, method, target] {
            mac.update(part.as_bytes());
            mac.update(b".");
        }
        Ok(Self { mac, given })
    }

    /// Its bytes, if it is over this body. [`Error::Unauthorized`] when it is not. Takes the same time wherever they differ.
    pub(crate) fn over(mut self, body: &[u8]) -> Result<[u8; BYTES]> {
        self.mac.update(body);
        self.mac.verify_slice(&self.given).map(|()| self.given).map_err(|_| {
            Error::Unauthorized(
                "the signature does not match: v1 is the HMAC-SHA256 over SECONDS.METHOD.PATH?QUERY.BODY, all as they are sent".to_owned(),
            )
        })
    }
}

/// Time and signature of a header; the time as it is written, because so it was signed.
fn parse(header: &str) -> Option<(&str, [u8; BYTES])> {
    let (time, digits) = header.strip_prefix("t=")?.split_once(",v1=")?;
    // i64 takes a sign, too.
    if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit()) || digits.len() != BYTES * 2 {
        return None;
    }
    let mut given = [0; BYTES];
    for (byte, pair) in given.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some((time, given))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use sha2::Digest as _;

    use super::*;

    const NOW: i64 = 1_700_000_000;
    const TARGET: &str = "/v1/boards/arena/scores?ranks=true";
    const BODY: &[u8] = br#"{"user_id":"ada","points":50,"id":"match-7:ada"}"#;
    /// Python's: `hmac.new(bytes(range(32)), b'1700000000.POST.' + TARGET + b'.' + BODY, 'sha256').hexdigest()`.
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
            assert!(matches!(of(method, target)?.over(body), Err(Error::Unauthorized(_))), "{method} {target}");
        }
        Ok(())
    }

    #[test]
    fn a_signature_holds_for_five_minutes_either_way() {
        let header = format!("t={NOW},v1={HEX}");
        for (now, refusal) in [
            (NOW - 301, Some("301 s from now")),
            (NOW - 300, None),
            (NOW + 300, None),
            (NOW + 301, Some("301 s ago")),
            (i64::MIN, Some("from now")),
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
    fn what_is_no_signature_is_refused_and_never_repeated() {
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
        // A time that no clock will show is of another time.
        assert!(read(Some(&format!("t=99999999999999999999999999,v1={HEX}")), "POST", TARGET, NOW).is_err());
        // Digits may be written either way.
        assert!(read(Some(&format!("t={NOW},v1={}", HEX.to_uppercase())), "POST", TARGET, NOW).is_ok());
    }

    #[test]
    fn a_secret_is_written_sealed_and_never_shown() -> Result<()> {
        let secret = SigningSecret::random()?;
        assert_ne!(secret, SigningSecret::random()?);
        assert_eq!(format!("{secret:?}"), "SigningSecret");
        assert_eq!(secret.text().len(), SECRET_PREFIX.len() + BYTES * 2);
        let keys: MasterKeys = BASE64_STANDARD.encode(Sha256::digest("a master key")).parse()?;
        let sealed = secret.seal(&keys, "0011223344556677")?;
        assert_eq!(SigningSecret::open(Some(&keys), "0011223344556677", &sealed)?, secret);
        assert!(SigningSecret::open(Some(&keys), "7766554433221100", &sealed).is_err());
        assert!(SigningSecret::open(None, "0011223344556677", &sealed).is_err());
        Ok(())
    }
}
