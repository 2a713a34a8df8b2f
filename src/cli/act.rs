//! Flags that record who acts, and why.

use clap::Args;

use crate::{Error, Result, cli::by::By, model::act};

/// The actor and the reason, for the ledger and the audit log.
#[derive(Debug, Args)]
pub(super) struct ActFlags {
    /// Reason, up to 256 bytes
    ///
    /// Recorded in the audit log and, if a score changes, in the ledger.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    #[command(flatten)]
    by: By,
}

/// Validates a reason. Clap adds the name of the flag to the error.
pub(super) fn reason(text: &str) -> Result<String, String> {
    act::check_reason(text).map(|()| text.to_owned()).map_err(Error::without_field)
}

impl ActFlags {
    pub(super) fn has_reason(&self) -> bool {
        self.reason.is_some()
    }

    pub(super) fn read(self) -> Result<act::Act> {
        act::Act::new(self.by.actor()?, self.reason)
    }
}
