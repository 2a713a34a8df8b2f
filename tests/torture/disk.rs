//! PostgreSQL's disk is full: no event is acknowledged without being stored, and the service
//! recovers once there is space.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use centile::{
    dev::local::{LocalPostgres, PostgresOptions},
    store::migrate::migrate_url,
};
use reqwest::StatusCode;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    probe::{self, until_recovered},
    report::{Trial, seconds},
    support::{Serve, audit, client, load::key, next_number, sender::Sender},
};

/// Enough space for PostgreSQL and some minutes of scores.
const DISK: &str = "size=400m";
/// Time for which the disk stays full.
const FULL: Duration = Duration::from_secs(30);
const CALLERS: usize = 8;

/// A small disk in memory, unmounted with this value.
struct Disk(PathBuf);

impl Disk {
    /// Mounts it. `None` if this account may not mount.
    fn mount() -> Option<Self> {
        // PostgreSQL's account can reach this folder.
        let folder = std::env::temp_dir().join(format!("centile-disk-{}-{}", std::process::id(), next_number()));
        fs::create_dir(&folder).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "centile-torture"]).arg(&folder).output();
        let disk = Self(folder);
        mounted.is_ok_and(|output| output.status.success()).then_some(disk)
    }

    /// Fills all remaining space.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = File::create(&path).expect("a file");
        while file.write_all(&[0; 16 << 10]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Fails if nothing is mounted, because the account may not mount.
        Command::new("umount").arg("--lazy").arg(&self.0).output().ok();
        fs::remove_dir_all(&self.0).ok();
    }
}

async fn start(folder: &Path) -> LocalPostgres {
    // Little WAL is kept, so that the disk is full soon.
    let settings = [("max_wal_size", "64MB"), ("min_wal_size", "32MB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let options = PostgresOptions { fsync: true, settings, ..PostgresOptions::ephemeral() };
    let postgres = LocalPostgres::start(folder, options).expect("PostgreSQL");
    migrate_url(&postgres.url("postgres")).await.expect("a schema");
    postgres
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgresql_recovers_from_a_full_disk() {
    let mut trial = Trial::begin(
        "disk",
        "disk of PostgreSQL full for 30 s",
        "503; no acknowledged event missing; recovers once there is space",
    );
    let Some(disk) = Disk::mount() else { return trial.skip("only root may mount a small disk") };
    let mut postgres = start(&disk.0).await;
    let url = postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    for board in ["SELECT centile.create_board('arena', '{\"lanes\": 4}')", probe::BOARD] {
        sqlx::raw_sql(board).execute(&pool).await.expect("a board");
    }
    let database = url.clone();
    let serve =
        tokio::task::spawn_blocking(move || Serve::spawn(&database, None, "disk", &[])).await.expect("a service");
    let (sender, probing) = (Arc::new(Sender::new(key(&url, "server"))), key(&url, "server"));
    let stop = CancellationToken::new();
    let callers = sender.spawn(CALLERS, &serve.at("/v1/boards/arena/scores"), &stop);
    sender.wait_for_more(1_000).await;

    let ballast = disk.fill();
    let filled = Instant::now();
    while sender.counts().2 == 0 {
        assert!(filled.elapsed() < Duration::from_mins(3), "the disk is not full in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    trial.saw(format!("first refusal {} after the disk was full", seconds(filled.elapsed())));
    let (before, _, _) = sender.counts();
    let (reading, refused) = (client(), Instant::now());
    let mut read = (0, 0);
    while refused.elapsed() < FULL {
        let status = reading.get(serve.at("/v1/boards/arena/scores?from=2")).send().await.expect("an answer").status();
        match status {
            StatusCode::OK => read.0 += 1,
            StatusCode::SERVICE_UNAVAILABLE => read.1 += 1,
            other => panic!("{other} to a read"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let runs = PgPool::connect(&url).await.is_ok();
    trial.saw(format!(
        "meanwhile {} scores were accepted, {} of {} reads were answered, the others 503; PostgreSQL {}",
        sender.counts().0 - before,
        read.0,
        read.0 + read.1,
        if runs { "ran on" } else { "had stopped itself" },
    ));
    fs::remove_file(ballast).expect("free space");
    // As systemd would do if PostgreSQL has stopped.
    tokio::task::block_in_place(|| postgres.start_again()).expect("PostgreSQL is back");
    let after = until_recovered(&serve, &probing, Instant::now()).await;
    stop.cancel();
    callers.join_all().await;
    sender.finish(&serve.at("/v1/boards/arena/scores")).await;
    let pool = PgPool::connect(&url).await.expect("a connection");
    sender.expect_all_once(&pool).await;
    audit::rankings_are_sound(&pool).await;
    let (acknowledged, _, unavailable) = sender.counts();
    trial.saw(format!(
        "{acknowledged} events acknowledged, each in the ledger once; {unavailable} times 503 and no other refusal"
    ));
    trial.expect(after <= Duration::from_secs(15), format!("recovered {} after there was space", seconds(after)));
    pool.close().await;
    drop(postgres);
    drop(disk);
    trial.end();
}
