//! The rate limit of a key counts only its holder's requests.

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_scalar;

use super::SCORES;
use crate::{
    access::signing::signer::{Signer, master_key},
    http::api::site::{Answer, Site},
    support::{TestDb, make_key},
};

/// Sends a request as a trusted proxy for an address, with a key and a signature.
async fn send(
    site: &Site,
    from: &str,
    method: &Method,
    target: &str,
    body: &str,
    key: &str,
    signature: &str,
) -> Answer {
    let authorization = format!("Bearer {key}");
    let headers = [
        ("x-forwarded-for", from),
        ("authorization", &authorization),
        ("content-type", "application/json"),
        ("centile-signature", signature),
    ];
    site.send(method.clone(), target, &headers, body.to_owned()).await
}

/// Returns the detail of a refusal, which names the limited key or address.
fn detail(answer: &Answer) -> &str {
    answer.body["detail"].as_str().unwrap()
}

#[tokio::test]
async fn a_stolen_signing_key_does_not_use_up_its_owners_limit() {
    let (db, master) = (TestDb::new().await, master_key());
    let limits = ["--key-rate", "1", "--key-burst", "40", "--address-rate", "1", "--address-burst", "15"];
    let more = ["--trusted-proxies", "127.0.0.1", "--master-key", &master];
    let site = Site::start(&db, &[&limits[..], &more].concat()).await;
    site.board(json!({"reading": "key"}), &[("ada", 1)]).await;
    let signer = Signer::make(&db, &master, &["--role", "server"]);
    let pool = db.pool().await;
    let is_used = async || {
        let used = "SELECT last_used_at IS NOT NULL FROM centile_store.api_keys WHERE id = $1";
        query_scalar::<_, bool>(used).bind(signer.id()).fetch_one(&pool).await.unwrap()
    };

    // A client that knows only the key's text is limited by its address, on calls with and without
    // a body, and from many addresses.
    let (began, wrong) = (Instant::now(), signer.now(&Method::GET, "/elsewhere", ""));
    for (place, (method, target, body)) in [
        (Method::GET, SCORES, ""),
        (Method::PUT, "/v1/users/ada", r#"{"name": "Ada"}"#),
        (Method::POST, "/v1/boards/main/scores/query", r#"{"user_ids": ["ada"]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let (mut refused, mut last) = (0, None);
        for _ in 0..35 {
            let from = format!("198.51.100.{place}");
            let answer = send(&site, &from, &method, target, body, &signer.key, &wrong).await;
            assert!([401, 429].contains(&answer.status), "{method} {target}: {answer:?}");
            refused += u64::from(answer.status == 401);
            last = Some(answer);
        }
        let most = 15 + began.elapsed().as_secs() + 1;
        assert!((15..=most).contains(&refused), "{method} {target}: {refused} of at most {most}");
        let last = last.unwrap();
        if last.status == 429 {
            assert!(detail(&last).starts_with("address 198.51.100."), "{last:?}");
            assert_eq!(last.headers["ratelimit-limit"], "15");
        }
    }
    assert!(!is_used().await, "a refused signature must not count as a use of the key");

    // The holder can still make all of the key's requests, on every call and from the attacker's
    // address.
    let (began, mut through, mut last) = (Instant::now(), 0, None);
    for number in 0..60 {
        let (method, target, body) = match number % 3 {
            0 => (Method::GET, format!("{SCORES}?limit={}", number + 1), String::new()),
            1 => (Method::PUT, format!("/v1/users/p{number}"), json!({"name": "P"}).to_string()),
            _ => (Method::POST, "/v1/boards/main/scores/query".to_owned(), json!({"user_ids": ["ada"]}).to_string()),
        };
        let (signature, from) = (signer.now(&method, &target, &body), format!("198.51.100.{}", number % 5));
        let answer = send(&site, &from, &method, &target, &body, &signer.key, &signature).await;
        assert!([200, 201, 429].contains(&answer.status), "{answer:?}");
        through += u64::from(answer.status != 429);
        last = Some(answer);
    }
    // One look-up in every four seconds may count for the address.
    let most = 40 + 2 * began.elapsed().as_secs() + 3;
    assert!((40..=most).contains(&through), "{through} of at most {most}");
    let last = last.unwrap();
    if last.status == 429 {
        assert!(detail(&last).starts_with(&format!("key {}", signer.id())), "{last:?}");
        assert_eq!(last.headers["ratelimit-limit"], "40");
    }
    assert!(is_used().await);
}

#[tokio::test]
async fn signed_requests_refused_before_their_body_count_for_the_address() {
    let (db, master) = (TestDb::new().await, master_key());
    let limits = ["--key-rate", "1", "--key-burst", "40", "--address-rate", "1", "--address-burst", "15"];
    let more = ["--trusted-proxies", "127.0.0.1", "--master-key", &master];
    let site = Site::start(&db, &[&limits[..], &more].concat()).await;
    let signer = Signer::make(&db, &master, &["--role", "reader"]);
    let wrong = signer.now(&Method::GET, "/elsewhere", "");
    let (began, mut through) = (Instant::now(), 0);
    for _ in 0..20 {
        // A reader key may not make this call, whatever the signature.
        let target = "/v1/users/ada";
        let answer = send(&site, "198.51.100.1", &Method::PUT, target, "{}", &signer.key, &wrong).await;
        assert!([403, 429].contains(&answer.status), "{answer:?}");
    }
    for _ in 0..5 {
        let headers = [("x-forwarded-for", "198.51.100.1")];
        let status = site.send(Method::GET, "/v1/boards", &headers, String::new()).await.status;
        through += u64::from(status != 429);
    }
    // The first 15 are used up; one more comes with each second.
    let most = began.elapsed().as_secs() + 1;
    assert!(through <= most, "{through} of at most {most}");
}

#[tokio::test]
async fn a_limited_address_does_not_block_active_keys() {
    // On a busy machine the address may regain a token between two requests several times in a row.
    const TRIES: usize = 30;
    let db = TestDb::new().await;
    let limits = ["--key-rate", "100", "--key-burst", "200", "--address-rate", "1", "--address-burst", "20"];
    let site = Site::start(&db, &[&limits[..], &["--trusted-proxies", "127.0.0.1"]].concat()).await;
    site.board(json!({"reading": "key"}), &[("ada", 1)]).await;
    let flood = "198.51.100.7";
    let keyless = async || {
        let headers = [("x-forwarded-for", flood)];
        site.send(Method::GET, "/v1/boards", &headers, String::new()).await.status
    };
    // The address regains a token each second, and the next request uses it: an unknown key is
    // looked up for it.
    let with = async |key: &str| send(&site, flood, &Method::GET, SCORES, "", key, "none").await;
    let refused = async |key: &str| {
        let mut last = 0;
        for _ in 0..TRIES {
            while keyless().await != 429 {}
            last = with(key).await.status;
            if last != 401 {
                break;
            }
        }
        last
    };
    for number in 0..5 {
        // First unknown, then known.
        let mut tries = 0;
        let key = loop {
            let key = make_key(db.url(), "reader", &[]);
            while keyless().await != 429 {}
            let answer = with(&key).await;
            assert_eq!(answer.status, 200, "key {number}: {answer:?}");
            if answer.headers["ratelimit-limit"] == "200" {
                break key;
            }
            tries += 1;
            assert!(tries < TRIES, "key {number} is counted for its address: {answer:?}");
        };
        for _ in 0..3 {
            let answer = with(&key).await;
            assert_eq!(answer.status, 200, "key {number}: {answer:?}");
            assert_eq!(answer.headers["ratelimit-limit"], "200");
        }
        // A key that does not exist, one with another key's secret, and a revoked one.
        let id = key.split('_').nth(1).unwrap();
        let made_up = format!("ctl_{number:016x}_{}", "5a".repeat(32));
        let others = format!("ctl_{id}_{}", "5a".repeat(32));
        for wrong in [made_up, others] {
            assert_eq!(refused(&wrong).await, 429);
        }
        site.admin(Method::DELETE, &format!("/v1/keys/{id}"), Value::Null).await.is(204);
        assert_eq!(refused(&key).await, 429);
    }
}
