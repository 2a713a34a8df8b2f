//! A private Redis.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Error, Result,
    dev::local::{
        account, free_port, log_tail,
        process::{Process, failed, wait_until},
        program,
    },
};

const START_PATIENCE: Duration = Duration::from_secs(30);

const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How often another port is tried when somebody took the one that was free.
const PORTS: u32 = 5;

/// A Redis of our own, on 127.0.0.1, that keeps nothing on disk unless told to. It stops when this value is dropped, or
/// when this process ends in whatever way.
#[derive(Debug)]
pub struct LocalRedis {
    dir: PathBuf,
    program: PathBuf,
    /// Settings, as (name, value), beside those made here; they win.
    settings: Vec<(String, String)>,
    port: u16,
    process: Process,
}

impl LocalRedis {
    /// Starts a server that writes its log to `dir`, which it makes and which goes when the server stops.
    ///
    /// [`Error::Internal`] when Redis is not installed or does not start.
    pub fn start(dir: &Path) -> Result<Self> {
        Self::start_with(dir, &[])
    }

    /// As [`Self::start`], with settings, as (name, value), that win over those made here.
    pub fn start_with(dir: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let dir = account::make(dir)?;
        let process = Process::new(&[&dir])?;
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut server = Self { dir, program: program::redis()?, settings, port: 0, process };
        for _ in 1..PORTS {
            server.port = free_port()?;
            if server.launch().is_ok() {
                return Ok(server);
            }
        }
        server.port = free_port()?;
        server.launch()?;
        Ok(server)
    }

    /// The folder that holds everything.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port on 127.0.0.1, the same after [`Self::start_again`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops it in the middle of whatever it does (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&mut self) -> Result<()> {
        self.process.signal("STOP")
    }

    /// Lets it go on after [`Self::pause`].
    pub fn resume(&mut self) -> Result<()> {
        self.process.signal("CONT")
    }

    /// Kills it as a crash would (SIGKILL). All it held is lost.
    pub fn kill_hard(&mut self) -> Result<()> {
        self.process.stop("KILL", STOP_PATIENCE)
    }

    /// Starts it again, empty, after [`Self::kill_hard`], on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.runs() { Ok(()) } else { self.launch() }
    }

    /// Stops it and removes its folder. Again is harmless.
    pub fn stop(&mut self) -> Result<()> {
        self.resume()?;
        self.process.stop("TERM", STOP_PATIENCE)?;
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir).map_err(failed(&format!("remove {}", self.dir.display())))?;
        }
        Ok(())
    }

    /// Runs the server on its port and waits until it answers.
    fn launch(&mut self) -> Result<()> {
        let log = self.dir.join("redis.log");
        let output = OpenOptions::new().append(true).create(true).open(&log).map_err(failed("open Redis's log"))?;
        let mut command = Command::new(&self.program);
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "", "--dir"]);
        command.arg(&self.dir).current_dir(&self.dir);
        for (name, value) in &self.settings {
            command.arg(format!("--{name}")).arg(value);
        }
        let errors: File = output.try_clone().map_err(failed("open Redis's log"))?;
        command.stdout(output).stderr(errors);
        self.process.start(command)?;
        let pid = self.process.id().unwrap_or_default();
        let mut answers = false;
        wait_until(START_PATIENCE, || {
            answers = self.answers(pid);
            answers || !self.process.runs()
        });
        if answers {
            return Ok(());
        }
        self.process.stop("KILL", STOP_PATIENCE)?;
        Err(Error::Internal(format!("Redis does not start:\n{}", log_tail(&log))))
    }

    /// Whether the port answers, and it is our process that does.
    fn answers(&self, pid: u32) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { return false };
        let patience = Some(Duration::from_millis(500));
        if stream.set_read_timeout(patience).is_err() || stream.write_all(b"INFO server\r\nQUIT\r\n").is_err() {
            return false;
        }
        let mut answer = Vec::new();
        // QUIT closes the connection; what came until a time-out is looked at as well.
        stream.read_to_end(&mut answer).ok();
        String::from_utf8_lossy(&answer).contains(&format!("process_id:{pid}\r\n"))
    }
}

impl Drop for LocalRedis {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!(%error, "a private Redis was not stopped cleanly");
        }
    }
}
