//! CONTRIBUTING.md gives a reason for each direct dependency.

use std::{collections::BTreeSet, fs, path::Path};

const CONTRIBUTING: &str = include_str!("../../CONTRIBUTING.md");

/// Returns a package's direct dependencies, and separately those of its tests and benchmarks. Reads
/// the manifest, because `cargo metadata` waits for other runs of Cargo.
fn chosen(manifest: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
    let (mut library, mut tests) = (BTreeSet::new(), BTreeSet::new());
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
            let is_known = ["[dependencies]", "[dev-dependencies]"].contains(&section);
            assert!(is_known || !section.contains("dependencies"), "this test cannot read the section {section}");
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            match section {
                "[dependencies]" => library.insert(name.to_owned()),
                "[dev-dependencies]" => tests.insert(name.to_owned()),
                _ => continue,
            };
        }
    }
    assert!(!library.is_empty());
    (library, tests)
}

#[test]
fn every_direct_dependency_has_a_reason_and_no_other_has() {
    let (library, tests) = chosen("Cargo.toml");
    let (fuzz, _) = chosen("tests/fuzz/Cargo.toml");
    let tests: BTreeSet<_> = tests.difference(&library).cloned().collect();
    let fuzz: BTreeSet<_> = fuzz.difference(&library).filter(|name| *name != "centile").cloned().collect();
    let (_, table) = CONTRIBUTING.split_once("| crate | reason |\n| --- | --- |\n").unwrap();
    let (mut output, mut output_tests, mut output_fuzz) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in table.lines().take_while(|line| line.starts_with('|')) {
        let [_, names, reason, _] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(!reason.trim().is_empty(), "{line}");
        for name in names.split(',').map(str::trim) {
            let (name, kind) = name.split_once(' ').unwrap_or((name, ""));
            let output = match kind {
                "" => &mut output,
                "(tests)" | "(benches)" => &mut output_tests,
                "(fuzzing)" => &mut output_fuzz,
                other => panic!("{name} is for {other}"),
            };
            assert!(output.insert(name.to_owned()), "{name} has two lines");
        }
    }
    assert_eq!((output, output_tests, output_fuzz), (library, tests, fuzz));
}
