//! Who acts.

use std::{env, fs, os::unix::fs::MetadataExt as _};

use clap::Args;

use crate::{Error, Result, model::act::Actor};

/// Who acts, for the audit log.
#[derive(Debug, Args)]
pub(super) struct By {
    /// Who does this; kept in the audit log. The account of the system unless given
    #[arg(long, env = "CENTILE_ACTOR", value_name = "NAME")]
    by: Option<String>,
}

impl By {
    /// The name given, or that of the account.
    pub(super) fn actor(&self) -> Result<Actor> {
        let account =
            || ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok()).filter(|name| !name.is_empty());
        // Cron, systemd and containers may set neither.
        let number = || fs::metadata("/proc/self").ok().map(|process| format!("uid {}", process.uid()));
        // A variable that is set to nothing is how some tools leave it out.
        let name = self.by.clone().filter(|name| !name.is_empty()).or_else(account).or_else(number);
        name.ok_or_else(|| Error::invalid("by", "is needed where USER is not set: who does this?"))?.parse()
    }
}
