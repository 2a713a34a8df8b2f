//! Prose wraps at 100 columns.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Tag};
use regex::Regex;

use super::{Document, documents, parse};

/// The longest line of prose, in characters.
const COLUMNS: usize = 100;

/// Returns the numbers of the lines of prose that are too long. Tables, code, headings and HTML may
/// be longer, and so may a line with a long address or a long list of arguments.
fn too_long(document: &Document) -> Vec<usize> {
    let unbreakable = Regex::new(r"\]\([^)\s]*\)|`[^`]{60,}`|<[^>]*>|^\s*\[[^\]]+\]:.*$|^\s*!\[.*$").unwrap();
    let mut exempt = BTreeSet::new();
    for (event, span) in parse(&document.text).into_offset_iter() {
        if let Event::Start(Tag::CodeBlock(_) | Tag::Table(_) | Tag::Heading { .. } | Tag::HtmlBlock) = event {
            let end = span.end.saturating_sub(1).max(span.start);
            exempt.extend(document.line(span.start)..=document.line(end));
        }
    }
    // `store::contract` generates these parts of sql/README.md from comments in the database.
    let mut is_generated = false;
    for (number, line) in document.text.lines().enumerate() {
        is_generated = (is_generated || line.starts_with("<!-- objects: ") || line == "<!-- internal -->")
            && line != "<!-- end -->";
        if is_generated {
            exempt.insert(number + 1);
        }
    }
    let is_long = |line: &str| {
        let text = unbreakable.replace_all(line, "");
        let text = text.trim();
        // A line break replaces a space.
        text.chars().count() > COLUMNS && text.contains(' ')
    };
    let lines = document.text.lines().enumerate().map(|(number, line)| (number + 1, line));
    lines.filter(|(number, line)| !exempt.contains(number) && is_long(line)).map(|(number, _)| number).collect()
}

#[test]
fn prose_wraps() {
    let documents = documents();
    let place = |document: &Document, line: usize| format!("{}:{line}", document.path);
    let found: Vec<String> = documents
        .iter()
        .flat_map(|document| too_long(document).into_iter().map(|line| place(document, line)).collect::<Vec<_>>())
        .collect();
    assert!(found.is_empty(), "more than {COLUMNS} columns:\n{}", found.join("\n"));
}

#[test]
fn long_lines_are_found() {
    let words = "word ".repeat(24);
    let long = "a".repeat(120);
    let text = format!(
        "# {words}\n\n{words}\n\n| {words} |\n| --- |\n| {words} |\n\n```\n{words}\n```\n\n    {words}\n\n\
         - {words}\n\n[x](https://a.example/{long}) and\n\n<img src=\"{long}\"> and\n\n[r]: https://a.example/{long}\n\n{long}\n\n\
         <!-- internal -->\n{words}\n<!-- end -->\n"
    );
    let document = Document { path: "a.md".to_owned(), text };
    assert_eq!(too_long(&document), [3, 15]);
}
