//! Requests with a valid key count for the key, from any address.

use reqwest::Method;
use serde_json::{Value, json};

use super::SCORES;
use crate::{
    http::api::site::Site,
    support::{TestDb, make_key},
};

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
    let with = async |key: &str| {
        let headers = [("x-forwarded-for", flood), ("authorization", &format!("Bearer {key}"))];
        site.send(Method::GET, SCORES, &headers, String::new()).await
    };
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
