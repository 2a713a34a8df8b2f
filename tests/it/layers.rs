//! `src/lib.rs` lists the layers from the lowest to the highest. No module imports from a higher
//! layer.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Collects the source files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the code of a file without comments and unit tests.
fn code(text: &str) -> String {
    let text = text.split("\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn identifier(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Returns the top-level modules that a file names: `crate::a::…` and `crate::{a::…, b}`.
fn imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            found.push(identifier(rest));
            continue;
        };
        let (mut depth, mut is_next) = (0, true);
        for (at, c) in group.char_indices() {
            if depth == 0 && is_next && !c.is_whitespace() && c != '}' {
                found.push(identifier(&group[at..]));
                is_next = false;
            }
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_next = true,
                _ => {}
            }
        }
    }
    found
}

/// Returns the imports of higher layers, as `file imports layer`.
fn upward(layers: &[String], layer: &str, file: &str, code: &str) -> Vec<String> {
    let level = |name: &str| layers.iter().position(|layer| layer == name);
    let own = level(layer).unwrap_or_else(|| panic!("{file} is in no layer of src/lib.rs"));
    let is_wrong = |name: &String| match level(name) {
        Some(level) => level > own,
        // Any other re-export could come from any layer.
        None => !["Code", "Error", "Resource", "Result"].contains(&name.as_str()),
    };
    imports(code).into_iter().filter(is_wrong).map(|name| format!("{file} imports {name}")).collect()
}

#[test]
fn no_module_imports_from_a_higher_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let declared = fs::read_to_string(root.join("lib.rs")).unwrap();
    let layers: Vec<String> = declared
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")))
        .map(identifier)
        .collect();
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 100 && layers.len() > 10, "{layers:?}");
    let mut wrong = Vec::new();
    for path in files {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let layer = file.split('/').next().unwrap().trim_end_matches(".rs");
        if ["lib", "main"].contains(&layer) {
            continue;
        }
        let code = code(&fs::read_to_string(&path).unwrap());
        // Such a path would leave the layer unnoticed.
        let depth = file.trim_end_matches("/mod.rs").matches('/').count();
        let leaves = code.contains(&"super::".repeat(depth + 1)) || code.contains("super::{super");
        assert!(!leaves, "{file} leaves its layer by `super::`");
        wrong.extend(upward(&layers, layer, &file, &code));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Frameworks, and the only layers that may name them.
const FRAMEWORKS: [(&str, &[&str]); 8] = [
    ("sqlx::", &["store"]),
    ("deadpool::", &["store"]),
    ("deadpool_redis::", &["cache", "queue"]),
    ("rdkafka::", &["queue"]),
    ("actix_web::", &["http", "dev"]),
    ("actix_http::", &["http"]),
    ("clap::", &["config", "cli"]),
    ("utoipa::", &["http"]),
];

#[test]
fn each_framework_stays_in_its_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut users = 0;
    for path in files {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let layer = file.split('/').next().unwrap().trim_end_matches(".rs");
        let code = code(&fs::read_to_string(&path).unwrap());
        for (framework, layers) in FRAMEWORKS.iter().filter(|(framework, _)| code.contains(framework)) {
            users += 1;
            assert!(layers.contains(&layer), "{file} names {framework}");
        }
        assert!(!makes_value(&code) || VALUE_USERS.contains(&&*file), "{file} may make a Value of JSON");
    }
    assert!(users > 50, "{users}");
}

/// Items of `serde_json` that make no `Value`. A `Value` gives a meaning to a key that callers may send:
/// see `model/json.rs`.
const JSON_ITEMS: [&str; 10] = [
    "Deserializer",
    "Error",
    "from_slice",
    "from_str",
    "to_string",
    "to_string_pretty",
    "to_vec",
    "to_writer",
    "value::RawValue",
    "private::RawValue",
];

/// Files that may use other items, for JSON that Centile itself has made.
const VALUE_USERS: [&str; 12] = [
    "cli/outbox.rs",
    "cli/verify.rs",
    "dev/demo/games.rs",
    "http/api/openapi.rs",
    "model/json.rs",
    "model/outbox.rs",
    "model/verification.rs",
    "queue/kafka.rs",
    "store/board.rs",
    "store/combination.rs",
    "store/user.rs",
    "tested.rs",
];

/// Returns whether code uses another item of `serde_json`, or could do so under another name.
fn makes_value(code: &str) -> bool {
    let is_other = |path: &str| {
        let is_part = |c: &char| c.is_alphanumeric() || "_:*".contains(*c);
        let item: String = path.trim_start().chars().take_while(is_part).collect();
        !JSON_ITEMS
            .iter()
            .any(|known| item.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
    };
    code.contains("JsonValue")
        || code.split("serde_json").skip(1).any(|rest| match rest.strip_prefix("::") {
            Some(path) if path.starts_with('{') => {
                let items = path[1..].split('}').next().unwrap_or_default().split(',');
                items.filter(|item| !item.trim().is_empty()).any(is_other)
            }
            Some(path) => is_other(path),
            None => true,
        })
}

#[test]
fn each_spelling_of_a_value_is_found() {
    for text in [
        "use serde_json::Value;",
        "use serde_json::Value as V;",
        "use serde_json::{Value};",
        "use serde_json::{from_str, value::{RawValue, Value}};",
        "use serde_json::{\n    from_str,\n    Map,\n};",
        "use serde_json::value::Value;",
        "use serde_json::value;",
        "use serde_json::*;",
        "use serde_json as json;",
        "use serde_json;",
        "use {serde_json as json, std::fmt};",
        "serde_json::from_str::<serde_json::Value>(text)",
        "serde_json::to_value(metadata)",
        "use sqlx::types::JsonValue;",
        "type J = serde_json::Map<String, String>;",
    ] {
        assert!(makes_value(&code(text)), "{text}");
    }
    for text in
        ["use serde_json::value::RawValue;", "use serde_json::{Error, from_str};", "serde_json::from_str::<T>(text)"]
    {
        assert!(!makes_value(&code(text)), "{text}");
    }
}

#[test]
fn an_import_of_a_higher_layer_is_found() {
    let layers = ["model", "store", "http"].map(str::to_owned);
    let found = |text: &str| upward(&layers, "store", "store/a.rs", &code(text));
    assert_eq!(found("use crate::{Error, model::{board, key}, store::Store,};"), [""; 0]);
    assert_eq!(found("use crate::{model::{a, b}, http::{c}};"), ["store/a.rs imports http"]);
    assert_eq!(found("fn f() { crate::http::serve() }"), ["store/a.rs imports http"]);
    assert_eq!(found("use crate::*;"), ["store/a.rs imports "]);
    assert_eq!(found("// crate::http\n#[cfg(test)]\nmod tests { use crate::http; }"), [""; 0]);
}
