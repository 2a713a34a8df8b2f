//! Runs `centile import`, and creates its files.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
};

use super::{TestDb, centile, folder};

/// A folder for the files of one test; removed with this value.
#[derive(Debug)]
pub struct Files(PathBuf);

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// The rejects by line number, each with its reason and the original line; `None` without a
    /// file of rejects.
    pub rejects: Option<BTreeMap<u64, (String, String)>>,
}

impl Files {
    pub fn new() -> Self {
        let folder = folder("import");
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Returns the path of a file that may not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Starts `centile import FILE --board BOARD` with more flags.
pub fn spawn_import(db: &TestDb, file: &Path, board: &str, flags: &[&str]) -> Child {
    let mut command = centile();
    command.arg("import").arg(file).args(["--board", board]).args(flags).env("DATABASE_URL", db.url());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs `centile import` to its end, and reads the rejects from their default place.
pub fn import(db: &TestDb, file: &Path, board: &str, flags: &[&str]) -> Imported {
    let mut rejects = file.as_os_str().to_owned();
    rejects.push(".rejects.csv");
    finish(spawn_import(db, file, board, flags), &[], Path::new(&rejects))
}

/// Like [`import`], from standard input; the rejects go to `rejects`.
pub fn import_stdin(db: &TestDb, input: &[u8], board: &str, rejects: &Path, flags: &[&str]) -> Imported {
    let flags = [&["--rejects", rejects.to_str().unwrap()], flags].concat();
    finish(spawn_import(db, Path::new("-"), board, &flags), input, rejects)
}

fn finish(mut child: Child, input: &[u8], rejects: &Path) -> Imported {
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().unwrap()
    });
    let rejects = csv::Reader::from_path(rejects).ok().map(|mut reader| {
        assert_eq!(reader.headers().unwrap(), ["line", "reason", "raw"].as_slice());
        let rows = reader.deserialize::<(u64, String, String)>().map(Result::unwrap);
        rows.map(|(line, reason, raw)| (line, (reason, raw))).collect()
    });
    Imported {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        rejects,
    }
}

impl Imported {
    /// Returns a number of the summary: `read`, `accepted`, `repeated` or `rejected`.
    #[track_caller]
    pub fn count(&self, name: &str) -> u64 {
        let line = self.out.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().replace(',', "").parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    /// Fails unless all lines were imported, with these numbers of new and repeated events.
    #[track_caller]
    pub fn well(&self, accepted: u64, repeated: u64) {
        assert_eq!((self.code, self.rejects.as_ref()), (Some(0), None), "{self:?}");
        let counts = ["read", "accepted", "repeated", "rejected"].map(|name| self.count(name));
        assert_eq!(counts, [accepted + repeated, accepted, repeated, 0], "{self:?}");
    }
}
