//! Runs commands to their end.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::{TestDb, centile};

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).output().unwrap().into()
    }

    /// Returns the standard output. Fails unless the command succeeded.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Returns the standard output as JSON. Fails unless the command succeeded.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.well()).unwrap()
    }

    /// Fails unless the command exited with this status, printed an error that contains all of
    /// `words`, and printed no result.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        // clap explains wrong usage in several lines.
        assert!(code == 2 || self.err.lines().count() == 1, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:?}");
        }
    }
}

/// Runs a command to its end, with the database at `url`.
pub fn run_at(url: &str, arguments: &[&str]) -> Ran {
    Ran::from(spawn(url, arguments).wait_with_output().unwrap())
}

/// Like [`run_at`], with the database of a test.
pub fn run(db: &TestDb, arguments: &[&str]) -> Ran {
    run_at(db.url(), arguments)
}

/// Starts a command with the database at `url`, and captures its output.
pub fn spawn(url: &str, arguments: &[&str]) -> Child {
    let mut command = centile();
    command.args(arguments).env("DATABASE_URL", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
