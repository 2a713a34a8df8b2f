//! A private PostgreSQL.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    dev::local::{
        account::{self, Account},
        free_port, log_tail,
        process::{Process, failed, wait_until},
        program,
    },
};

/// How long a start may take; recovery after a crash is part of it.
const START_PATIENCE: Duration = Duration::from_mins(2);

/// How long a fast shutdown may take before it is cut short. It ends with a checkpoint.
const STOP_PATIENCE: Duration = Duration::from_mins(1);

/// The superuser of the private server.
const USER: &str = "centile";

/// How a [`LocalPostgres`] is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Whether commits reach the disk. Off is faster, and still safe against `kill -9` of PostgreSQL.
    pub fsync: bool,
    /// Whether the folder and all data go when the server stops.
    pub ephemeral: bool,
    /// `shared_buffers`, in megabytes.
    pub shared_buffers_mb: u32,
    /// More settings, as (name, value); they win over those made here.
    pub settings: Vec<(String, String)>,
}

impl PostgresOptions {
    /// For tests: fast, and gone at the end.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self { fsync: false, ephemeral: true, shared_buffers_mb: 128, settings: Vec::new() }
    }

    /// For the demo: durable, and found again at the next start.
    #[must_use]
    pub fn durable() -> Self {
        Self { fsync: true, ephemeral: false, shared_buffers_mb: 256, settings: Vec::new() }
    }
}

/// A PostgreSQL of our own, on 127.0.0.1, with a generated password. It stops when this value is dropped, or when this
/// process ends in whatever way.
#[derive(Debug)]
pub struct LocalPostgres {
    /// The folder that was asked for.
    dir: PathBuf,
    /// The folder that it lives in: `dir`, unless its account cannot reach that.
    home: PathBuf,
    bin: PathBuf,
    version: u32,
    account: Option<Account>,
    options: PostgresOptions,
    port: u16,
    password: String,
    process: Process,
    /// Held locked, so that two processes do not take turns in stopping each other's server.
    _lock: File,
}

impl LocalPostgres {
    /// Starts a server that keeps its data in `dir`, which it makes and needs for itself; data that are there already
    /// are used again, and a server that a killed process left running on them is stopped first.
    ///
    /// As root it runs as the account `postgres`; see [`Self::home`]. [`Error::Conflict`] when another process runs
    /// its server in `dir`; [`Error::Internal`] when PostgreSQL is not installed or does not start.
    pub fn start(dir: &Path, options: PostgresOptions) -> Result<Self> {
        let account = Account::for_postgres()?;
        let dir = account::make(dir)?;
        let home = account::home(&dir, account)?;
        let lock = lock(&home)?;
        let data = home.join("data");
        let (bin, version) = program::postgres(data_version(&data))?;
        let doomed: Vec<&Path> = if options.ephemeral { vec![&home, &dir] } else { Vec::new() };
        let process = Process::new(&doomed)?;
        let password = password(&home, account, data_version(&data).is_none())?;
        let mut server = Self { dir, home, bin, version, account, options, port: 0, password, process, _lock: lock };
        if data_version(&data).is_none() {
            server.initialize(&data)?;
        } else {
            server.stop_leftover(&data)?;
        }
        File::create(server.log()).map_err(failed("make PostgreSQL's log"))?;
        server.launch()?;
        Ok(server)
    }

    /// The address of one of its databases, for its superuser, with the password. `postgres` is always there.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// The port on 127.0.0.1, the same after [`Self::start_again`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that holds everything: the one given to [`Self::start`] or, when we are root and PostgreSQL's account
    /// cannot reach that one, a folder under `/var/tmp`.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The server's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    /// The major version, 15 or more.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The path of another program of the same PostgreSQL: `pg_dump`, `psql`, `pgbench`, …
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// Kills the server as a crash would (SIGKILL to the postmaster), and waits until its backends have noticed and ended, where the
    /// system tells of them (Linux): until then they answer. The data stay.
    pub fn kill_hard(&mut self) -> Result<()> {
        let backends = self.process.id().map(children).unwrap_or_default();
        self.process.stop("KILL", STOP_PATIENCE)?;
        // What has ended and was not waited for yet has no command line any more.
        let lives = |id: &String| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| !line.is_empty());
        wait_until(STOP_PATIENCE, || !backends.iter().any(lives));
        Ok(())
    }

    /// Stops the server as on a shutdown of the machine, keeping its data whatever the options say.
    pub fn shut_down(&mut self) -> Result<()> {
        self.process.stop("INT", STOP_PATIENCE)
    }

    /// Starts the server again after [`Self::kill_hard`] or [`Self::shut_down`], on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.runs() { Ok(()) } else { self.launch() }
    }

    /// Stops the server, and removes its folder if it is ephemeral. Again is harmless.
    pub fn stop(&mut self) -> Result<()> {
        self.shut_down()?;
        if self.options.ephemeral {
            for folder in [&self.home, &self.dir] {
                if folder.exists() {
                    fs::remove_dir_all(folder).map_err(failed(&format!("remove {}", folder.display())))?;
                }
            }
        }
        Ok(())
    }

    /// Makes the data folder; under another name first, so that what a killed `initdb` left is not taken for data.
    fn initialize(&self, data: &Path) -> Result<()> {
        let unfinished = self.home.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(failed("remove an unfinished data folder"))?;
        }
        let mut command = self.command("initdb");
        command.arg("-D").arg(&unfinished).arg(format!("--pwfile={}", password_file(&self.home).display()));
        command.args(["-U", USER, "-A", "scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions"]);
        if !self.options.fsync {
            command.arg("--no-sync");
        }
        let output = command.output().map_err(failed("run initdb"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Internal(format!("initdb failed: {message}")));
        }
        fs::rename(&unfinished, data).map_err(failed("put the data folder in place"))
    }

    /// Stops a server that runs on the data although whoever started it is gone.
    fn stop_leftover(&self, data: &Path) -> Result<()> {
        let file = data.join("postmaster.pid");
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        let pid = text.lines().next().unwrap_or_default();
        // A server's working directory is its data folder. An id that has passed on to another process would keep
        // PostgreSQL from starting, so its file goes; one that nobody has is PostgreSQL's own business.
        if let Ok(folder) = fs::read_link(Path::new("/proc").join(pid).join("cwd"))
            && folder != data
        {
            return fs::remove_file(&file).map_err(failed("remove a stale postmaster.pid"));
        }
        let mut command = self.command("pg_ctl");
        command.arg("-D").arg(data).args(["stop", "-m", "fast", "-w", "-t", "60"]);
        // It also fails when there is none left to stop, which is what is wanted; if there is one, launch() says so.
        command.output().map(drop).map_err(failed("run pg_ctl"))
    }

    /// Runs the server, on a free port the first time, and waits until it takes connections.
    fn launch(&mut self) -> Result<()> {
        let end = Instant::now() + START_PATIENCE;
        let fixed = self.port != 0;
        loop {
            if !fixed {
                self.port = free_port()?;
            }
            let mark = fs::metadata(self.log()).map_or(0, |log| log.len());
            let command = self.server()?;
            self.process.start(command)?;
            if self.comes_up(end) {
                return Ok(());
            }
            self.process.stop("QUIT", STOP_PATIENCE)?;
            let log = fs::read(self.log()).unwrap_or_default();
            let news =
                String::from_utf8_lossy(log.get(usize::try_from(mark).unwrap_or(0)..).unwrap_or_default()).into_owned();
            // Somebody took the port in between, or backends of a killed server have not noticed yet.
            let passing = ["could not create any TCP/IP sockets", "pre-existing shared memory block"];
            if Instant::now() >= end || !passing.iter().any(|what| news.contains(what)) {
                return Err(Error::Internal(format!("PostgreSQL does not start:\n{}", log_tail(&self.log()))));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits for the status "ready" in the server's own pid file; `false` when it ended instead.
    fn comes_up(&mut self, end: Instant) -> bool {
        let file = self.home.join("data/postmaster.pid");
        let pid = self.process.id().unwrap_or_default().to_string();
        let mut runs = true;
        let ready = wait_until(end.saturating_duration_since(Instant::now()), || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let mut lines = text.lines();
            let ready = lines.next() == Some(pid.as_str()) && lines.nth(6).is_some_and(|line| line.trim() == "ready");
            runs = self.process.runs();
            ready || !runs
        });
        ready && runs
    }

    /// The command that runs the server in the foreground.
    fn server(&self) -> Result<Command> {
        let log =
            OpenOptions::new().append(true).create(true).open(self.log()).map_err(failed("open PostgreSQL's log"))?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.home.join("data")).arg("-p").arg(self.port.to_string());
        let on = |setting: bool| if setting { "on" } else { "off" };
        let shared_buffers = format!("{}MB", self.options.shared_buffers_mb);
        let own = [
            ("listen_addresses", "127.0.0.1"),
            // The password works over TCP everywhere; a socket's path may be at most 107 bytes long, ours can be longer.
            ("unix_socket_directories", ""),
            ("max_connections", "200"),
            ("shared_buffers", &shared_buffers),
            ("fsync", on(self.options.fsync)),
            ("wal_compression", "on"),
            ("jit", "off"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
        ];
        for (name, value) in own.into_iter().chain(self.options.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())))
        {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stdout(log.try_clone().map_err(failed("open PostgreSQL's log"))?).stderr(log);
        Ok(command)
    }

    /// One of PostgreSQL's programs, run as its account, in a folder that the account can reach.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.home).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(account) = self.account {
            account.apply(&mut command);
        }
        command
    }
}

impl Drop for LocalPostgres {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!(%error, "a private PostgreSQL was not stopped cleanly");
        }
    }
}

/// Locks the folder for this process.
fn lock(home: &Path) -> Result<File> {
    let file = File::create(home.join("lock")).map_err(failed("make a lock file"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Conflict(format!("another process runs its PostgreSQL in {}", home.display())))
        }
        Err(TryLockError::Error(error)) => Err(failed("lock a file")(error)),
    }
}

/// The major version that made the data; `None` when there are none.
fn data_version(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("PG_VERSION")).ok()?.trim().parse().ok()
}

fn password_file(home: &Path) -> PathBuf {
    home.join("password")
}

/// The password kept beside the data, or a `new` one.
fn password(home: &Path, account: Option<Account>, new: bool) -> Result<String> {
    let file = password_file(home);
    if !new {
        let text = fs::read_to_string(&file).map_err(failed(&format!("read {}", file.display())))?;
        return Ok(text.trim().to_owned());
    }
    let password = format!("{:032x}", rand::random::<u128>());
    fs::remove_file(&file).ok();
    let mut options = OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(0o600).open(&file).map_err(failed("keep a password"))?;
    writeln!(open, "{password}").map_err(failed("keep a password"))?;
    if let Some(account) = account {
        account.own(&file)?; // initdb reads it as that account
    }
    Ok(password)
}

/// Ids of the processes that a process has started itself and that still run; none where the system does not tell.
fn children(id: u32) -> Vec<String> {
    let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    list.split_whitespace().map(ToOwned::to_owned).collect()
}
