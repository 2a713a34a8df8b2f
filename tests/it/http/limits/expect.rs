//! `Expect: 100-continue` (RFC 9110, section 10.1.1).

use serde_json::json;

use super::{SCORES, wire::Wire};
use crate::{http::api::site::Site, support::TestDb};

#[tokio::test]
async fn only_authenticated_clients_get_100_continue() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({}), &[]).await;
    let body = json!({"user_id": "ada", "points": 1}).to_string();
    let head = |key: &str, more: &str| {
        format!(
            "POST {SCORES} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n{more}content-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        )
    };
    let expect = "expect: 100-continue\r\n";

    for key in ["", "ctl_0123456789abcdef_00", "nonsense"] {
        let mut wire = Wire::to(&site.serve).await;
        wire.send(&head(key, expect)).await.unwrap();
        let answer = wire.answer().await;
        assert_eq!(answer.status, 401, "{answer:?}");
        // The client may or may not send the body now, so the connection cannot be used further.
        assert_eq!(answer.header("connection"), "close");
    }
    // Behind another request in the same packet too.
    let mut wire = Wire::to(&site.serve).await;
    let get = format!("GET {SCORES} HTTP/1.1\r\nhost: x\r\n\r\n");
    wire.send(&format!("{get}{}", head("nonsense", expect))).await.unwrap();
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.answer().await.status, 401);

    // The connection serves further requests, with and without an expectation.
    let mut wire = Wire::to(&site.serve).await;
    for (place, expects) in [true, false, true, true].into_iter().enumerate() {
        wire.send(&head(&site.server_key, if expects { expect } else { "" })).await.unwrap();
        if expects {
            let interim = wire.answer().await;
            assert_eq!((interim.status, interim.head.as_str()), (100, "http/1.1 100 continue\r\n\r\n"), "{place}");
        }
        wire.send(&body).await.unwrap();
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200, "{place}: {answer:?}");
    }
    assert_eq!(site.get(&format!("{SCORES}/ada")).await.is(200)["score"], 4);
}
