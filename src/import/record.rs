//! Records of imported files: CSV records and NDJSON lines.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{Error, Result, import::text};

/// A parsed and checked record of a file.
pub(crate) trait Record: Sized + Send + 'static {
    /// A column of a CSV file, or a member of an NDJSON line.
    type Column: Copy + PartialEq + Send + 'static;
    type Rules: Send + Sync + 'static;
    /// The names of the columns. A column may have several names.
    const COLUMNS: &'static [(&'static str, Self::Column)];
    /// The columns that a CSV file must have.
    const REQUIRED: &'static [Self::Column];

    fn from_csv(rules: &Self::Rules, columns: &[Self::Column], record: &[u8]) -> Result<Self>;

    fn from_json(rules: &Self::Rules, line: &[u8]) -> Result<Self>;
}

/// Parses the header of a CSV file; returns its columns in order.
pub(super) fn header<R: Record>(record: &[u8]) -> Result<Vec<R::Column>> {
    let names = std::str::from_utf8(record).map_err(|_| bad_header("is not UTF-8"))?;
    let names = text::fields(names.as_bytes()).unwrap_or_default();
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let name = String::from_utf8_lossy(&name).trim().to_owned();
        let known = R::COLUMNS.iter().find(|(known, _)| *known == name);
        let Some((_, column)) = known else {
            let all: Vec<&str> = R::COLUMNS.iter().map(|(name, _)| *name).collect();
            let all = all.join(", ");
            return Err(bad_header(&format!("names the column {:?}; known are {all}", shortened(&name))));
        };
        if columns.contains(column) {
            return Err(bad_header(&format!("names the column {name:?} twice")));
        }
        columns.push(*column);
    }
    for (name, needed) in R::COLUMNS.iter().filter(|(_, column)| R::REQUIRED.contains(column)) {
        if !columns.contains(needed) {
            return Err(bad_header(&format!("lacks the column {name:?}")));
        }
    }
    Ok(columns)
}

fn bad_header(message: &str) -> Error {
    Error::invalid("file", format!("the header {message}"))
}

/// Splits a CSV record into the values of its columns. An empty field is absent.
pub(super) fn csv_values<'a, C: Copy>(columns: &[C], record: &'a [u8]) -> Result<Vec<(C, Option<Cow<'a, str>>)>> {
    let record = utf8(record)?;
    let values = text::fields(record.as_bytes()).unwrap_or_default();
    if values.len() != columns.len() {
        return Err(Error::Malformed(format!("has {} fields; the header names {}", values.len(), columns.len())));
    }
    let value = |(column, value): (&C, Cow<'a, [u8]>)| {
        let value = match value {
            Cow::Borrowed(value) => std::str::from_utf8(value).map(Cow::Borrowed).ok(),
            Cow::Owned(value) => String::from_utf8(value).map(Cow::Owned).ok(),
        };
        (*column, value.filter(|value| !value.is_empty()))
    };
    Ok(columns.iter().zip(values).map(value).collect())
}

/// Parses the members of an NDJSON line.
pub(super) fn json_members<'a, M: Deserialize<'a>>(line: &'a [u8]) -> Result<M> {
    let line = utf8(line)?;
    if !line.trim_start().starts_with('{') {
        return Err(Error::Malformed("must be a JSON object".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_str(line);
    let members = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, reason) = (error.path().to_string(), reason(error.inner()));
        if path == "." { Error::Malformed(reason) } else { Error::invalid(path, reason) }
    })?;
    reader.end().map_err(|error| Error::Malformed(reason(&error)))?;
    Ok(members)
}

/// Describes a JSON error without its line, which counts within the record.
fn reason(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes)
        .map_err(|error| Error::Malformed(format!("is not UTF-8 from byte {} on", error.valid_up_to() + 1)))
}

/// Shortens a text for an error message.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
