//! Wake-ups of the dispatcher: as soon as something is queued in this process, or on any host that shares its Postgres.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::config::Shared;
use crate::engine::error::causes;
use crate::store::StoreError;

/// The pause after the first failure to listen. It doubles with each.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Nudges the dispatcher whenever this process has queued something, until told to stop.
pub(in crate::engine) async fn of_this_process(shared: Arc<Shared>, stop: CancellationToken) {
    let mut wakeups = shared.db.wakeups();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            news = wakeups.next() => match news {
                Some(()) => shared.dispatcher_nudge.notify_one(),
                None => return,
            },
        }
    }
}

/// Nudges the dispatcher whenever any host has queued something, until told to stop. A connection that is lost is made
/// again, after a longer pause each time.
pub(in crate::engine) async fn of_all_hosts(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        let listened = tokio::select! {
            () = stop.cancelled() => return,
            listened = listen(&shared, &mut failures) => listened,
        };
        let Err(error) = listened else { return };
        let error = causes(&error);
        tracing::warn!(
            error,
            "this host hears of queued work only when it looks, until it can listen again"
        );
        tokio::select! {
            () = stop.cancelled() => return,
            () = Clock.sleep(pause(failures)) => failures = failures.saturating_add(1),
        }
    }
}

/// Listens until the connection is lost; returns at once where nothing is told.
async fn listen(shared: &Shared, failures: &mut u32) -> Result<(), StoreError> {
    let Some(mut listener) = shared.db.listen().await? else { return Ok(()) };
    *failures = 0;
    loop {
        // Also once before the first news: something may have been queued while nobody listened.
        shared.dispatcher_nudge.notify_one();
        listener.next().await?;
    }
}

fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(5)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_half_a_minute() {
        let pauses: Vec<_> = [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(|n| pause(n).as_secs()).into();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
