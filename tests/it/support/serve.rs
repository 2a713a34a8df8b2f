//! The service as a separate process.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, mpsc},
    thread::{self, JoinHandle},
};

use centile::dev::local::{Watchdog, signal};

use super::{
    TestDb, centile,
    wait::{DEADLINE, until_some},
};

/// The start of the line in which `centile serve` prints its address once it accepts connections.
const LISTENING: &str = "listening on ";

/// Flags for a service that waits for PostgreSQL as long as a busy machine needs, instead of
/// answering 503.
pub const PATIENT: [&str; 4] = ["--pool-wait", "60000", "--statement-timeout", "120"];

/// A running `centile serve`; killed when this value is dropped. A failing test prints its output.
#[derive(Debug)]
pub struct Serve {
    /// `http://127.0.0.1:PORT`, without a trailing slash.
    pub url: String,
    /// A client with default settings.
    pub client: reqwest::Client,
    child: Child,
    watchdog: Watchdog,
    output: Arc<Mutex<String>>,
    following: Vec<JoinHandle<()>>,
}

/// Starts `centile serve` on a free port, with `db`, with Redis at `redis` (`None`: the in-process
/// cache), and with more flags. Returns once it accepts connections. Unless flags say otherwise, it
/// runs no maintenance (`--maintenance-every`), so that it closes no past periods, and has no rate
/// limits (`--address-rate`, `--key-rate`).
pub async fn spawn_serve(db: &TestDb, redis: Option<&str>, flags: &[&str]) -> Serve {
    let (url, redis, prefix) = (db.url().to_owned(), redis.map(ToOwned::to_owned), db.redis_prefix());
    let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    tokio::task::spawn_blocking(move || Serve::spawn(&url, redis.as_deref(), &prefix, &flags)).await.unwrap()
}

impl Serve {
    /// Returns the value of a metric, with its labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.client.get(self.at("/metrics")).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
    }

    /// Like [`spawn_serve`], for any database; blocks.
    pub fn spawn(database_url: &str, redis_url: Option<&str>, redis_prefix: &str, flags: &[String]) -> Self {
        Self::start(&mut Self::command(database_url, redis_url, redis_prefix, flags))
    }

    /// Returns the command of [`Self::spawn`], for more settings.
    pub fn command(database_url: &str, redis_url: Option<&str>, redis_prefix: &str, flags: &[String]) -> Command {
        let mut command = centile();
        command.arg("serve").args(flags);
        if !flags.iter().any(|flag| flag == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !flags.iter().any(|flag| flag.contains("maintenance")) {
            command.arg("--no-maintenance");
        }
        for rate in ["--address-rate", "--key-rate"] {
            if !flags.iter().any(|flag| flag == rate) {
                command.args([rate, "0"]);
            }
        }
        command.env("DATABASE_URL", database_url).env("REDIS_PREFIX", redis_prefix);
        if let Some(url) = redis_url {
            command.env("REDIS_URL", url);
        }
        command
    }

    /// Runs a prepared command, and returns once it accepts connections; blocks.
    pub fn start(command: &mut Command) -> Self {
        let mut watchdog = Watchdog::new(&[]).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        watchdog.watch(child.id()).unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let (sender, addresses) = mpsc::channel();
        let following = vec![
            follow(child.stdout.take().unwrap(), Arc::clone(&output), Some(sender)),
            follow(child.stderr.take().unwrap(), Arc::clone(&output), None),
        ];
        let url = addresses.recv_timeout(DEADLINE);
        let mut serve = Self { url: String::new(), client: super::client(), child, watchdog, output, following };
        // The value exists already, so that a failure here kills the process and prints its output.
        serve.url = url.expect("centile serve prints its address");
        serve
    }

    /// Returns the full address of a path that begins with a slash.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard output and error so far, which is complete once it has stopped.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Stops reading its output, so that its pipes fill, until the returned guard is dropped.
    pub fn leave_unread(&self) -> MutexGuard<'_, String> {
        self.output.lock().unwrap()
    }

    /// Returns its output once this many lines contain `words`. Log lines may arrive later than
    /// answers.
    pub async fn logged(&self, words: &str, times: usize) -> String {
        until_some(&format!("centile serve writes {words:?} {times} times"), async || {
            let output = self.output();
            (output.lines().filter(|line| line.contains(words)).count() >= times).then_some(output)
        })
        .await
    }

    /// Sends SIGTERM, and waits until it has stopped.
    pub async fn stop(&mut self) -> ExitStatus {
        signal(self.child.id(), "TERM").unwrap();
        let status = until_some("centile serve stops", async || self.child.try_wait().unwrap()).await;
        self.watchdog.forget().unwrap();
        self.following.drain(..).for_each(|thread| thread.join().unwrap());
        status
    }

    /// Kills it like a crash (SIGKILL).
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.watchdog.forget().ok();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("--- centile serve wrote:\n{}---", self.output());
        }
    }
}

/// Collects the output of `stream`, and sends the address on once it is printed.
fn follow(
    stream: impl Read + Send + 'static,
    output: Arc<Mutex<String>>,
    found: Option<mpsc::Sender<String>>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let (Some(found), Some(address)) = (&found, line.strip_prefix(LISTENING)) {
                found.send(address.trim().trim_end_matches('/').to_owned()).ok();
            }
            let mut output = output.lock().unwrap();
            output.push_str(&line);
            output.push('\n');
        }
    })
}
