//! The OpenAPI document is checked in: a change of the API is seen in review.

use std::{env, fs, path::Path};

/// Compares the document with `docs/openapi.json`; `UPDATE_SNAPSHOTS=1 cargo test http_openapi` writes it anew.
#[test]
fn the_document_is_the_checked_in_one() -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let current = centile::http::openapi().to_pretty_json()? + "\n";
    if env::var_os("UPDATE_SNAPSHOTS").is_some_and(|flag| flag == "1") {
        fs::write(&file, &current)?;
    }
    let checked_in = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        checked_in == current,
        "docs/openapi.json is not what the code says; look at the difference after UPDATE_SNAPSHOTS=1 cargo test \
         http_openapi"
    );
    Ok(())
}
