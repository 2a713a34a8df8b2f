//! Commands that run to their end.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::{TestDb, centile, next_number};

/// What a command left behind.
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

    /// What it printed, when all went well.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// What it printed as JSON, when all went well.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.well()).unwrap()
    }

    /// Fails unless it was refused with this status, a message that holds all of `words`, and no result.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        // Wrong usage is explained by clap, in several lines.
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

/// As [`run_at`], with the database of a test.
pub fn run(db: &TestDb, arguments: &[&str]) -> Ran {
    run_at(db.url(), arguments)
}

/// Starts a command with the database at `url`; its output is kept for whoever waits for it.
pub fn spawn(url: &str, arguments: &[&str]) -> Child {
    let mut command = centile();
    command.args(arguments).env("DATABASE_URL", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The text of a new key, for a client of its own: of each name only two work.
pub fn make_key(url: &str, flags: &[&str]) -> String {
    let name = format!("test {}", next_number());
    let all: &[&str] = if flags.contains(&"--board") { &[] } else { &["--all-boards"] };
    run_at(url, &[&["key", "create", "--name", &name], flags, all].concat()).well().trim().to_owned()
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
