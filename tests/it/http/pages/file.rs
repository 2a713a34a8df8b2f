//! The static files of a page, and their size.

use std::io::Read as _;

use flate2::read::GzDecoder;
use reqwest::{Client, header::ACCEPT_ENCODING};
use sha2::{Digest as _, Sha256};

use super::{board, header, page, players, read};
use crate::{http::api::site::Site, support::TestDb};

/// Maximum bytes of a board's first page together with its files.
const FIRST_LOAD: usize = 60_000;

/// Requests `url`; returns the headers, the number of bytes sent, and the decompressed text.
async fn compressed(client: &Client, url: &str, encodings: &str) -> (reqwest::header::HeaderMap, usize, String) {
    let response = client.get(url).header(ACCEPT_ENCODING, encodings).send().await.unwrap();
    assert_eq!(response.status(), 200, "{url}");
    let headers = response.headers().clone();
    let sent = response.bytes().await.unwrap();
    let is_gzip = headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip");
    let mut text = String::new();
    if is_gzip {
        GzDecoder::new(&*sent).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(sent.to_vec()).unwrap();
    }
    (headers, sent.len(), text)
}

#[tokio::test]
async fn file_names_contain_a_digest_and_files_are_cached_forever() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    board(&site, &players(100)).await;
    let text = page(&site, "/boards/main?limit=100&player=p050").await;
    let files: Vec<String> = read::elements(&text)
        .into_iter()
        .flat_map(|(_, attributes)| attributes)
        .filter(|(name, value)| ["href", "src"].contains(&&**name) && value.starts_with("/assets/"))
        .map(|(_, value)| value)
        .collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let url = site.serve.at("/boards/main?limit=100&player=p050");
    let (headers, mut sent, same) = compressed(&site.serve.client, &url, "br, gzip;q=0.9").await;
    assert_eq!((header(&headers, "content-encoding"), header(&headers, "vary")), ("gzip", "accept-encoding"));
    assert_eq!(same, text);
    for file in &files {
        let (headers, length, text) = compressed(&site.serve.client, &site.serve.at(file), "gzip, deflate, br").await;
        sent += length;
        let digest = u64::from_be_bytes(Sha256::digest(&text)[..8].try_into().unwrap());
        let digest = format!("{digest:016x}");
        assert!(file.contains(&format!(".{digest}.")), "{file} is {digest}");
        assert_eq!(header(&headers, "cache-control"), "public, max-age=31536000, immutable", "{file}");
        assert_eq!(header(&headers, "x-content-type-options"), "nosniff", "{file}");
        let plain = site.get(file).await;
        assert_eq!((plain.status, &plain.text), (200, &text), "{file}");
        assert!(!plain.headers.contains_key("content-encoding"), "{file}");
        let tag = header(&plain.headers, "etag");
        let known = site.send(reqwest::Method::GET, file, &[("if-none-match", tag)], String::new()).await;
        assert_eq!((known.status, &*known.text), (304, ""), "{file}");
        // During an upgrade, a page may request a file of the other version from either instance.
        // It gets this version's file, which must not be cached.
        let other = site.get(&file.replace(&digest, "0123456789abcdef")).await;
        assert_eq!((other.status, &other.text, header(&other.headers, "cache-control")), (200, &text, "no-cache"));
        assert_eq!(site.get(&file.replace("/centile.", "/other.")).await.status, 404, "{file}");
        assert_eq!(site.get(&file.replace(&digest, "0123456789abcdeg")).await.status, 404, "{file}");
    }
    assert!(sent <= FIRST_LOAD, "{sent} bytes");
    // A client that refuses compression gets none. Event streams are never compressed.
    let (headers, ..) = compressed(&site.serve.client, &url, "gzip;q=0, identity").await;
    assert!(!headers.contains_key("content-encoding"), "{headers:?}");
    let events = site.serve.client.get(site.serve.at("/v1/boards/main/live")).header(ACCEPT_ENCODING, "gzip");
    let events = events.send().await.unwrap();
    assert!(!events.headers().contains_key("content-encoding"), "{:?}", events.headers());
}
