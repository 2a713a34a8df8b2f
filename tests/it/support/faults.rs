//! Load on two instances under faults. Periods close, rankings are rebuilt, layouts change, and
//! players are renamed and banned. PostgreSQL and one instance are killed, and the applier of
//! batches is held up and interrupted. Each answer is compared with a replay of the ledger at
//! the answer's version.

use std::{sync::Arc, time::Duration};

use centile::dev::local::{LocalPostgres, PostgresOptions};
use futures::future::join_all;
use sqlx::{AssertSqlSafe, PgPool};
use tokio_util::sync::CancellationToken;

use super::{
    Serve, amount, audit, boundary,
    load::{Load, key},
    next_number, own_postgres, run_at, verdict,
    wait::{until, within},
};

/// Flags of the instances: they close periods and rebalance layouts.
const FLAGS: [&str; 6] = ["--maintenance-every", "1", "--pool-wait", "5000", "--index-memory", "256"];

/// Counts of one run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Answers that were compared with a replay.
    pub answers: usize,
    /// Those that rank indexes gave.
    pub from_index: usize,
    /// Versions at which they were compared.
    pub versions: usize,
    /// Confirmed changes that were compared with the ledger.
    pub changes: usize,
    /// Kills of PostgreSQL.
    pub postgresql_kills: usize,
    /// Kills of an instance.
    pub instance_kills: usize,
    /// Rebuilds of a board.
    pub rebuilds: usize,
    /// Sessions that were ended while they applied batches.
    pub appliers_ended: i64,
    /// Periods that were closed.
    pub closed: i64,
}

/// A disruption while the load runs.
#[derive(Debug, Clone, Copy)]
enum Disruption {
    PostgresqlIsKilled,
    InstanceIsKilled,
    BoardsAreRebuilt,
    ApplierIsDisturbed,
}

/// Ends the sessions that are applying batches, and returns their number.
const END_APPLIERS: &str = "
    SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE query LIKE '%apply_board%' AND state = 'active' AND pid <> pg_backend_pid()";

struct Servers {
    postgres: LocalPostgres,
    url: String,
    instances: Vec<Serve>,
}

/// Runs until rank indexes have given at least `wanted` answers. After about `per_ledger` answers
/// it starts over with new boards, which bounds the ledger that a replay reads.
pub async fn compare_under_faults(wanted: usize, per_ledger: usize) -> Summary {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let url = postgres.url("postgres");
    let mut servers = Servers { postgres, url, instances: Vec::new() };
    for _ in 0..2 {
        servers.instances.push(servers.instance().await);
    }
    servers.execute(boundary::SHORT_DAYS).await;
    let admin = key(&servers.url, "admin");
    let mut summary = Summary::default();
    while summary.from_index < wanted {
        servers.compare(&mut summary, &admin, per_ledger).await;
        eprintln!("{summary:?}");
    }
    run_at(&servers.url, &["verify"]).well();
    audit::rankings_are_sound(&servers.pool().await).await;
    summary
}

impl Servers {
    async fn pool(&self) -> PgPool {
        PgPool::connect(&self.url).await.expect("a connection")
    }

    async fn execute(&self, statements: &str) {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&self.pool().await).await.expect("statements");
    }

    async fn instance(&self) -> Serve {
        let (url, flags) = (self.url.clone(), FLAGS.map(ToOwned::to_owned));
        let prefix = format!("faults-{}", next_number());
        tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await.expect("an instance")
    }

    /// Creates three boards, loads them until at least `answers` answers are recorded, and compares
    /// these.
    async fn compare(&mut self, summary: &mut Summary, admin: &str, answers: usize) {
        let number = next_number();
        let boards = [format!("shared-{number}"), format!("first-{number}"), format!("second-{number}")];
        self.execute(&format!(
            "SELECT centile.create_board('{}', '{{\"periods\": [\"all_time\", \"week\", \"month\"], \"lanes\": 4}}');
             SELECT centile.create_board('{}', '{{\"mode\": \"best\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\", \"month\"], \"lanes\": 2}}');
             SELECT centile.create_board('{}', '{{\"ties\": \"second\", \"tiebreak_order\": \"asc\", \"periods\": [\"all_time\", \"week\", \"month\"], \"lanes\": 2}}')",
            boards[0], boards[1], boards[2],
        ))
        .await;
        let urls = self.instances.iter().map(|instance| instance.url.clone()).collect();
        let mut load = Load::new(urls, &[&boards[0], &boards[1], &boards[2]], admin.to_owned());
        load.periods = vec!["all_time", "week", "month"];
        load.cursors = false;
        load.may_fail = true;
        let mut record = load.begin().await;
        let disruptions = [
            Disruption::PostgresqlIsKilled,
            Disruption::BoardsAreRebuilt,
            Disruption::ApplierIsDisturbed,
            Disruption::InstanceIsKilled,
        ];
        for disruption in disruptions.into_iter().cycle() {
            let stop = CancellationToken::new();
            let running = Arc::new(load);
            // Some answers before and after each disruption.
            let until_progress = async || {
                let wanted = running.answered() + answers / 30;
                until("the load continues", async || running.answered() >= wanted).await;
            };
            let disrupted = async {
                until_progress().await;
                self.disrupt(disruption, &boards, summary).await;
                until_progress().await;
                stop.cancel();
            };
            let (more, ()) = within("a load under faults", async { tokio::join!(running.run(&stop), disrupted) }).await;
            record.join(more);
            load = Arc::into_inner(running).expect("the load has ended");
            load.instances = self.instances.iter().map(|instance| instance.url.clone()).collect();
            if record.answers.len() >= answers && matches!(disruption, Disruption::InstanceIsKilled) {
                break;
            }
        }
        let pool = self.pool().await;
        let verdict = verdict::of(&pool, &load, &record).await;
        verdict.expect_right("a load under faults");
        summary.answers += record.answers.len();
        summary.from_index += record.answers.iter().filter(|answer| answer.is_from_index).count();
        summary.versions += verdict.versions;
        summary.changes += verdict.changes;
        let closed = "SELECT count(*) FROM centile_store.periods WHERE state = 'closed'";
        summary.closed = sqlx::query_scalar(closed).fetch_one(&pool).await.expect("periods");
    }

    async fn disrupt(&mut self, disruption: Disruption, boards: &[String], summary: &mut Summary) {
        match disruption {
            Disruption::PostgresqlIsKilled => {
                summary.postgresql_kills += 1;
                tokio::task::block_in_place(|| self.postgres.kill_hard().and_then(|()| self.postgres.start_again()))
                    .expect("PostgreSQL is back");
            }
            Disruption::InstanceIsKilled => {
                summary.instance_kills += 1;
                // The load gets the new instance's address when it continues.
                self.instances[1].kill();
                self.instances[1] = self.instance().await;
            }
            Disruption::BoardsAreRebuilt => {
                for board in boards {
                    summary.rebuilds += 1;
                    let (url, board) = (self.url.clone(), board.clone());
                    let rebuild = move || {
                        run_at(&url, &["rebuild", "--board", &board, "--period", "all_time", "--by", "a test"]).well()
                    };
                    tokio::task::spawn_blocking(rebuild).await.expect("a rebuild");
                }
            }
            Disruption::ApplierIsDisturbed => Box::pin(self.disturb_applier(boards, summary)).await,
        }
    }

    /// Holds the bucket locks for a while. Then two more sessions apply batches, while all appliers are
    /// terminated repeatedly.
    async fn disturb_applier(&self, boards: &[String], summary: &mut Summary) {
        let pool = self.pool().await;
        let mut holder = pool.begin().await.expect("a transaction");
        sqlx::query(
            "SELECT centile_store.lock_buckets(b.id) FROM centile_store.boards b WHERE b.slug = ANY ($1) ORDER BY b.id",
        )
        .bind(boards)
        .execute(&mut *holder)
        .await
        .expect("the bucket locks");
        tokio::time::sleep(Duration::from_millis(amount(300, 5_000))).await;
        holder.rollback().await.expect("the end of the transaction");
        let stop = CancellationToken::new();
        let apply = async || {
            while !stop.is_cancelled() {
                // Fails when its session is terminated.
                sqlx::query(
                    "SELECT centile_store.apply_board(b.id, 50) FROM centile_store.boards b WHERE b.slug = ANY ($1)",
                )
                .bind(boards)
                .execute(&pool)
                .await
                .ok();
            }
        };
        let end = async {
            for _ in 0..amount(10, 100) {
                summary.appliers_ended +=
                    sqlx::query_scalar::<_, i64>(END_APPLIERS).fetch_one(&pool).await.expect("a number");
                tokio::time::sleep(Duration::from_millis(rand::random_range(1..30))).await;
            }
            stop.cancel();
        };
        tokio::join!(join_all([apply(), apply()]), end);
    }
}
