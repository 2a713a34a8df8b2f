//! Screenshots for the documentation: `make screenshots` writes them to `docs/img`.

use std::path::Path;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};

use super::{SCORES, driver::Browser, frame::Host};
use crate::{
    http::api::site::Site,
    support::{Files, TestDb, import},
};

/// Realistic names.
const FIRST: [&str; 24] = [
    "Ada", "Bao", "Chiara", "Diego", "Ebba", "Femi", "Goran", "Hana", "Ines", "Jonas", "Kaveh", "Lior", "Mira", "Noor",
    "Otto", "Priya", "Quinn", "Rosa", "Sami", "Tove", "Uma", "Viktor", "Wanda", "Yuki",
];
const LAST: [&str; 20] = [
    "Abadi", "Berg", "Costa", "Dahl", "Eze", "Falk", "Grau", "Holm", "Ito", "Jansen", "Kovac", "Lund", "Moreau",
    "Nagy", "Okafor", "Petit", "Rossi", "Silva", "Tanaka", "Weiss",
];

/// A game after some weeks: most scores are in the middle.
async fn game(db: &TestDb, framer: &str) -> Site {
    let site = Site::start(db, &["--maintenance-every", "1", "--frame-origins", framer]).await;
    let rules = json!({"slug": "arena", "title": "Arena", "periods": ["week", "month", "all_time"], "time_zone": "Europe/Berlin"});
    site.board(rules, &[]).await;
    let mut rng = StdRng::seed_from_u64(7);
    let mut lines = Vec::new();
    for player in 0..480 {
        let skill: i64 = (0..6).map(|_| rng.random_range(40..160)).sum();
        let user = format!("{}{player}", FIRST[player % FIRST.len()].to_lowercase());
        let name = format!("{} {}", FIRST[player % FIRST.len()], LAST[player / FIRST.len()]);
        db.execute(&format!("SELECT centile.put_user('{user}', '{name}')")).await;
        for day in 0..28 {
            if rng.random_range(0..3) == 0 {
                let at = chrono::Utc::now() - chrono::Duration::hours(24 * (27 - day) + 1);
                let points = skill + rng.random_range(-120..120);
                lines.push(json!({"user_id": user, "points": points, "occurred_at": at.to_rfc3339()}));
            }
        }
    }
    lines.sort_by_key(|line| line["occurred_at"].as_str().unwrap().to_owned());
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let files = Files::new();
    import(db, &files.write("game.ndjson", text.join("\n")), "arena", &[]).well(lines.len() as u64, 0);
    let best =
        json!({"slug": "laps", "title": "Lap times", "mode": "best", "order": "asc", "periods": ["day", "all_time"]});
    site.board(best, &[]).await;
    let laps: Vec<Value> =
        (0..40).map(|player| json!({"user_id": format!("{}{player}", FIRST[player % 24].to_lowercase()), "points": 61_000 + rng.random_range(0..9_000)})).collect();
    site.post("/v1/boards/laps/scores", Value::from(laps)).await.is(200);
    site.board(json!({"slug": "duels", "title": "Duels", "periods": ["week"]}), &[]).await;
    site
}

#[tokio::test]
#[ignore = "makes pictures: `make screenshots`"]
async fn pictures() {
    let db = TestDb::new().await;
    let mut host = Host::new().await;
    let site = game(&db, &host.origin).await;
    // The newest closed week.
    let closed = loop {
        let periods = site.get("/v1/boards/arena/periods").await.is(200);
        let all = periods["data"].as_array().unwrap();
        let mut closed = all.iter().filter(|period| period["kind"] == "week" && period["state"] == "closed");
        if let Some(name) = closed.next().and_then(|period| period["name"].as_str()) {
            break name.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let top = site.get(&SCORES.replace("main", "arena")).await.is(200);
    let other = top["data"][3]["user_id"].as_str().unwrap().to_owned();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/img");
    std::fs::create_dir_all(&folder).unwrap();
    let browser = Browser::start().await;
    let take = async |name: &str, scheme: &str, path: &str| {
        browser.prefer(scheme).await;
        let url = if path.starts_with("http") { path.to_owned() } else { site.serve.at(path) };
        browser.open(&url).await;
        browser
            .until(
                "!document.querySelector('[data-state=open]') || document.querySelector('.state').textContent.trim() !== ''",
            )
            .await;
        browser.picture(&folder.join(format!("{name}.png"))).await;
    };
    let player = format!("/boards/arena?limit=14&player=hana31&friends=hana31&friends={other}&friends=noor13");
    browser.resize(1280, 720, false).await;
    take("home", "light", "/").await;
    take("board", "light", "/boards/arena").await;
    browser.resize(1280, 1060, false).await;
    take("player", "light", &player).await;
    take("dark", "dark", &player).await;
    browser.resize(1280, 720, false).await;
    take("closed", "light", &format!("/boards/arena?period={closed}")).await;
    take("empty", "light", "/boards/duels").await;
    take("wrong", "light", "/boards/nowhere").await;
    browser.resize(390, 844, true).await;
    take("phone", "light", "/boards/arena?player=hana31").await;
    let operators = site.serve.url.replace("http://", &format!("http://anybody:{}@", site.admin_key));
    browser.resize(1280, 1080, false).await;
    take("ops", "light", &format!("{operators}/ops/")).await;
    host.show(
        &site.serve.url,
        "<h1>A game</h1><p>Somebody else's page, with a board in it:</p><centile-board board=arena limit=5 size=small></centile-board>",
    );
    browser.resize(480, 420, false).await;
    browser.prefer("light").await;
    browser.open(&host.origin).await;
    browser.look_into_frame(true).await;
    browser.until("document.querySelector('.state.live')").await;
    browser.look_into_frame(false).await;
    browser.picture(&folder.join("frame.png")).await;
    for file in std::fs::read_dir(&folder).unwrap() {
        let file = file.unwrap();
        assert!(file.metadata().unwrap().len() < 150_000, "{file:?}");
    }
}
