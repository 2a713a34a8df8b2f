//! `docs/configuration.md` has the flags, variables and defaults of `--help`, and no others.

use std::collections::BTreeMap;

use crate::support::{Ran, centile};

const DOCUMENT: &str = include_str!("../../../docs/configuration.md");

/// A flag as one place describes it.
#[derive(Debug, Clone)]
struct Setting {
    variable: String,
    default: Option<String>,
}

/// Returns the text between `begin` and the next of `ends`.
fn between<'a>(text: &'a str, begin: &str, ends: &[char]) -> Option<&'a str> {
    text.split_once(begin)?.1.split(ends).next()
}

/// Returns the settings in the help of a command by their flags.
fn in_help(command: Option<&str>) -> BTreeMap<String, Setting> {
    let help = Ran::of(centile().args(command).arg("--help")).well();
    // Flags with a variable have no short form, and are indented by six columns.
    let flags = help.split("\n      --").skip(1);
    flags
        .map(|flag| {
            let words: Vec<&str> = flag.split_whitespace().collect();
            let text = words.join(" ");
            let variable = between(&text, "[env: ", &['=', ']']).unwrap_or_else(|| panic!("no variable: {text}"));
            let default = between(&text, "[default: ", &[']']).map(str::to_owned);
            (format!("--{}", words[0]), Setting { variable: variable.to_owned(), default })
        })
        .collect()
}

/// Returns the settings in the tables under a heading of the document.
fn in_document(heading: &str) -> BTreeMap<String, Setting> {
    let (_, section) = DOCUMENT.split_once(&format!("\n### {heading}\n")).unwrap();
    let section = section.split("\n##").next().unwrap();
    let mut settings = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `--")) {
        let cells: Vec<String> = row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        assert_eq!(cells.len(), 4, "{row}");
        let setting = Setting { variable: cells[1].clone(), default: Some(cells[2].clone()) };
        assert!(settings.insert(cells[0].clone(), setting).is_none(), "twice: {row}");
    }
    assert!(!settings.is_empty(), "no table under {heading}");
    settings
}

#[test]
fn the_document_has_every_flag_variable_and_default() {
    let serve = in_document("`centile serve`");
    let mut demo = in_document("`centile demo`");
    demo.extend(serve.clone().into_iter().filter(|(flag, _)| !flag.starts_with("--tls-")));
    for (command, mut documented) in [(None, BTreeMap::new()), (Some("serve"), serve), (Some("demo"), demo)] {
        documented.extend(in_document("Every command"));
        let help = in_help(command);
        let missing: Vec<_> = help.keys().filter(|flag| !documented.contains_key(*flag)).collect();
        let unknown: Vec<_> = documented.keys().filter(|flag| !help.contains_key(*flag)).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "{command:?}: missing {missing:?}, unknown {unknown:?}");
        for (flag, setting) in &help {
            assert_eq!(documented[flag].variable, setting.variable, "{flag}");
            // The document also describes defaults that help explains in a sentence.
            if setting.default.is_some() {
                assert_eq!(documented[flag].default, setting.default, "{flag}");
            }
        }
    }
}
