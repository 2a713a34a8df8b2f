//! Kills a command in each of its steps, and runs it again: the result must be that of an
//! undisturbed run.
//!
//! A step is a statement, recognised by a part of its text. A proxy between the command and
//! PostgreSQL stops there, so that the kill falls into this step, and not near it.

use std::{
    net::Ipv4Addr,
    os::unix::process::ExitStatusExt as _,
    time::{Duration, Instant},
};

use centile::dev::local::LocalPostgres;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sqlx::{Executor as _, PgPool};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use super::{
    run_at, spawn,
    wait::{until, until_blocking},
};

/// Signal 9 of POSIX, which no process can handle.
const SIGKILL: i32 = 9;

/// When a command is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// PostgreSQL has committed the step's statement, and the command has not received the answer.
    After,
    /// PostgreSQL runs the statement.
    During,
    /// PostgreSQL has not received the statement.
    Before,
}

/// The moments of successive kills. Each step begins with another one, so that a single kill per
/// step covers all of them.
const MOMENTS: [Moment; 3] = [Moment::After, Moment::During, Moment::Before];

/// A command, and where to kill it.
#[derive(Debug)]
pub struct Killing<'a> {
    /// The command with its arguments.
    pub command: &'a [&'a str],
    /// For each step, a part of its statement that is in no other statement.
    pub steps: &'a [&'a str],
    /// Kills in each step.
    pub kills: usize,
    /// Part of the output or error of the command when it does nothing, because the server is still
    /// ending a killed command's session.
    pub busy: &'a str,
}

impl Killing<'_> {
    /// Passes the result of an undisturbed run to `check`, then that of each run that was killed and
    /// repeated. Each run starts with a copy of database `postgres`. `between` may change it before
    /// the repetition.
    pub async fn run(&self, postgres: &LocalPostgres, between: impl AsyncFn(&PgPool), check: impl AsyncFn(&PgPool)) {
        let admin = PgPool::connect(&postgres.url("template1")).await.expect("a connection");
        let copy = async || {
            admin.execute("DROP DATABASE IF EXISTS killed WITH (FORCE)").await.expect("no copy");
            admin.execute("CREATE DATABASE killed TEMPLATE postgres STRATEGY file_copy").await.expect("a copy");
            postgres.url("killed")
        };
        self.run_on(copy, between, check).await;
    }

    /// Like [`Self::run`], with the database that `copy` creates and whose address it returns.
    pub async fn run_on(
        &self,
        copy: impl AsyncFn() -> String,
        between: impl AsyncFn(&PgPool),
        check: impl AsyncFn(&PgPool),
    ) {
        let connect = async |url: &str| PgPool::connect(url).await.expect("a connection");
        let url = copy().await;
        run_at(&url, self.command).well();
        check(&connect(&url).await).await;
        let seed = super::random::seed();
        let mut random = StdRng::seed_from_u64(seed);
        for (number, step) in self.steps.iter().enumerate() {
            let mut usual = Duration::ZERO;
            for moment in MOMENTS.iter().cycle().skip(number).take(self.kills) {
                eprintln!("seed {seed}: {step}, {moment:?}");
                // A statement may end before the kill, and the command too.
                let url = loop {
                    let url = copy().await;
                    let wait = usual.mul_f64(random.random_range(0.0..1.0));
                    if let Some(time) = self.kill(&url, step, *moment, wait).await {
                        usual = usual.max(time);
                        break url;
                    }
                };
                let pool = connect(&url).await;
                between(&pool).await;
                until_blocking("the command runs again", || {
                    let ran = run_at(&url, self.command);
                    let is_busy = ran.out.contains(self.busy) || ran.err.contains(self.busy);
                    if !is_busy {
                        ran.well();
                    }
                    !is_busy
                });
                check(&pool).await;
            }
        }
        eprintln!("{} kills in each of {:?}", self.kills, self.steps);
    }

    /// Runs the command and kills it at this moment of a step, `During` after a `wait`. Returns how
    /// long the statement took, if it has ended, or `None` if the command ended before the kill.
    async fn kill(&self, url: &str, step: &str, moment: Moment, wait: Duration) -> Option<Duration> {
        let mut gate = Gate::new(url, step, moment).await;
        let mut child = spawn(&gate.url, self.command);
        let time = tokio::select! {
            time = gate.reached.recv() => time.expect("a time"),
            () = until("the command ends", async || child.try_wait().expect("its state").is_some()) => {
                panic!("the command ended without {step}: {:?}", child.wait_with_output());
            }
        };
        if moment == Moment::During {
            sleep(wait).await;
        }
        child.kill().expect("a kill");
        let is_killed = child.wait().expect("its end").signal() == Some(SIGKILL);
        is_killed.then_some(time)
    }
}

/// A proxy that recognises a step. Its connections end when it is dropped.
struct Gate {
    /// Address of the database through the proxy.
    url: String,
    /// Receives the time for which the statement has run, once the moment is reached.
    reached: UnboundedReceiver<Duration>,
    accepting: JoinHandle<()>,
}

impl Gate {
    async fn new(url: &str, step: &str, moment: Moment) -> Self {
        let (before, rest) = url.split_once('@').expect("an account");
        let (place, database) = rest.split_once('/').expect("a database");
        let (_, port) = place.rsplit_once(':').expect("a port");
        let port = port.parse().expect("a number");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let url = format!("{before}@{address}/{database}");
        let (tell, reached) = unbounded_channel();
        let step = step.to_owned();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                connections.spawn(carry(near, port, step.clone(), moment, tell.clone()));
            }
        });
        Self { url, reached, accepting }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The part of a step that a connection has reached.
enum Stage {
    Other,
    /// The statement is prepared. The next message of the client runs it.
    Prepared,
    Running(Instant),
}

/// Forwards a connection until it ends or the moment is reached, which stops it except `During`.
async fn carry(mut near: TcpStream, port: u16, step: String, moment: Moment, tell: UnboundedSender<Duration>) {
    let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    let (mut near_in, mut near_out) = near.split();
    let (mut far_in, mut far_out) = far.split();
    let (mut request, mut reply) = ([0; 16 << 10], [0; 16 << 10]);
    let mut stage = Stage::Other;
    let halt = async |time| {
        tell.send(time).ok();
        std::future::pending::<()>().await;
    };
    loop {
        tokio::select! {
            Ok(length) = near_in.read(&mut request) => {
                let bytes = &request[..length];
                let is_step = || bytes.windows(step.len()).any(|part| part == step.as_bytes());
                stage = match stage {
                    Stage::Other if is_step() => Stage::Prepared,
                    Stage::Prepared => Stage::Running(Instant::now()),
                    stage => stage,
                };
                if moment == Moment::Before && matches!(stage, Stage::Running(_)) {
                    halt(Duration::ZERO).await;
                }
                if length == 0 || far_out.write_all(bytes).await.is_err() {
                    return;
                }
                if moment == Moment::During && matches!(stage, Stage::Running(_)) {
                    tell.send(Duration::ZERO).ok();
                }
            }
            Ok(length) = far_in.read(&mut reply) => {
                if let Stage::Running(since) = stage && moment == Moment::After {
                    halt(since.elapsed()).await;
                }
                if length == 0 || near_out.write_all(&reply[..length]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}
