//! Random bytes for the parsers of requests and files.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::report::Trial;

/// Seconds for each fuzz target, unless `FUZZ_SECONDS` is set.
const SECONDS: &str = "600";

#[test]
fn random_bytes_break_no_property() {
    let mut trial = Trial::begin(
        "fuzz",
        "random bytes for selectors and cursors, keys, lines of imports, and metadata, 10 min each",
        "no crash and no violated property",
    );
    let seconds = env::var("FUZZ_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    for target in ["period", "key", "import", "metadata"] {
        let file_name = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz {target}.txt"));
        let file = fs::File::create(&file_name).expect("a file");
        let status = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz.sh"))
            .args([target, &seconds])
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .status()
            .expect("tests/fuzz.sh");
        let output = fs::read_to_string(&file_name).expect("the output");
        let tries = tries(&output);
        trial.expect(
            status.success() && tries > 0,
            if status.success() {
                format!("{target}: {tries} tries in {seconds} s")
            } else {
                format!("{target}: failed, see {}", file_name.display())
            },
        );
    }
    trial.end();
}

/// Returns the fuzzer's number of runs from its output.
fn tries(output: &str) -> u64 {
    let line = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}
