//! Whether a run may be resumed at all, apart from its chain: the link to it is a column that anyone could set.

use crate::chain::resume::{Code, Refusal};
use crate::model::ids::RunId;
use crate::model::json::Json;

/// The run that another one resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its train.
    pub train: String,
    /// Its state, as it is shown.
    pub state: String,
    /// Whether it failed or was cancelled.
    pub is_failed: bool,
    /// Whether a run that resumed it has completed.
    pub is_resumed: bool,
    /// Its input, if it was stored.
    pub input: Option<String>,
}

/// Allows the resume of a run by a run of this train on this input.
///
/// # Errors
/// The first reason against it.
pub fn check(
    run: RunId,
    source: Option<&Source>,
    train: &str,
    input: Option<&str>,
) -> Result<(), Refusal> {
    let Some(source) = source else {
        return Err(Refusal::new(Code::UnknownRun, format!("no run {run} exists.")));
    };
    if source.train != train {
        let message = format!("run {run} is a run of train '{}', not of this train.", source.train);
        return Err(Refusal::new(Code::AnotherTrain, message));
    }
    if !source.is_failed {
        let message = format!(
            "run {run} is {}; only a failed or cancelled run can be resumed.",
            source.state
        );
        return Err(Refusal::new(Code::NotFailed, message));
    }
    if source.is_resumed {
        let message = format!(
            "a resume of run {run} already completed, so its work is done. Requeue it to run it again from the top."
        );
        return Err(Refusal::new(Code::AlreadyResumed, message));
    }
    if !is_same_input(source.input.as_deref(), input) {
        let message = format!(
            "run {run} ran on a different input, so its checkpoints hold state computed for another request."
        );
        return Err(Refusal::new(Code::DifferentInput, message));
    }
    Ok(())
}

/// Whether two stored inputs are the same: as JSON, whatever the order of members. An input that was not stored counts
/// as the same; what is not JSON must be equal byte by byte.
pub fn is_same_input(stored: Option<&str>, now: Option<&str>) -> bool {
    let Some(stored) = stored else { return true };
    let now = now.unwrap_or("null");
    match (Json::parse(stored), Json::parse(now)) {
        (Ok(stored), Ok(now)) => stored.to_string() == now.to_string(),
        _ => stored == now,
    }
}
