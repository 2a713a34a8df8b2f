//! The SQL files that make the schema.

use std::{borrow::Cow, fs, path::Path};

use crate::{Error, Result};

/// The files, embedded by `build.rs`.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The file of rights.
const GRANTS: &str = "sql/grants.sql";

/// A file: its path inside the repository, and its text.
pub(super) type File = (Cow<'static, str>, Cow<'static, str>);

/// Everything that makes the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// `migrations/*.sql`.
    pub(super) migrations: Vec<File>,
    /// `sql/functions/*.sql` and `sql/views/*.sql`.
    pub(super) objects: Vec<File>,
    /// `sql/grants.sql`: who may do what with the objects, once all of them are there.
    pub(super) grants: File,
}

impl Files {
    /// The files that this program was built from.
    #[must_use]
    pub fn embedded() -> Self {
        let list = |files: &[(&'static str, &'static str)]| {
            files.iter().map(|&(path, text)| (Cow::Borrowed(path), Cow::Borrowed(text))).collect()
        };
        Self {
            migrations: list(embedded::MIGRATIONS),
            objects: list(embedded::OBJECTS),
            grants: (Cow::Borrowed(GRANTS), Cow::Borrowed(include_str!("../../../sql/grants.sql"))),
        }
    }

    /// The files as they are now in the repository at `root`: what a tool needs that has to run before a program with
    /// these files can be built.
    pub fn read(root: &Path) -> Result<Self> {
        let mut objects = list(root, "sql/functions")?;
        objects.append(&mut list(root, "sql/views")?);
        let text = fs::read_to_string(root.join(GRANTS)).map_err(|error| unreadable(GRANTS, &error))?;
        Ok(Self { migrations: list(root, "migrations")?, objects, grants: (Cow::Borrowed(GRANTS), Cow::Owned(text)) })
    }
}

/// The `.sql` files directly in `folder`, by name.
fn list(root: &Path, folder: &str) -> Result<Vec<File>> {
    let failed = |error: std::io::Error| unreadable(folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(folder)).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "sql") && !name.starts_with('.') {
            let text = fs::read_to_string(&path).map_err(failed)?;
            files.push((Cow::Owned(format!("{folder}/{name}")), Cow::Owned(text)));
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &str, error: &std::io::Error) -> Error {
    Error::Internal(format!("cannot read {path}: {error}"))
}
