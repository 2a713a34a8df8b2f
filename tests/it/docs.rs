//! The documents: every Markdown file of the repository.

pub mod caching;
pub mod commands;
pub mod links;
pub mod prose;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use pulldown_cmark::{Options, Parser};

/// A Markdown file.
#[derive(Debug)]
pub struct Document {
    /// Its path in the repository.
    pub path: String,
    pub text: String,
}

impl Document {
    /// Returns `path:line` of a byte offset.
    pub fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.line(offset))
    }

    /// Returns the line number of a byte offset, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

/// Returns the folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of all files of the repository, including new ones, but not ignored ones.
pub fn files() -> BTreeSet<String> {
    let mut git = Command::new("git");
    // Git refuses a repository of another account unless told otherwise.
    git.args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.current_dir(root()).output().expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let paths = String::from_utf8(output.stdout).unwrap();
    // A deleted file stays in git's index until the next commit.
    paths.split_terminator('\0').filter(|path| root().join(path).exists()).map(str::to_owned).collect()
}

/// Returns all documents.
pub fn documents() -> Vec<Document> {
    let paths = files().into_iter().filter(|path| Path::new(path).extension().is_some_and(|kind| kind == "md"));
    let read = |path: String| Document { text: fs::read_to_string(root().join(&path)).unwrap(), path };
    let documents: Vec<Document> = paths.map(read).collect();
    assert!(documents.iter().any(|document| document.path == "README.md"));
    documents
}

/// The extensions of GitHub's Markdown that documents use.
pub const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// Parses Markdown.
pub fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, OPTIONS)
}
