//! The commands in the documents, run against `centile demo`.
//!
//! Blocks marked `sh run` are executed in order, those of a document in one bash process. A
//! response that is a problem document fails, except in blocks marked `sh run problem`. Blocks
//! marked `sql run` are executed by psql.

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use centile::dev::local::Watchdog;
use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use regex::Regex;

use super::{Document, documents, parse};
use crate::support::{
    demo::{Demo, RemovedFolder},
    folder,
    wait::DEADLINE,
};

/// The address that documents name.
const DOCUMENTED: &str = "127.0.0.1:8080";

/// Precedes the index of a block in the output.
const MARK: char = '\u{1}';

/// A block to execute.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line of its first command.
    line: usize,
    text: String,
    is_sql: bool,
    expects_problem: bool,
}

/// Returns the blocks of a document.
fn blocks(document: &Document) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut open = None;
    for (event, span) in parse(&document.text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let (is_sql, expects_problem) = match &*info {
                    "sh run" => (false, false),
                    "sh run problem" => (false, true),
                    "sql run" => (true, false),
                    other if other.split([' ', ',']).any(|word| word == "run") => {
                        return Err(format!("{}: unknown info string {other:?}", document.place(span.start)));
                    }
                    _ => continue,
                };
                let line = document.line(span.start) + 1;
                open = Some(Block { line, text: String::new(), is_sql, expects_problem });
            }
            Event::Text(text) => open.iter_mut().for_each(|block: &mut Block| block.text.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => found.extend(open.take()),
            _ => {}
        }
    }
    Ok(found)
}

/// Returns a bash script that marks the output of each block.
fn script(blocks: &[Block], address: &str) -> String {
    let mut script = "set -euo pipefail\n".to_owned();
    for (index, block) in blocks.iter().enumerate() {
        let text = block.text.replace(DOCUMENTED, address);
        let text = if block.is_sql {
            format!(
                "psql \"$(cat .centile/demo/database-url)\" -v ON_ERROR_STOP=1 <<'END OF BLOCK'\n{text}END OF BLOCK\n"
            )
        } else {
            text
        };
        script.extend([format!("printf '\\n{MARK}{index}\\n'\n"), text]);
    }
    script
}

/// Whether an output contains a problem document that is not part of another document.
fn has_problem(output: &str) -> bool {
    let problem = Regex::new(r#"(?:^|\n|[^:,\[\s])[ \t]*\{\s*"type"\s*:\s*"urn:centile:problem:"#).unwrap();
    problem.is_match(output)
}

/// A copy of the demo's keys and addresses, for one document.
struct Place {
    folder: PathBuf,
    address: String,
}

impl Place {
    fn new(demo: &Demo, demo_folder: &Path, folder: PathBuf) -> Self {
        let own = folder.join(".centile/demo");
        fs::create_dir_all(&own).unwrap();
        for name in ["database-url", "server-key", "admin-key"] {
            fs::copy(demo_folder.join(name), own.join(name)).unwrap();
        }
        Self { folder, address: demo.said("HTTP API").trim_start_matches("http://").to_owned() }
    }

    /// Runs a script with bash. Returns whether it succeeded, and its output.
    fn bash(&self, script: &str) -> (bool, String) {
        let (file, log) = (self.folder.with_extension("sh"), self.folder.with_extension("log"));
        fs::write(&file, script).unwrap();
        // A file, because a background process would keep a pipe open.
        let output = fs::File::create(&log).unwrap();
        let binaries = Path::new(env!("CARGO_BIN_EXE_centile")).parent().unwrap();
        let path = format!("{}:{}", binaries.display(), env::var("PATH").unwrap_or_default());
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc"]).arg(&file).current_dir(&self.folder);
        bash.env_clear().env("PATH", path).env("HOME", &self.folder).env("LC_ALL", "C.UTF-8").env("PAGER", "cat");
        bash.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output).process_group(0);
        let mut watchdog = Watchdog::new(&[]).unwrap();
        let mut child = bash.spawn().unwrap();
        watchdog.watch(child.id()).unwrap();
        let end = Instant::now() + DEADLINE;
        let status = loop {
            match child.try_wait().unwrap() {
                None if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
                status => break status,
            }
        };
        // Also ends processes that the script has left in the background.
        Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status().unwrap();
        child.wait().unwrap();
        watchdog.forget().unwrap();
        let mut output = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
        if status.is_none() {
            output.push_str("\n(timeout)");
        }
        (status.is_some_and(|status| status.success()), output)
    }

    /// Executes the blocks of a document, and returns their number. An error names the line of the
    /// block that failed.
    fn run(&self, document: &Document) -> Result<usize, String> {
        let blocks = blocks(document)?;
        if blocks.is_empty() {
            return Ok(0);
        }
        let (succeeded, output) = self.bash(&script(&blocks, &self.address));
        let outputs: Vec<&str> =
            output.split(MARK).skip(1).map(|part| part.split_once('\n').unwrap_or_default().1).collect();
        let failed = |block: &Block, output: &str, why: &str| {
            let place = format!("{}:{}", document.path, block.line);
            Err(format!("{place}: {why}\n--- block\n{}--- output\n{}\n", block.text, output.trim_end()))
        };
        for (block, output) in blocks.iter().zip(&outputs) {
            match (has_problem(output), block.expects_problem) {
                (true, false) => return failed(block, output, "the response is a problem document"),
                (false, true) => return failed(block, output, "the response is no problem document"),
                _ => {}
            }
        }
        if !succeeded || outputs.len() < blocks.len() {
            let last = outputs.len().max(1) - 1;
            return failed(&blocks[last], outputs.get(last).unwrap_or(&&*output), "the block failed");
        }
        Ok(blocks.len())
    }
}

/// Executes small documents with and without faults.
fn check_fixtures(place: &Place) {
    let document = |text: &str| Document { path: "a.md".to_owned(), text: text.to_owned() };
    let well = document(
        "# A\n\n```sh run\nurl=http://127.0.0.1:8080/v1/boards/main\n```\n\n- In a list:\n  ```sh run\n  \
         curl -s \"$url/scores?limit=1\" | python3 -m json.tool\n  cat <<'END'\n  {\"error\": {\"type\":\"urn:centile:problem:x\"}}\n  END\n  ```\n\n\
         ```sh run problem\ncurl -s \"$url/scores?limit=0\"\n```\n\n```sh\nfalse\n```\n\n\
         ```sh run\nexport DATABASE_URL=\"$(cat .centile/demo/database-url)\"\ncentile board list | grep -q laps\n\
         sleep 100 &\n```\n\n```sql run\nSELECT count(*) > 100 FROM centile.users;\n```\n",
    );
    assert_eq!(place.run(&well), Ok(5));
    for (text, line, why) in [
        ("\n```sh run\necho one\n```\n```sh run\necho two\nfalse | cat\necho three\n```\n", 6, "the block failed"),
        ("```sh run\ncurl -s http://127.0.0.1:8080/v1/none\n```\n", 2, "the response is a problem document"),
        (
            "```sh run\ncurl -s http://127.0.0.1:8080/healthz && curl -s http://127.0.0.1:8080/v1/none | python3 -m json.tool\n```\n",
            2,
            "the response is a problem document",
        ),
        ("```sh run problem\necho\n```\n", 2, "the response is no problem document"),
        ("```sh run\ncd \"$nowhere\"\n```\n", 2, "the block failed"),
        ("```sh run\necho one\n```\n```sh run\nif\n```\n", 5, "the block failed"),
        ("```sql run\nSELECT 1;\n\nSELECT nothing;\nSELECT 2;\n```\n", 2, "the block failed"),
        ("```sh run problems\necho\n```\n", 1, "unknown info string \"sh run problems\""),
    ] {
        let error = place.run(&document(text)).expect_err(text);
        assert!(error.starts_with(&format!("a.md:{line}: {why}")), "{error}");
    }
    let error = place.run(&document("```sh run\necho one\nfalse\n```\n")).unwrap_err();
    assert_eq!(error, "a.md:2: the block failed\n--- block\necho one\nfalse\n--- output\none\n");
}

// Readers run these commands on the demo that `make run` starts, so the test starts the same
// program. One demo serves all documents, because its start takes longer than their commands.
#[test]
fn the_commands_in_the_documents_work() {
    let (dir, places) = (RemovedFolder(folder("docs")), RemovedFolder(folder("docs-places")));
    let mut demo = Demo::start(&dir.0);
    let place = |name: &str| Place::new(&demo, &dir.0, places.0.join(name));
    check_fixtures(&place("fixtures"));
    let results: Vec<_> =
        documents().iter().enumerate().map(|(index, document)| place(&index.to_string()).run(document)).collect();
    let failed: Vec<&str> = results.iter().filter_map(|result| result.as_ref().err()).map(String::as_str).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(results.iter().flatten().sum::<usize>() > 0, "no block was executed");
    assert_eq!(demo.end("TERM").code(), Some(0));
}
