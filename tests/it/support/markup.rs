//! Reads pages by their tags. Centile writes its tags without optional spaces.

/// Returns the start tags of elements with this name.
pub fn elements<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("<{name}");
    let parts = page.split(&*begin).skip(1);
    parts.filter(|part| part.starts_with([' ', '>'])).map(|part| part.split('>').next().unwrap()).collect()
}

/// Returns the raw value of an attribute.
pub fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    element.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest.split('"').next().unwrap())
}

/// Returns the visible text of a part of a page.
pub fn text(part: &str) -> String {
    let texts = part.split('<').map(|part| part.rsplit_once('>').map_or(part, |(_, text)| text));
    texts.collect::<String>().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Returns the visible text of the body cells of the table with this caption.
#[track_caller]
pub fn table(page: &str, caption: &str) -> Vec<Vec<String>> {
    let begin = format!("<caption>{caption}</caption>");
    let (_, table) = page.split_once(&begin).unwrap_or_else(|| panic!("no table {caption:?} in {page}"));
    rows(table)
}

/// Returns the visible text of the body cells of the first table.
pub fn rows(page: &str) -> Vec<Vec<String>> {
    let body = page.split_once("<tbody>").unwrap().1.split_once("</tbody>").unwrap().0.replace("</th>", "</td>");
    let cells = |row: &str| row.split_inclusive("</td>").filter(|cell| cell.contains("</td>")).map(text).collect();
    body.split("</tr>").filter(|row| !row.is_empty()).map(cells).collect()
}

/// Parses a whole number in the format of the pages.
#[track_caller]
pub fn whole(text: &str) -> i64 {
    text.replace(',', "").replace('\u{2212}', "-").parse().unwrap_or_else(|_| panic!("{text:?} is no whole number"))
}
