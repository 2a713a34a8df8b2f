//! Signed requests, made without the service's code: openssl computes the HMAC.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::Value;

use crate::{
    http::api::site::{Answer, Site},
    support::{Ran, TestDb, centile, next_number},
};

/// Returns a new random master key.
pub fn master_key() -> String {
    let made = Command::new("openssl").args(["rand", "-base64", "32"]).output().expect("openssl is installed");
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert_eq!(BASE64_STANDARD.decode(&key).unwrap().len(), 32);
    key
}

/// Runs a command to its end, with a test's database and master keys.
pub fn run_with(db: &TestDb, master_keys: &str, arguments: &[&str]) -> Ran {
    let mut command = centile();
    Ran::of(command.args(arguments).env("DATABASE_URL", db.url()).env("CENTILE_MASTER_KEY", master_keys))
}

/// Returns the HMAC-SHA256 of `text`, computed by openssl. The key is in hexadecimal digits.
pub fn hmac(hex_key: &str, text: &[u8]) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["dgst", "-sha256", "-mac", "HMAC", "-macopt", &format!("hexkey:{hex_key}")]);
    let mut child = openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("openssl is installed");
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().rsplit(' ').next().unwrap().to_owned()
}

/// A signing key and its secret, as its holder stores them.
#[derive(Debug, Clone)]
pub struct Signer {
    pub key: String,
    /// In hexadecimal digits.
    pub secret: String,
}

impl Signer {
    /// Creates a key on the command line.
    pub fn make(db: &TestDb, master_keys: &str, flags: &[&str]) -> Self {
        let name = format!("signer {}", next_number());
        let all: &[&str] = if flags.contains(&"--board") { &[] } else { &["--all-boards"] };
        let made = ["key", "create", "--signed", "--name", &name];
        let made = run_with(db, master_keys, &[&made, flags, all].concat()).well();
        let (key, secret) = made.trim().split_once('\n').expect("two lines");
        Self { key: key.to_owned(), secret: secret.strip_prefix("ctls_").unwrap().to_owned() }
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        self.key.split('_').nth(1).unwrap()
    }

    /// Returns the header for a request at `seconds`.
    pub fn signature(&self, seconds: i64, method: &Method, target: &str, body: &str) -> String {
        format!("t={seconds},v1={}", hmac(&self.secret, format!("{seconds}.{method}.{target}.{body}").as_bytes()))
    }

    /// Returns the header for a request now.
    pub fn now(&self, method: &Method, target: &str, body: &str) -> String {
        self.signature(chrono::Utc::now().timestamp(), method, target, body)
    }

    /// Sends a request with this signature, or with none.
    pub async fn send(
        &self,
        site: &Site,
        method: &Method,
        target: &str,
        body: &str,
        signature: Option<&str>,
    ) -> Answer {
        let authorization = format!("Bearer {}", self.key);
        let mut headers = vec![("content-type", "application/json"), ("authorization", &*authorization)];
        headers.extend(signature.map(|signature| ("centile-signature", signature)));
        site.send(method.clone(), target, &headers, body.to_owned()).await
    }

    /// Sends a request, signed now.
    pub async fn signed(&self, site: &Site, method: Method, target: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let signature = self.now(&method, target, &body);
        self.send(site, &method, target, &body, Some(&signature)).await
    }
}
