//! The operator's page: it needs an admin key, shows the rows of the views, and shows no secrets.

use std::{collections::BTreeMap, time::Instant};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::{Method, StatusCode, redirect};
use serde_json::{Value, json};
use sqlx::{query_as, query_scalar};

use crate::{
    access::rights::{callers, erase},
    access::secrets::{master_key, run_with},
    http::api::site::{Answer, Site},
    http::segments::set,
    support::{
        TestDb, audit,
        markup::{attribute, elements, table, text, whole},
        run,
        wait::until_some,
    },
};

/// Board, period, state, players, version, and whether its archive lacks a correction.
type Status = (String, String, String, i64, Option<String>, bool);
/// Actor, action, board, subject.
type Acted = (String, String, Option<String>, Option<String>);
/// Ranking, bucket, players, first score, and first score of the next bucket.
type Occupied = (String, i16, i64, Option<i64>, Option<i64>);

/// Requests the page as a browser does, with a key as the password or without one.
async fn look(site: &Site, key: Option<&str>) -> Answer {
    let credentials = key.map(|key| format!("Basic {}", BASE64_STANDARD.encode(format!("ada:{key}"))));
    let headers: Vec<_> = credentials.iter().map(|credentials| ("authorization", credentials.as_str())).collect();
    site.send(Method::GET, "/ops/", &headers, String::new()).await
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn only_an_admin_key_opens_the_page() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--cors-origins", "*", "--frame-origins", "*"]).await;
    site.board(json!({"title": "A title"}), &[("ada-lovelace", 987_654_321)]).await;
    site.board(json!({"slug": "other"}), &[]).await;
    let nobody = look(&site, None).await;
    for (caller, keys) in callers(&db, &site).await.into_iter().enumerate() {
        for key in keys {
            let by_bearer = key.as_ref().map(|key| format!("Bearer {key}"));
            let headers: Vec<_> = by_bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
            for answer in
                [look(&site, key.as_deref()).await, site.send(Method::GET, "/ops/", &headers, String::new()).await]
            {
                let status = match caller {
                    0 | 1 => 401,
                    6 => 200,
                    _ => 403,
                };
                assert_eq!(answer.status, status, "caller {caller}: {answer:?}");
                assert_eq!(header(&answer, "cache-control"), Some("no-store"));
                assert_eq!(header(&answer, "x-frame-options"), Some("DENY"));
                assert!(header(&answer, "content-security-policy").unwrap().ends_with("frame-ancestors 'none'"));
                let challenge = header(&answer, "www-authenticate");
                assert_eq!(
                    challenge.is_some_and(|challenge| challenge.starts_with("Basic realm=")),
                    status == 401,
                    "{challenge:?}"
                );
                if status == 200 {
                    continue;
                }
                for output in ["A title", "ada-lovelace", "987654321", "987,654,321", "<table", "waiting"] {
                    assert!(!answer.text.contains(output), "{output}: {answer:?}");
                }
                assert_eq!(status == 401 && caller == 0, answer.text == nobody.text, "caller {caller}");
            }
        }
    }
    // A browser adds the key to every request. Other sites may only link to the page.
    let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("ada:{}", site.admin_key)));
    for (site_of, mode, dest, status) in [
        ("none", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("cross-site", "navigate", "document", 200),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "no-cors", "image", 403),
        ("same-site", "cors", "empty", 403),
    ] {
        let headers = [
            ("authorization", &*basic),
            ("sec-fetch-site", site_of),
            ("sec-fetch-mode", mode),
            ("sec-fetch-dest", dest),
        ];
        let answer = site.send(Method::GET, "/ops/", &headers, String::new()).await;
        assert_eq!(answer.status, status, "{site_of} {mode} {dest}: {answer:?}");
    }
    // Other paths send no Basic challenge and accept no password.
    for (method, path) in [(Method::GET, "/v1/keys"), (Method::POST, "/v1/boards"), (Method::GET, "/v1/boards")] {
        let answer = site.send(method, path, &[("authorization", &basic)], "{}".to_owned()).await;
        assert_eq!((answer.status, header(&answer, "www-authenticate")), (401, Some("Bearer")), "{path}");
    }
    for (method, path, status) in
        [(Method::POST, "/ops/", 405), (Method::GET, "/ops/x", 404), (Method::DELETE, "/ops", 405)]
    {
        let answer = site.send(method, path, &[("authorization", &basic)], String::new()).await;
        assert_eq!((answer.status, header(&answer, "www-authenticate")), (status, None), "{path}");
    }
    // The path with the slash sends the challenge, so that a browser sends the key to this path
    // only.
    let client = reqwest::Client::builder().redirect(redirect::Policy::none()).build().unwrap();
    let led = client.get(site.serve.at("/ops")).send().await.unwrap();
    assert_eq!((led.status(), &led.headers()["location"]), (StatusCode::PERMANENT_REDIRECT, &"/ops/".parse().unwrap()));
    assert!(!led.headers().contains_key("www-authenticate"));
}

#[tokio::test]
async fn wrong_keys_count_for_their_address_and_valid_keys_for_themselves() {
    let db = TestDb::new().await;
    let address = ["--address-rate", "1", "--address-burst", "15", "--trusted-proxies", "127.0.0.1"];
    let site = Site::start(&db, &[&address[..], &["--key-rate", "1000", "--key-burst", "2000"]].concat()).await;
    let ask = async |key: &str| {
        let credentials = format!("Basic {}", BASE64_STANDARD.encode(format!("ada:{key}")));
        let headers = [("authorization", credentials.as_str()), ("x-forwarded-for", "198.51.100.7")];
        site.send(Method::GET, "/ops/", &headers, String::new()).await
    };
    let began = Instant::now();
    let mut looked_at = 0;
    let (all_but_one_byte, last_byte) = site.admin_key.split_at(site.admin_key.len() - 2);
    let last_byte = u8::from_str_radix(last_byte, 16).unwrap();
    for number in 0..60 {
        let wrong = match number % 3 {
            0 => format!("ctl_0123456789abcdef_{number:064x}"),
            1 => format!("{all_but_one_byte}{:02x}", last_byte.wrapping_add(1 + number)),
            _ => "password".to_owned(),
        };
        let answer = ask(&wrong).await;
        assert!([401, 429].contains(&answer.status), "{answer:?}");
        looked_at += u64::from(answer.status == 401);
    }
    let most = 15 + began.elapsed().as_secs() + 1;
    assert!((15..=most).contains(&looked_at), "{looked_at} of at most {most}");
    let right = ask(&site.admin_key).await;
    assert_eq!((right.status, header(&right, "ratelimit-limit")), (200, Some("2000")));
}

/// A site with a closed week that lacks a correction, an undeliverable message, administrative
/// actions, and failed requests.
async fn busy(db: &TestDb) -> Site {
    let site = Site::start(db, &[]).await;
    erase::played(db, &site).await;
    let late = ["--board", "main", "--at", "2024-01-16T14:00:00Z", "--reason", "late"];
    run(db, &[&["correct", "bob", "5"], &late[..]].concat()).well();
    run(db, &["outbox", "deliver"]);
    site.board(
        json!({"slug": "laps", "mode": "best", "order": "asc", "periods": ["week"]}),
        &[("bob", 90), ("cyd", 80)],
    )
    .await;
    for (number, user) in ["ada", "eve", "bob", "cyd", "ada"].into_iter().enumerate() {
        site.post("/v1/boards/main/scores", json!({"user_id": user, "points": 1_000 * number})).await.is(200);
        site.get("/v1/boards/main/scores").await.is(200);
        site.get(&format!("/v1/boards/main/scores/{user}")).await.is(200);
        site.get("/v1/boards/main/scores/nobody").await.is(404);
    }
    site
}

#[tokio::test]
async fn the_page_shows_the_rows_of_the_views() {
    let db = TestDb::new().await;
    let (site, pool) = (busy(&db).await, db.pool().await);
    // Otherwise versions may change between page and view.
    audit::apply(&pool).await;
    let page = look(&site, Some(&site.admin_key)).await;
    assert_eq!(page.status, 200, "{page:?}");
    let page = page.text;

    let (upkeep,): (Value,) = query_as("SELECT to_jsonb(u) FROM centile.upkeep u").fetch_one(&pool).await.unwrap();
    let shown = table(&page, "Open tasks of all boards");
    let output: BTreeMap<String, i64> = shown.iter().map(|row| (row[3].clone(), whole(&row[1]))).collect();
    assert_eq!(output.len(), shown.len(), "{shown:?}");
    let is_open = |(name, count): &(&String, &Value)| !name.ends_with("_age") && **count != json!(0);
    let open = upkeep.as_object().unwrap().iter().filter(is_open);
    let open = open.map(|(name, count)| (name.clone(), count.as_i64().unwrap()));
    let months = "SELECT count(*) FROM centile.ledger_months WHERE freeze_due HAVING count(*) > 0";
    let months: Option<i64> = query_scalar(months).fetch_optional(&pool).await.unwrap();
    let open = open.chain(months.map(|months| ("freeze_due".to_owned(), months)));
    assert_eq!(output, open.collect(), "tasks that are not open are hidden");
    for some in ["archives_to_refresh", "outbox_waiting", "periods_due"] {
        assert!(upkeep[some].as_i64() > Some(0), "{upkeep}");
    }
    let wanting = shown.iter().filter(|row| row[2].starts_with("Check: ")).count();
    assert!(
        shown[..wanting].iter().all(|row| row[2].starts_with("Check: ")),
        "what needs attention comes first: {shown:?}"
    );
    assert!(wanting >= 2 && page.contains(&format!("{wanting} tasks need attention.")), "{shown:?}");

    let periods: Vec<Status> = query_as(
        "SELECT board, CASE kind WHEN 'all_time' THEN kind ELSE kind || ':' || label END, state, coalesce(players, 0), version, needs_refresh
         FROM centile.periods WHERE state <> 'closed' OR needs_refresh OR differences > 0",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let shown = table(&page, "Open periods, and closed periods with problems");
    let mut output: Vec<Status> = shown
        .iter()
        .map(|row| {
            let version = (!row[5].is_empty()).then(|| row[5].clone());
            (
                row[0].clone(),
                row[1].clone(),
                row[2].clone(),
                whole(&row[4]),
                version,
                row[6].contains("lacks a correction"),
            )
        })
        .collect();
    assert!(output.iter().position(|row| row.2 == "open") >= Some(1), "what waits comes first: {output:?}");
    let mut wanted = periods;
    output.sort();
    wanted.sort();
    assert_eq!(output, wanted);
    assert!(wanted.iter().any(|period| period.5) && wanted.iter().any(|period| period.2 == "due"), "{wanted:?}");

    let acts: Vec<Acted> =
        query_as("SELECT actor, action, board, subject FROM centile.audit_log ORDER BY audit_id DESC LIMIT 20")
            .fetch_all(&pool)
            .await
            .unwrap();
    let output: Vec<Acted> = table(&page, "Latest administrative actions, newest first")
        .into_iter()
        .map(|row| {
            let given = |text: &String| (!text.is_empty()).then(|| text.clone());
            (row[1].clone(), row[2].clone(), given(&row[3]), given(&row[4]))
        })
        .collect();
    assert_eq!(output, acts);

    let messages: Vec<(i64, String, String, i32)> =
        query_as("SELECT message_id, board, period, attempts FROM centile.outbox WHERE next_attempt_at IS NOT NULL ORDER BY message_id DESC LIMIT 20")
            .fetch_all(&pool)
            .await
            .unwrap();
    let shown = table(&page, "Messages waiting for delivery, newest first");
    let output: Vec<_> = shown
        .iter()
        .map(|row| (whole(&row[0]), row[1].clone(), row[2].clone(), i32::try_from(whole(&row[4])).unwrap()))
        .collect();
    assert_eq!(output, messages);
    assert!(shown[0][6].contains("Connection refused") && messages[0].3 == 1, "{shown:?}");
}

#[tokio::test]
async fn servers_and_indexes_of_the_instance_are_shown() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--maintenance-every", "1"]).await;
    site.board(json!({"periods": ["all_time"]}), &[("ada", 5)]).await;
    // The first read loads the index.
    site.get("/v1/boards/main/scores/ada").await.is(200);
    let page = until_some("a run of maintenance, and an index", async || {
        let page = look(&site, Some(&site.admin_key)).await.text;
        (page.contains("ran 0 s ago") && page.contains("Rank indexes")).then_some(page)
    })
    .await;
    let servers = table(&page, "Servers and maintenance");
    assert_eq!(
        servers.iter().map(|row| &*row[0]).collect::<Vec<_>>(),
        ["PostgreSQL", "Redis", "Background maintenance"]
    );
    assert!(servers[0][1].starts_with("answers; ") && servers[0][1].ends_with(" connections busy"), "{servers:?}");
    assert_eq!(servers[1][1], "answers");
    let indexes = table(&page, "Rank indexes");
    assert_eq!(whole(&indexes[0][1]), 1, "{indexes:?}");
}

#[tokio::test]
async fn the_page_shows_every_bucket() {
    let db = TestDb::new().await;
    let (site, pool) = (busy(&db).await, db.pool().await);
    site.board(json!({"slug": "teams", "segments": ["country"]}), &[("bob", 3)]).await;
    set(&site, "ada", json!({"country": "DE"})).await;
    site.post("/v1/boards/teams/scores", json!({"user_id": "ada", "points": 5})).await.is(200);
    audit::apply(&pool).await;
    // Without segments, of which there may be many.
    for board in ["main", "laps", "teams"] {
        let path = format!("/ops/?board={board}");
        let page = site.admin(Method::GET, &path, Value::Null).await;
        assert_eq!(page.status, 200, "{page:?}");
        let section =
            page.text.split_once("<section id=\"buckets\">").unwrap().1.split_once("</section>").unwrap().0.to_owned();
        let output: Vec<(String, Vec<String>)> = section
            .split("<figure")
            .skip(1)
            .map(|figure| {
                let name = text(figure.split_once("<strong>").unwrap().1.split_once("</strong>").unwrap().0);
                let titles = figure.split("<title>").skip(1).map(|title| title.split('<').next().unwrap().to_owned());
                (name, titles.collect())
            })
            .collect();
        let occupied: Vec<Occupied> = query_as(
            "SELECT CASE kind WHEN 'all_time' THEN kind ELSE kind || ':' || label END, bucket, players, from_score, to_score
             FROM centile.bucket_occupancy WHERE board = $1 AND segment = '' ORDER BY place",
        )
        .bind(board)
        .fetch_all(&pool)
        .await
        .unwrap();
        let mut wanted = BTreeMap::<String, Vec<String>>::new();
        for (name, bucket, players, from, to) in &occupied {
            let from = from.map(|score| format!(", from score {}", grouped(score))).unwrap_or_default();
            let to = to.map(|score| format!(" to {}", grouped(score))).unwrap_or_default();
            wanted.entry(name.clone()).or_default().push(format!("bucket {bucket}: {players} players{from}{to}"));
        }
        assert!(output.len() == wanted.len() && !output.is_empty(), "{output:?}");
        for (name, titles) in &output {
            assert_eq!(titles, &wanted[name], "{name}");
        }
        let chosen: Vec<_> =
            elements(&section, "a").into_iter().filter(|link| attribute(link, "aria-current").is_some()).collect();
        assert_eq!(chosen.len(), 1);
        assert_eq!(attribute(chosen[0], "href"), Some(&*format!("?board={board}#buckets")));
    }
    for (query, status) in [("board=none", 404), ("board=MAIN", 422), ("limit=5", 422)] {
        assert_eq!(site.admin(Method::GET, &format!("/ops/?{query}"), Value::Null).await.status, status, "{query}");
    }
}

/// A score below a million, with a comma after thousands.
fn grouped(score: i64) -> String {
    let sign = if score < 0 { "\u{2212}" } else { "" };
    let score = score.abs();
    if score < 1_000 { format!("{sign}{score}") } else { format!("{sign}{},{:03}", score / 1_000, score % 1_000) }
}

#[tokio::test]
async fn secrets_are_hidden_and_names_are_escaped() {
    const MARKUP: &str = "</bdi><script src=//evil.example></script>&\"'";
    let (db, master) = (TestDb::new().await, master_key());
    let (_, url) = db.login("IN ROLE centile_service").await;
    let flags =
        ["--no-maintenance", "--address-rate", "0", "--key-rate", "0", "--master-key", &master].map(str::to_owned);
    let prefix = db.redis_prefix();
    let serve =
        tokio::task::spawn_blocking(move || crate::support::Serve::spawn(&url, None, &prefix, &flags)).await.unwrap();
    let site = Site::of(serve, db.url());
    erase::played(&db, &site).await;
    let hook = ["webhook", "set", "--board", "main", "http://127.0.0.1:9/token-in-a-path", "--by", MARKUP];
    let hook = run_with(&db, &master, &hook).well();
    run_with(&db, &master, &["outbox", "deliver"]);
    site.admin(Method::PUT, "/v1/users/%22%3E%3Cimg%20src%3Dx%3E", json!({})).await.is(201);
    site.admin(Method::POST, "/v1/users/%22%3E%3Cimg%20src%3Dx%3E/ban", json!({"reason": MARKUP})).await.is(200);
    let new = json!({"name": MARKUP, "role": "server", "all_boards": true});
    let made = site.admin(Method::POST, "/v1/keys", new).await.is(201);
    let page = look(&site, Some(&site.admin_key)).await;
    assert_eq!(page.status, 200, "{page:?}");
    let acts = table(&page.text, "Latest administrative actions, newest first");
    assert!(acts.iter().any(|row| row[1] == MARKUP) && acts.iter().any(|row| row[4] == "\"><img src=x>"), "{acts:?}");
    assert_eq!((elements(&page.text, "script").len(), elements(&page.text, "img").len()), (1, 0));
    let keys = [&site.admin_key, &site.server_key];
    let secrets = [made["key"].as_str().unwrap(), &master, hook.trim(), "token-in-a-path", "whsec_", "secret@"];
    let halves = keys.iter().map(|key| key.rsplit_once('_').unwrap().1);
    for secret in secrets.into_iter().chain(halves).chain(["ctl_", "postgres://", "redis://"]) {
        assert!(!page.text.contains(secret), "{secret}");
    }
}
