//! What a host asks for when it claims, and what it is given.

use crate::model::dispatch::DispatchPolicy;
use crate::model::failure::FailureClass;
use crate::model::ids::{Claim, ClaimToken, EntryId, ManifestId, RunId, TenantId, VersionId};
use crate::model::timestamp::Timestamp;
use crate::store::dispatch::Unknown;
use crate::store::hosts::Host;
use crate::store::runs::{Payload, Run};
use crate::store::types::{TrainState, row};

/// What a host asks for.
#[derive(Debug, Clone)]
pub struct ClaimRequest<'a> {
    /// Whose entries.
    pub tenant: TenantId,
    /// Who asks.
    pub host: &'a Host,
    /// At most this many.
    pub limit: usize,
    /// What happens to entries whose train no active component declares.
    pub policy: DispatchPolicy,
    /// Whether the host records decisions, which each run's row says before its first junction.
    pub records_decisions: bool,
    /// True: the runs are in progress on this host. False: they are pending, for any worker.
    pub starts: bool,
}

/// A run that came out of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedRun {
    /// The entry.
    pub entry: EntryId,
    /// The run.
    pub run: RunId,
    /// The right to write to it, if it was started.
    pub claim_token: ClaimToken,
    /// The attempt's id that it shares with the entry.
    pub external_id: String,
    /// The train.
    pub train_name: String,
    /// Canonical JSON.
    pub input: Option<String>,
    /// The input's type.
    pub input_type_name: Option<String>,
    /// The manifest it is a run of.
    pub manifest_id: Option<ManifestId>,
    /// The version of the component it runs.
    pub component_version_id: Option<VersionId>,
    /// Shared by everything that repeats this occurrence.
    pub occurrence_id: String,
    /// The run whose answers it replays.
    pub replay_decisions_of: Option<RunId>,
    /// The run it resumes.
    pub resume_from: Option<RunId>,
    /// The node it resumes at.
    pub resume_at: Option<String>,
    /// When it was claimed.
    pub start_time: Timestamp,
    /// The occurrence of the schedule it runs for.
    pub scheduled_time: Option<Timestamp>,
    /// Whom it is about.
    pub subject_key: Option<String>,
    /// The host that claimed it.
    pub host_name: Option<String>,
    /// Whether its row says that its decisions are recorded.
    pub decisions_recorded: bool,
    /// What started it, if that was a step of a state machine.
    pub invoking_machine: Option<String>,
}

row!(ClaimedRun {
    entry,
    run,
    claim_token,
    external_id,
    train_name,
    input,
    input_type_name,
    manifest_id,
    component_version_id,
    occurrence_id,
    replay_decisions_of,
    resume_from,
    resume_at,
    start_time,
    scheduled_time,
    subject_key,
    host_name,
    decisions_recorded,
    invoking_machine,
});

impl ClaimedRun {
    /// The run's row, as the claim has made it and started it.
    pub fn started(&self) -> Run {
        Run {
            id: self.run,
            parent_id: None,
            external_id: self.external_id.clone(),
            name: self.train_name.clone(),
            train_state: TrainState::InProgress,
            failure_class: FailureClass::Unclassified,
            failure_junction: None,
            failure_exception: None,
            failure_reason: None,
            start_time: self.start_time,
            end_time: None,
            manifest_id: self.manifest_id,
            scheduled_time: self.scheduled_time,
            occurrence_id: self.occurrence_id.clone(),
            component_version_id: self.component_version_id,
            subject_key: self.subject_key.clone(),
            cancel_requested: false,
            currently_running_junction: None,
            host_name: self.host_name.clone(),
            parked_at: None,
            decisions_recorded: self.decisions_recorded,
            replay_decisions_of: self.replay_decisions_of,
            replay_abandoned: false,
            resume_from: self.resume_from,
            resume_at: self.resume_at.clone(),
            invoking_machine: self.invoking_machine.clone(),
        }
    }

    /// What its entry gives it.
    pub fn payload(&self) -> Payload {
        Payload {
            input: self.input.clone(),
            input_type_name: self.input_type_name.clone(),
            output: None,
            stack_trace: None,
        }
    }

    /// The right to write to it.
    pub const fn claim(&self) -> Claim {
        Claim { run: self.run, token: self.claim_token }
    }
}

/// A queued entry whose link to replay was dropped as it was claimed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedLink {
    /// The entry.
    pub entry: EntryId,
    /// The run it no longer replays.
    pub replay_decisions_of: RunId,
    /// Why.
    pub reason: DropReason,
}

/// Why a queued entry no longer replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The manifest asks its deciders afresh by now.
    OptedOut,
    /// Another run replays, or has replayed, those answers.
    AlreadyReplayed,
}

/// What a claim gave.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The runs, in the order of dispatch.
    pub runs: Vec<ClaimedRun>,
    /// The links dropped on the way.
    pub dropped: Vec<DroppedLink>,
    /// The entries whose train no active component declares.
    pub unknown: Vec<Unknown>,
    /// Whether there may be more to take: so much was held back that the claim was cut short.
    pub has_more: bool,
}
