//! Secrets are encrypted in the database, refused if they are examples, and never shown.

mod shown;

use std::process::Command;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::json;
use sqlx::query_as;

use crate::{
    delivery::outbox::{board, close_days, receiver::Receiver, signed},
    http::api::site::Site,
    support::{Ran, TestDb, centile, next_number, run, spawn_serve},
};

/// Returns a new random master key.
pub fn master_key() -> String {
    let made = Command::new("openssl").args(["rand", "-base64", "32"]).output().expect("openssl is installed");
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert_eq!(BASE64_STANDARD.decode(&key).unwrap().len(), 32);
    key
}

/// Runs a command to its end, with a test's database and master keys.
pub fn run_with(db: &TestDb, master_keys: &str, arguments: &[&str]) -> Ran {
    let mut command = centile();
    Ran::of(command.args(arguments).env("DATABASE_URL", db.url()).env("CENTILE_MASTER_KEY", master_keys))
}

/// Returns the secrets of webhooks in the database, and whether each is encrypted.
async fn stored(db: &TestDb) -> Vec<(Vec<u8>, bool)> {
    query_as("SELECT secret, encrypted FROM centile_store.webhooks ORDER BY board_id")
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
    assert_eq!(stored(&db).await, [(bytes_of(&plain), false)]);
    let mut instance = spawn_serve(&db, None, &[]).await;
    assert!(instance.stop().await.success());
    assert_eq!(instance.output().matches("stored unencrypted").count(), 1, "{}", instance.output());

    let encrypted = run_with(&db, &master, &["webhook", "set", "--board", "arena", &after.url]).well();
    // A start with a master key encrypts the rest; another start has nothing to do.
    let mut first = Vec::new();
    for _ in 0..2 {
        let mut instance = spawn_serve(&db, None, &["--master-key", &master]).await;
        assert!(instance.stop().await.success());
        assert!(!instance.output().contains("unencrypted"), "{}", instance.output());
        let stored = stored(&db).await;
        assert!(stored.len() == 2 && stored.iter().all(|(_, is_encrypted)| *is_encrypted), "{stored:?}");
        let dump = db.data_dump();
        for secret in [bytes_of(&plain), bytes_of(&encrypted)] {
            let hex = secret.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            assert!(!dump.contains(&hex), "a dump shows a secret");
        }
        assert!(first.is_empty() || first == stored);
        first = stored;
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
    let receivers = [Receiver::start(&[]), Receiver::start(&[])];
    let boards = ["main", "arena"];
    let mut secrets = Vec::new();
    for (slug, receiver) in boards.into_iter().zip(&receivers) {
        board(&db, slug).await;
        secrets.push(run_with(&db, &old, &["webhook", "set", "--board", slug, &receiver.url]).well());
    }
    let both = format!("{new},{old}");
    let _both = spawn_serve(&db, None, &["--master-key", &both]).await;
    serve(&db, &new).refused(1, &["--master-key: ", "not among those given"]);

    let was = stored(&db).await;
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
    assert!(stored(&db).await.iter().zip(&was).all(|(is, was)| is != was));

    serve(&db, &old).refused(1, &["--master-key: ", "not among those given"]);
    let _alone = spawn_serve(&db, None, &["--master-key", &new]).await;
    for slug in boards {
        close_days(&db.pool().await, slug, 1).await;
    }
    assert_eq!(run_with(&db, &new, &["outbox", "deliver"]).well(), "2 delivered, 0 failed\n");
    for (receiver, secret) in receivers.iter().zip(&secrets) {
        signed(&receiver.next(), secret.trim());
    }
    run(&db, &["secrets", "encrypt"]).refused(1, &["--master-key: ", "CENTILE_MASTER_KEY"]);
}

#[tokio::test]
async fn serve_refuses_to_start_with_an_unreadable_secret() {
    let (db, master) = (TestDb::new().await, master_key());
    let set = |slug| ["webhook", "set", "--board", slug, "http://127.0.0.1:9/"];
    for slug in ["arena", "main"] {
        board(&db, slug).await;
        run_with(&db, &master, &set(slug)).well();
    }
    serve(&db, "").refused(1, &["--master-key: ", "webhook of board arena"]);
    serve(&db, &master_key()).refused(1, &["--master-key: ", "not among those given"]);
    // The encryption of a secret is bound to its board: that of another board cannot be decrypted.
    db.execute(
        "UPDATE centile_store.webhooks a SET secret = b.secret FROM centile_store.webhooks b
         WHERE a.board_id <> b.board_id",
    )
    .await;
    serve(&db, &master).refused(1, &["cannot be decrypted"]);
    // Without the old master key, the operator replaces the secrets that it encrypted.
    for slug in ["arena", "main"] {
        run(&db, &set(slug)).well();
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
