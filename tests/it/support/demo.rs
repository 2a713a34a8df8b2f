//! `centile demo` as a separate process.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    sync::mpsc,
    thread,
};

use centile::dev::local::{Watchdog, signal};

use super::{
    centile,
    wait::{DEADLINE, until_blocking},
};

/// A running `centile demo`; killed when this value is dropped.
pub struct Demo {
    pub child: Child,
    watchdog: Watchdog,
    /// Its output up to the start of the continuous games.
    pub output: String,
}

impl Demo {
    /// Starts it with its data in `dir`; returns once games continue.
    pub fn start(dir: &Path) -> Self {
        let mut watchdog = Watchdog::new(&[]).unwrap();
        let mut command = centile();
        command.args(["demo", "--listen", "127.0.0.1:0", "--seed", "7", "--games-per-second", "20", "--dir"]).arg(dir);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        watchdog.watch(child.id()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (sender, output) = mpsc::channel();
        thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        let mut demo = Self { child, watchdog, output: String::new() };
        while !demo.output.contains("Ctrl-C stops everything") {
            demo.output.push_str(&output.recv_timeout(DEADLINE).expect("the demo starts"));
            demo.output.push('\n');
        }
        demo
    }

    /// Returns the rest of the output line that begins with `word`.
    pub fn said(&self, word: &str) -> &str {
        let line = self.output.lines().find_map(|line| line.trim_start().strip_prefix(word));
        line.unwrap_or_else(|| panic!("no {word:?} in {}", self.output)).trim()
    }

    /// Returns the address in the `n`-th curl line, counted from 0.
    pub fn curl(&self, n: usize) -> String {
        let line = self.output.lines().filter(|line| line.trim_start().starts_with("curl ")).nth(n).unwrap();
        line.split('\'').nth(1).unwrap().to_owned()
    }

    /// Sends it a signal and waits until it has ended.
    pub fn end(&mut self, name: &str) -> ExitStatus {
        signal(self.child.id(), name).unwrap();
        let mut ended = None;
        until_blocking("the demo stops", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        self.watchdog.forget().unwrap();
        ended.unwrap()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.watchdog.forget().ok();
    }
}

/// A folder that is removed with this value; a demo's folder together with the data that lie
/// elsewhere because PostgreSQL's account cannot reach it.
pub struct RemovedFolder(pub PathBuf);

impl Drop for RemovedFolder {
    fn drop(&mut self) {
        if let Ok(elsewhere) = fs::read_link(self.0.join("postgres/elsewhere")) {
            fs::remove_dir_all(elsewhere).ok();
        }
        fs::remove_dir_all(&self.0).ok();
    }
}
