//! No output of the program contains a secret, at the most verbose log level and with every kind of
//! failure.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use super::{board, close_days, master_key};
use crate::{
    http::api::site::{Answer, Site},
    support::{Ran, Serve, TestDb, centile, make_key, own_redis},
};

const DATABASE_PASSWORD: &str = "Zk4-password-of-the-database";
const WRONG_PASSWORD: &str = "Zk5-wrong-password";
const REDIS_PASSWORD: &str = "Zk6-password-of-redis";
const FORMATS: [&str; 2] = ["text", "json"];
const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];
const SET_WEBHOOK: [&str; 5] = ["webhook", "set", "--board", "main", "http://127.0.0.1:1/hook"];

/// Addresses and passwords of the servers, all collected output, and the secrets that it must not
/// contain.
struct Transcript {
    login: String,
    /// Host, port and name of the database.
    place: String,
    redis_port: u16,
    master: String,
    webhook_secret: String,
    secrets: Vec<String>,
    said: Vec<(String, String)>,
}

impl Transcript {
    fn database(&self, password: &str) -> String {
        format!("postgres://{}:{password}@{}", self.login, self.place)
    }

    fn redis(&self, password: &str) -> String {
        format!("redis://:{password}@127.0.0.1:{}", self.redis_port)
    }

    /// Runs a command with all secrets in its environment.
    fn run(&self, database: &str, redis: &str, format: &str, arguments: &[&str]) -> Ran {
        let mut command = centile();
        command.args(arguments).env("DATABASE_URL", database).env("REDIS_URL", redis);
        command.env("CENTILE_MASTER_KEY", &self.master).env("CENTILE_WEBHOOK_SECRET", &self.webhook_secret);
        command.env("CENTILE_LOG", "trace").env("CENTILE_LOG_FORMAT", format).env("RUST_BACKTRACE", "1");
        Ran::of(&mut command)
    }

    /// Runs a command with the right passwords.
    fn run_well(&self, format: &str, arguments: &[&str]) -> Ran {
        self.run(&self.database(DATABASE_PASSWORD), &self.redis(REDIS_PASSWORD), format, arguments)
    }

    fn hear(&mut self, what: impl Into<String>, text: String) {
        self.said.push((what.into(), text));
    }

    fn hear_ran(&mut self, what: &[&str], ran: &Ran) {
        self.hear(what.join(" "), format!("{}\n{}", ran.out, ran.err));
    }

    fn hear_answer(&mut self, what: &str, answer: &Answer, sent: &str) {
        // The answer may repeat what its caller sent.
        self.hear(what, format!("{:?} {}", answer.headers, answer.text.replace(sent, "")));
    }

    fn check(&self) {
        assert!(self.secrets.len() > 10 && self.said.len() > 150, "{} said", self.said.len());
        for secret in &self.secrets {
            assert!(secret.len() > 10, "{secret}");
            for (what, text) in &self.said {
                let line = text.lines().find(|line| line.contains(secret.as_str()));
                assert!(line.is_none(), "{what} shows {secret}: {line:?}");
            }
        }
    }
}

/// Makes Redis require its password.
fn ask_for_password(port: u16) {
    let mut redis = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(redis, "CONFIG SET requirepass {REDIS_PASSWORD}\r\n").unwrap();
    let mut answer = [0; 5];
    redis.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
}

/// Collects the output of commands that succeed and of commands that fail.
fn hear_commands(scene: &mut Transcript) {
    for format in FORMATS {
        for arguments in [
            SET_WEBHOOK.as_slice(),
            &["webhook", "show", "--board", "main"],
            &["secrets", "encrypt"],
            &["outbox", "resend", "1"],
            &["outbox", "deliver"],
            &["outbox", "list"],
            &["maintain"],
            &["key", "list"],
            &["migrate"],
        ] {
            let ran = scene.run_well(format, arguments);
            assert_eq!(ran.code == Some(0), arguments != ["outbox", "deliver"], "{ran:?}");
            scene.hear_ran(arguments, &ran);
        }
        for arguments in [SERVE.as_slice(), &["board", "list"], &["migrate"]] {
            for place in [
                "",
                "@127.0.0.1:1/nowhere",
                "@nowhere.invalid/nowhere",
                "@127.0.0.1:port/nowhere",
                &format!("@127.0.0.1:1/nowhere?pasword={DATABASE_PASSWORD}"),
                &format!("@127.0.0.1:1/nowhere?sslmode={DATABASE_PASSWORD}"),
            ] {
                let database = match place {
                    "" => scene.database(WRONG_PASSWORD),
                    _ => format!("postgres://{}:{WRONG_PASSWORD}{place}", scene.login),
                };
                let ran = scene.run(&database, &scene.redis(REDIS_PASSWORD), format, arguments);
                assert_eq!(ran.code, Some(1), "{ran:?}");
                scene.hear_ran(arguments, &ran);
            }
            let ran = scene.run(&format!("x:{WRONG_PASSWORD}@127.0.0.1"), "", format, arguments);
            scene.hear_ran(arguments, &ran);
        }
        let database = scene.database(DATABASE_PASSWORD);
        let ran = scene.run(&database, &format!("redis//:{REDIS_PASSWORD}@x"), format, &SERVE);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        scene.hear_ran(&SERVE, &ran);
    }
    for command in ["serve", "demo", "migrate", "key create", "webhook set", "secrets encrypt", "nonsense"] {
        for help in ["--help", "-h", "--nonsense"] {
            let arguments: Vec<&str> = command.split(' ').chain([help]).collect();
            let ran = scene.run_well("text", &arguments);
            scene.hear_ran(&arguments, &ran);
        }
    }
    // A secret is printed once, by the command that creates it, and nowhere else.
    let made = scene.run_well("text", &["key", "create", "--name", "x", "--role", "reader", "--all-boards"]);
    scene.secrets.push(made.out.trim().rsplit('_').next().unwrap().to_owned());
    scene.hear("key create", made.err);
}

/// Collects an instance's answers and log, with this password for Redis, for requests that fail in
/// many ways.
async fn hear_instance(scene: &mut Transcript, db: &TestDb, key: &str, format: &str, redis_password: &str) {
    // actix logs the details of requests only if its modules are named.
    let flags = [
        "--log",
        "trace,actix_http::h1=trace",
        "--log-format",
        format,
        "--maintenance-every",
        "1",
        "--master-key",
        &scene.master,
    ];
    let flags = flags.map(str::to_owned);
    let (database, redis) = (scene.database(DATABASE_PASSWORD), scene.redis(redis_password));
    let prefix = db.redis_prefix();
    let serve = tokio::task::spawn_blocking(move || Serve::spawn(&database, Some(&redis), &prefix, &flags));
    let mut site = Site { serve: serve.await.unwrap(), server_key: key.to_owned(), admin_key: key.to_owned() };
    let wrong = format!("{}0", &key[..key.len() - 1]);
    let event = json!({"user_id": "ada", "points": 1, "id": format}).to_string();
    for path in ["/v1/boards/main/scores", "/v1/keys", "/v1/users/ada", "/nowhere"] {
        for (sent, body) in [(key, &event), (&wrong, &event), (key, &format!("{{{key}"))] {
            for method in [Method::POST, Method::PUT, Method::GET] {
                let answer = site.json(method, path, sent, body.clone()).await;
                scene.hear_answer(path, &answer, key);
            }
        }
    }
    // A fault: the stored keys become unreadable.
    db.execute("ALTER TABLE centile_store.api_keys RENAME COLUMN secret_sha256 TO gone").await;
    // A key id that is not cached.
    let unknown = format!("ctl_0123456789abcdef{}", &key[20..]);
    for sent in [key, &unknown] {
        let answer = site.json(Method::GET, "/v1/keys", sent, String::new()).await;
        scene.hear_answer("/v1/keys", &answer, "");
    }
    for path in ["/metrics", "/readyz", "/healthz", "/openapi.json"] {
        let answer = site.admin(Method::GET, path, Value::Null).await;
        scene.hear_answer(path, &answer, "");
    }
    db.execute("ALTER TABLE centile_store.api_keys RENAME COLUMN gone TO secret_sha256").await;
    assert!(site.serve.stop().await.success());
    let output = site.serve.output();
    assert!(output.lines().count() > 500, "{} lines", output.lines().count());
    scene.hear(format!("serve, {format}"), output);
}

/// Returns bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn no_log_answer_error_or_help_contains_a_secret() {
    let (db, redis) = (TestDb::new().await, own_redis());
    ask_for_password(redis.port());
    let (login, _) = db.login("SUPERUSER").await;
    db.execute(&format!("ALTER ROLE {login} PASSWORD '{DATABASE_PASSWORD}'")).await;
    board(&db, "main").await;
    let mut scene = Transcript {
        login,
        place: db.url().split_once('@').unwrap().1.to_owned(),
        redis_port: redis.port(),
        master: master_key(),
        webhook_secret: format!("whsec_{}", master_key()),
        secrets: Vec::new(),
        said: Vec::new(),
    };
    let key = make_key(db.url(), "admin", &[]);
    let texts = [scene.master.clone(), scene.webhook_secret[6..].to_owned()];
    let others = [DATABASE_PASSWORD, WRONG_PASSWORD, REDIS_PASSWORD, &key[21..]];
    scene.secrets.extend(others.map(str::to_owned).into_iter().chain(texts.clone()));
    // As bytes, in the two usual notations.
    for bytes in texts.map(|text| BASE64_STANDARD.decode(text).unwrap()) {
        scene.secrets.push(hex(&bytes));
        scene.secrets.push(format!("{:?}", &bytes[..8]).trim_matches(['[', ']']).to_owned());
    }
    scene.run_well("text", &SET_WEBHOOK).well();
    close_days(&db.pool().await, "main", 1).await;

    hear_commands(&mut scene);
    for (format, redis_password) in FORMATS.into_iter().zip([REDIS_PASSWORD, WRONG_PASSWORD]) {
        hear_instance(&mut scene, &db, &key, format, redis_password).await;
    }
    scene.check();
}
