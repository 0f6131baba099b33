//! A loop of the engine: bounded passes, made sooner by a nudge and always by a timer.

use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::error::{EngineError, causes};

/// Something the engine does again and again.
pub trait Service: Send {
    /// What one pass did.
    type Report: std::fmt::Debug + Send;

    /// What it is called in the log.
    const NAME: &'static str;

    /// The longest pause after passes that failed, if that is longer than the interval.
    const BACK_OFF_MAX: Duration = Duration::from_secs(30);

    /// Does one bounded piece of work. It takes nothing from the pass before: what it must know is in the store.
    fn pass(&mut self) -> impl Future<Output = Result<Self::Report, EngineError>> + Send;

    /// Whether there was more to do than one pass does.
    fn has_more(_: &Self::Report) -> bool {
        false
    }
}

/// Makes passes until told to stop. A pass that failed is made again after a longer pause each time, nudged or not.
pub(in crate::engine) async fn keep_passing<S: Service>(
    mut service: S,
    interval: Duration,
    nudge: &Notify,
    stop: CancellationToken,
) {
    let mut failures = 0_u32;
    while !stop.is_cancelled() {
        let pause = match service.pass().await {
            Ok(report) => {
                tracing::debug!(service = S::NAME, ?report, "passed");
                failures = 0;
                if S::has_more(&report) { Duration::ZERO } else { interval }
            }
            Err(error) => {
                let error = causes(&error);
                tracing::warn!(service = S::NAME, error, "a pass failed; it is made again");
                failures = failures.saturating_add(1);
                interval.saturating_mul(1 << failures.min(5)).min(S::BACK_OFF_MAX.max(interval))
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = nudge.notified(), if failures == 0 => {}
            () = Clock.sleep(pause) => {}
        }
    }
}
