//! Stop signals for commands that run until they are interrupted.

use std::{pin::pin, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::interval,
};
use tokio_util::sync::CancellationToken;

use crate::{Error, Result, cli::output};

/// Interval of progress lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Handler for SIGINT and SIGTERM. Once it exists, these signals no longer terminate the process.
#[derive(Debug)]
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
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

    /// Runs `job` to its end; a signal cancels its token. Notes the progress whenever it has changed.
    pub(super) async fn around(
        &mut self,
        progress: impl Fn() -> String,
        job: impl AsyncFnOnce(&CancellationToken) -> Result<()>,
    ) -> Result<()> {
        let stopping = CancellationToken::new();
        let mut job = pin!(job(&stopping));
        let mut ticks = interval(LINE_INTERVAL);
        let mut last = progress();
        loop {
            tokio::select! {
                result = &mut job => return result,
                _ = self.wait() => stopping.cancel(),
                _ = ticks.tick() => {
                    let now = progress();
                    if now != last {
                        output::note(&now);
                        last = now;
                    }
                }
            }
        }
    }
}
