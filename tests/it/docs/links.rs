//! Links and images lead somewhere. Addresses on the web are not fetched.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use pulldown_cmark::{BrokenLink, Event, LinkType, Parser, Tag, TagEnd};
use regex::Regex;
use reqwest::Url;

use super::{Document, OPTIONS, documents, files, parse};

/// Returns the anchor that GitHub gives a heading.
fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the anchors of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let id = Regex::new(r#"<[^>]*\s(?:id|name)="([^"]+)""#).unwrap();
    let (mut found, mut times) = (BTreeSet::new(), HashMap::<String, u32>::new());
    let mut heading = None::<String>;
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                // The second heading of the same text gets -1.
                let time = times.entry(slug.clone()).or_default();
                found.insert(if *time == 0 { slug } else { format!("{slug}-{time}") });
                *time += 1;
            }
            Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|heading| heading.push_str(&text)),
            Event::SoftBreak => heading.iter_mut().for_each(|heading| heading.push(' ')),
            Event::Html(html) | Event::InlineHtml(html) => {
                found.extend(id.captures_iter(&html).map(|captures| captures[1].to_owned()));
            }
            _ => {}
        }
    }
    found
}

/// Texts with their offsets in a document.
type Placed = Vec<(usize, String)>;

/// Returns the targets of all links and images; and the references that have no definition.
fn links(text: &str) -> (Placed, Placed) {
    let attribute = Regex::new(r#"\s(?:src|href)="([^"]*)""#).unwrap();
    let undefined = RefCell::new(Vec::new());
    let callback = |link: BrokenLink<'_>| {
        // `[text]` alone is usually no link.
        if matches!(link.link_type, LinkType::Reference | LinkType::Collapsed) {
            undefined.borrow_mut().push((link.span.start, link.reference.to_string()));
        }
        None
    };
    let mut found = Vec::new();
    for (event, span) in Parser::new_with_broken_link_callback(text, OPTIONS, Some(callback)).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                found.push((span.start, dest_url.to_string()));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                found.extend(attribute.captures_iter(&html).map(|captures| (span.start, captures[1].to_owned())));
            }
            _ => {}
        }
    }
    (found, undefined.into_inner())
}

/// Returns the path in the repository that `target` means in the file `from`.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns what is wrong with a target, if anything.
fn fault(
    document: &Document,
    target: &str,
    files: &BTreeSet<String>,
    anchors: &BTreeMap<String, BTreeSet<String>>,
) -> Option<&'static str> {
    if target.contains("://") {
        let is_well = Url::parse(target).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
        return (!is_well).then_some("no address on the web");
    }
    if target.starts_with('/') {
        return Some("a path from the root works on no page");
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let Some(path) = (if path.is_empty() { Some(document.path.clone()) } else { resolve(&document.path, path) }) else {
        return Some("outside the repository");
    };
    let folder = format!("{path}/");
    if !path.is_empty() && !files.contains(&path) && !files.iter().any(|file| file.starts_with(&folder)) {
        return Some("no such file in the repository");
    }
    let anchor = anchor?;
    let has = anchors.get(&path).is_some_and(|anchors| anchors.contains(anchor));
    (!has).then_some("no such heading")
}

/// Returns the faults of all links of these documents.
fn faults(documents: &[Document], files: &BTreeSet<String>) -> Vec<String> {
    let anchors = documents.iter().map(|document| (document.path.clone(), anchors(&document.text))).collect();
    let mut found = Vec::new();
    for document in documents {
        let (links, undefined) = links(&document.text);
        for (offset, target) in links {
            if let Some(fault) = fault(document, &target, files, &anchors) {
                found.push(format!("{}: {target}: {fault}", document.place(offset)));
            }
        }
        let undefined = undefined.into_iter();
        found.extend(undefined.map(|(offset, name)| format!("{}: [{name}] is not defined", document.place(offset))));
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let faults = faults(&documents(), &files());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let text = "# A `b` C!\n\n## A b C\n\n[1](b.md) [2](docs/) [3](#a-b-c-1) [4](docs/c.md#été_1) [5](https://a.example/b)\n\n\
        [6](d.md)\n[7](#a-b) <img src=\"no.png\"> [8](docs/c.md#a) `[9](no.md)` [10](../b.md) [11][no]\n\n\
        ```\n[12](no.md)\n```\n\n[13](https://) [14](/b.md) [15]: [x]\n";
    let document = |path: &str, text: &str| Document { path: path.to_owned(), text: text.to_owned() };
    let documents =
        [document("a.md", text), document("docs/c.md", "## Été_1\n[1](../a.md) <a id=\"x\"></a> [2](#x)\n")];
    let files = ["a.md", "b.md", "docs/c.md"].map(str::to_owned).into();
    let found = faults(&documents, &files);
    assert_eq!(
        found,
        [
            "a.md:7: d.md: no such file in the repository",
            "a.md:8: #a-b: no such heading",
            "a.md:8: no.png: no such file in the repository",
            "a.md:8: docs/c.md#a: no such heading",
            "a.md:8: ../b.md: outside the repository",
            "a.md:14: https://: no address on the web",
            "a.md:14: /b.md: a path from the root works on no page",
            "a.md:8: [no] is not defined",
        ]
    );
}
