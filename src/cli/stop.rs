//! When a command that would go on for ever is asked to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{Error, Result};

/// The wish of the terminal (SIGINT) or the system (SIGTERM) that this process ends. From when it is made, these signals
/// do nothing but set it off.
#[derive(Debug)]
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Begins to listen.
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|error| Error::Internal(format!("cannot listen to signals: {error}")));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Returns the name of the signal that came.
    pub(super) async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
