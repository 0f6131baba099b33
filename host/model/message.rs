//! Texts that operators read in rows and rely on, word for word.

/// Why a manifest became a dead letter.
pub fn retries_exceeded(failures: i64, max_retries: i32) -> String {
    format!("Max retries exceeded: ({failures}) failures > ({max_retries}) max retries")
}

/// Why a run failed that nobody picked up.
pub const STALE_PENDING: &str = "Job was not picked up within the configured stale pending timeout";

/// Why a run failed that did not stop.
pub const STALE_IN_PROGRESS: &str =
    "Job was stuck InProgress beyond the configured stale in-progress timeout";

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

/// Why a manifest cannot be stated that depends on one there is not.
pub fn parent_missing(parent: &str) -> String {
    format!(
        "Parent manifest with ExternalId '{parent}' not found. Ensure the parent manifest is scheduled before its \
         dependents."
    )
}

/// Why manifests cannot be stated whose groups wait for each other.
pub fn group_cycle(groups: &[&str]) -> String {
    format!(
        "Circular dependency detected among manifest groups: [{}]. Manifest groups must form a directed acyclic graph \
         (DAG).",
        groups.join(", ")
    )
}

/// What everybody is told of a run that failed before it started; its record says why.
pub const DISPATCH_FAILED: &str =
    "The run could not be dispatched, so it never started. See the run's record for the cause.";

/// How many entries were queued together.
pub fn entries_created(count: i64) -> String {
    format!("{count} work queue entry(s) created.")
}

/// Why none of many inputs is queued: that one, counted from 0.
pub fn of_input(index: usize, refusal: &str) -> String {
    format!("Input {}: {}; nothing was queued.", index + 1, refusal.trim_end_matches('.'))
}

/// Why inputs are too many to be queued together.
pub fn too_many_inputs(count: usize, max: usize) -> String {
    format!("{count} inputs are more than the {max} that are queued together. Nothing was queued.")
}

/// Why there is no decision to label.
pub fn decision_not_found(decision: i64) -> String {
    format!("Decision {decision} not found.")
}

/// Why a decision cannot be labelled that another trax recorded.
pub fn decision_unreadable(decision: i64) -> String {
    format!("The question of decision {decision} cannot be read.")
}

/// Why a decision cannot be labelled with what was said.
pub fn decision_not_labelled(problem: &str) -> String {
    format!("The label is none of the question's answers: {problem}.")
}

/// Why a decision cannot be labelled by somebody without a name.
pub const DECISION_LABELLED_BY_NOBODY: &str =
    "Say who labels the decision, in 1 to 100 characters.";

/// What a label came to.
pub fn decision_labelled(decision: i64) -> String {
    format!("Decision {decision} labelled.")
}

/// Why a dead letter cannot be resolved.
pub const DEAD_LETTER_GONE: &str = "Dead letter not found or already resolved";

/// That a dead letter was requeued, and whether its entry asks afresh although it would have replayed.
pub fn dead_letter_requeued(ask_afresh: i64) -> String {
    format!("Dead letter requeued{}", asked_afresh(ask_afresh))
}

/// How many requeued entries ask afresh although they would have replayed.
fn asked_afresh(count: i64) -> String {
    if count == 0 {
        return String::new();
    }
    format!(
        " {count} ask their deciders afresh: the decisions they would have replayed are already replayed by another run \
         or queued entry, and are replayed once."
    )
}

/// That a dead letter was acknowledged.
pub const DEAD_LETTER_ACKNOWLEDGED: &str = "Dead letter acknowledged";

/// Why a batch of nothing does nothing.
pub const NO_IDS: &str = "No ids were given.";

/// Why a batch is not taken.
pub fn too_many_ids(most: usize, given: usize) -> String {
    format!("At most {most} ids can be given at once; {given} were.")
}

/// Why a dead letter was not requeued; without the entry when that came meanwhile.
pub fn dead_letter_left(entry: Option<i64>) -> String {
    let entry = entry.map(|entry| format!(" (WorkQueue {entry})")).unwrap_or_default();
    format!(
        "The manifest already has a queued entry{entry}; the dead letter is left awaiting intervention."
    )
}

/// What requeueing many dead letters came to.
pub fn dead_letters_requeued(resolved: i64, folded: i64, skipped: i64, ask_afresh: i64) -> String {
    let part = |count: i64, what: &str| {
        if count > 0 { format!("; {count} {what}") } else { String::new() }
    };
    let folded = part(folded, "folded into another dead letter's entry for the same manifest");
    let skipped = part(skipped, "skipped because their manifest already has a queued entry");
    let afresh = asked_afresh(ask_afresh);
    format!("{resolved} dead letter(s) requeued{folded}{skipped}.{afresh}")
}

/// What a job that requeues all dead letters says before its first page.
pub fn requeue_job_started(awaiting: i64) -> String {
    format!("Requeueing {awaiting} dead letter(s) awaiting intervention.")
}

/// What a job that requeues all dead letters says after a page.
pub fn requeue_job_so_far(processed: i64, awaiting_at_start: i64) -> String {
    format!(
        "Requeued {processed} of {awaiting_at_start} dead letter(s) awaiting intervention so far."
    )
}

/// What a job that requeues all dead letters says when the store gave up on a page.
pub const REQUEUE_JOB_FAILED: &str = "\
    The requeue stopped on a server failure; the server's log has the detail. Dead letters it requeued stay \
    requeued; requeueAllDeadLetters again requeues the rest.";

/// What a job that requeues all dead letters says when its node stopped.
pub const REQUEUE_JOB_CANCELED: &str = "\
    The requeue stopped because the server was shutting down. Dead letters it requeued stay requeued; \
    requeueAllDeadLetters again requeues the rest.";

/// Why a job that requeues all dead letters was not started while one of the other mode is running.
pub fn requeue_job_of_other_mode(running_asks_afresh: bool) -> String {
    let mode =
        if running_asks_afresh { "asks its deciders afresh" } else { "replays recorded decisions" };
    format!(
        "A requeue-all that {mode} is already running on this node, so this one was not started. Read \
         requeueAllJob(id) until it finishes, then ask again."
    )
}

/// What acknowledging many dead letters came to.
pub fn dead_letters_acknowledged(count: i64) -> String {
    format!("{count} dead letter(s) acknowledged")
}

/// Why nothing was done for a manifest.
pub fn manifest_not_found(external_id: &str) -> String {
    format!("Manifest '{external_id}' not found.")
}

/// What switching manifests on or off came to.
pub fn manifests_enabled(changed: i64, named: usize, is_enabled: bool) -> String {
    let what = if is_enabled { "enabled" } else { "disabled" };
    format!("{changed} of {named} manifest(s) {what}.")
}

/// Why nothing was done for a group.
pub fn group_not_found(name: &str) -> String {
    format!("Manifest group '{name}' not found.")
}

/// What switching groups on or off came to.
pub fn groups_enabled(changed: i64, named: usize, is_enabled: bool) -> String {
    let what = if is_enabled { "enabled" } else { "disabled" };
    format!("{changed} of {named} manifest group(s) {what}.")
}

/// What triggering groups came to.
pub fn groups_triggered(queued: usize, joined: usize, dispatched: usize, named: usize) -> String {
    let part = |count: usize, what: &str| {
        if count > 0 { format!(", {count} {what}") } else { String::new() }
    };
    let joined = part(joined, "already queued (that entry now runs as the trigger)");
    let dispatched = part(dispatched, "already dispatched");
    format!("{queued} queued{joined}{dispatched} across {named} of {named} manifest group(s).")
}

/// What cancelling a manifest's runs came to.
pub fn manifest_cancelled(runs: i64) -> String {
    format!("Cancellation requested for {runs} execution(s).")
}

/// What cancelling the runs of groups came to.
pub fn groups_cancelled(runs: i64, found: usize, named: usize) -> String {
    format!(
        "Cancellation requested for {runs} execution(s) across {found} of {named} manifest group(s)."
    )
}

/// What cancelling runs came to.
pub fn runs_cancelled(flagged: i64, named: usize) -> String {
    format!("Cancellation requested for {flagged} of {named} execution(s).")
}

/// Why a run is not cancelled.
pub fn run_not_cancellable(id: i64) -> String {
    format!("Execution {id} is not cancellable (missing or already terminal).")
}

/// That an entry was withdrawn.
pub fn entry_cancelled(id: i64) -> String {
    format!("Work queue entry {id} cancelled.")
}

/// Why an entry is not withdrawn.
pub fn entry_not_found(id: i64) -> String {
    format!("Work queue entry {id} not found.")
}

/// Why an entry is not withdrawn.
pub fn entry_not_cancelled(id: i64, status: &str) -> String {
    format!("Cannot cancel entry {id} with status '{status}'.")
}

/// What withdrawing entries came to.
pub fn entries_cancelled(cancelled: i64, named: usize) -> String {
    format!("{cancelled} of {named} work queue entry(s) cancelled.")
}

/// Why nothing is queued.
pub const TRAIN_NAME_REQUIRED: &str = "TrainName is required.";

/// Why nothing is queued.
pub fn no_such_train(name: &str) -> String {
    format!("Unknown train: {name}. Use operations.getTrains to list registered trains.")
}

/// Why nothing is queued: the input is no JSON.
pub fn invalid_input(problem: &str) -> String {
    format!("Invalid InputJson: {problem}")
}

/// Why nothing is queued: the input does not fit the train.
pub fn input_failed(problem: &str) -> String {
    format!("The train input failed validation. {problem}")
}

/// Why nothing is queued.
pub fn enqueue_refused(problem: &str) -> String {
    format!("The enqueue was refused: {problem}")
}

/// That an entry was queued.
pub fn entry_created(id: i64) -> String {
    format!("Work queue entry {id} created.")
}

/// Why a run fails that was to replay decisions.
pub fn not_replayed(run: i64, problem: &str) -> String {
    format!("The decisions of execution {run} cannot be replayed: {problem}.")
}

/// That an execution was requeued, and whether it asks afresh although it would have replayed that execution.
pub fn entry_requeued(id: i64, spent: Option<i64>) -> String {
    let created = entry_created(id);
    let Some(run) = spent else { return created };
    format!(
        "{created} It asks its deciders afresh: the decisions of execution {run} are already replayed by another run or \
         queued entry, and are replayed once."
    )
}

/// Why an execution is not requeued.
pub fn run_not_found(id: i64) -> String {
    format!("Execution {id} not found.")
}

/// Why an execution is not requeued whose train nobody has deployed.
pub fn train_gone(id: i64, train: &str) -> String {
    format!("Train {train} is no longer registered, so execution {id} cannot be re-queued.")
}

/// Why an execution is not requeued that a state machine started.
pub fn run_of_machine(id: i64, machine: &str) -> String {
    format!(
        "Execution {id} was started by a step of the state machine '{machine}', and only that step receives its outcome, \
         so it cannot be re-queued. The machine retries it by entering the step again."
    )
}

/// Why an execution is not requeued whose input is not as it was.
pub fn input_unsaved(id: i64, why: &str) -> String {
    format!("Execution {id} {why}, so it cannot be re-queued.")
}

/// Why an execution is not requeued whose input is of another type than its train takes.
pub fn input_of_other_type(id: i64, why: &str) -> String {
    format!("Execution {id}'s saved input cannot be read back as the input it ran with: {why}")
}

/// Why an execution is not requeued whose input its train no longer takes.
pub fn input_no_longer_reads(id: i64, input_type: &str, why: &str) -> String {
    format!("The saved input of run {id} no longer reads as {input_type}: {why}")
}

/// What switching the replay of manifests on or off came to.
pub fn manifests_replay(changed: i64, named: usize, replays: bool, cleared: u64) -> String {
    let what = if replays { "replay decisions" } else { "ask afresh" };
    let cleared = match cleared {
        0 => String::new(),
        count => format!(" {count} queued retry(s) no longer replay a failed run's decisions."),
    };
    format!("{changed} of {named} manifest(s) set to {what} on retry.{cleared}")
}

/// Why an execution is not resumed that has not failed.
pub fn run_not_failed(id: i64, state: &str) -> String {
    format!("Execution {id} is {state}; only a failed or cancelled run can be resumed.")
}

/// Why an execution is not resumed that a state machine started.
pub fn resume_of_machine(id: i64, machine: &str) -> String {
    format!(
        "Execution {id} was started by a step of the state machine '{machine}', and only that step receives its outcome, \
         so it cannot be resumed. The machine retries it by entering the step again."
    )
}

/// Why an execution is not resumed; without the entry when that came meanwhile.
pub fn resume_queued(id: i64, entry: Option<i64>) -> String {
    let entry = entry.map(|entry| format!(" (WorkQueue {entry})")).unwrap_or_default();
    format!(
        "A resume of execution {id} is already queued{entry}; a run is resumed once at a time. Nothing was queued."
    )
}

/// Why an execution is not resumed whose train nobody has deployed.
pub fn resume_without_train(id: i64, train: &str) -> String {
    format!("Train {train} is no longer registered, so execution {id} cannot be resumed.")
}

/// Why an execution is not resumed whose chain cannot be read.
pub fn chain_unreadable(id: i64, train: &str) -> String {
    format!(
        "The chain of {train} cannot be read on this host, so whether execution {id} can resume cannot be decided. \
         Nothing was queued."
    )
}

/// A state of runs as messages name it: `InProgress` for `in_progress`.
pub fn execution_state(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_ascii_uppercase().to_string() + letters.as_str()
        })
    };
    name.split('_').map(capitalised).collect()
}

/// Why a note is not taken.
pub fn note_too_long(length: usize) -> String {
    format!("The note is {length} characters; it may be at most 1000 characters.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M30, M32: what is refused names the groups, or the parent.
    #[test]
    fn dependencies_that_cannot_be_are_named() {
        assert_eq!(
            group_cycle(&["group-a", "group-b", "group-c"]),
            "Circular dependency detected among manifest groups: [group-a, group-b, group-c]. Manifest groups must \
             form a directed acyclic graph (DAG)."
        );
        assert_eq!(
            parent_missing("p"),
            "Parent manifest with ExternalId 'p' not found. Ensure the parent manifest is scheduled before its \
             dependents."
        );
    }

    /// M7: the reason of a dead letter names both numbers.
    #[test]
    fn a_dead_letter_says_how_often_it_failed() {
        assert_eq!(retries_exceeded(4, 3), "Max retries exceeded: (4) failures > (3) max retries");
    }

    /// L8: a requeue says how many it resolved, folded and skipped, and leaves out what is none.
    #[test]
    fn a_requeue_of_many_says_what_became_of_them() {
        let cases = [
            ((0, 0, 0), "0 dead letter(s) requeued."),
            ((3, 0, 0), "3 dead letter(s) requeued."),
            (
                (3, 1, 2),
                "3 dead letter(s) requeued; 1 folded into another dead letter's entry for the same manifest; 2 skipped \
                 because their manifest already has a queued entry.",
            ),
            (
                (0, 0, 1),
                "0 dead letter(s) requeued; 1 skipped because their manifest already has a queued entry.",
            ),
        ];
        for ((resolved, folded, skipped), expected) in cases {
            assert_eq!(dead_letters_requeued(resolved, folded, skipped, 0), expected);
        }
    }

    /// R89: a requeue that lost its replay to another says so after what it always says.
    #[test]
    fn a_requeue_that_asks_afresh_says_so() {
        assert_eq!(dead_letter_requeued(0), "Dead letter requeued");
        assert_eq!(
            dead_letter_requeued(1),
            "Dead letter requeued 1 ask their deciders afresh: the decisions they would have replayed are already \
             replayed by another run or queued entry, and are replayed once."
        );
        assert_eq!(
            dead_letters_requeued(5, 1, 0, 2),
            "5 dead letter(s) requeued; 1 folded into another dead letter's entry for the same manifest. 2 ask their \
             deciders afresh: the decisions they would have replayed are already replayed by another run or queued \
             entry, and are replayed once."
        );
    }

    /// R84: a requeued execution names the one whose decisions are spoken for.
    #[test]
    fn a_requeued_execution_that_asks_afresh_says_so() {
        assert_eq!(entry_requeued(7, None), "Work queue entry 7 created.");
        assert_eq!(
            entry_requeued(7, Some(42)),
            "Work queue entry 7 created. It asks its deciders afresh: the decisions of execution 42 are already replayed \
             by another run or queued entry, and are replayed once."
        );
    }

    /// R76: opting out counts the queued retries that it reached.
    #[test]
    fn opting_out_counts_the_retries_that_it_reached() {
        assert_eq!(
            manifests_replay(1, 2, true, 0),
            "1 of 2 manifest(s) set to replay decisions on retry."
        );
        assert_eq!(
            manifests_replay(3, 3, false, 2),
            "3 of 3 manifest(s) set to ask afresh on retry. 2 queued retry(s) no longer replay a failed run's \
             decisions."
        );
    }
}
