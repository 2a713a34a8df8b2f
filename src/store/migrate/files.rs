//! The SQL files that define the schema.

use std::{borrow::Cow, collections::HashMap, fs, path::Path};

use sqlx::PgConnection;

use crate::{Error, Result, store::migrate::failed};

/// The files that `build.rs` embeds.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// Path of the file of grants.
const GRANTS: &str = "sql/grants.sql";

/// A file: its path in the repository, and its text.
pub(super) type File = (Cow<'static, str>, Cow<'static, str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum ServerKind {
    /// A server outside a cluster.
    Single,
    /// The server of a cluster that has everything but lanes.
    Coordinator,
    /// A server of a cluster that has lanes.
    Worker,
}

impl ServerKind {
    /// Returns what the connected server is.
    pub(super) async fn detect(connection: &mut PgConnection) -> Result<Self> {
        let (is_worker, is_coordinator) = sqlx::query_as(
            "SELECT to_regclass('centile_lanes.lanes') IS NOT NULL, to_regclass('centile_lanes.groups') IS NOT NULL",
        )
        .fetch_one(connection)
        .await
        .map_err(failed("look for the tables of a cluster"))?;
        Ok(match (is_worker, is_coordinator) {
            (true, _) => Self::Worker,
            (_, true) => Self::Coordinator,
            _ => Self::Single,
        })
    }

    /// The folders of functions that differ on the servers of a cluster.
    const FOLDERS: [&str; 3] = ["sql/cluster/coordinator", "sql/cluster/every_server", "sql/cluster/worker"];

    /// Returns the folders of functions that differ on this server.
    fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Single => &[],
            Self::Coordinator => &Self::FOLDERS[..2],
            Self::Worker => &Self::FOLDERS[1..],
        }
    }
}

/// All files that define the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// `migrations/*.sql`.
    pub(super) migrations: Vec<File>,
    /// `sql/functions/*.sql` and `sql/views/*.sql`.
    pub(super) objects: Vec<File>,
    /// `sql/cluster/*/*.sql`: the functions that differ on the servers of a cluster.
    pub(super) overrides: Vec<File>,
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
            overrides: list(embedded::OVERRIDES),
            grants: (Cow::Borrowed(GRANTS), Cow::Borrowed(include_str!("../../../sql/grants.sql"))),
        }
    }

    /// Reads the current files of the repository at `root`.
    ///
    /// For a tool that runs before a program with these files can be built.
    pub fn read(root: &Path) -> Result<Self> {
        let mut objects = list(root, "sql/functions")?;
        objects.append(&mut list(root, "sql/views")?);
        let mut overrides = Vec::new();
        for folder in ServerKind::FOLDERS {
            overrides.append(&mut list(root, folder)?);
        }
        let text = fs::read_to_string(root.join(GRANTS)).map_err(|error| unreadable(GRANTS, &error))?;
        let grants = (Cow::Borrowed(GRANTS), Cow::Owned(text));
        Ok(Self { migrations: list(root, "migrations")?, objects, overrides, grants })
    }

    /// Returns the functions and views for a server.
    pub(super) fn objects_of(&self, server: ServerKind) -> Vec<&File> {
        let overrides: HashMap<&str, &File> = self
            .overrides
            .iter()
            .filter_map(|file| {
                let (folder, name) = file.0.rsplit_once('/')?;
                server.folders().contains(&folder).then_some((name, file))
            })
            .collect();
        let name = |file: &File| file.0.rsplit_once('/').map_or("", |(_, name)| name).to_owned();
        self.objects.iter().map(|file| overrides.get(name(file).as_str()).copied().unwrap_or(file)).collect()
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
