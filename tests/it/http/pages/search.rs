//! A player is found by the beginning of the id or name, and compared with friends.

use reqwest::{Method, StatusCode, redirect};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::{
    of_list, page,
    read::{links, rows},
};
use crate::{http::api::site::Site, maintenance::layout::rows_read, periods::closed::period::Past, support::TestDb};

/// Ids, names and points. The first has no name of its own.
const PLAYERS: [(&str, &str, i64); 8] = [
    ("emil-1", "", 70),
    ("a", "Émile Zola", 60),
    ("b", "EMILIA", 50),
    ("c", "E\u{301}milie", 40),
    ("d", "Ünal", 30),
    ("e", "ЖАННА", 20),
    ("f", "100% <b>", 10),
    ("g", "ΟΔΥΣΣΕΥΣ", 5),
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
    // Longer than any name.
    let long = "x".repeat(300);
    for (text, wanted) in [
        ("emil", &["emil-1", "a", "b", "c"][..]),
        ("%C3%89MIL", &["a", "b", "c"]),
        ("%20emile%20z", &["a"]),
        ("u", &["d"]),
        ("%D0%B6%D0%B0", &["e"]),
        ("100%25", &["f"]),
        // The text ends with a final sigma.
        ("%CE%BF%CE%B4%CF%85%CF%82", &["g"]),
        // Only an accent.
        ("%CC%81", &[]),
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
    assert_eq!(site.get("/boards/main?search=a%0Ab").await.status, 422);

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
async fn a_search_shows_the_best_and_says_if_there_are_more() {
    let db = TestDb::new().await;
    let site = site(&db).await;
    for n in 0..12 {
        let user = format!("n{n:02}");
        site.post("/v1/boards/main/scores", json!({"user_id": user, "points": n})).await.is(200);
        site.admin(Method::PUT, &format!("/v1/users/{user}"), json!({"name": "Núria"})).await.is(200);
    }
    let text = page(&site, "/boards/main?search=nuria").await;
    let found: Vec<String> = rows(&text, "found").into_iter().map(|[id, ..]| id).collect();
    assert_eq!(found, ["n11", "n10", "n09", "n08", "n07", "n06", "n05", "n04", "n03", "n02"]);
    assert!(text.contains("The best 10 of <data value=\"12\">12</data>."), "{text}");
    // Strangers with the name fill the search.
    db.execute(
        "SELECT centile.ensure_users(ARRAY(SELECT 'a' || n FROM generate_series(1, 300) AS n), array_fill('NURIA'::text, ARRAY[300]));
         ANALYZE centile_store.users",
    )
    .await;
    let text = page(&site, "/boards/main?search=nuria").await;
    assert!(text.contains("The search looks at 250 ids and 250 names at most."), "{text}");
}

#[tokio::test]
async fn a_search_in_a_closed_week_finds_its_players() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--index-memory", "0"]).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 40, 120, "2024-01-17");
    past.close("week:2024-01-15").await;
    site.board(json!({"slug": "now"}), &[("p1", 3), ("new", 1)]).await;
    for (user, name) in [("p7", "Zoë"), ("new", "Zoe")] {
        site.admin(Method::PUT, &format!("/v1/users/{user}"), json!({"name": name})).await.is(200);
    }
    for (path, wanted) in [("main?period=week:2024-01-15&", "p7"), ("now?", "new")] {
        let text = page(&site, &format!("/boards/{path}search=zoe")).await;
        assert_eq!(rows(&text, "found").into_iter().map(|[id, ..]| id).collect::<Vec<_>>(), [wanted], "{path}");
    }
}

#[tokio::test]
async fn a_search_reads_an_index() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.ensure_users(ARRAY(SELECT 'u' || n FROM generate_series(1, 5000) AS n),
                                     ARRAY(SELECT 'Név ' || n FROM generate_series(1, 5000) AS n))",
    )
    .await;
    db.execute("VACUUM ANALYZE centile_store.users").await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    for text in ["nev 12", "u12", "x"] {
        let before = rows_read(&mut connection).await;
        sqlx::query("SELECT centile_store.users_named($1, 20)").bind(text).execute(&mut connection).await.unwrap();
        let rows = rows_read(&mut connection).await - before;
        assert!(rows < 100, "{text}: {rows} rows");
    }
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
    // Positions of the two lists do not mix.
    let there = links(&next);
    assert!(there.iter().filter(|link| link.contains("from=4")).all(|link| link.contains("player=c&")), "{there:?}");
    let there = there.iter().find(|link| link.contains("from=3&") && !link.contains("among=")).unwrap();
    assert!(rows(&page(&site, there).await, "top").iter().any(|[id, ..]| id == "c"), "{there}");
    let beyond = page(&site, "/boards/main?player=c&among=friends&from=50").await;
    assert!(beyond.contains("None of them is at this position."), "{beyond}");
    // Without friends the player is alone. An unknown player has no such list.
    assert_eq!(rows(&page(&site, "/boards/main?player=e&among=friends").await, "local").len(), 1);
    let nobody = page(&site, "/boards/main?player=nobody&among=friends&from=5").await;
    assert_eq!(rows(&nobody, "top").len(), 8);
    assert!(!nobody.contains("Friends of"), "{nobody}");
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
