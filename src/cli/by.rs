//! The flag that records who acts.

use std::{env, fs, os::unix::fs::MetadataExt as _};

use clap::Args;

use crate::{Error, Result, model::act::Actor};

/// The actor, for the audit log.
#[derive(Debug, Args)]
pub(super) struct By {
    /// Actor recorded in the audit log [default: the system account]
    #[arg(long, env = "CENTILE_ACTOR", value_name = "NAME")]
    by: Option<String>,
}

impl By {
    /// Returns the given name, or the name of the system account.
    pub(super) fn actor(&self) -> Result<Actor> {
        let account =
            || ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok()).filter(|name| !name.is_empty());
        // Cron, systemd and containers may set neither variable.
        let number = || fs::metadata("/proc/self").ok().map(|process| format!("uid {}", process.uid()));
        // Some tools leave a variable out by setting it to an empty string.
        let name = self.by.clone().filter(|name| !name.is_empty()).or_else(account).or_else(number);
        name.ok_or_else(|| Error::invalid("by", "is required if USER is not set"))?.parse()
    }
}
