//! The properties of `make fuzz`, checked on its seeds: one input of each form, and every input
//! that has ever failed.

use std::{fs, path::Path};

#[path = "../fuzz/properties.rs"]
mod properties;

#[test]
fn the_seeds_satisfy_every_property() {
    for (target, property) in [
        ("period", properties::period as fn(&[u8])),
        ("key", properties::key),
        ("import", properties::import),
        ("metadata", properties::metadata),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(target);
        let mut seeds: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{target}");
        for seed in seeds {
            eprintln!("{}", seed.display());
            property(&fs::read(seed).unwrap());
        }
    }
}
