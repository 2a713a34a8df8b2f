//! Names of enum variants, derived by `strum`.

use std::str::FromStr;

use strum::VariantNames;

use crate::{Error, Result};

/// An enum whose variants have one name each: in the database, in JSON, in URLs and on the command
/// line.
pub trait Named: VariantNames + Into<&'static str> {
    fn name(self) -> &'static str {
        self.into()
    }
}

impl<T: VariantNames + Into<&'static str>> Named for T {}

/// Parses a name. [`Error::Invalid`] names `field` and lists the valid names.
pub fn parse<T: VariantNames + FromStr>(field: &str, text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::invalid(field, format!("{text:?} is not one of: {}", T::VARIANTS.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::board::{PeriodKind, Ties};

    #[test]
    fn names_are_snake_case() {
        assert_eq!((PeriodKind::AllTime.name(), "all_time".parse()), ("all_time", Ok(PeriodKind::AllTime)));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_valid_ones() {
        for bad in ["", "First", "first ", "\"><script>"] {
            let refused = parse::<Ties>("ties", bad).map_err(|error| error.to_string());
            assert_eq!(refused, Err(format!("ties: {bad:?} is not one of: shared, first, tiebreak, second")));
        }
    }
}
