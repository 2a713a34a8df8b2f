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

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of ports to try, because another process may take a free port first.
const PORT_ATTEMPTS: u32 = 5;

/// A private Redis on 127.0.0.1, without persistence by default.
///
/// It stops when this value is dropped or this process ends, even by SIGKILL.
#[derive(Debug)]
pub struct LocalRedis {
    dir: PathBuf,
    program: PathBuf,
    /// Additional settings, as (name, value). They override the defaults.
    settings: Vec<(String, String)>,
    port: u16,
    process: Process,
}

impl LocalRedis {
    /// Starts a server with its log in `dir`. Creates `dir`, and removes it when the server stops.
    ///
    /// [`Error::Internal`] if Redis is not installed or does not start.
    pub fn start(dir: &Path) -> Result<Self> {
        Self::start_with(dir, &[])
    }

    /// Like [`Self::start`], with settings, as (name, value), that override the defaults.
    pub fn start_with(dir: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let dir = account::make(dir)?;
        let process = Process::new(&[&dir])?;
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut server = Self { dir, program: program::redis()?, settings, port: 0, process };
        for _ in 1..PORT_ATTEMPTS {
            server.port = free_port()?;
            if server.launch().is_ok() {
                return Ok(server);
            }
        }
        server.port = free_port()?;
        server.launch()?;
        Ok(server)
    }

    /// Returns the folder of the server's files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns its port on 127.0.0.1. It stays the same after [`Self::start_again`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Pauses the process (SIGSTOP): connections stay open, but nothing answers.
    pub fn pause(&mut self) -> Result<()> {
        self.process.signal("STOP")
    }

    /// Continues the process after [`Self::pause`].
    pub fn resume(&mut self) -> Result<()> {
        self.process.signal("CONT")
    }

    /// Kills the process (SIGKILL), as in a crash. All data are lost.
    pub fn kill_hard(&mut self) -> Result<()> {
        self.process.stop("KILL", STOP_TIMEOUT)
    }

    /// Restarts it after [`Self::kill_hard`], empty and on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.runs() { Ok(()) } else { self.launch() }
    }

    /// Stops it and removes its folder. Safe to call again.
    pub fn stop(&mut self) -> Result<()> {
        self.resume()?;
        self.process.stop("TERM", STOP_TIMEOUT)?;
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir).map_err(failed(&format!("remove {}", self.dir.display())))?;
        }
        Ok(())
    }

    /// Starts the server on its port and waits until it answers.
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
        wait_until(START_TIMEOUT, || {
            answers = self.answers(pid);
            answers || !self.process.runs()
        });
        if answers {
            return Ok(());
        }
        self.process.stop("KILL", STOP_TIMEOUT)?;
        Err(Error::Internal(format!("Redis does not start:\n{}", log_tail(&log))))
    }

    /// Returns whether this process answers on the port.
    fn answers(&self, pid: u32) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { return false };
        let timeout = Some(Duration::from_millis(500));
        if stream.set_read_timeout(timeout).is_err() || stream.write_all(b"INFO server\r\nQUIT\r\n").is_err() {
            return false;
        }
        let mut answer = Vec::new();
        // QUIT closes the connection. After a timeout, check what has arrived.
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
