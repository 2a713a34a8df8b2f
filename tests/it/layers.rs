//! `src/lib.rs` lists the layers from the lowest to the highest, and `src/http/mod.rs` the rooms of
//! HTTP. No module imports from a higher one. In the layers of `ACYCLIC`, import cycles between files
//! are rejected, too.

use std::{
    collections::{BTreeMap, BTreeSet},
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

/// Returns the paths that a file names after `crate::`, such as `[a, b]` for `crate::{a::b}`.
fn paths(code: &str) -> Vec<Vec<String>> {
    code.split("crate::").skip(1).flat_map(|mut rest| tree(&mut rest)).collect()
}

/// Removes a path, or a group of paths, from the beginning of `text`.
fn tree(text: &mut &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    if let Some(rest) = text.trim_start().strip_prefix('{') {
        *text = rest.trim_start();
        while !text.is_empty() && !text.starts_with('}') {
            found.extend(tree(text));
            // Also skips `as name` and the star of `a::*`.
            *text = text.trim_start_matches(|c| c != ',' && c != '}').trim_start_matches(',').trim_start();
        }
        *text = text.strip_prefix('}').unwrap_or(text);
        return found;
    }
    let name = identifier(text);
    *text = &text.trim_start()[name.len()..];
    match text.strip_prefix("::") {
        Some(rest) => {
            *text = rest;
            let within = |mut path: Vec<String>| {
                path.insert(0, name.clone());
                path
            };
            tree(text).into_iter().map(within).collect()
        }
        None => vec![vec![name]],
    }
}

/// Returns the modules that a file declares.
fn declared(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let module = |line: &str| {
        let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        line.strip_prefix("mod ").filter(|rest| rest.ends_with(';')).map(identifier)
    };
    text.lines().filter_map(module).collect()
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
    let names: BTreeSet<String> = paths(code).into_iter().map(|path| path[0].clone()).collect();
    names.into_iter().filter(is_wrong).map(|name| format!("{file} imports {name}")).collect()
}

#[test]
fn no_module_imports_from_a_higher_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers = declared(&root.join("lib.rs"));
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

/// Returns what a file of a room imports from a higher room, or from `src/http/mod.rs` itself.
fn above(rooms: &[String], room: &str, code: &str) -> BTreeSet<String> {
    let level = |name: &str| rooms.iter().position(|room| room == name);
    let of_http = paths(code).into_iter().filter(|path| path[0] == "http");
    let names = of_http.map(|path| path.get(1).cloned().unwrap_or_default());
    names.filter(|name| level(name).is_none_or(|other| other > level(room).unwrap())).collect()
}

#[test]
fn no_room_imports_from_a_higher_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let rooms = declared(&root.join("mod.rs"));
    assert_eq!(rooms, ["server", "auth", "api", "pages"]);
    for room in &rooms {
        let mut files = Vec::new();
        sources(&root.join(room), &mut files);
        assert!(files.len() > 2, "{room}");
        for path in files {
            let file = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let code = code(&fs::read_to_string(&path).unwrap());
            assert_eq!(above(&rooms, room, &code), BTreeSet::new(), "imports of {file}");
            let depth = file.trim_end_matches("/mod.rs").matches('/').count();
            assert!(!code.contains(&"super::".repeat(depth + 1)), "{file} leaves its room by `super::`");
        }
    }
    let found = |text: &str| above(&rooms, "auth", &code(text)).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::{http::{auth::caller, server::{Api, rate}}, model::{api::x}};"), [""; 0]);
    assert_eq!(found("use crate::{Error, http::{pages::ops as o, server}};"), ["pages"]);
    assert_eq!(found("crate::http::api::reply::read_response()"), ["api"]);
    assert_eq!(found("use crate::http::serve;"), ["serve"]);
}

/// Layers in which import cycles between files are rejected.
const ACYCLIC: [&str; 3] = ["http", "model", "ranking"];

/// Returns whether code names a child module by a path that begins with the child.
fn names_child(code: &str, child: &str) -> bool {
    code.match_indices(&format!("{child}::")).any(|(at, _)| {
        let before = &code[..at];
        // A path in a group of imports begins before the group.
        let is_in_group = before.rfind("use ").is_some_and(|start| {
            let import = &before[start + "use ".len()..];
            !import.is_empty() && !import.contains(';')
        });
        !is_in_group && !before.ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c))
    })
}

/// Returns the modules that are part of an import cycle, or lie between two, with their imports.
/// `modules` is the code of each module by its path, such as `ranking::top`.
fn cyclic(modules: &BTreeMap<String, String>) -> BTreeMap<&str, BTreeSet<&str>> {
    let import = |path: Vec<String>| {
        let module = |n: usize| modules.get_key_value(&path[..n].join("::"));
        (1..=path.len()).rev().find_map(module).map(|(name, _)| name.as_str())
    };
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, code) in modules {
        // The scope of a visibility is no import.
        let code = code.replace("(in crate::", "(");
        let mut imported: BTreeSet<&str> = paths(&code).into_iter().filter_map(import).collect();
        let children = modules.keys().filter_map(|other| Some((other, other.strip_prefix(name)?.strip_prefix("::")?)));
        imported.extend(children.filter(|(_, child)| names_child(&code, child)).map(|(other, _)| other.as_str()));
        imported.remove(name.as_str());
        imports.insert(name, imported);
    }
    loop {
        let modules_before = imports.len();
        let imported: BTreeSet<&str> = imports.values().flatten().copied().collect();
        imports.retain(|name, _| imported.contains(name));
        let left: BTreeSet<&str> = imports.keys().copied().collect();
        imports.retain(|_, imported| {
            imported.retain(|name| left.contains(name));
            !imported.is_empty()
        });
        if imports.len() == modules_before {
            return imports;
        }
    }
}

#[test]
fn no_files_import_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for layer in ACYCLIC {
        sources(&root.join(layer), &mut files);
    }
    let mut modules = BTreeMap::new();
    for path in files {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let code = code(&fs::read_to_string(&path).unwrap());
        assert!(!code.contains("super::"), "{file} imports by `super::`");
        modules.insert(file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::"), code);
    }
    assert!(modules.len() > 100);
    let cycles = cyclic(&modules);
    assert!(cycles.is_empty(), "{cycles:#?}");

    let found = |files: [(&str, &str); 3]| {
        let modules = files.iter().map(|(name, text)| ((*name).to_owned(), code(text))).collect();
        cyclic(&modules).into_keys().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let b = ("a::b", "use crate::{Error, a::Item};");
    assert_eq!(found([("a", "use crate::c::{b::d};\npub(in crate::a::b) fn f() {}"), b, ("c", "")]), [""; 0]);
    assert_eq!(found([("a", "pub use b::Item;"), b, ("c", "use crate::a::b;")]), ["a", "a::b"]);
    assert_eq!(found([("a", "fn f() { b::f() }"), b, ("c", "")]), ["a", "a::b"]);
    assert_eq!(found([("a", "use crate::c;"), b, ("c", "fn f() { crate::a::b::f() }")]), ["a", "a::b", "c"]);
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
    ("utoipa::", &["http", "model"]),
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
const VALUE_USERS: [&str; 11] = [
    "cli/board/show.rs",
    "cli/outbox.rs",
    "cli/verify.rs",
    "dev/demo/games.rs",
    "http/api/openapi.rs",
    "model/json.rs",
    "model/outbox.rs",
    "model/verification.rs",
    "queue/kafka.rs",
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
