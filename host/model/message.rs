//! Texts that operators read in rows and rely on, word for word.

/// Why a manifest became a dead letter.
pub fn retries_exceeded(failures: i64, max_retries: i32) -> String {
    format!("Max retries exceeded: ({failures}) failures > ({max_retries}) max retries")
}

/// Why a run failed whose host is gone.
pub fn host_lost(host: &str) -> String {
    format!("Host '{host}' stopped giving signs of life while the run was in progress")
}

/// Why a run failed whose input is none of its train.
pub fn unreadable_input(entry: &str, input_type: &str, cause: &str) -> String {
    format!(
        "The input of {entry} could not be read as '{input_type}', so it was not dispatched: {cause}"
    )
}

/// Why an entry cannot run whose train nobody has deployed.
pub fn unknown_train(train: &str) -> String {
    format!("no active component declares '{train}'; deploy one")
}

/// Why an attempt to dispatch an entry failed that is queued again.
pub fn dispatch_requeued(attempt: i32, max: i32, exception: &str, reason: &str) -> String {
    format!(
        "Dispatch attempt {attempt} of {max} failed and the job was requeued: {exception}: {reason}"
    )
}

/// What everybody is told of a run that failed before it started; its record says why.
pub const DISPATCH_FAILED: &str =
    "The run could not be dispatched, so it never started. See the run's record for the cause.";

#[cfg(test)]
mod tests {
    use super::*;

    /// M7: the reason of a dead letter names both numbers.
    #[test]
    fn a_dead_letter_says_how_often_it_failed() {
        assert_eq!(retries_exceeded(4, 3), "Max retries exceeded: (4) failures > (3) max retries");
    }
}
