//! Stating what a host brings when it starts, although its database may not be there yet.

use std::time::Duration;

use crate::engine::error::causes;
use crate::operations::error::OperationError;

/// The pauses before further tries.
pub const PAUSES: [Duration; 5] = [
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
    Duration::from_secs(32),
];

/// Does something, again after each pause as long as it is the database that fails. What was asked wrongly fails at
/// once.
///
/// # Errors
/// That of the last try.
pub async fn patiently<T>(
    mut work: impl AsyncFnMut() -> Result<T, OperationError>,
    mut pause: impl AsyncFnMut(Duration),
) -> Result<T, OperationError> {
    for wait in PAUSES {
        match work().await {
            Err(OperationError::Store(error)) if error.is_transient() => {
                let (seconds, error) = (wait.as_secs(), causes(&error));
                tracing::warn!(error, seconds, "the database fails; it is tried again");
                pause(wait).await;
            }
            ended => return ended,
        }
    }
    work().await
}
