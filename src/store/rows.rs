//! Rows and arrays that statements return.

use crate::{Error, Result};

/// Pairs the elements of two lists that belong together, in their order.
///
/// Returns [`Error::Internal`] with the name of the lists, `what`, if they differ in length. `zip`
/// would drop the rest of the longer one.
pub(crate) fn paired<L, R>(
    what: &'static str,
    left: L,
    right: R,
) -> Result<impl ExactSizeIterator<Item = (L::Item, R::Item)>>
where
    L: IntoIterator<IntoIter: ExactSizeIterator>,
    R: IntoIterator<IntoIter: ExactSizeIterator>,
{
    let (left, right) = (left.into_iter(), right.into_iter());
    if left.len() != right.len() {
        return Err(Error::Internal(format!("{what} differ in length: {} and {}", left.len(), right.len())));
    }
    Ok(left.zip(right))
}

/// Returns the elements of an array made by `array_agg`, which returns NULL for no rows.
pub(crate) fn elements<T>(array: Option<Vec<T>>) -> Vec<T> {
    array.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_different_length_are_an_error() {
        let pairs = |left, right| paired("ids and names", left, right).map(Iterator::collect::<Vec<_>>);
        assert_eq!(pairs(vec![1, 2], vec!["a", "b"]).ok(), Some(vec![(1, "a"), (2, "b")]));
        assert_eq!(pairs(Vec::new(), elements(None)).ok(), Some(Vec::new()));
        let error = pairs(vec![1, 2], vec!["a"]).map_err(|error| error.to_string());
        assert_eq!(error, Err("ids and names differ in length: 2 and 1".to_owned()));
    }
}
