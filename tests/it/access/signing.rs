//! Requests with signing keys: which are accepted, which are refused with which message, and that
//! none is applied twice.

pub mod signer;

use std::process::Command;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_scalar;

use crate::{
    access::rights,
    http::api::site::{Answer, Site},
    support::{TestDb, audit, make_key, redis_url, run, spawn_serve},
};
use signer::{Signer, hmac, master_key, run_with};

const DOCUMENT: &str = include_str!("../../../docs/security.md");

/// Starts a service with a master key.
async fn start() -> (TestDb, Site, String) {
    let (db, master) = (TestDb::new().await, master_key());
    let site = Site::start(&db, &["--master-key", &master]).await;
    (db, site, master)
}

#[track_caller]
fn refused(answer: Answer, words: &str) {
    assert!(answer.headers.contains_key("www-authenticate"), "{answer:?}");
    let problem = answer.is(401);
    assert!(problem["detail"].as_str().unwrap().contains(words), "{words:?} is not in {problem}");
}

#[tokio::test]
async fn only_the_signed_request_is_accepted() {
    let (db, site, master) = start().await;
    site.board(json!({}), &[]).await;
    let signer = Signer::make(&db, &master, &["--role", "server", "--board", "main"]);
    let (post, target) = (Method::POST, "/v1/boards/main/scores?ranks=true");
    let event = |id: &str| json!({"user_id": "ada", "points": 5, "id": id}).to_string();
    let send = async |body: &str, signature: Option<&str>| signer.send(&site, &post, target, body, signature).await;
    let (body, now) = (event("one"), chrono::Utc::now().timestamp());

    let taken = send(&body, Some(&signer.now(&post, target, &body))).await.is(200);
    assert_eq!(taken["periods"]["all_time"], json!({"score": 5, "rank": 1}));

    // A signature of a kind that this release does not know changes nothing.
    let body = event("with more");
    send(&body, Some(&format!("{},v2=0", signer.now(&post, target, &body)))).await.is(200);

    let body = event("two");
    refused(send(&body, None).await, "is missing");
    for malformed in [
        "",
        "sesame",
        "t=1,v1=2",
        &signer.now(&post, target, &body)[1..],
        &format!("{0},{0}", signer.now(&post, target, &body)),
    ] {
        refused(send(&body, Some(malformed)).await, "must be t=SECONDS,v1=HEX");
    }
    let right = signer.now(&post, target, &body);
    let twice = [("centile-signature", &*right), ("centile-signature", &*right)];
    let authorization = format!("Bearer {}", signer.key);
    let headers = [&twice[..], &[("authorization", &*authorization), ("content-type", "application/json")]].concat();
    refused(site.send(post.clone(), target, &headers, body.clone()).await, "must be t=SECONDS,v1=HEX");

    refused(send(&body, Some(&signer.signature(now - 400, &post, target, &body))).await, " s in the past");
    refused(send(&body, Some(&signer.signature(now + 400, &post, target, &body))).await, " s in the future");
    let other = Signer { secret: "5a".repeat(32), ..signer.clone() };
    for wrong in [
        signer.now(&Method::PUT, target, &body),
        signer.now(&post, "/v1/boards/main/scores", &body),
        signer.now(&post, "/v1/boards/main/scores?ranks=false", &body),
        signer.now(&post, target, &event("three")),
        signer.now(&post, target, ""),
        other.now(&post, target, &body),
        right.replace("v1=", "v1=0").split_at(right.len()).0.to_owned(),
    ] {
        refused(send(&body, Some(&wrong)).await, "does not match");
    }
    assert_eq!(site.get("/v1/boards/main/scores/ada").await.is(200)["score"], 10, "no refused request may count");

    // Within the time limit on either side. An unknown key is reported as such, whatever its
    // signature.
    send(&body, Some(&signer.signature(now - 200, &post, target, &body))).await.is(200);
    let body = event("three");
    send(&body, Some(&signer.signature(now + 200, &post, target, &body))).await.is(200);
    let digit = if signer.key.ends_with('0') { '1' } else { '0' };
    let wrong = Signer { key: format!("{}{digit}", &signer.key[..signer.key.len() - 1]), ..signer.clone() };
    refused(wrong.signed(&site, post.clone(), target, json!({})).await, "unknown");
    // Keys that do not sign work as before, and their signature headers are ignored.
    let plain = Signer { key: site.server_key.clone(), secret: String::new() };
    plain.send(&site, &post, target, &event("four"), None).await.is(200);
    plain.send(&site, &post, target, &event("five"), Some("sesame")).await.is(200);
}

#[tokio::test]
async fn the_signature_covers_the_raw_target() {
    let (db, site, master) = start().await;
    site.board(json!({"reading": "key"}), &[("ada l/\u{e9}.x", 5)]).await;
    let signer = Signer::make(&db, &master, &["--role", "reader"]);
    let target = "/v1/boards/main/scores/ada%20l%2F%c3%A9.x?period=all_time&around=1";
    signer.signed(&site, Method::GET, target, Value::Null).await.is(200);
    signer.signed(&site, Method::HEAD, target, Value::Null).await.is(200);
    for other in [target.replace("%c3", "%C3"), target.replace("%20", "+"), target.replace(".x", "%2Ex")] {
        let signature = signer.now(&Method::GET, &other, "");
        refused(signer.send(&site, &Method::GET, target, "", Some(&signature)).await, "does not match");
    }
    let signature = signer.now(&Method::GET, target, "");
    // An answer to HEAD has no body.
    signer.send(&site, &Method::HEAD, target, "", Some(&signature)).await.is(401);
    // A body that the call does not read is not part of the signature.
    signer.send(&site, &Method::GET, target, "{}", Some(&signature)).await.is(200);
}

/// Runs the shell block after the document's marker unchanged.
#[tokio::test]
async fn the_example_in_the_documentation_works() {
    let (db, site, master) = start().await;
    site.board(json!({"slug": "arena"}), &[]).await;
    let signer = Signer::make(&db, &master, &["--role", "server", "--board", "arena"]);
    let (_, block) = DOCUMENT.split_once("<!-- signed request -->\n```sh\n").unwrap();
    let script = block.split_once("```").unwrap().0.to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-euc", &script]).env("URL", &site.serve.url).env("KEY", &signer.key);
    shell.env("SECRET", format!("ctls_{}", signer.secret));
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&answer["state"], &answer["periods"]["all_time"]["rank"]), (&json!("accepted"), &json!(1)), "{answer}");

    // The test vectors below it, for other implementations.
    let line = |start: &str| script.lines().find_map(|line| line.strip_prefix(start)).unwrap().trim_matches('\'');
    let (_, below) = block.split_once("with the secret\n`ctls_").unwrap();
    let (secret, below) = below.split_once('`').unwrap();
    let hex = below.split_once("`v1=").unwrap().1.split_once('`').unwrap().0;
    let text = format!("1700000000.POST.{}.{}", line("target="), line("body="));
    assert_eq!(hmac(secret, text.as_bytes()), hex);
}

#[tokio::test]
async fn no_call_acts_on_a_wrong_signature_or_twice_on_one() {
    let (db, site, master) = start().await;
    site.board(json!({"reading": "key"}), &[("ada", 40), ("bob", 30)]).await;
    let score = site.post("/v1/boards/main/scores", json!({"user_id": "ada", "points": 5})).await.is(200);
    let transaction_id = score["transaction_id"].as_i64().unwrap();
    let signer = Signer::make(&db, &master, &["--role", "admin"]);
    signer.signed(&site, Method::GET, "/v1/keys", Value::Null).await.is(200);

    let mut requests: Vec<(String, Method, String, String, String)> = Vec::new();
    for (method, path) in rights::matrix().into_iter().flat_map(|line| line.calls) {
        if path.starts_with("/v1/")
            && !requests.iter().any(|(_, known, known_path, ..)| (known, known_path) == (&method, &path))
        {
            let (target, body) = rights::prepared(&site, &method, &path, transaction_id).await;
            requests.push((String::new(), method, path, target, body));
        }
    }
    assert!(requests.len() > 20, "{requests:?}");

    let data = || {
        let dump = db.data_dump();
        dump.lines().filter(|line| !line.contains("restrict ")).map(str::to_owned).collect::<Vec<_>>()
    };
    // Every row but the key's own, which holds the time of its last use.
    let all_else = || data().into_iter().filter(|line| !line.starts_with(signer.id())).collect::<Vec<_>>();
    audit::apply(&db.pool().await).await;
    let before = data();
    for (_, method, _, target, body) in &requests {
        let over_more = signer.now(method, target, &format!("{body} "));
        let elsewhere = signer.now(method, &format!("{target}x"), body);
        for wrong in [None, Some(over_more.as_str()), Some(&elsewhere)] {
            let answer = signer.send(&site, method, target, body, wrong).await;
            assert_eq!(answer.status, 401, "{method} {target} {wrong:?}: {answer:?}");
        }
    }
    assert!(data() == before, "the data have changed");

    for (signature, method, path, target, body) in &mut requests {
        *signature = signer.now(method, target, body);
        let answer = signer.send(&site, method, target, body, Some(signature)).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
    }
    audit::apply(&db.pool().await).await;
    let before = all_else();
    for (signature, method, path, target, body) in &requests {
        let answer = signer.send(&site, method, target, body, Some(signature)).await;
        let is_read = method == Method::GET || path.ends_with("/query");
        let is_event = method == Method::POST && (path.ends_with("/scores") || path.ends_with("/batch"));
        // A read is repeated, an event counts once, everything else is refused.
        let wanted = if is_read || is_event { 200 } else { 409 };
        assert_eq!(answer.status, wanted, "{method} {path}: {answer:?}");
        if is_event {
            let result = if path.ends_with("/batch") { &answer.body["results"][0] } else { &answer.body };
            // The classic call does not tell.
            let is_repeated = result.get("repeated").unwrap_or(&Value::Bool(true));
            assert_eq!(is_repeated, true, "{method} {path}: {answer:?}");
        }
    }
    assert!(all_else() == before, "the data have changed");
}

#[tokio::test]
async fn a_repeated_request_is_refused_on_every_instance_until_its_signature_expires() {
    let (db, site, master) = start().await;
    let other = Site::of(spawn_serve(&db, Some(&redis_url().await), &["--master-key", &master]).await, db.url());
    let signer = Signer::make(&db, &master, &["--role", "server"]);
    let (put, target) = (Method::PUT, "/v1/users/ada");
    let (first, second) = (json!({"name": "Ada"}).to_string(), json!({"name": "Countess"}).to_string());
    let signature = signer.now(&put, target, &first);
    // Ten concurrent requests on two instances: one is applied.
    let sites = [&site, &other];
    let sends = (0..10).map(|place| signer.send(sites[place % 2], &put, target, &first, Some(&signature)));
    let mut statuses: Vec<u16> = join_all(sends).await.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![409; 9]].concat());

    signer.send(&site, &put, target, &second, Some(&signer.now(&put, target, &second))).await.is(200);
    for again in
        [signature.clone(), signature.replace(&signature[16..], &signature[16..].to_uppercase().replace("V1", "v1"))]
    {
        let problem = signer.send(&other, &put, target, &first, Some(&again)).await.is(409);
        assert!(problem["detail"].as_str().unwrap().contains("sign it again"), "{problem}");
    }
    assert_eq!(site.get(target).await.is(200)["name"], "Countess");

    // Kept for longer than a signature is valid, then deleted together with expired ids.
    let pool = db.pool().await;
    let kept = async || {
        query_scalar::<_, i64>("SELECT count(*) FROM centile_store.signed_requests").fetch_one(&pool).await.unwrap()
    };
    let least: bool =
        query_scalar("SELECT min(expires_at) > now() + interval '10 minutes' FROM centile_store.signed_requests")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert!(least && kept().await == 2);
    assert!(run(&db, &["maintain"]).well().contains("0 expired ids deleted"));
    db.execute("UPDATE centile_store.signed_requests SET expires_at = now() - interval '1 second'").await;
    assert!(run(&db, &["maintain"]).well().contains("2 expired ids deleted"));
    assert_eq!(kept().await, 0);
}

#[tokio::test]
async fn every_event_of_a_signed_key_needs_an_id() {
    let (db, site, master) = start().await;
    site.board(json!({}), &[]).await;
    let signer = Signer::make(&db, &master, &["--role", "server"]);
    for target in ["/v1/boards/main/scores", "/v1/scores"] {
        let post = async |body: Value| signer.signed(&site, Method::POST, target, body).await;
        let problem = post(json!({"user_id": "ada", "points": 5})).await.is(422);
        assert_eq!(problem["field"], "id", "{problem}");
        let id = format!("of {target}");
        let events = json!([{"user_id": "ada", "points": 5}, {"user_id": "ada", "points": 7, "id": id}]);
        let is_classic = target == "/v1/scores";
        let results = if is_classic {
            post(events).await
        } else {
            signer.signed(&site, Method::POST, &format!("{target}/batch"), json!({"events": events})).await
        };
        let results = results.is(200)["results"].clone();
        assert_eq!(
            (&results[0]["error"]["field"], &results[1]["state"]),
            (&json!(if is_classic { "[0].id" } else { "events[0].id" }), &json!("accepted")),
            "{results}"
        );
    }
    assert_eq!(site.get("/v1/boards/main/scores/ada").await.is(200)["score"], 14);
}

#[tokio::test]
async fn signed_keys_are_created_over_http_and_shown_as_signed() {
    let (db, site, master) = start().await;
    site.board(json!({}), &[]).await;
    let wanted = json!({"name": "match server", "role": "server", "all_boards": true, "signed": true});
    let made = site.admin(Method::POST, "/v1/keys", wanted.clone()).await.is(201);
    assert_eq!(made["signed"], true, "{made}");
    let secret = made["signing_secret"].as_str().unwrap().strip_prefix("ctls_").unwrap().to_owned();
    let signer = Signer { key: made["key"].as_str().unwrap().to_owned(), secret };
    let event = json!({"user_id": "ada", "points": 5, "id": "one"});
    signer.signed(&site, Method::POST, "/v1/boards/main/scores", event).await.is(200);

    let listed = site.admin(Method::GET, "/v1/keys", Value::Null).await;
    assert!(!listed.text.contains(&signer.secret) && !listed.text.contains("ctls_"), "{}", listed.text);
    let listed = listed.is(200);
    let signs = |list: &Value| {
        let signing =
            list.as_array().unwrap().iter().filter(|key| key["signed"] == true).map(|key| key["key_id"].clone());
        signing.collect::<Vec<_>>()
    };
    assert_eq!(signs(&listed["data"]), [json!(signer.id())]);
    assert_eq!(signs(&run(&db, &["key", "list", "--json"]).json()), [json!(signer.id())]);
    assert!(run(&db, &["key", "list"]).well().contains("match server  server  all     active  yes"));
    let json =
        run_with(&db, &master, &["key", "create", "--signed", "--name", "x", "--role", "admin", "--json"]).json();
    assert!(json["signing_secret"].as_str().unwrap().starts_with("ctls_") && json["signed"] == true, "{json}");
    let plain =
        site.admin(Method::POST, "/v1/keys", json!({"name": "y", "role": "reader", "all_boards": true})).await.is(201);
    assert!(plain.get("signing_secret").is_none() && plain["signed"] == false, "{plain}");

    let audited: Vec<Option<bool>> = query_scalar(
        "SELECT (after -> 'signed')::boolean FROM centile.audit_log WHERE action = 'create_key' ORDER BY audit_id",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert_eq!(audited, [None, None, Some(true), Some(true), None]);

    // Without a master key, a signing secret cannot be encrypted.
    let other = TestDb::new().await;
    let bare = Site::start(&other, &[]).await;
    let problem = bare.admin(Method::POST, "/v1/keys", wanted).await.is(422);
    assert_eq!(problem["field"], "signed");
    assert!(problem["detail"].as_str().unwrap().contains("CENTILE_MASTER_KEY"), "{problem}");
    run(&other, &["key", "create", "--signed", "--name", "z", "--role", "admin"])
        .refused(1, &["--signed: ", "CENTILE_MASTER_KEY"]);
    make_key(other.url(), "reader", &[]);
    assert_eq!(run(&other, &["key", "list", "--json"]).json().as_array().unwrap().len(), 3);

    // A repeated request gets the same signing secret.
    let authorization = format!("Bearer {}", site.admin_key);
    let headers = [
        ("authorization", &*authorization),
        ("content-type", "application/json"),
        ("idempotency-key", "2b1f6f0e-5d0c-4a53-9a43-1de4e7e6cf11"),
    ];
    let repeatable = json!({"name": "repeated", "role": "server", "all_boards": true, "signed": true}).to_string();
    let first = site.send(Method::POST, "/v1/keys", &headers, repeatable.clone()).await.is(201);
    let second = site.send(Method::POST, "/v1/keys", &headers, repeatable).await.is(201);
    assert!(first["signing_secret"].is_string() && first == second, "{first} {second}");
}
