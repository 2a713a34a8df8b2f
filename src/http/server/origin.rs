//! Origins of pages, in settings.

use std::{fmt, str::FromStr};

use actix_web::http::Uri;

use crate::{Error, Result};

/// An origin that a setting allows: to read responses, to frame boards, or to serve avatars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Every origin, written as `*`.
    Any,
    /// One origin, as browsers write it.
    One(String),
}

impl FromStr for Origin {
    type Err = Error;

    /// `*`, or scheme, host and a port other than the scheme's default: `https://game.example`.
    fn from_str(text: &str) -> Result<Self> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let is_origin = text.parse::<Uri>().is_ok_and(|uri| {
            let written = uri.scheme_str().zip(uri.authority()).map(|(scheme, place)| format!("{scheme}://{place}"));
            // A browser writes it in lower case, with nothing after the port.
            written.is_some_and(|written| {
                // In a Content-Security-Policy, a `;` would start another directive.
                written == text
                    && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"0123456789-._:/[]".contains(&byte))
            })
        });
        if is_origin {
            Ok(Self::One(text.to_owned()))
        } else {
            let message =
                format!("{text:?} is not an origin as browsers write it, such as https://game.example, nor *");
            Err(Error::invalid("cors_origins", message))
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "*",
            Self::One(origin) => origin,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_browsers_write() {
        for good in ["*", "https://game.example", "http://localhost:3000", "https://[2001:db8::1]:8443"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
        }
        for bad in ["", "null", "game.example", "https://", "https://game.example/", "https://Game.example"]
            .into_iter()
            .chain([
                "https://a@game.example",
                "https://*.example",
                "https://game.example/path",
                "https://a.example?b",
                "https://a.example;b",
                "https://'self'",
            ])
        {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
