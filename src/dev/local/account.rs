//! The system account that runs PostgreSQL, and its data folder.
//!
//! PostgreSQL refuses to run as root. If this process is root, PostgreSQL runs as another account,
//! which needs a folder that it can reach. A checkout in root's home is not reachable.

use std::{
    fs,
    os::unix::{
        fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::{
    Error, Result,
    dev::local::{process::failed, program::output},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Returns the account for PostgreSQL: `None` for the current account, another one if that is
    /// root.
    pub(crate) fn for_postgres() -> Result<Option<Self>> {
        if id("-u", None) != Some(0) {
            return Ok(None);
        }
        ["postgres", "_postgres", "nobody"]
            .iter()
            .find_map(|name| Some(Self { uid: id("-u", Some(name))?, gid: id("-g", Some(name))? }))
            .map(Some)
            .ok_or_else(|| {
                Error::Internal("PostgreSQL does not run as root, and no account \"postgres\" exists".into())
            })
    }

    /// Runs `command` as this account, without root's groups.
    pub(crate) fn apply(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Changes the owner of a file or folder to this account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(failed(&format!("change the owner of {}", path.display())))
    }

    /// Returns whether this account can enter and write `dir`.
    fn reaches(self, dir: &Path) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", r#"cd "$1" && [ -w . ]"#, "sh"]).arg(dir).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.apply(&mut command);
        command.status().is_ok_and(|status| status.success())
    }
}

/// Returns the server's folder: `dir`, or a folder in `/var/tmp` if `account` cannot reach `dir`.
///
/// The name of the other folder is a hash of `dir`, so that the next start finds it. The link
/// `elsewhere` in `dir` points to it.
pub(crate) fn home(dir: &Path, account: Option<Account>) -> Result<PathBuf> {
    let Some(account) = account else {
        return restrict(dir).map(|()| dir.to_path_buf());
    };
    if claim(dir, account)? {
        return Ok(dir.to_path_buf());
    }
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(dir.as_os_str().as_encoded_bytes()));
    let name = format!("centile-{}", &hash[..16]);
    for base in ["/var/tmp", "/tmp"] {
        let away = Path::new(base).join(&name);
        let made = fs::DirBuilder::new().mode(0o700).create(&away).is_ok();
        let Ok(found) = fs::symlink_metadata(&away) else { continue };
        // Any user may create a folder of this name: accept only one owned by root or the account.
        let ours = made || found.is_dir() && [0, account.uid].contains(&found.uid());
        if ours && claim(&away, account)? {
            // Developers and `make clean` find the folder by this link.
            let link = dir.join("elsewhere");
            fs::remove_file(&link).ok();
            symlink(&away, &link).map_err(failed(&format!("create {}", link.display())))?;
            return Ok(away);
        }
    }
    Err(Error::Internal(format!("PostgreSQL's account can reach neither {} nor /var/tmp", dir.display())))
}

/// Changes the owner of `dir` to the account. Returns whether the account can reach it.
fn claim(dir: &Path, account: Account) -> Result<bool> {
    account.own(dir)?;
    restrict(dir)?;
    Ok(account.reaches(dir))
}

/// Restricts `dir` to its owner, as PostgreSQL requires.
fn restrict(dir: &Path) -> Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed(&format!("restrict {}", dir.display())))
}

/// Creates a folder and its parents. Returns its absolute path.
pub(crate) fn make(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir).and_then(|()| dir.canonicalize()).map_err(failed(&format!("create {}", dir.display())))
}

/// Returns the number that the program `id` prints.
fn id(flag: &str, name: Option<&str>) -> Option<u32> {
    match name {
        None => output(Path::new("id"), flag)?.parse().ok(),
        Some(name) => {
            let output = Command::new("id").args([flag, name]).stderr(Stdio::null()).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        }
    }
}
