//! `centile demo` from start to end.

use std::{fs, path::Path};

use reqwest::Client;
use serde_json::{Value, json};

use crate::support::{
    centile,
    demo::{Demo, RemovedFolder},
    folder,
    wait::until,
};

/// Returns all descendants of the process `pid`.
fn descendants(pid: u32) -> Vec<u32> {
    let parent = |entry: &Path| -> Option<(u32, u32)> {
        let stat = fs::read_to_string(entry.join("stat")).ok()?;
        // State and parent follow the name, which may contain any character.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((entry.file_name()?.to_str()?.parse().ok()?, parent))
    };
    let all: Vec<(u32, u32)> =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| parent(&entry.path())).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let of = found[next];
        found.extend(all.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

#[tokio::test]
async fn the_demo_runs_stops_cleanly_and_resumes() {
    let dir = RemovedFolder(folder("demo"));
    let mut demo = Demo::start(&dir.0);
    assert!(demo.said("played").starts_with("3,000 initial games"), "{}", demo.output);
    let (url, key) = (demo.said("HTTP API").to_owned(), demo.said("server key").to_owned());
    let get = async |address: String| -> Value {
        Client::new().get(address).send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    };

    // The three calls that its output suggests.
    let top = get(demo.curl(0)).await;
    assert_eq!((top["data"].as_array().map(Vec::len), top["data"][0]["rank"].as_u64()), (Some(10), Some(1)));
    let standing = get(demo.curl(1)).await;
    let rank = standing["rank"].as_u64().unwrap();
    assert!(rank >= 1 && standing["user_id"] == "player-007" && standing["below"].is_array(), "{standing}");
    assert!(demo.output.contains(&format!("-H 'Authorization: Bearer {key}'")), "{}", demo.output);
    let event = json!({ "user_id": "you", "points": 500 });
    let post = || Client::new().post(demo.curl(2)).bearer_auth(&key).json(&event).send();
    let written: Value = post().await.unwrap().error_for_status().unwrap().json().await.unwrap();
    assert_eq!(written["periods"]["all_time"]["score"], 500, "{written}");
    // Games continue.
    let version = get(format!("{url}/v1/boards/laps/scores")).await["version"].clone();
    let laps = async || get(format!("{url}/v1/boards/laps/scores")).await["version"].clone();
    until("a game changes the ranking", async || laps().await != version).await;
    // The stored address gives access to the database.
    let database_url = fs::read_to_string(dir.0.join("database-url")).unwrap();
    let boards = centile().args(["board", "list"]).env("DATABASE_URL", database_url.trim()).output().unwrap();
    assert!(String::from_utf8_lossy(&boards.stdout).contains("Demo board"), "{boards:?}");
    // The operator's page opens with the printed password.
    let operators = demo.said("operators").to_owned();
    let (page, password) = operators.split_once(", any user name, password ").unwrap();
    let answer = Client::new().get(page).basic_auth("anybody", Some(password)).send().await.unwrap();
    assert!(answer.error_for_status().unwrap().text().await.unwrap().contains("<h1>Operation</h1>"));

    let started = descendants(demo.child.id());
    assert!(started.len() >= 4, "two servers and their watchdogs at least, not {started:?}");
    let second = centile().args(["demo", "--listen", url.trim_start_matches("http://"), "--dir"]).arg(&dir.0).output();
    let second = second.unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("--listen: cannot listen on"), "{second:?}");
    assert_eq!(demo.end("INT").code(), Some(0));
    let left: Vec<&u32> = started.iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).collect();
    assert!(left.is_empty(), "{left:?} of {started:?} are left");

    let mut demo = Demo::start(&dir.0);
    assert_eq!(demo.said("found"), "201 players on board main");
    assert_eq!(demo.said("server key"), key);
    assert!(demo.said("operators").ends_with(password));
    assert_eq!(get(format!("{}/v1/boards/main/scores/you", demo.said("HTTP API"))).await["score"], 500);
    assert_eq!(demo.end("TERM").code(), Some(0));
}
