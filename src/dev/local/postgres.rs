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

/// Timeout of a start, including crash recovery.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// Timeout of a fast shutdown, which ends with a checkpoint.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// The superuser of the private server.
const USER: &str = "centile";

/// Options of a [`LocalPostgres`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `fsync`. Off is faster and still survives `kill -9` of PostgreSQL.
    pub fsync: bool,
    /// Whether to remove the folder and all data when the server stops.
    pub ephemeral: bool,
    /// `shared_buffers`, in megabytes.
    pub shared_buffers_mb: u32,
    /// Additional settings, as (name, value). They override the defaults.
    pub settings: Vec<(String, String)>,
}

impl PostgresOptions {
    /// Options for tests: fast, and removed at the end.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self { fsync: false, ephemeral: true, shared_buffers_mb: 128, settings: Vec::new() }
    }

    /// Options for the demo: durable, and reused by the next start.
    #[must_use]
    pub fn durable() -> Self {
        Self { fsync: true, ephemeral: false, shared_buffers_mb: 256, settings: Vec::new() }
    }
}

/// A private PostgreSQL on 127.0.0.1 with a generated password.
///
/// It stops when this value is dropped or this process ends, even by SIGKILL.
#[derive(Debug)]
pub struct LocalPostgres {
    /// The folder given by the caller.
    dir: PathBuf,
    /// The server's folder: `dir`, unless its account cannot reach that.
    home: PathBuf,
    bin: PathBuf,
    version: u32,
    account: Option<Account>,
    options: PostgresOptions,
    port: u16,
    password: String,
    process: Process,
    /// Lock on the folder, so that two processes do not stop each other's server.
    _lock: File,
}

/// Where the data and the password of a new server come from.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    /// A new database with a random password.
    Own,
    /// A new database with the password of another server.
    Beside(&'a LocalPostgres),
    /// A copy of another server.
    ReplicaOf(&'a LocalPostgres),
}

impl LocalPostgres {
    /// Starts a server with its data in `dir`, which must not be used for anything else.
    ///
    /// Creates `dir` or reuses its data. First stops a server that a killed process left running
    /// there. If this process is root, the server runs as the account `postgres`; see
    /// [`Self::home`].
    ///
    /// [`Error::Conflict`] if another process runs its server in `dir`; [`Error::Internal`] if
    /// PostgreSQL is not installed or does not start.
    pub fn start(dir: &Path, options: PostgresOptions) -> Result<Self> {
        Self::start_as(dir, options, Origin::Own)
    }

    /// Starts a server with the password of `other`, so that each can connect to the other, as the
    /// servers of a cluster do. Otherwise like [`Self::start`].
    pub fn start_beside(dir: &Path, options: PostgresOptions, other: &Self) -> Result<Self> {
        Self::start_as(dir, options, Origin::Beside(other))
    }

    /// Starts a streaming replica of `primary`, under the name `replica` for
    /// `synchronous_standby_names`. Otherwise like [`Self::start`].
    pub fn start_replica(dir: &Path, options: PostgresOptions, primary: &Self) -> Result<Self> {
        Self::start_as(dir, options, Origin::ReplicaOf(primary))
    }

    fn start_as(dir: &Path, options: PostgresOptions, origin: Origin<'_>) -> Result<Self> {
        let account = Account::for_postgres()?;
        let dir = account::make(dir)?;
        let home = account::home(&dir, account)?;
        let lock = lock(&home)?;
        let data = home.join("data");
        let (bin, version) = program::postgres(data_version(&data))?;
        let ephemeral: Vec<&Path> = if options.ephemeral { vec![&home, &dir] } else { Vec::new() };
        let process = Process::new(&ephemeral)?;
        let known = match origin {
            Origin::ReplicaOf(other) | Origin::Beside(other) => Some(other.password.as_str()),
            Origin::Own => None,
        };
        let password = password(&home, account, data_version(&data).is_none(), known)?;
        let mut server = Self { dir, home, bin, version, account, options, port: 0, password, process, _lock: lock };
        if data_version(&data).is_none() {
            match origin {
                Origin::ReplicaOf(primary) => server.copy(primary, &data)?,
                Origin::Own | Origin::Beside(_) => server.initialize(&data)?,
            }
        } else {
            server.stop_leftover(&data)?;
        }
        File::create(server.log()).map_err(failed("create PostgreSQL's log"))?;
        server.launch()?;
        Ok(server)
    }

    /// Returns the URL of a database, with superuser and password. The database `postgres` always
    /// exists.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// Returns its port on 127.0.0.1. It stays the same after [`Self::start_again`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's folder: the one passed to [`Self::start`], or one in `/var/tmp`. The
    /// latter applies if this process is root and PostgreSQL's account cannot reach the former.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the path of the server's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    /// Returns the major version, 15 or later.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the path of another program of this PostgreSQL: `pg_dump`, `psql`, `pgbench`, …
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// Kills the postmaster (SIGKILL), as in a crash. The data stay.
    ///
    /// On Linux, also waits until the backends have ended; until then they still answer.
    pub fn kill_hard(&mut self) -> Result<()> {
        let backends = self.process.id().map(children).unwrap_or_default();
        self.process.stop("KILL", STOP_TIMEOUT)?;
        // A zombie process has no command line.
        let lives = |id: &String| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| !line.is_empty());
        wait_until(STOP_TIMEOUT, || !backends.iter().any(lives));
        Ok(())
    }

    /// Stops the server with a fast shutdown. The data stay, even if ephemeral.
    pub fn shut_down(&mut self) -> Result<()> {
        self.process.stop("INT", STOP_TIMEOUT)
    }

    /// Restarts the server after [`Self::kill_hard`] or [`Self::shut_down`], on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.runs() { Ok(()) } else { self.launch() }
    }

    /// Stops the server, and removes its folder if it is ephemeral. Safe to call again.
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

    /// Copies the data folder of `primary`, to follow it.
    fn copy(&self, primary: &Self, data: &Path) -> Result<()> {
        let from = format!("host=127.0.0.1 port={} user={USER} application_name=replica", primary.port);
        let mut command = self.command("pg_basebackup");
        command.env("PGPASSWORD", &self.password).arg("-d").arg(from).arg("-D").arg(data);
        command.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        let output = command.output().map_err(failed("run pg_basebackup"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Internal(format!("pg_basebackup failed: {message}")));
        }
        Ok(())
    }

    /// Creates the data folder. Uses a temporary name first, so that the remains of a killed
    /// `initdb` are not mistaken for data.
    fn initialize(&self, data: &Path) -> Result<()> {
        let unfinished = self.home.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(failed("remove an unfinished data folder"))?;
        }
        let mut command = self.command("initdb");
        command.arg("-D").arg(&unfinished).arg(format!("--pwfile={}", password_file(&self.home).display()));
        // Tests open thousands of connections. SCRAM makes each slow on purpose: 4,096 hashes.
        let method = if self.options.ephemeral { "md5" } else { "scram-sha-256" };
        command.args(["-U", USER, "-A", method, "--encoding=UTF8", "--locale=C", "--no-instructions"]);
        if !self.options.fsync {
            command.arg("--no-sync");
        }
        let output = command.output().map_err(failed("run initdb"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Internal(format!("initdb failed: {message}")));
        }
        fs::rename(&unfinished, data).map_err(failed("rename the data folder"))
    }

    /// Stops a server that outlived the process that started it.
    fn stop_leftover(&self, data: &Path) -> Result<()> {
        let file = data.join("postmaster.pid");
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        let pid = text.lines().next().unwrap_or_default();
        // A server's working directory is its data folder. If another process has reused the id,
        // PostgreSQL would refuse to start, so remove the file. PostgreSQL itself handles an id
        // without a process.
        if let Ok(folder) = fs::read_link(Path::new("/proc").join(pid).join("cwd"))
            && folder != data
        {
            return fs::remove_file(&file).map_err(failed("remove a stale postmaster.pid"));
        }
        let mut command = self.command("pg_ctl");
        command.arg("-D").arg(data).args(["stop", "-m", "fast", "-w", "-t", "60"]);
        // Ignore its status: it also fails if no server is running. If one still runs, launch()
        // fails.
        command.output().map(drop).map_err(failed("run pg_ctl"))
    }

    /// Starts the server and waits until it accepts connections. The first start picks a free port.
    fn launch(&mut self) -> Result<()> {
        let end = Instant::now() + START_TIMEOUT;
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
            self.process.stop("QUIT", STOP_TIMEOUT)?;
            let log = fs::read(self.log()).unwrap_or_default();
            let new_lines =
                String::from_utf8_lossy(log.get(usize::try_from(mark).unwrap_or(0)..).unwrap_or_default()).into_owned();
            // Transient: another process took the port, or backends of a killed server are still
            // running.
            let transient = ["could not create any TCP/IP sockets", "pre-existing shared memory block"];
            if Instant::now() >= end || !transient.iter().any(|text| new_lines.contains(text)) {
                return Err(Error::Internal(format!("PostgreSQL does not start:\n{}", log_tail(&self.log()))));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits for the status "ready", or "standby" of a replica, in the server's pid file. Returns
    /// `false` if the server ended instead.
    fn comes_up(&mut self, end: Instant) -> bool {
        let file = self.home.join("data/postmaster.pid");
        let pid = self.process.id().unwrap_or_default().to_string();
        let mut runs = true;
        let ready = wait_until(end.saturating_duration_since(Instant::now()), || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let mut lines = text.lines();
            let ready = lines.next() == Some(pid.as_str())
                && lines.nth(6).is_some_and(|line| ["ready", "standby"].contains(&line.trim()));
            runs = self.process.runs();
            ready || !runs
        });
        ready && runs
    }

    /// Returns the command that runs the server in the foreground.
    fn server(&self) -> Result<Command> {
        let log =
            OpenOptions::new().append(true).create(true).open(self.log()).map_err(failed("open PostgreSQL's log"))?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.home.join("data")).arg("-p").arg(self.port.to_string());
        let on = |setting: bool| if setting { "on" } else { "off" };
        let shared_buffers = format!("{}MB", self.options.shared_buffers_mb);
        let own = [
            ("listen_addresses", "127.0.0.1"),
            // TCP only: the path of a Unix socket is limited to 107 bytes, and this folder's can be
            // longer.
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

    /// Returns a command for one of PostgreSQL's programs, run as its account in its folder.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.home).env("LC_ALL", "C").stdin(Stdio::null());
        command.env("PGPASSFILE", passwords_file(&self.home));
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

fn lock(home: &Path) -> Result<File> {
    let file = File::create(home.join("lock")).map_err(failed("create a lock file"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::other_conflict(format!("another process runs its PostgreSQL in {}", home.display())))
        }
        Err(TryLockError::Error(error)) => Err(failed("lock a file")(error)),
    }
}

/// Returns the major version of the data, or `None` without data.
fn data_version(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("PG_VERSION")).ok()?.trim().parse().ok()
}

fn password_file(home: &Path) -> PathBuf {
    home.join("password")
}

/// The file from which libpq reads passwords, when the server connects to others.
fn passwords_file(home: &Path) -> PathBuf {
    home.join("pgpass")
}

/// Returns the password stored next to the data, or stores a `new` one: the `known` one, or a random
/// one.
fn password(home: &Path, account: Option<Account>, new: bool, known: Option<&str>) -> Result<String> {
    let file = password_file(home);
    if !new {
        let text = fs::read_to_string(&file).map_err(failed(&format!("read {}", file.display())))?;
        return Ok(text.trim().to_owned());
    }
    let password = known.map_or_else(|| format!("{:032x}", rand::random::<u128>()), ToOwned::to_owned);
    for (file, text) in [(file, password.clone()), (passwords_file(home), format!("*:*:*:{USER}:{password}"))] {
        fs::remove_file(&file).ok();
        let mut options = OpenOptions::new();
        let open = options.write(true).create_new(true).mode(0o600).open(&file);
        writeln!(open.map_err(failed("write a password"))?, "{text}").map_err(failed("write a password"))?;
        if let Some(account) = account {
            account.own(&file)?; // PostgreSQL's programs read it as this account.
        }
    }
    Ok(password)
}

/// Returns the ids of the running child processes. Empty on systems without `/proc`.
fn children(id: u32) -> Vec<String> {
    let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    list.split_whitespace().map(ToOwned::to_owned).collect()
}
