//! A player is found by the beginning of the id or name, and compared with friends.

use reqwest::{Method, StatusCode, redirect};
use serde_json::{Value, json};

use super::{of_list, page, read::rows};
use crate::{http::api::site::Site, support::TestDb};

/// Ids, names and points. The first has no name of its own.
const PLAYERS: [(&str, &str, i64); 7] = [
    ("emil-1", "", 70),
    ("a", "Émile Zola", 60),
    ("b", "EMILIA", 50),
    ("c", "E\u{301}milie", 40),
    ("d", "Ünal", 30),
    ("e", "ЖАННА", 20),
    ("f", "100% <b>", 10),
];

async fn site(db: &TestDb) -> Site {
    let site = Site::start(db, &[]).await;
    let scores: Vec<(&str, i64)> = PLAYERS.iter().map(|(id, _, points)| (*id, *points)).collect();
    site.board(json!({"periods": ["all_time", "week"]}), &scores).await;
    // A player of another board only.
    site.board(json!({"slug": "secret", "reading": "key"}), &[("stranger", 5)]).await;
    for (id, name) in PLAYERS.iter().map(|(id, name, _)| (*id, *name)).chain([("stranger", "Emil the stranger")]) {
        if !name.is_empty() {
            site.admin(Method::PUT, &format!("/v1/users/{id}"), json!({"name": name})).await.is(200);
        }
    }
    site
}

#[tokio::test]
async fn names_are_found_without_regard_to_case_and_accents() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    let long = "x".repeat(128);
    for (text, wanted) in [
        ("emil", &["emil-1", "a", "b", "c"][..]),
        ("%C3%89MIL", &["a", "b", "c"]),
        ("%20emile%20z", &["a"]),
        ("u", &["d"]),
        ("%D0%B6%D0%B0", &["e"]),
        ("100%25", &["f"]),
        ("%25", &[]),
        ("_", &[]),
        ("zola", &[]),
        ("stranger%20", &["-"]),
        (&long, &[]),
    ] {
        let path = format!("/boards/main?period=week&search={text}");
        // The whole id of a player leads to that player, who has no score on this board.
        if wanted == ["-"] {
            assert!(page(&site, &path).await.contains("No score in this period."), "{text}");
            continue;
        }
        let page = page(&site, &path).await;
        let found: Vec<String> = rows(&page, "found").into_iter().map(|[id, ..]| id).collect();
        assert_eq!(found, wanted, "{text}");
        assert_eq!(page.contains("No player found for"), wanted.is_empty(), "{text}");
    }
    assert!(!page(&site, "/boards/main?search=emil").await.contains("stranger"), "a player of a private board");
    assert!(!page(&site, "/boards/main?search=").await.contains("found-title"));
    let script = page(&site, "/boards/main?search=%3Cscript%3E").await;
    assert!(script.contains("&lt;script&gt;") && !script.contains("<script>"), "{script}");
    assert_eq!(site.get(&format!("/boards/main?search={long}x")).await.status, 422);

    // A renamed player is found by the new name only.
    site.admin(Method::PUT, "/v1/users/a", json!({"name": "Mila"})).await.is(200);
    let found = |page: String| rows(&page, "found").into_iter().map(|[id, ..]| id).collect::<Vec<_>>();
    assert_eq!(found(page(&site, "/boards/main?search=%C3%A9mil").await), ["b", "c"]);
    assert_eq!(found(page(&site, "/boards/main?search=mil").await), ["a"]);

    // The id itself leads to the player's page, which keeps the other parameters.
    let client = reqwest::Client::builder().redirect(redirect::Policy::none()).build().unwrap();
    let led = client.get(site.serve.at("/boards/main?period=week&search=b")).send().await.unwrap();
    assert_eq!(led.status(), StatusCode::SEE_OTHER);
    assert_eq!(led.headers()["location"], "/boards/main?period=week&player=b");
}

#[tokio::test]
async fn a_player_is_ranked_among_friends() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    let friends = json!({"change": "add", "user_ids": ["d", "b", "stranger", "f"]});
    site.admin(Method::POST, "/v1/users/c/friends", friends).await.is(200);
    let text = page(&site, "/boards/main?player=c&among=friends&limit=3").await;
    let list = site.get("/v1/boards/main/scores?friends_of=c&limit=3").await.is(200);
    let wanted: Vec<[String; 4]> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .zip(of_list(&list["data"]))
        .map(|(row, [id, name, _, score])| [id, name, row["local_rank"].to_string(), score])
        .collect();
    assert_eq!(wanted.len(), 3, "{list}");
    assert_eq!(rows(&text, "local"), wanted);
    assert_eq!(rows(&text, "top"), Vec::<[String; 4]>::new());
    let next = page(&site, "/boards/main?player=c&among=friends&limit=3&from=4").await;
    assert_eq!(rows(&next, "local").len(), 1, "{next}");
    // Without friends the player is alone. An unknown player has no such list.
    assert_eq!(rows(&page(&site, "/boards/main?player=e&among=friends").await, "local").len(), 1);
    assert_eq!(rows(&page(&site, "/boards/main?player=nobody&among=friends").await, "top").len(), 7);
    assert_eq!(site.get("/boards/main?among=foes").await.status, 422);
}

#[tokio::test]
async fn avatars_load_only_from_named_origins() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--avatar-origins", "https://cdn.example,https://pictures.example"]).await;
    site.board(json!({}), &[("ada", 3), ("bob", 2)]).await;
    for (user, avatar) in [("ada", "https://cdn.example/ada.png?a=1&b=2"), ("bob", "https://elsewhere.example/bob.png")]
    {
        site.admin(Method::PUT, &format!("/v1/users/{user}"), json!({"avatar_url": avatar})).await.is(200);
    }
    let answer = site.get("/boards/main").await;
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("; img-src 'self' https://cdn.example https://pictures.example;"), "{policy}");
    let pictures = |text: &str| -> Vec<Value> {
        let images = super::read::elements(text).into_iter().filter(|(element, _)| element == "img");
        images.map(|(_, attributes)| json!(attributes.iter().find(|(name, _)| name == "src").unwrap().1)).collect()
    };
    assert_eq!(pictures(&answer.text), [json!("https://cdn.example/ada.png?a=1&b=2")]);
    assert_eq!(pictures(&site.get("/embed/main").await.text), [] as [Value; 0]);
}
