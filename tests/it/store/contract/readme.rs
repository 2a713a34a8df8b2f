//! Reading `sql/README.md` and rendering its generated parts.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::session::{Object, READER, Session};

/// Its text when the tests were built.
pub const README: &str = include_str!("../../../../sql/README.md");

/// The command that creates the sample data's key, as in the README.
pub const KEY_COMMAND: [&str; 8] = ["key", "create", "--name", "game server", "--role", "server", "--board", "main"];

/// Returns its path.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/README.md")
}

/// Creates the sample data.
pub const SAMPLE: &str = include_str!("sample.sql");

/// A row of the table of SQLSTATEs.
pub struct SqlState {
    pub codes: Vec<String>,
    /// The constraint in the same row; empty if there is none.
    pub constraint: String,
    pub status: u16,
}

/// Parses the table under `| SQLSTATE |`.
pub fn sqlstates() -> Vec<SqlState> {
    let (_, table) = README.split_once("| SQLSTATE |").expect("sql/README.md has a table of SQLSTATEs");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let names = cells[0].split('`').map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned);
        let (codes, constraints): (Vec<String>, Vec<String>) = names.partition(|name| name.len() == 5);
        SqlState { codes, constraint: constraints.concat(), status: cells[2].parse().expect(row) }
    })
    .collect()
}

/// Returns the text with its generated parts rendered again.
pub async fn render(text: &str, session: &mut Session) -> String {
    let objects = session.objects().await;
    let mut left: BTreeSet<&str> =
        objects.iter().filter(|object| object.schema == "centile").map(|object| object.name.as_str()).collect();
    let (mut result, mut block) = (String::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        result.push_str(line);
        result.push('\n');
        let Some(marker) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else {
            if line == "```sql" {
                block.clear();
            } else {
                block.push_str(line);
                block.push('\n');
            }
            continue;
        };
        if marker == "sample" {
            continue;
        }
        if let Some(names) = marker.strip_prefix("objects: ") {
            for name in names.split(", ").map(|name| format!("centile.{name}")) {
                left.remove(name.as_str());
                let found: Vec<&Object> = objects.iter().filter(|object| object.name == name).collect();
                assert!(!found.is_empty(), "sql/README.md asks for {name}, which does not exist");
                for object in found {
                    result.push_str(&described(object, session).await);
                }
            }
        } else if marker == "internal" {
            result.push_str(&internal(&objects));
        } else if marker == "output" {
            let query = block.split_once("\n```").expect("a SQL block before it").0;
            result.push_str(&fenced("text", &session.run(Some(READER), query).await.expect(query)));
        } else {
            panic!("sql/README.md has an unknown marker: {line}");
        }
        let end = lines.find(|line| line.starts_with("<!-- "));
        assert_eq!(end, Some("<!-- end -->"), "after {line}");
        result.push_str("<!-- end -->\n");
    }
    assert!(left.is_empty(), "put these into one of the lists `<!-- objects: … -->` of sql/README.md: {left:#?}");
    result
}

/// Renders a view or function of the contract: sentence, signature or columns, example, output.
async fn described(object: &Object, session: &mut Session) -> String {
    let name = object.name.trim_start_matches("centile.");
    let shape = match (&object.columns, object.arguments.as_deref()) {
        (Some(columns), _) => format!("View; columns: `{columns}`\n"),
        (None, Some(arguments)) if !arguments.is_empty() => format!("Arguments: `{arguments}`\n"),
        _ => "No arguments.\n".to_owned(),
    };
    let example = object.example.as_deref().expect(name);
    let output = session.run(None, example).await.expect(example);
    let (sql, text) = (fenced("sql", example), fenced("text", &output));
    format!("### {name}\n{}\n\n{shape}\n{sql}{text}\n", object.sentence)
}

/// Returns a code block.
fn fenced(language: &str, text: &str) -> String {
    format!("```{language}\n{text}\n```\n")
}

/// Renders the list of functions that only the service calls.
fn internal(objects: &[Object]) -> String {
    let rows = objects.iter().filter(|object| object.schema == "centile_store").map(|object| {
        let name = object.name.trim_start_matches("centile_store.");
        format!("| `{name}` | {} |", object.sentence)
    });
    let heading = ["| function | what it does |", "| --- | --- |"].map(ToOwned::to_owned);
    heading.into_iter().chain(rows).collect::<Vec<_>>().join("\n") + "\n"
}

/// Returns the first line that differs, now and as expected.
pub fn first_difference(there: &str, wanted: &str) -> String {
    let (mut there, mut wanted) = (there.lines(), wanted.lines());
    loop {
        match (there.next(), wanted.next()) {
            (left, right) if left != right => {
                return format!("- {}\n+ {}", left.unwrap_or_default(), right.unwrap_or_default());
            }
            (None, None) => return String::new(),
            _ => {}
        }
    }
}
