//! Look-up of the servers' programs.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Result};

/// Minimum major version of PostgreSQL.
const POSTGRES_MIN: u32 = 15;

/// Returns the program folder and major version of the newest installed PostgreSQL, or of version
/// `only`.
///
/// Searches `PATH`, the folder that `pg_config` names, and the usual folders of distributions
/// outside `PATH`.
pub(crate) fn postgres(only: Option<u32>) -> Result<(PathBuf, u32)> {
    // Collect the folders that may contain the programs.
    let mut folders = search_path();
    if let Some(text) = output(Path::new("pg_config"), "--bindir") {
        folders.push(PathBuf::from(text));
    }
    // Debian and Ubuntu; Fedora and SUSE; Homebrew on ARM and Intel Macs.
    for (base, bin) in [
        ("/usr/lib/postgresql", "bin"),
        ("/usr", "bin"),
        ("/usr/lib", "bin"),
        ("/opt/homebrew/opt", "bin"),
        ("/usr/local/opt", "bin"),
    ] {
        let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
        let versions = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            base.ends_with("/postgresql") || name.starts_with("pgsql") || name.starts_with("postgresql")
        });
        folders.extend(versions.map(|path| path.join(bin)));
    }
    // Choose the newest version among them, or version `only`.
    let mut found: Option<(PathBuf, u32)> = None;
    for folder in folders {
        // Some distributions link only a few programs into PATH; the others are next to the link's
        // target.
        let Ok(program) = folder.join("postgres").canonicalize() else { continue };
        let Some(folder) = program.parent().map(Path::to_path_buf) else { continue };
        if !["initdb", "pg_ctl"].iter().all(|name| folder.join(name).is_file()) {
            continue;
        }
        let version = output(&program, "--version").as_deref().and_then(major_version).unwrap_or(0);
        let wanted = only.map_or(version >= POSTGRES_MIN, |only| version == only);
        if wanted && found.as_ref().is_none_or(|(_, best)| version > *best) {
            found = Some((folder, version));
        }
    }
    let version = only.map_or(format!("{POSTGRES_MIN} or newer"), |only| only.to_string());
    found.ok_or_else(|| {
        Error::Internal(format!(
            "no PostgreSQL server of version {version} is installed: run `make setup`, or put its programs in PATH"
        ))
    })
}

/// Returns the path of `redis-server` or of the compatible `valkey-server`.
pub(crate) fn redis() -> Result<PathBuf> {
    let folders = search_path();
    ["redis-server", "valkey-server"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .ok_or_else(|| Error::Internal("no Redis server is installed: run `make setup`".to_owned()))
}

fn search_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin"].map(PathBuf::from);
    env::split_paths(&path).filter(|folder| folder.is_absolute()).chain(usual).collect()
}

/// Returns the standard output of a program run with one flag.
pub(crate) fn output(program: &Path, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Parses the major version: 15 in `postgres (PostgreSQL) 15.6 (Debian 15.6-0+deb12u1)`, 19 in
/// `postgres (PostgreSQL) 19devel`.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_versions_are_parsed() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.6 (Debian 15.6-0+deb12u1)"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 19devel"), Some(19));
        assert_eq!(major_version("postgres"), None);
    }
}
