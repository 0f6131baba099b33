//! Host time and entropy: the only readers of either.

use std::time::{Duration, Instant, SystemTime};

/// A clock that is read for durations. It never goes back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Clock {
    /// Now, for measuring how long something takes.
    #[expect(clippy::disallowed_methods, reason = "the one reader of host time")]
    pub fn instant(self) -> Instant {
        Instant::now()
    }

    /// Microseconds since 1970 on this machine's clock, for what is told to people and never compared across machines.
    #[expect(clippy::disallowed_methods, reason = "the one reader of host time")]
    pub fn unix_micros(self) -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    /// Waits this long.
    #[expect(clippy::disallowed_methods, reason = "the one place that waits for host time")]
    pub async fn sleep(self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits for the future, at most this long.
    ///
    /// # Errors
    /// [`Elapsed`](tokio::time::error::Elapsed) when it was not ready in time; it is dropped then.
    pub async fn timeout<F: Future>(
        self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, tokio::time::error::Elapsed> {
        tokio::time::timeout(limit, future).await
    }
}

/// Random bytes from the operating system, for keys and ids.
///
/// # Errors
/// The operating system's error when it has no randomness to give.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}
