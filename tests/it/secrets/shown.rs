//! What the program says of itself, at its most talkative, while all goes wrong that can: no secret is among it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use centile::local::LocalRedis;
use reqwest::Method;
use serde_json::{Value, json};

use super::{board, close_days};
use crate::{
    http_api::site::Site,
    support::{
        Ran, Serve, TestDb, centile, folder, make_key,
        signing::{Signer, master_key, run_with},
    },
};

const DATABASE_PASSWORD: &str = "Zk4-password-of-the-database";
const WRONG_PASSWORD: &str = "Zk5-wrong-password";
const REDIS_PASSWORD: &str = "Zk6-password-of-redis";
const FORMATS: [&str; 2] = ["text", "json"];

/// What was said, by whom, and what must not be among it.
#[derive(Default)]
struct Heard {
    secrets: Vec<String>,
    said: Vec<(String, String)>,
}

impl Heard {
    fn hear(&mut self, what: impl Into<String>, text: impl Into<String>) {
        self.said.push((what.into(), text.into()));
    }

    fn ran(&mut self, ran: &Ran, what: &str) {
        self.hear(what, format!("{}\n{}", ran.out, ran.err));
    }

    fn check(&self) {
        assert!(self.secrets.len() > 8 && self.said.len() > 30, "{} said", self.said.len());
        for secret in &self.secrets {
            assert!(secret.len() > 10, "{secret}");
            for (what, text) in &self.said {
                let line = text.lines().find(|line| line.contains(secret.as_str()));
                assert!(line.is_none(), "{what} shows {secret}: {line:?}");
            }
        }
    }
}

#[tokio::test]
async fn no_secret_is_in_a_log_an_answer_an_error_or_help() {
    let (db, master) = (TestDb::new().await, master_key());
    let redis = LocalRedis::start_with(&folder("redis"), &[("requirepass", REDIS_PASSWORD)]).unwrap();
    let (login, _) = db.login("SUPERUSER").await;
    db.execute(&format!("ALTER ROLE {login} PASSWORD '{DATABASE_PASSWORD}'")).await;
    let place = db.url().split_once('@').unwrap().1.to_owned();
    let url = |password: &str| format!("postgres://{login}:{password}@{place}");
    let redis_url = |password: &str| format!("redis://:{password}@127.0.0.1:{}", redis.port());
    let webhook_secret = format!("whsec_{}", master_key());
    board(&db, "main").await;
    let signer = Signer::make(&db, &master, &["--role", "admin"]);
    let plain = make_key(db.url(), &["--role", "admin"]);
    let mut heard = Heard::default();
    for secret in [
        DATABASE_PASSWORD,
        WRONG_PASSWORD,
        REDIS_PASSWORD,
        &master,
        &webhook_secret[6..],
        &signer.secret,
        &plain[21..],
        &signer.key[21..],
    ] {
        heard.secrets.push(secret.to_owned());
    }
    // As bytes, in the two ways in which they are shown.
    for text in [master.as_str(), &webhook_secret[6..]] {
        let bytes = BASE64_STANDARD.decode(text).unwrap();
        heard.secrets.push(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")));
        heard.secrets.push(format!("{:?}", &bytes[..8]).trim_matches(['[', ']']).to_owned());
    }

    let set = |database: &str, redis: &str, format: &str, arguments: &[&str]| {
        let mut command = centile();
        command.args(arguments).env("DATABASE_URL", database).env("REDIS_URL", redis);
        command.env("CENTILE_MASTER_KEY", &master).env("CENTILE_WEBHOOK_SECRET", &webhook_secret);
        command.env("CENTILE_LOG", "trace").env("CENTILE_LOG_FORMAT", format).env("RUST_BACKTRACE", "1");
        Ran::of(&mut command)
    };
    let (good, cache) = (url(DATABASE_PASSWORD), redis_url(REDIS_PASSWORD));
    let webhook = ["webhook", "set", "--board", "main", "http://127.0.0.1:1/hook"];
    set(&good, &cache, "text", &webhook).well();
    close_days(&db.pool().await, "main", 1).await;
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    for format in FORMATS {
        // What goes well, and what a receiver that is not there makes of it.
        for arguments in [
            webhook.as_slice(),
            &["webhook", "show", "--board", "main"],
            &["secrets", "seal"],
            &["outbox", "deliver"],
            &["outbox", "list"],
            &["maintain"],
            &["key", "list"],
            &["migrate"],
        ] {
            heard.ran(&set(&good, &cache, format, arguments), "a command");
        }
        for arguments in
            [listen.as_slice(), &["board", "list"], &["migrate"], &["import", "/nonexistent", "--board", "main"]]
        {
            for database in [
                url(WRONG_PASSWORD),
                format!("postgres://{login}:{WRONG_PASSWORD}@127.0.0.1:1/nowhere"),
                format!("postgres://{login}:{WRONG_PASSWORD}@nowhere.invalid/nowhere"),
                format!("postgres://{login}:{WRONG_PASSWORD}@127.0.0.1:port/nowhere"),
                format!("postgres://{login}:{WRONG_PASSWORD}@127.0.0.1:1/nowhere?pasword={DATABASE_PASSWORD}"),
                format!("postgres://{login}:{WRONG_PASSWORD}@127.0.0.1:1/nowhere?sslmode={DATABASE_PASSWORD}"),
                format!("{login}:{WRONG_PASSWORD}@127.0.0.1"),
            ] {
                let ran = set(&database, &cache, format, arguments);
                assert_eq!(ran.code, Some(1), "{ran:?}");
                heard.ran(&ran, "a command without a database");
            }
            heard.ran(
                &set(&good, &format!("redis//:{REDIS_PASSWORD}@x"), format, &["serve", "--listen", "256"]),
                "an address",
            );
            heard.ran(&set(&good, &format!("redis//:{REDIS_PASSWORD}@x"), format, &listen), "no address of Redis");
        }
    }
    for command in ["serve", "demo", "migrate", "key create", "webhook set", "secrets seal", "nonsense"] {
        for help in ["--help", "-h", "--nonsense"] {
            let arguments: Vec<&str> = command.split(' ').chain([help]).collect();
            heard.ran(&set(&good, &cache, "text", &arguments), "help");
        }
    }
    // What is shown once is shown where it is asked for, and nowhere else.
    let made = set(&good, &cache, "text", &["key", "create", "--signed", "--name", "x", "--role", "reader"]);
    for line in made.out.trim().lines() {
        heard.secrets.push(line.rsplit('_').next().unwrap().to_owned());
    }
    heard.hear("key create", made.err.clone());

    for (format, redis_password) in FORMATS.into_iter().zip([REDIS_PASSWORD, WRONG_PASSWORD]) {
        let flags = ["--log", "trace", "--log-format", format, "--maintenance-every", "1", "--master-key", &master]
            .map(str::to_owned);
        let (good, cache, prefix) = (good.clone(), redis_url(redis_password), db.redis_prefix());
        let serve =
            tokio::task::spawn_blocking(move || Serve::spawn(&good, Some(&cache), &prefix, &flags)).await.unwrap();
        let mut site = Site { serve, server_key: plain.clone(), admin_key: plain.clone() };
        let wrong = format!("{}0", &plain[..plain.len() - 1]);
        let body = || json!({"user_id": "ada", "points": 1, "id": format!("{format}-1")});
        for path in ["/v1/boards/main/scores", "/v1/keys", "/v1/users/ada", "/nowhere"] {
            for (key, body) in
                [(&plain, body().to_string()), (&wrong, body().to_string()), (&plain, format!("{{{plain}"))]
            {
                for method in [Method::POST, Method::PUT, Method::GET] {
                    let answer = site.json(method, path, key, body.clone()).await;
                    // What a caller sends may come back to the same caller.
                    heard.hear(path, format!("{:?} {}", answer.headers, answer.text.replace(&plain, "")));
                }
            }
            let answer = signer.signed(&site, Method::POST, path, body()).await;
            heard.hear(path, format!("{:?} {}", answer.headers, answer.text));
            let answer = signer.send(&site, &Method::POST, path, "{}", Some("t=1,v1=2")).await;
            heard.hear(path, format!("{:?} {}", answer.headers, answer.text));
        }
        // A fault of the service's own.
        db.execute("ALTER TABLE centile_store.api_keys RENAME COLUMN signing_secret TO gone").await;
        for path in ["/v1/keys", "/metrics", "/readyz", "/healthz", "/openapi.json"] {
            let answer = site.admin(Method::GET, path, Value::Null).await;
            heard.hear(path, answer.text);
        }
        db.execute("ALTER TABLE centile_store.api_keys RENAME COLUMN gone TO signing_secret").await;
        assert!(site.serve.stop().await.success());
        let output = site.serve.output();
        assert!(output.lines().count() > 500, "{} lines", output.lines().count());
        heard.hear(format!("serve, {format}"), output);
    }
    heard.check();
    assert_eq!(run_with(&db, &master, &["secrets", "seal"]).code, Some(0));
}
