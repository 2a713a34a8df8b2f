//! Whom PostgreSQL runs as, and where that account can keep its data.
//!
//! PostgreSQL refuses to run as root. When we are root it runs as another account, which needs a folder of its own that
//! it can reach; a checkout below root's home is not one.

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

/// An account by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account that PostgreSQL has to run as: `None` for our own, another one when we are root.
    pub(crate) fn for_postgres() -> Result<Option<Self>> {
        if id("-u", None) != Some(0) {
            return Ok(None);
        }
        ["postgres", "_postgres", "nobody"]
            .iter()
            .find_map(|name| Some(Self { uid: id("-u", Some(name))?, gid: id("-g", Some(name))? }))
            .map(Some)
            .ok_or_else(|| {
                Error::Internal("PostgreSQL does not run as root, and there is no account \"postgres\"".into())
            })
    }

    /// Makes `command` run as this account (and none of root's groups).
    pub(crate) fn apply(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives a file or folder to this account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(failed(&format!("give {} away", path.display())))
    }

    /// Whether this account gets into `dir`, past all folders above it.
    fn reaches(self, dir: &Path) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", r#"cd "$1" && [ -w . ]"#, "sh"]).arg(dir).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.apply(&mut command);
        command.status().is_ok_and(|status| status.success())
    }
}

/// The folder where the server is to live: `dir` itself or, when `account` cannot reach it, a folder of the same
/// purpose under `/var/tmp`, named after a hash of `dir` so that the next start finds it again; a link `elsewhere` in
/// `dir` leads there.
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
        // Anybody may make a folder of this name there: only root's or the account's own will do.
        let ours = made || found.is_dir() && [0, account.uid].contains(&found.uid());
        if ours && claim(&away, account)? {
            // So that whoever looks into the project finds it, and `make clean` does.
            let link = dir.join("elsewhere");
            fs::remove_file(&link).ok();
            symlink(&away, &link).map_err(failed(&format!("make {}", link.display())))?;
            return Ok(away);
        }
    }
    Err(Error::Internal(format!("PostgreSQL's account cannot reach {}, nor /var/tmp", dir.display())))
}

/// Gives `dir` to the account; tells whether it can get there.
fn claim(dir: &Path, account: Account) -> Result<bool> {
    account.own(dir)?;
    restrict(dir)?;
    Ok(account.reaches(dir))
}

/// Makes `dir` its owner's only, as PostgreSQL wants it.
fn restrict(dir: &Path) -> Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed(&format!("restrict {}", dir.display())))
}

/// Makes a folder and those above it; gives its absolute path.
pub(crate) fn make(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir).and_then(|()| dir.canonicalize()).map_err(failed(&format!("make {}", dir.display())))
}

/// What `id` says.
fn id(flag: &str, name: Option<&str>) -> Option<u32> {
    match name {
        None => output(Path::new("id"), flag)?.parse().ok(),
        Some(name) => {
            let output = Command::new("id").args([flag, name]).stderr(Stdio::null()).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        }
    }
}
