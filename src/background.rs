//! Background tasks of an instance. They end when it stops.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Interval of dropping the state of boards that are no longer used.
pub(crate) const UPKEEP_EVERY: Duration = Duration::from_mins(1);

/// The tasks of one instance.
#[derive(Debug, Clone, Default)]
pub struct Background {
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

impl Background {
    /// Runs a short job at this interval until the instance stops.
    pub(crate) fn repeat(&self, every: Duration, job: impl Fn() + Send + 'static) {
        self.spawn(async move {
            let mut ticks = tokio::time::interval(every);
            loop {
                ticks.tick().await;
                job();
            }
        });
    }

    /// Runs a task until it ends or the instance stops.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.stopping.clone().run_until_cancelled_owned(task));
    }

    /// Stops all tasks and waits for their end.
    pub(crate) async fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
