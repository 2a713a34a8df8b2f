//! Ids, names and titles are shown as text, whatever they contain.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Method;
use serde_json::json;

use super::{address, of_list, page, read, rows};
use crate::{http::api::site::Site, support::TestDb};

/// Returns ids of players, and their names.
pub fn hostile() -> Vec<(String, String)> {
    let wide = "\u{1f469}\u{200d}\u{1f680}".repeat(11);
    assert_eq!(wide.len(), 121);
    vec![
        ("<script>alert(1)</script>".into(), "<script>alert(2)</script>".into()),
        ("\"><img src=x onerror=alert(3)>".into(), "' onmouseover='alert(4)".into()),
        ("a&b=c&amp;d+e %20#f?g".into(), "&lt;b&gt; & &amp;".into()),
        ("</title></td></table>".into(), "<!-- --><style>*{display:none}</style>".into()),
        ("שחקן".into(), "\u{202e}desrever \u{2066}مرحبا".into()),
        (format!("{wide}\u{1f680}xyz"), wide),
        ("javascript:alert(5)".into(), "{{ name }} ${name} \\u003c".into()),
    ]
}

/// Decodes a value of a query string.
fn plain(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// Gives a player this name.
pub async fn call(site: &Site, id: &str, name: &str) {
    let path = format!("/v1/users/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
    site.admin(Method::PUT, &path, json!({"name": name})).await.is(201);
}

#[tokio::test]
async fn names_are_shown_as_text() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    site.board(json!({"title": "</h1><script>alert(0)</script>"}), &[]).await;
    let players = hostile();
    for (n, (id, name)) in players.iter().enumerate() {
        call(&site, id, name).await;
        site.post("/v1/boards/main/scores", json!({"user_id": id, "points": n + 1})).await.is(200);
    }
    let list = site.get("/v1/boards/main/scores").await.is(200);
    assert_eq!(list["data"].as_array().map(Vec::len), Some(players.len()));
    // Number of scripts, if everything else matches a page with plain names.
    let kinds = |text: &str| {
        let names = read::elements(text)
            .into_iter()
            .filter(|(_, attributes)| !attributes.iter().any(|(name, _)| name == "class"));
        names.map(|(name, _)| name).filter(|name| ["script", "img", "style", "iframe", "b"].contains(&&**name)).count()
    };
    for (id, name) in &players {
        let path = address(&[("player", id), ("friends", id), ("friends", "p\"><b>")]);
        let text = page(&site, &path).await;
        assert_eq!(kinds(&text), 1, "its own script, in {text}");
        assert_eq!(rows(&text, "top"), of_list(&list["data"]), "{id}");
        assert_eq!(
            rows(&text, "friends"),
            [[id, name].map(Clone::clone)].map(|[id, name]| {
                let row = list["data"].as_array().unwrap().iter().find(|row| row["user_id"] == *id).unwrap();
                [id, name, row["rank"].to_string(), row["score"].to_string()]
            })
        );
        // Each player's link has that player's id.
        let leads_to = |id: &str| {
            let wanted = format!("player={id}");
            read::links(&text).iter().any(|link| {
                let (path, query) = link.split_once('?').unwrap_or((link, ""));
                let mut parameters = query.split('&');
                path == "/boards/main" && parameters.any(|parameter| plain(parameter) == wanted)
            })
        };
        for (id, _) in &players {
            assert!(leads_to(id), "{id}: {:?}", read::links(&text));
        }
    }
    let home = page(&site, "/").await;
    assert_eq!(kinds(&home), 1, "{home}");
}
