//! Stop signals for commands that run until they are interrupted.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{Error, Result};

/// Handler for SIGINT and SIGTERM. Once it exists, these signals no longer terminate the process.
#[derive(Debug)]
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Installs the handler.
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|error| Error::Internal(format!("cannot handle signals: {error}")));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for a signal and returns its name.
    pub(super) async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
