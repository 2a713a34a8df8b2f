//! Each crate that was chosen has its reason in CONTRIBUTING.md.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

const CONTRIBUTING: &str = include_str!("../../CONTRIBUTING.md");

/// The crates that a package asks for, those that only its tests and benchmarks need apart.
fn chosen(manifest: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let dependencies = metadata["packages"][0]["dependencies"].as_array().unwrap();
    let of = |is_for_tests: bool| {
        let of_kind = dependencies.iter().filter(|dependency| (dependency["kind"] == "dev") == is_for_tests);
        of_kind.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    (of(false), of(true))
}

#[test]
fn each_has_a_line_that_says_why_and_no_line_is_left_of_others() {
    let (library, tests) = chosen("Cargo.toml");
    let (fuzz, _) = chosen("tests/fuzz/Cargo.toml");
    let tests: BTreeSet<_> = tests.difference(&library).cloned().collect();
    let fuzz: BTreeSet<_> = fuzz.difference(&library).filter(|name| *name != "centile").cloned().collect();
    let (_, table) = CONTRIBUTING.split_once("| crate | reason |\n| --- | --- |\n").unwrap();
    let (mut told, mut told_tests, mut told_fuzz) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in table.lines().take_while(|line| line.starts_with('|')) {
        let [_, names, reason, _] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(!reason.trim().is_empty(), "{line}");
        for name in names.split(',').map(str::trim) {
            let (name, kind) = name.split_once(' ').unwrap_or((name, ""));
            let told = match kind {
                "" => &mut told,
                "(tests)" | "(benches)" => &mut told_tests,
                "(fuzzing)" => &mut told_fuzz,
                other => panic!("{name} is for {other}"),
            };
            assert!(told.insert(name.to_owned()), "{name} is told twice");
        }
    }
    assert_eq!((told, told_tests, told_fuzz), (library, tests, fuzz));
}
