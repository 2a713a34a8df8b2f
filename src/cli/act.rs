//! Who acts, and why.

use clap::Args;

use crate::{Error, Result, cli::by::By, model::act};

/// Who acts, and why, for ledger and audit log.
#[derive(Debug, Args)]
pub(super) struct Act {
    /// Why; kept in the audit log, and in the ledger where a score changes; up to 256 bytes
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    #[command(flatten)]
    by: By,
}

/// Checks a reason; clap names the flag at fault itself.
pub(super) fn reason(text: &str) -> Result<String, String> {
    act::check_reason(text).map(|()| text.to_owned()).map_err(|error| match error {
        Error::Invalid { message, .. } => message,
        other => other.to_string(),
    })
}

impl Act {
    /// The act, checked.
    pub(super) fn read(self) -> Result<act::Act> {
        act::Act::new(self.by.actor()?, self.reason)
    }
}
