//! Rate limits, and the time after which a client may retry.

use std::time::{Duration, Instant};

use reqwest::{Method, header::RETRY_AFTER};
use serde_json::json;
use tokio::time::sleep;

use super::SCORES;
use crate::{
    http::api::site::{Answer, Site},
    http::errors::refused,
    support::{TestDb, make_key},
};

/// Returns the number in a header.
#[track_caller]
fn number(answer: &Answer, name: &str) -> u64 {
    answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_str().unwrap().parse().unwrap()
}

/// Reads `times` in a row as a trusted proxy for an address. Returns the number of accepted
/// requests, and the last refused answer, or the last answer if none was refused.
async fn read(site: &Site, forwarded: &str, key: Option<&str>, times: usize) -> (usize, Answer) {
    let authorization = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("x-forwarded-for", forwarded)];
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    let (mut through, mut last) = (0, None);
    for _ in 0..times {
        let answer = site.send(Method::GET, SCORES, &headers, String::new()).await;
        assert!([200, 429].contains(&answer.status), "{answer:?}");
        through += usize::from(answer.status == 200);
        // On a slow machine, the very last request may get a new token.
        if answer.status == 429 || last.as_ref().is_none_or(|last: &Answer| last.status == 200) {
            last = Some(answer);
        }
    }
    (through, last.unwrap())
}

#[tokio::test]
async fn each_address_has_a_rate_limit() {
    let db = TestDb::new().await;
    let flags = ["--address-rate", "1", "--address-burst", "20", "--trusted-proxies", "127.0.0.1"];
    let site = Site::start(&db, &flags).await;
    site.board(json!({}), &[("ada", 1)]).await;
    let first_began = Instant::now();
    for address in ["198.51.100.7", "198.51.100.8", "2001:db8:1:2::1"] {
        let began = Instant::now();
        let (through, last) = read(&site, address, None, 60).await;
        let most = 20 + usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
        assert!((20..=most).contains(&through), "{through} of at most {most}");
        if through < 60 {
            refused(&last, 429, "", address);
            assert_eq!(last.body["type"], "urn:centile:problem:rate_limited");
            assert!(last.body["detail"].as_str().unwrap().contains(address), "{last:?}");
            assert!(number(&last, "retry-after") >= 1);
        }
        assert_eq!(number(&last, "ratelimit-limit"), 20);
        assert!(number(&last, "ratelimit-reset") >= 1 && number(&last, "ratelimit-remaining") < 20);
    }
    // The same subscriber with another address, and a client that puts a trusted proxy's address in
    // front of its own.
    for forwarded in ["2001:db8:1:2:ffff::1", "203.0.113.77, 198.51.100.7"] {
        let (through, _) = read(&site, forwarded, None, 10).await;
        // The first 20 are used up; one more comes with each second.
        let most = usize::try_from(first_began.elapsed().as_secs()).unwrap() + 1;
        assert!(through <= most, "{forwarded}: {through} of at most {most}");
    }
    // A request counts once for each ten boards that it reads, but at most for a burst.
    db.execute("SELECT centile.create_board('b' || n) FROM generate_series(1, 300) n").await;
    for (path, cost) in [
        ("/v1/boards?limit=10", 1),
        ("/v1/boards?limit=11", 2),
        ("/v1/users/ada/standings?limit=100", 10),
        ("/v1/boards?limit=300", 20),
        ("/", 3),
    ] {
        let answer =
            site.send(Method::GET, path, &[("x-forwarded-for", &*format!("192.0.2.{cost}"))], String::new()).await;
        // On a slow machine, another second may have passed.
        let left = number(&answer, "ratelimit-remaining");
        assert!(answer.status == 200 && [20 - cost, 21 - cost].contains(&left), "{path}: {answer:?}");
    }
    // Operators' paths are not limited.
    for path in ["/healthz", "/readyz", "/metrics"] {
        for _ in 0..30 {
            let answer = site.send(Method::GET, path, &[("x-forwarded-for", "198.51.100.7")], String::new()).await;
            assert!(answer.status == 200 && !answer.headers.contains_key("ratelimit-limit"), "{answer:?}");
        }
    }
    // The look-up of an unknown key counts for the address.
    let unknown = format!("ctl_0123456789abcdef_{}", "0".repeat(64));
    let began = Instant::now();
    let (through, _) = read(&site, "198.51.100.9", Some(&unknown), 60).await;
    let most = 20 + usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    assert!(through <= most, "{through} of at most {most}");
    // After the announced time the next request succeeds.
    let (_, last) = read(&site, "198.51.100.9", None, 1).await;
    if let Some(wait) = last.headers.get(RETRY_AFTER) {
        sleep(Duration::from_secs(wait.to_str().unwrap().parse().unwrap())).await;
        assert_eq!(read(&site, "198.51.100.9", None, 1).await.0, 1);
    }
}

#[tokio::test]
async fn each_key_has_a_rate_limit_across_addresses() {
    let db = TestDb::new().await;
    let flags = ["--key-rate", "1", "--key-burst", "40", "--address-rate", "1", "--address-burst", "15"];
    let site = Site::start(&db, &[&flags[..], &["--trusted-proxies", "127.0.0.1"]].concat()).await;
    site.board(json!({"reading": "key"}), &[]).await;
    let keys = [make_key(db.url(), "reader", &[]), make_key(db.url(), "reader", &[])];
    for (place, key) in keys.iter().enumerate() {
        let began = Instant::now();
        let mut through = 0;
        // More than any of the addresses may make.
        for address in 0..4 {
            through += read(&site, &format!("198.51.100.{}", 10 * place + address), Some(key), 25).await.0;
        }
        // The first look-up, and one in every four seconds, counts for the address.
        let most = 40 + 2 * usize::try_from(began.elapsed().as_secs()).unwrap() + 3;
        assert!((40..=most).contains(&through), "{through} of at most {most}");
        let (_, last) = read(&site, "198.51.100.99", Some(key), 1).await;
        if last.status == 429 {
            let id = key.split('_').nth(1).unwrap();
            assert!(last.body["detail"].as_str().unwrap().contains(id), "{last:?}");
            assert_eq!(number(&last, "ratelimit-limit"), 40);
        }
    }
}

#[tokio::test]
async fn unlimited_answers_have_no_rate_limit_headers() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--address-rate", "0", "--key-rate", "0"]).await;
    site.board(json!({}), &[]).await;
    for _ in 0..100 {
        let answer = site.get(SCORES).await;
        assert!(answer.status == 200 && !answer.headers.contains_key("ratelimit-limit"), "{answer:?}");
    }
}
