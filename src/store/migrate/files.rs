//! The SQL files that define the schema.

use std::{borrow::Cow, fs, path::Path};

use crate::{Error, Result};

/// The files that `build.rs` embeds.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// Path of the file of grants.
const GRANTS: &str = "sql/grants.sql";

/// A file: its path in the repository, and its text.
pub(super) type File = (Cow<'static, str>, Cow<'static, str>);

/// All files that define the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// `migrations/*.sql`.
    pub(super) migrations: Vec<File>,
    /// `sql/functions/*.sql` and `sql/views/*.sql`.
    pub(super) objects: Vec<File>,
    /// `sql/grants.sql`: the privileges on all objects, applied after they exist.
    pub(super) grants: File,
}

impl Files {
    /// Returns the files that this program was built from.
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

    /// Reads the current files of the repository at `root`.
    ///
    /// For a tool that runs before a program with these files can be built.
    pub fn read(root: &Path) -> Result<Self> {
        let mut objects = list(root, "sql/functions")?;
        objects.append(&mut list(root, "sql/views")?);
        let text = fs::read_to_string(root.join(GRANTS)).map_err(|error| unreadable(GRANTS, &error))?;
        Ok(Self { migrations: list(root, "migrations")?, objects, grants: (Cow::Borrowed(GRANTS), Cow::Owned(text)) })
    }
}

/// Returns the `.sql` files directly in `folder`, by name.
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
