//! Secrets are encrypted in the database, refused if they are examples, and never shown.

mod shown;

use std::process::Command;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_as;

use crate::{
    access::signing::signer::{Signer, master_key, run_with},
    delivery::outbox::{board, close_days, receiver::Receiver, signed},
    http::api::site::Site,
    support::{Ran, TestDb, next_number, run, spawn_serve},
};

/// Returns the secrets in the database, of keys and then of webhooks, and whether each is
/// encrypted.
async fn kept(db: &TestDb) -> Vec<(Vec<u8>, bool)> {
    query_as(
        "SELECT * FROM (SELECT signing_secret, true FROM centile_store.api_keys WHERE signing_secret IS NOT NULL ORDER BY created_at) k
         UNION ALL SELECT * FROM (SELECT secret, encrypted FROM centile_store.webhooks ORDER BY board_id) w",
    )
    .fetch_all(&db.pool().await)
    .await
    .unwrap()
}

/// Runs `serve`, which must refuse to start; `timeout` ends it otherwise.
fn serve(db: &TestDb, master_keys: &str) -> Ran {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_centile"), "serve", "--listen", "127.0.0.1:0", "--no-maintenance"]);
    Ran::of(command.env("DATABASE_URL", db.url()).env("CENTILE_MASTER_KEY", master_keys))
}

fn bytes_of(webhook_secret: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(webhook_secret.trim().strip_prefix("whsec_").unwrap()).unwrap()
}

#[tokio::test]
async fn secrets_are_encrypted_and_signatures_stay_the_same() {
    let (db, master) = (TestDb::new().await, master_key());
    let (before, after) = (Receiver::start(&[]), Receiver::start(&[]));
    for slug in ["main", "arena"] {
        board(&db, slug).await;
    }
    // Created without a master key, so stored in clear; `serve` logs one warning.
    let plain = run(&db, &["webhook", "set", "--board", "main", &before.url]).well();
    assert_eq!(kept(&db).await, [(bytes_of(&plain), false)]);
    let mut instance = spawn_serve(&db, None, &[]).await;
    assert!(instance.stop().await.success());
    assert_eq!(instance.output().matches("stored unencrypted").count(), 1, "{}", instance.output());

    let encrypted = run_with(&db, &master, &["webhook", "set", "--board", "arena", &after.url]).well();
    let signer = Signer::make(&db, &master, &["--role", "reader"]);
    let signing: Vec<u8> =
        (0..32).map(|byte| u8::from_str_radix(&signer.secret[byte * 2..byte * 2 + 2], 16).unwrap()).collect();
    // A start with a master key encrypts the rest; another start has nothing to do.
    let mut first = Vec::new();
    for _ in 0..2 {
        let mut instance = spawn_serve(&db, None, &["--master-key", &master]).await;
        assert!(instance.stop().await.success());
        assert!(!instance.output().contains("unencrypted"), "{}", instance.output());
        let kept = kept(&db).await;
        assert!(kept.len() == 3 && kept.iter().all(|(_, is_encrypted)| *is_encrypted), "{kept:?}");
        let dump = db.data_dump();
        for secret in [&bytes_of(&plain), &bytes_of(&encrypted), &signing] {
            let hex = secret.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            assert!(!dump.contains(&hex), "a dump shows a secret");
        }
        assert!(first.is_empty() || first == kept);
        first = kept;
    }
    close_days(&db.pool().await, "main", 1).await;
    close_days(&db.pool().await, "arena", 1).await;
    assert_eq!(run_with(&db, &master, &["outbox", "deliver"]).well(), "2 delivered, 0 failed\n");
    signed(&before.next(), plain.trim());
    signed(&after.next(), encrypted.trim());
}

#[tokio::test]
async fn a_message_without_a_readable_secret_waits_and_delays_no_other() {
    let (db, master) = (TestDb::new().await, master_key());
    let receivers = [Receiver::start(&[]), Receiver::start(&[])];
    let pool = db.pool().await;
    for (slug, receiver, keys) in [("encrypted", &receivers[0], master.as_str()), ("plain", &receivers[1], "")] {
        board(&db, slug).await;
        run_with(&db, keys, &["webhook", "set", "--board", slug, &receiver.url]).well();
        close_days(&pool, slug, 1).await;
    }
    let ran = run(&db, &["outbox", "deliver"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "1 delivered, 1 failed\n"), "{ran:?}");
    let waiting = run(&db, &["outbox", "list", "--waiting"]).well();
    assert!(waiting.contains("the secret of webhook of board encrypted is encrypted"), "{waiting}");
    assert_eq!((receivers[0].all().len(), receivers[1].all().len()), (0, 1));
    db.execute("UPDATE centile_store.outbox SET next_attempt_at = clock_timestamp() WHERE delivered_at IS NULL").await;
    assert_eq!(run_with(&db, &master, &["outbox", "deliver"]).well(), "1 delivered, 0 failed\n");
}

#[tokio::test]
async fn a_master_key_is_replaced_without_interruption() {
    let (db, old, new) = (TestDb::new().await, master_key(), master_key());
    board(&db, "main").await;
    let receiver = Receiver::start(&[]);
    let webhook = run_with(&db, &old, &["webhook", "set", "--board", "main", &receiver.url]).well();
    let signer = Signer::make(&db, &old, &["--role", "reader"]);
    let both = format!("{new},{old}");
    let site = Site::start(&db, &["--master-key", &both]).await;
    let reads = async |site: &Site| signer.signed(site, Method::GET, "/v1/boards", Value::Null).await.status;
    assert_eq!(reads(&site).await, 200);
    serve(&db, &new).refused(1, &["--master-key: ", "not among those given"]);

    let was = kept(&db).await;
    let encrypt = || {
        let (db, both) = (&db, &both);
        move || run_with(db, both, &["secrets", "encrypt"]).well()
    };
    // Twice concurrently, then once more.
    let output: Vec<String> = std::thread::scope(|scope| {
        let runs = [scope.spawn(encrypt()), scope.spawn(encrypt())];
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let of_them =
        |output: &String| output.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse::<u32>().unwrap();
    assert!(output.iter().all(|output| output.starts_with("2 secrets encrypted")), "{output:?}");
    assert_eq!(output.iter().map(of_them).sum::<u32>(), 2, "{output:?}");
    assert_eq!(encrypt()(), "2 secrets encrypted with the first master key, 0 of them by this run\n");
    assert!(kept(&db).await.iter().zip(&was).all(|(is, was)| is != was));

    assert_eq!(reads(&site).await, 200);
    serve(&db, &old).refused(1, &["--master-key: ", "not among those given"]);
    let alone = Site::start(&db, &["--master-key", &new]).await;
    assert_eq!(reads(&alone).await, 200);
    close_days(&db.pool().await, "main", 1).await;
    assert_eq!(run_with(&db, &new, &["outbox", "deliver"]).well(), "1 delivered, 0 failed\n");
    signed(&receiver.next(), webhook.trim());
    run(&db, &["secrets", "encrypt"]).refused(1, &["--master-key: ", "CENTILE_MASTER_KEY"]);
}

#[tokio::test]
async fn serve_refuses_to_start_with_an_unreadable_secret() {
    let (db, master) = (TestDb::new().await, master_key());
    let (one, two) =
        (Signer::make(&db, &master, &["--role", "reader"]), Signer::make(&db, &master, &["--role", "reader"]));
    serve(&db, "").refused(1, &["--master-key: ", one.id().min(two.id())]);
    serve(&db, &master_key()).refused(1, &["--master-key: ", "not among those given"]);
    // The encryption of a secret is bound to its key: under another key it cannot be decrypted.
    let swap = format!(
        "UPDATE centile_store.api_keys a SET signing_secret = b.signing_secret FROM centile_store.api_keys b
         WHERE a.id IN ('{0}', '{1}') AND b.id IN ('{0}', '{1}') AND a.id <> b.id",
        one.id(),
        two.id()
    );
    db.execute(&swap).await;
    serve(&db, &master).refused(1, &["cannot be decrypted"]);
    let site = {
        db.execute(&swap).await;
        Site::start(&db, &["--master-key", &master]).await
    };
    db.execute(&swap).await;
    let answer = one.signed(&site, Method::GET, "/v1/boards", Value::Null).await.is(500);
    assert!(!answer.to_string().contains("opened"), "{answer}");
    // Without the old master key, the operator revokes the keys that it encrypted.
    for signer in [&one, &two] {
        run(&db, &["key", "revoke", signer.id()]).well();
    }
    assert!(spawn_serve(&db, None, &[]).await.stop().await.success());
}

#[tokio::test]
async fn example_secrets_are_refused_everywhere() {
    let (db, master) = (TestDb::new().await, master_key());
    board(&db, "main").await;
    let zeroes = BASE64_STANDARD.encode([0; 32]);
    let words = BASE64_STANDARD.encode("not random at all, but 32 bytes.");
    for example in ["changeme", &zeroes, &words, &format!("{master},{zeroes}")] {
        for command in [["secrets", "encrypt"].as_slice(), &["serve", "--listen", "127.0.0.1:0"], &["key", "list"]] {
            let refused = run_with(&db, example, command);
            refused.refused(1, &["--master-key: ", "openssl rand -base64 32"]);
            assert!(!refused.err.contains(example), "{refused:?}");
        }
    }
    // Keys whose secrets are examples: the one in the comment of `create_key`, and other obvious
    // ones.
    let last = "0123456789abcdef".repeat(4);
    for secret in ["64 random hexadecimal digits", &"0".repeat(64), &last] {
        let id = format!("{:016x}", next_number());
        db.execute(&format!("SELECT centile.create_key('{id}', 'x{id}', 'server', '{{}}', NULL, sha256('{secret}'))"))
            .await;
        serve(&db, "").refused(1, &[&format!("the secret of key {id} is an example")]);
        run(&db, &["key", "revoke", &id]).well();
    }
    // A webhook whose secret is the example in the comment of `set_webhook`.
    db.execute("SELECT centile.set_webhook('main', 'http://127.0.0.1:9/', decode(repeat('5a', 32), 'hex'))").await;
    for keys in ["", &master] {
        serve(&db, keys).refused(1, &["the secret of webhook of board main is an example"]);
    }
    run(&db, &["webhook", "set", "--board", "main", "http://127.0.0.1:9/"]).well();
    let site = Site::start(&db, &[]).await;
    site.admin(Method::GET, "/v1/keys", json!(null)).await.is(200);
}
