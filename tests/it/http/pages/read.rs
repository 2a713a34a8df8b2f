//! An HTML parser for the pages: elements in order, their attributes, and the text between them.

/// Names and values of an element's attributes.
type Attributes = Vec<(String, String)>;

/// A part of a page.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Start(String, Attributes),
    End(String),
    Text(String),
}

/// Decodes the entities of a text.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

fn attributes(mut text: &str) -> Attributes {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() || text == "/" {
            return found;
        }
        let end = text.find([' ', '=']).unwrap_or(text.len());
        let name = text[..end].to_owned();
        text = &text[end..];
        let Some(quoted) = text.strip_prefix("=\"") else {
            found.push((name, String::new()));
            continue;
        };
        let end = quoted.find('"').expect("a value ends");
        found.push((name, unescaped(&quoted[..end])));
        text = &quoted[end + 1..];
    }
}

fn tokens(page: &str) -> Vec<Token> {
    let (mut found, mut left) = (Vec::new(), page);
    while let Some(at) = left.find('<') {
        if at > 0 {
            found.push(Token::Text(unescaped(&left[..at])));
        }
        let inside = &left[at + 1..];
        // A quoted `>` does not end the tag.
        let mut is_quoted = false;
        let end = inside
            .find(|c: char| {
                is_quoted ^= c == '"';
                c == '>' && !is_quoted
            })
            .expect("an element ends");
        let element = &inside[..end];
        left = &inside[end + 1..];
        if let Some(name) = element.strip_prefix('/') {
            found.push(Token::End(name.to_owned()));
        } else {
            let (name, rest) = element.split_once(' ').unwrap_or((element, ""));
            found.push(Token::Start(name.to_owned(), attributes(rest)));
        }
    }
    found
}

/// Returns all elements with their attributes.
pub fn elements(page: &str) -> Vec<(String, Attributes)> {
    let starts = tokens(page).into_iter();
    starts
        .filter_map(|token| match token {
            Token::Start(name, attributes) => Some((name, attributes)),
            _ => None,
        })
        .collect()
}

/// Returns the targets of a page's links.
pub fn links(page: &str) -> Vec<String> {
    let anchors = elements(page).into_iter().filter(|(name, _)| name == "a");
    anchors.flat_map(|(_, attributes)| attributes).filter(|(name, _)| name == "href").map(|(_, value)| value).collect()
}

/// Returns the parts within each element that `is_wanted`.
fn within(page: &str, is_wanted: impl Fn(&[(String, String)]) -> bool) -> Vec<Vec<Token>> {
    let mut found: Vec<Vec<Token>> = Vec::new();
    let mut open: Option<(String, usize)> = None;
    for token in tokens(page) {
        match (&mut open, &token) {
            (None, Token::Start(name, attributes)) if is_wanted(attributes) => {
                open = Some((name.clone(), 1));
                found.push(Vec::new());
                continue;
            }
            (None, _) => continue,
            (Some((name, depth)), Token::Start(other, _)) if name == other => *depth += 1,
            (Some((name, depth)), Token::End(other)) if name == other => *depth -= 1,
            _ => {}
        }
        if open.as_ref().is_some_and(|(_, depth)| *depth == 0) {
            open = None;
        } else if let Some(last) = found.last_mut() {
            last.push(token);
        }
    }
    found
}

fn has(attributes: &[(String, String)], name: &str, value: &str) -> bool {
    attributes.iter().any(|(other, has)| other == name && has == value)
}

fn text(tokens: &[Token]) -> String {
    let texts = tokens.iter().filter_map(|token| match token {
        Token::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Returns the texts of the elements with this `data-live` name.
pub fn texts(page: &str, live: &str) -> Vec<String> {
    within(page, |attributes| has(attributes, "data-live", live)).iter().map(|tokens| text(tokens)).collect()
}

/// Returns the number in the element with this `data-live` name.
pub fn data(page: &str, live: &str) -> String {
    let found = within(page, |attributes| has(attributes, "data-live", live));
    let [tokens] = &found[..] else { panic!("{} elements {live}", found.len()) };
    value(tokens)
}

fn value(tokens: &[Token]) -> String {
    let values = tokens.iter().filter_map(|token| match token {
        Token::Start(name, attributes) if name == "data" => attributes.iter().find(|(name, _)| name == "value"),
        _ => None,
    });
    values.map(|(_, value)| value.clone()).next().expect("a number")
}

/// Returns the cells of each row of the first table in `text`, found by their classes: the parts
/// within each. Also returns the attributes of the row.
fn cells<const N: usize>(text: &str, classes: [&str; N]) -> Vec<(Attributes, [Vec<Token>; N])> {
    let (_, body) = text.split_once("<tbody>").expect("a body");
    let (body, _) = body.split_once("</tbody>").expect("its end");
    let lines = body.split("<tr").skip(1).map(|line| format!("<tr{line}"));
    lines
        .map(|line| {
            let cell = |class: &str| {
                let found = within(&line, |attributes| has(attributes, "class", class));
                found.into_iter().next().unwrap_or_else(|| panic!("no {class} in {line}"))
            };
            (elements(&line).swap_remove(0).1, classes.map(cell))
        })
        .collect()
}

fn id(attributes: &[(String, String)]) -> String {
    attributes.iter().find(|(name, _)| name == "data-user").expect("an id").1.clone()
}

/// Returns id, name, rank and score of each row of the table with this name.
pub fn rows(page: &str, table: &str) -> Vec<[String; 4]> {
    let Some(at) = page.find(&format!("<table data-live=\"{table}\"")) else { return Vec::new() };
    let rows = cells(&page[at..], ["name", "rank", "score"]).into_iter();
    rows.map(|(row, [name, rank, score])| [id(&row), text(&name), value(&rank), value(&score)]).collect()
}

/// Returns id and change of position of each row of the ranking.
pub fn changes(page: &str) -> Vec<[String; 2]> {
    let at = page.find("<table data-live=\"top\"").expect("a ranking");
    cells(&page[at..], ["move"]).into_iter().map(|(row, [change])| [id(&row), text(&change)]).collect()
}

/// Returns date, rank and score of each row of the table of a player's progress.
pub fn progress(page: &str) -> Vec<[String; 3]> {
    let at = page.find("<figure class=\"chart progress\"").expect("a chart");
    let number = |cell: &[Token]| if text(cell) == "none" { "none".to_owned() } else { value(cell) };
    let date = |cell: &[Token]| match &cell[0] {
        Token::Start(_, attributes) => {
            attributes.iter().find(|(name, _)| name == "datetime").expect("a date").1.clone()
        }
        other => panic!("{other:?}"),
    };
    let rows = cells(&page[at..], ["name", "rank", "score"]).into_iter();
    rows.map(|(_, [name, rank, score])| [date(&name), number(&rank), number(&score)]).collect()
}
