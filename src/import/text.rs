//! Reads lines of a file, and records of a CSV file, of bounded length.
//!
//! The `csv` crate does not bound records: one unclosed quote would read the rest of the file into
//! memory, and lose it. Here it costs only its own line.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, BufRead as _, BufReader, Read},
};

/// Maximum length of a line or record. A valid event has at most about 1,800 bytes, and JSON
/// may write each byte as six.
const MAX_BYTES: usize = 65_536;

/// Bytes kept of a longer one.
const KEPT_BYTES: usize = 1_000;

/// A byte order mark, which text editors may write before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Number of its first line, from 1.
    pub(super) number: u64,
    /// Without the line end; only the beginning if the line is too long.
    pub(super) bytes: Vec<u8>,
    /// Why it cannot be parsed.
    pub(super) fault: Option<&'static str>,
}

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    number: u64,
    /// Lines read ahead in search of a closing quote.
    returned: VecDeque<Text>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(1 << 18, input), number: 0, returned: VecDeque::new() }
    }

    /// Reads the next line that is not blank.
    pub(super) fn line(&mut self) -> io::Result<Option<Text>> {
        loop {
            match self.any_line()? {
                Some(text) if text.fault.is_none() && text.bytes.trim_ascii().is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    /// Reads the next CSV record (RFC 4180): one line, or several if quotes span line ends.
    pub(super) fn record(&mut self) -> io::Result<Option<Text>> {
        let Some(first) = self.line()? else { return Ok(None) };
        if first.fault.is_some() || fields(&first.bytes).is_some() {
            return Ok(Some(first));
        }
        let mut bytes = first.bytes.clone();
        let mut ahead = Vec::new();
        while let Some(next) = self.any_line()? {
            bytes.push(b'\n');
            bytes.extend_from_slice(&next.bytes);
            let too_long = next.fault.is_some() || bytes.len() > MAX_BYTES;
            let may_close = next.bytes.contains(&b'"');
            ahead.push(next);
            if too_long {
                break;
            }
            if may_close && fields(&bytes).is_some() {
                return Ok(Some(Text { bytes, ..first }));
            }
        }
        // Only the line with the unclosed quote is at fault; read the lines after it again.
        for line in ahead.into_iter().rev() {
            self.returned.push_front(line);
        }
        Ok(Some(Text { fault: Some("a quote is opened and not closed"), ..first }))
    }

    fn any_line(&mut self) -> io::Result<Option<Text>> {
        if let Some(text) = self.returned.pop_front() {
            return Ok(Some(text));
        }
        let mut bytes = Vec::with_capacity(128);
        let mut too_long = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            if buffer.is_empty() && bytes.is_empty() && !too_long {
                return Ok(None);
            }
            too_long |= bytes.len() + part.len() > MAX_BYTES;
            if too_long {
                bytes.extend_from_slice(&part[..part.len().min(KEPT_BYTES.saturating_sub(bytes.len()))]);
                bytes.truncate(KEPT_BYTES);
            } else {
                bytes.extend_from_slice(part);
            }
            let ended = end.is_some() || buffer.is_empty();
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if ended {
                break;
            }
        }
        self.number += 1;
        if bytes.last() == Some(&b'\r') && !too_long {
            bytes.pop();
        }
        if self.number == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(Text { number: self.number, bytes, fault: too_long.then_some("has more than 65,536 bytes") }))
    }
}

/// Splits a CSV record (RFC 4180) into fields; returns `None` while a quote is open.
///
/// Text after a closing quote is kept as it is.
pub(super) fn fields(record: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut fields = Vec::with_capacity(8);
    let mut rest = record;
    loop {
        let (field, after) = if let Some(quoted) = rest.strip_prefix(b"\"") {
            quoted_field(quoted)?
        } else {
            let (field, after) = until_comma(rest);
            (Cow::Borrowed(field), after)
        };
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => return Some(fields),
        }
    }
}

/// A field, and the rest of the record after its comma.
type FieldAndRest<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

/// Reads a field after its opening quote.
fn quoted_field(mut rest: &[u8]) -> Option<FieldAndRest<'_>> {
    let mut field = Vec::new();
    loop {
        let quote = rest.iter().position(|&byte| byte == b'"')?;
        field.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix(b"\"") {
            // Two quotes are an escaped quote.
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => break,
        }
    }
    let (tail, after) = until_comma(rest);
    field.extend_from_slice(tail);
    Some((Cow::Owned(field), after))
}

fn until_comma(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| byte == b',') {
        Some(comma) => (&text[..comma], Some(&text[comma + 1..])),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &[u8]) -> Vec<(u64, String, bool)> {
        let mut lines = Lines::new(text);
        let mut records = Vec::new();
        while let Ok(Some(record)) = lines.record() {
            let text = String::from_utf8_lossy(&record.bytes).into_owned();
            records.push((record.number, text, record.fault.is_some()));
        }
        records
    }

    #[test]
    fn all_line_ends_are_accepted_and_blank_lines_are_skipped() {
        let found = records(b"\xef\xbb\xbfa,b\r\n\r\n \n1,2\n3,4");
        let wanted = [(1, "a,b", false), (4, "1,2", false), (5, "3,4", false)];
        assert_eq!(found, wanted.map(|(number, text, fault)| (number, text.to_owned(), fault)));
    }

    #[test]
    fn quotes_span_lines_and_an_unclosed_one_costs_only_its_line() {
        let found = records(b"1,\"a\r\nb\"\"\n\",x\n2,\"never\n3,c\n4,d\n");
        let wanted = [(1, "1,\"a\nb\"\"\n\",x", false), (4, "2,\"never", true), (5, "3,c", false), (6, "4,d", false)];
        assert_eq!(found, wanted.map(|(number, text, fault)| (number, text.to_owned(), fault)));
    }

    #[test]
    fn a_line_of_10_mb_is_skipped_in_bounded_memory() {
        let long = [vec![b'x'; 10 << 20], b"\n1,2\n\"".to_vec(), vec![b'y'; 70_000], b"\n3,4".to_vec()].concat();
        let mut lines = Lines::new(&long[..]);
        let mut found = Vec::new();
        while let Ok(Some(record)) = lines.record() {
            assert!(record.bytes.capacity() <= 2 * MAX_BYTES, "{}", record.bytes.capacity());
            found.push((record.number, record.bytes.len(), record.fault.is_some()));
        }
        assert_eq!(found, [(1, 1_000, true), (2, 3, false), (3, 1_000, true), (4, 3, false)]);
    }

    #[test]
    fn fields_equal_those_of_the_csv_crate() {
        // All texts of up to seven of these bytes.
        let alphabet = *b"ab,\"";
        for number in 1..4_u32.pow(8) {
            let length = number.ilog2() / 2;
            let record: Vec<u8> = (0..length).map(|place| alphabet[(number >> (2 * place) & 3) as usize]).collect();
            let Some(found) = fields(&record).filter(|_| !record.is_empty()) else { continue };
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&record[..]);
            let theirs = reader.byte_records().next().and_then(Result::ok).unwrap_or_default();
            assert_eq!(found, theirs.iter().map(Cow::Borrowed).collect::<Vec<_>>(), "{record:?}");
        }
    }
}
