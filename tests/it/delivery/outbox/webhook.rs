//! Setting, showing and removing webhooks.

use std::fs;

use sqlx::postgres::PgDatabaseError;

use super::*;

#[tokio::test]
async fn messages_before_the_webhook_are_sent_only_on_request() {
    let (db, receiver) = (TestDb::new().await, Receiver::start(&[]));
    let pool = db.pool().await;
    board(&db, "main").await;
    let before = close_days(&pool, "main", 2).await;
    assert_eq!(shown(&db, before[0])["next_attempt_at"], Value::Null);
    let refused = run(&db, &["outbox", "resend", &before[0].to_string()]);
    refused.refused(1, &["board main has no webhook"]);
    set_webhook(&db, "main", &receiver.url);
    let after = close_days(&pool, "main", 1).await[0];
    assert!(run(&db, &["outbox", "list", "--board", "main"]).well().contains("kept     0"));
    assert_eq!(run(&db, &["outbox", "list", "--waiting", "--json"]).json()[0]["id"], json!(after));
    delivers(&db, 1);
    assert_eq!(message_id(&receiver.next()), after);

    // Resent on request, whether it was delivered before or not.
    for message in [before[0], after, after] {
        let due = run(&db, &["outbox", "resend", &message.to_string()]);
        assert_eq!(due.well(), format!("message {message} is due now\n"));
        assert_eq!(shown(&db, message)["attempts"], json!(0));
        delivers(&db, 1);
        assert_eq!(message_id(&receiver.next()), message);
        assert_eq!(shown(&db, message)["attempts"], json!(1));
    }
    run(&db, &["outbox", "resend", "999"]).refused(1, &["no message", "999"]);
    run(&db, &["outbox", "show", "999"]).refused(1, &["no message", "999"]);

    // With another address and secret, waiting messages go to the new address. Without a webhook
    // they are kept.
    let (waiting, other) = (close_days(&pool, "main", 1).await[0], Receiver::start(&[]));
    let secret = set_webhook(&db, "main", &other.url);
    delivers(&db, 1);
    let request = other.next();
    signed(&request, &secret);
    assert_eq!(message_id(&request), waiting);
    let last = close_days(&pool, "main", 1).await[0];
    let removed = run(&db, &["webhook", "remove", "--board", "main"]).well();
    assert_eq!(removed, "webhook of board main removed\n");
    delivers(&db, 0);
    set_webhook(&db, "main", &other.url);
    delivers(&db, 0);
    assert_eq!(shown(&db, last)["delivered_at"], Value::Null);
    assert!(receiver.all().is_empty() && other.all().is_empty());
}

#[tokio::test]
async fn webhooks_accept_a_given_secret_and_refuse_invalid_values() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main')").await;
    let url = "https://rewards.example.com/hook";
    let set = |secret: &str, more: &[&str]| {
        let mut command = centile();
        command.args(["webhook", "set", "--board", "main", url]).args(more);
        Ran::of(command.env("DATABASE_URL", db.url()).env("CENTILE_WEBHOOK_SECRET", secret))
    };
    let stored = async || -> Vec<u8> {
        query_scalar("SELECT secret FROM centile_store.webhooks").fetch_one(&db.pool().await).await.unwrap()
    };
    let secret = |byte: u8| format!("whsec_{}", BASE64_STANDARD.encode([byte; 24]));
    assert_eq!(set(&secret(1), &[]).well(), format!("messages of board main are sent to {url}\n"));
    assert_eq!(stored().await, [1; 24]);

    let folder = crate::support::folder("secret");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("secret");
    fs::write(&file, secret(2) + "\n").unwrap();
    let file = file.to_str().unwrap();
    set("", &["--secret-file", file]).well();
    assert_eq!(stored().await, [2; 24]);
    set(&secret(1), &["--secret-file", file]).refused(1, &["--secret-file: ", "combined"]);
    fs::write(file, "hunter2").unwrap();
    for refused in [set("hunter2", &[]), set("", &["--secret-file", file])] {
        refused.refused(1, &["--secret", "must be whsec_"]);
        assert!(!refused.err.contains("hunter2"), "{refused:?}");
    }
    set("", &["--secret-file", "/nonexistent"]).refused(1, &["--secret-file: ", "/nonexistent"]);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(stored().await, [2; 24]);
    let help = set("hunter2", &["--help"]).well();
    assert!(help.contains("CENTILE_WEBHOOK_SECRET") && !help.contains("hunter2"), "{help}");

    for (wrong, words) in [
        ("ftp://h/", "must begin with https:// or http://"),
        ("/hook", "must begin with https:// or http://"),
        ("https:///hook", "must be a URL"),
        ("https://u:p@h/", "must not contain a user or password"),
        ("http://127.0.0.1:99999/ok", "a port from 1 to 65535"),
        ("http://127.0.0.1:0/ok", "a port from 1 to 65535"),
    ] {
        run(&db, &["webhook", "set", "--board", "main", wrong]).refused(2, &["<URL>", words]);
    }
    run(&db, &["webhook", "set", "--board", "none", url]).refused(1, &["no board", "none"]);
    run(&db, &["webhook", "show", "--board", "none"]).refused(1, &["no board", "none"]);
    run(&db, &["outbox", "list", "--board", "none"]).refused(1, &["no board", "none"]);
    run(&db, &["webhook", "remove", "--board", "main"]).well();
    run(&db, &["webhook", "remove", "--board", "main"]).refused(1, &["no webhook of board", "main"]);
    run(&db, &["webhook", "show", "--board", "main"]).refused(1, &["no webhook of board", "main"]);
    for (command, words) in [
        (["outbox", "list"].as_slice(), "There are no messages: no period has been closed."),
        (&["outbox", "list", "--board", "main"], "There are no messages of board main: no period has been closed."),
        (&["outbox", "list", "--waiting"], "No message is waiting."),
        (&["outbox", "list", "--waiting", "--board", "main"], "No message of board main is waiting."),
    ] {
        assert!(run(&db, command).err.contains(words), "{words}");
    }
    let help = run(&db, &["outbox", "deliver", "--help"]).well();
    assert!(help.contains("maintain`"), "{help}");
    run(&db, &["outbox", "show", "0"]).refused(2, &["ID"]);
    run(&db, &["outbox", "deliver", "--timeout", "31"]).refused(2, &["--timeout", "1..=30"]);
}

/// A failed check constraint would print the row, and its secret, to the client and the server's
/// log.
#[tokio::test]
async fn psql_refuses_a_webhook_without_showing_its_secret() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main')").await;
    let pool = db.pool().await;
    let long = format!("https://h/{}", "x".repeat(2039));
    let secret = [0x5e_u8; 32].as_slice();
    let refusals = [
        (Some("ftp://x"), Some(secret), Some("url")),
        (Some("HTTP://h/"), Some(secret), Some("url")),
        (Some("http://"), Some(secret), Some("url")),
        (Some("http:///hook"), Some(secret), Some("url")),
        (Some("http://h/a b"), Some(secret), Some("url")),
        (Some("http://u:p@h/"), Some(secret), Some("url")),
        (Some("http://h:0/"), Some(secret), Some("url")),
        (Some("http://h:65536/"), Some(secret), Some("url")),
        (Some("http://[::1]:99999"), Some(secret), Some("url")),
        (Some("http://h:123456"), Some(secret), Some("url")),
        (Some(long.as_str()), Some(secret), Some("url")),
        (None, Some(secret), Some("url")),
        (Some("http://h/"), Some(&secret[..15]), Some("secret")),
        (Some("http://h/"), Some([0x5e; 65].as_slice()), Some("secret")),
        (Some("http://h/"), None, Some("secret")),
        (Some("http://h:65535"), Some(secret), None),
        (Some("https://[::1]:8/x:99999?a@b#c"), Some(secret), None),
        (Some(&long[..2048]), Some(&secret[..16]), None),
    ];
    for (url, secret, refused) in refusals {
        let set = sqlx::query("SELECT centile.set_webhook('main', $1, $2)").bind(url).bind(secret).execute(&pool).await;
        let Some(what) = refused else {
            set.unwrap();
            continue;
        };
        let error = set.unwrap_err();
        let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
        assert_eq!((error.code(), error.detail()), ("CB422", Some(what)), "{url:?} {error:?}");
        assert!(!format!("{error:?}").contains("5e5e"), "{error:?}");
    }
}
