//! Everything at once: two instances are read and written to while periods end and are closed, rankings are rebuilt, layouts change, players
//! are renamed and banned, and PostgreSQL and an instance are killed. Each answer is compared with a replay of the ledger at its version.

use std::{sync::Arc, time::Duration};

use centile::local::{LocalPostgres, PostgresOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tokio_util::sync::CancellationToken;

use super::{
    Serve, audit, boundary,
    load::{Load, key},
    next_number, own_postgres, run_at, verdict,
    wait::within,
};

/// Flags of the instances: they close periods and look after layouts.
const FLAGS: [&str; 6] = ["--maintenance-every", "1", "--pool-wait", "5000", "--index-memory", "256"];
/// How long a load goes on before and after each trouble.
const CALM: Duration = Duration::from_millis(700);

/// What a storm has seen.
#[derive(Debug, Default)]
pub struct Storm {
    /// Answers that were compared with a replay.
    pub answers: usize,
    /// Those that rank indexes gave.
    pub from_index: usize,
    /// Versions at which they were compared.
    pub versions: usize,
    /// Confirmed changes that were compared with the ledger.
    pub changes: usize,
    /// How often PostgreSQL and an instance were killed, and how often a board was rebuilt.
    pub troubles: [usize; 3],
    /// Periods that were closed.
    pub closed: i64,
}

/// What happens to a load in between.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    PostgresqlIsKilled,
    InstanceIsKilled,
    BoardsAreRebuilt,
}

/// The servers.
struct Place {
    postgres: LocalPostgres,
    url: String,
    instances: Vec<Serve>,
}

/// Goes on until rank indexes have given `wanted` answers. Boards and ledgers are new after each `part` of answers, so that they can be replayed.
pub async fn storm(wanted: usize, part: usize) -> Storm {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let url = postgres.url("postgres");
    let mut place = Place { postgres, url, instances: Vec::new() };
    for _ in 0..2 {
        place.instances.push(place.instance().await);
    }
    place.execute(boundary::SHORT_DAYS).await;
    let admin = key(&place.url, "admin");
    let mut storm = Storm::default();
    while storm.from_index < wanted {
        place.part(&mut storm, &admin, part).await;
        eprintln!("{storm:?}");
    }
    run_at(&place.url, &["verify"]).well();
    audit::rankings_are_sound(&place.pool().await).await;
    storm
}

impl Place {
    async fn pool(&self) -> PgPool {
        PgPool::connect(&self.url).await.expect("a connection")
    }

    async fn execute(&self, statements: &str) {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&self.pool().await).await.expect("statements");
    }

    async fn instance(&self) -> Serve {
        let (url, flags) = (self.url.clone(), FLAGS.map(ToOwned::to_owned));
        let prefix = format!("storm-{}", next_number());
        tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await.expect("an instance")
    }

    /// New boards, and a load on them until it has so many answers.
    async fn part(&mut self, storm: &mut Storm, admin: &str, answers: usize) {
        let number = next_number();
        let boards = [format!("shared-{number}"), format!("first-{number}")];
        self.execute(&format!(
            "SELECT centile.create_board('{}', p_periods => '{{all_time,week,month}}', p_lanes => 4::smallint);
             SELECT centile.create_board('{}', p_mode => 'best', p_order => 'asc', p_ties => 'first',
                 p_periods => '{{all_time,week,month}}', p_lanes => 2::smallint);
             UPDATE centile_store.boards SET stripe_target = 10, balance_from = 0",
            boards[0], boards[1],
        ))
        .await;
        let urls = self.instances.iter().map(|instance| instance.url.clone()).collect();
        let mut load = Load::new(urls, &[&boards[0], &boards[1]], admin.to_owned());
        load.periods = vec!["all_time", "week", "month"];
        load.cursors = false;
        load.may_fail = true;
        let mut record = load.begin().await;
        let troubles = [Trouble::PostgresqlIsKilled, Trouble::BoardsAreRebuilt, Trouble::InstanceIsKilled];
        for trouble in troubles.into_iter().cycle() {
            let stop = CancellationToken::new();
            let running = Arc::new(load);
            let happens = async {
                tokio::time::sleep(CALM).await;
                self.meet(trouble, &boards, storm).await;
                tokio::time::sleep(CALM).await;
                stop.cancel();
            };
            let (more, ()) = within("a load in a storm", async { tokio::join!(running.run(&stop), happens) }).await;
            record.join(more);
            load = Arc::into_inner(running).expect("the load has ended");
            load.instances = self.instances.iter().map(|instance| instance.url.clone()).collect();
            if record.answers.len() >= answers && matches!(trouble, Trouble::InstanceIsKilled) {
                break;
            }
        }
        let pool = self.pool().await;
        let verdict = verdict::of(&pool, &load, &record).await;
        verdict.expect_right("a storm");
        storm.answers += record.answers.len();
        storm.from_index += record.answers.iter().filter(|answer| answer.is_from_index).count();
        storm.versions += verdict.versions;
        storm.changes += verdict.changes;
        let closed = "SELECT count(*) FROM centile_store.periods WHERE state = 'closed'";
        storm.closed = sqlx::query_scalar(closed).fetch_one(&pool).await.expect("periods");
    }

    async fn meet(&mut self, trouble: Trouble, boards: &[String], storm: &mut Storm) {
        match trouble {
            Trouble::PostgresqlIsKilled => {
                storm.troubles[0] += 1;
                tokio::task::block_in_place(|| self.postgres.kill_hard().and_then(|()| self.postgres.start_again()))
                    .expect("PostgreSQL is back");
            }
            Trouble::InstanceIsKilled => {
                storm.troubles[1] += 1;
                // The load learns the address of the next one when it begins again.
                self.instances[1].kill();
                self.instances[1] = self.instance().await;
            }
            Trouble::BoardsAreRebuilt => {
                for board in boards {
                    storm.troubles[2] += 1;
                    let (url, board) = (self.url.clone(), board.clone());
                    let rebuild = move || {
                        run_at(&url, &["rebuild", "--board", &board, "--period", "all_time", "--by", "a test"]).well()
                    };
                    tokio::task::spawn_blocking(rebuild).await.expect("a rebuilding");
                }
            }
        }
    }
}
