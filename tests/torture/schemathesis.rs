//! Requests generated from the OpenAPI document alone.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::{
    report::Trial,
    support::{Serve, TestDb, load::key, redis_url, spawn_serve},
};

/// Minimum number of requests of all runs together.
const CASES: u64 = 20_000;
/// Requests generated for each call and generation mode, unless `CENTILE_SCHEMATHESIS_EXAMPLES` is
/// set.
const EXAMPLES: &str = "400";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_requests_match_the_document() {
    let mut trial = Trial::begin(
        "schemathesis",
        "20,000 requests generated from the OpenAPI document, with an admin key and without",
        "no failure of any check",
    );
    let examples = std::env::var("CENTILE_SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    // Both runs at once, each on its own service: generating the requests takes most of the time,
    // on one core.
    let mut runs = Vec::new();
    for who in ["no key", "an admin key"] {
        runs.push(Run::begin(who, &examples).await);
    }
    let mut cases = 0;
    for mut run in runs {
        let passed = tokio::task::block_in_place(|| run.process.wait()).expect("tests/schemathesis.sh").success();
        let output = fs::read_to_string(&run.output).expect("the output");
        let summary = output.lines().skip_while(|line| !line.contains("SUMMARY")).collect::<Vec<_>>().join("\n");
        println!("{summary}");
        cases += generated(&output);
        trial.expect(
            passed,
            format!(
                "with {}: {} cases, seed {}, {}",
                run.who,
                generated(&output),
                output.lines().find_map(|line| line.strip_prefix("Seed: ")).unwrap_or("unknown"),
                if passed { "no failure".to_owned() } else { format!("failures in {}", run.output) }
            ),
        );
    }
    trial.expect(cases >= CASES || examples != EXAMPLES, format!("{cases} cases"));
    trial.end();
}

/// A run of Schemathesis on its own service.
struct Run {
    who: &'static str,
    /// The file with its output.
    output: String,
    process: Child,
    _serve: Serve,
    _db: TestDb,
}

impl Run {
    async fn begin(who: &'static str, examples: &str) -> Self {
        let db = TestDb::new().await;
        db.execute(
            "SELECT centile.create_board('arena', '{\"lanes\": 2}');
             SELECT testing.submit_score('arena', 'ada', 50), testing.submit_score('arena', 'bob', 40)",
        )
        .await;
        let serve = spawn_serve(&db, Some(&redis_url().await), &["--default-board", "arena", "--log", "warn"]).await;
        let output = format!("{}/schemathesis with {who}.txt", env!("CARGO_TARGET_TMPDIR"));
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis.sh"));
        command.args([&serve.url, examples]).stdin(Stdio::null());
        if who != "no key" {
            command.arg(key(db.url(), "admin"));
        }
        let file = fs::File::create(&output).expect("a file");
        command.stdout(file.try_clone().expect("a file")).stderr(file);
        let process = command.spawn().expect("tests/schemathesis.sh");
        Self { who, output, process, _serve: serve, _db: db }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Already ended, unless the trial was aborted.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Returns the number of generated cases from the output.
fn generated(output: &str) -> u64 {
    let line = output.lines().find(|line| line.contains(" generated, ")).unwrap_or_default();
    let digits = |word: &str| word.replace(',', "").parse().ok();
    line.split_whitespace().find_map(digits).unwrap_or_default()
}
