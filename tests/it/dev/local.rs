//! The private servers of the demo and the tests: they keep data, and end with the process.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use centile::{
    Error,
    dev::local::{LocalPostgres, LocalRedis, PostgresOptions},
};
use sqlx::{Connection as _, PgConnection, query_scalar};

use crate::support::{
    folder, own_redis,
    wait::{DEADLINE, until_blocking},
};

async fn rows(server: &LocalPostgres) -> i64 {
    let mut connection = PgConnection::connect(&server.url("postgres")).await.unwrap();
    query_scalar("SELECT count(*) FROM t").fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn postgres_keeps_its_data_over_a_crash_and_restarts() {
    let dir = folder("kept");
    let options = PostgresOptions { fsync: true, ..PostgresOptions::durable() };
    let mut server = LocalPostgres::start(&dir, options.clone()).unwrap();
    let mut connection = PgConnection::connect(&server.url("postgres")).await.unwrap();
    sqlx::raw_sql("CREATE TABLE t AS SELECT generate_series(1, 3)").execute(&mut connection).await.unwrap();
    let port = server.port();

    let second = LocalPostgres::start(&dir, options.clone());
    assert!(matches!(second, Err(Error::Conflict { .. })), "{second:?}");

    server.kill_hard().unwrap();
    assert!(PgConnection::connect(&server.url("postgres")).await.is_err());
    server.start_again().unwrap();
    assert_eq!((server.port(), rows(&server).await), (port, 3));

    server.stop().unwrap();
    drop(server);
    let mut server = LocalPostgres::start(&dir, options).unwrap();
    assert_eq!(rows(&server).await, 3);

    let home = server.home().to_path_buf();
    server.shut_down().unwrap();
    drop(server);
    fs::remove_dir_all(&home).unwrap();
    fs::remove_dir_all(&dir).ok();
}

#[tokio::test]
async fn postgres_runs_with_the_requested_settings() {
    let settings = vec![("work_mem".to_owned(), "5MB".to_owned())];
    let options = PostgresOptions { settings, ..PostgresOptions::ephemeral() };
    let server = LocalPostgres::start(&folder("settings"), options).unwrap();
    let mut connection = PgConnection::connect(&server.url("postgres")).await.unwrap();
    let settings: Vec<String> = query_scalar(
        "SELECT name || '=' || setting FROM pg_settings
        WHERE name IN ('jit', 'TimeZone', 'max_connections', 'listen_addresses', 'wal_compression', 'fsync', 'work_mem')
        ORDER BY name COLLATE \"C\"",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(
        settings[1..6].join(" "),
        "fsync=off jit=off listen_addresses=127.0.0.1 max_connections=200 wal_compression=pglz"
    );
    assert_eq!((settings[0].as_str(), settings[6].as_str()), ("TimeZone=UTC", "work_mem=5120"));
    let stranger = server.url("postgres").replace("centile:", "centile:x");
    assert!(PgConnection::connect(&stranger).await.is_err(), "a wrong password must be refused");
}

/// Returns Redis's answer to one line within `time`; `None` at once if nothing listens.
fn ask(server: &LocalRedis, line: &str, time: Duration) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).ok()?;
    stream.set_read_timeout(Some(time)).ok()?;
    write!(stream, "{line}\r\n").ok()?;
    let mut answer = [0; 64];
    let length = stream.read(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer[..length]).trim().to_owned())
}

#[test]
fn redis_can_be_paused_killed_and_restarted() {
    let mut server = own_redis();
    let port = server.port();
    assert_eq!(ask(&server, "SET a 1", DEADLINE).as_deref(), Some("+OK"));
    server.pause().unwrap();
    // A stopped process never answers.
    assert_eq!(ask(&server, "PING", Duration::from_millis(100)), None);
    server.resume().unwrap();
    assert_eq!(ask(&server, "EXISTS a", DEADLINE).as_deref(), Some(":1"));
    server.kill_hard().unwrap();
    assert_eq!(ask(&server, "PING", DEADLINE), None);
    server.start_again().unwrap();
    assert_eq!((server.port(), ask(&server, "EXISTS a", DEADLINE).as_deref()), (port, Some(":0")));
    server.pause().unwrap();
    server.stop().unwrap();
}

/// Not a test: the process that the next test kills. Starts servers, prints their ports, and waits
/// to be killed.
#[test]
#[ignore = "run by servers_end_with_their_killed_process"]
fn holder() {
    let postgres = LocalPostgres::start(&folder("held"), PostgresOptions::ephemeral()).unwrap();
    let redis = LocalRedis::start(&folder("held")).unwrap();
    eprintln!("held {} {} {}", postgres.port(), redis.port(), postgres.home().display());
    thread::sleep(2 * DEADLINE);
}

#[test]
fn servers_end_with_their_killed_process() {
    let mut holder = Command::new(env::current_exe().unwrap())
        .args(["dev::local::holder", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("held ")).unwrap();
    let words: Vec<&str> = line[line.find("held ").unwrap()..].splitn(4, ' ').collect();
    let ports: Vec<u16> = words[1..3].iter().map(|word| word.parse().unwrap()).collect();
    let answering = || ports.iter().filter(|&&port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()).count();
    let home = std::path::Path::new(words[3]);
    assert_eq!((answering(), home.exists()), (2, true));

    holder.kill().unwrap();
    holder.wait().unwrap();
    until_blocking("the servers and their folder are gone", || answering() == 0 && !home.exists());
}
