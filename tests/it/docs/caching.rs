//! docs/caching.md lists the keys of the cache, with their lifetimes.

use std::{collections::BTreeMap, fs};

use centile::cache::CacheKind;
use strum::VariantNames as _;

use super::root;

/// Returns all kinds of keys. A new variant does not compile here.
fn kinds() -> Vec<CacheKind> {
    let kinds = [CacheKind::Counts, CacheKind::Top { size: 100 }, CacheKind::ClosedTop];
    for kind in kinds {
        match kind {
            CacheKind::Counts | CacheKind::Top { .. } | CacheKind::ClosedTop => {}
        }
    }
    assert_eq!(kinds.len(), CacheKind::VARIANTS.len());
    kinds.to_vec()
}

#[test]
fn the_document_lists_all_keys_with_their_lifetimes() {
    let text = fs::read_to_string(root().join("docs/caching.md")).unwrap();
    assert!(text.lines().count() <= 100, "{} lines", text.lines().count());
    let listed: BTreeMap<String, String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `centile:"))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (cells[0].trim_end_matches('`').to_owned(), cells[1].to_owned())
        })
        .collect();
    let written: BTreeMap<String, String> = kinds()
        .into_iter()
        .map(|kind| {
            let key = kind.of("{board}", "{period}").to_string().replace(":100:", ":{size}:");
            let lifetime = kind.lifetime().map_or_else(|| "none".to_owned(), |time| format!("{} s", time.as_secs()));
            (key, lifetime)
        })
        .collect();
    assert_eq!(listed, written);
}
