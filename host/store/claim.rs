//! Claiming: queued entries become runs, in the order of priority and within every limit, in one transaction.
//!
//! A claim works in rounds: it looks at the entries that go first, takes what limits allow, and looks again without the
//! groups that are full by then and the entries whose subject is busy.

use std::collections::{BTreeMap, BTreeSet};

use super::capacity::{Capacity, CapacityLimits};
use super::db::{Sql, Tx, execute, ids, of_ids, on};
use super::dispatch::{self, Unknown};
use super::error::StoreError;
use super::hosts::Host;
use super::runs::{Payload, Run};
use super::subjects;
use super::types::{TrainState, row};
use crate::model::dispatch::DispatchPolicy;
use crate::model::failure::FailureClass;
use crate::model::ids::{
    Claim, ClaimToken, EntryId, GroupId, ManifestId, RunId, TenantId, VersionId,
};
use crate::model::timestamp::Timestamp;

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

/// How many entries a round looks at beyond those it may take: those that limits hold back.
pub(super) const LOOK_AHEAD: usize = 100;
/// How many rounds a claim makes that find no full group, so that it is short however much is held back.
const ROUNDS_MAX: usize = 20;

/// Turns the entries that go first into runs, within the limits that the store keeps.
pub async fn claim(tx: &mut Tx<'_>, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
    let mut capacity = Capacity::count(tx, CapacityLimits::default()).await?;
    claim_within(tx, request, &mut capacity).await
}

/// Turns the entries that go first into runs, within limits counted in the same transaction.
pub async fn claim_within(
    tx: &mut Tx<'_>,
    request: &ClaimRequest<'_>,
    capacity: &mut Capacity,
) -> Result<Claimed, StoreError> {
    subjects::release(tx, request.tenant).await?;
    let mut claimed = Claimed::default();
    let mut full = BTreeSet::new();
    let mut rounds = 0;
    while rounds < ROUNDS_MAX {
        let room = capacity.room(request.tenant).min(request.limit - claimed.runs.len());
        if room == 0 {
            return Ok(claimed);
        }
        let window = room.saturating_add(LOOK_AHEAD);
        let candidates = candidates(tx, request.tenant, window, &full).await?;
        let groups_full = full.len();
        let round = Round::of(request.tenant, &candidates, room, &mut full, capacity);
        let has_seen_all = candidates.len() < window && round.picked.len() < room;
        subjects::wait(tx, &round.waiting).await?;
        if !round.picked.is_empty() {
            dispatch(tx, request, &round.picked, capacity, &mut claimed).await?;
        }
        if has_seen_all {
            return Ok(claimed);
        }
        // Every group is full once at most; what counts is how much waits for its subject or its train.
        rounds += usize::from(full.len() == groups_full);
    }
    claimed.has_more = true;
    Ok(claimed)
}

/// The tenants that have something to dispatch, with their weights.
pub async fn tenants_with_work(tx: &mut Tx<'_>) -> Result<BTreeMap<TenantId, usize>, StoreError> {
    let now = tx.now().await?;
    let sql = "SELECT t.id, t.weight FROM tenant t
        WHERE EXISTS (SELECT 1 FROM work_queue w WHERE w.tenant_id = t.id AND w.status = 'queued'
                AND w.confirmed_at IS NOT NULL AND w.scheduled_at IS NULL
                AND NOT w.waits_for_subject)
            OR EXISTS (SELECT 1 FROM work_queue w WHERE w.tenant_id = t.id AND w.status = 'queued'
                AND w.scheduled_at IS NOT NULL AND w.scheduled_at <= $1
                AND w.confirmed_at IS NOT NULL)
            OR EXISTS (SELECT 1 FROM work_queue w WHERE w.tenant_id = t.id AND w.status = 'queued'
                AND w.subject_key IS NOT NULL AND w.waits_for_subject = TRUE)";
    let found: Vec<(TenantId, i32)> = on!(tx, |c| sqlx::query_as(sql).bind(now).fetch_all(c))?;
    let weighted = |(id, weight)| (id, usize::try_from(weight).unwrap_or(1));
    Ok(found.into_iter().map(weighted).collect())
}

/// What becomes of the candidates of a round.
#[derive(Default)]
struct Round<'c> {
    picked: Vec<&'c Candidate>,
    waiting: Vec<EntryId>,
}

impl<'c> Round<'c> {
    /// Picks in order. Groups that turn out to be full are noted.
    fn of(
        tenant: TenantId,
        candidates: &'c [Candidate],
        room: usize,
        full: &mut BTreeSet<GroupId>,
        capacity: &mut Capacity,
    ) -> Self {
        let mut round = Self::default();
        let mut subjects = BTreeSet::new();
        for candidate in candidates {
            if round.picked.len() == room {
                break;
            }
            let group = candidate.manifest_group_id;
            let is_full = |group| !capacity.has_room_in(group, candidate.max_active_jobs);
            if group.is_some_and(is_full) {
                full.extend(group);
                continue;
            }
            // The first entry of a subject only: the others wait for its run.
            let is_second = candidate.subject_key.as_ref().is_some_and(|key| !subjects.insert(key));
            if candidate.is_subject_busy || is_second {
                round.waiting.push(candidate.id);
                continue;
            }
            capacity.take(tenant, group);
            round.picked.push(candidate);
        }
        round
    }
}

/// An entry that could go.
#[derive(Debug, Clone)]
struct Candidate {
    id: EntryId,
    manifest_group_id: Option<GroupId>,
    max_active_jobs: Option<i32>,
    subject_key: Option<String>,
    is_subject_busy: bool,
    group_priority: i16,
    priority: i16,
    created_at: Timestamp,
}

row!(Candidate {
    id,
    manifest_group_id,
    max_active_jobs,
    subject_key,
    is_subject_busy,
    group_priority,
    priority,
    created_at,
});

impl Candidate {
    fn order(&self) -> impl Ord + use<> {
        let first_is_highest = std::cmp::Reverse((self.group_priority, self.priority));
        (first_is_highest, self.created_at, self.id)
    }
}

/// A query for candidates. Postgres locks what it reads and leaves out what others have locked; SQLite has one writer.
macro_rules! candidates {
    ($scheduled:literal) => {
        Sql {
            sqlite: candidates!(@text $scheduled),
            postgres: concat!(candidates!(@text $scheduled), " FOR UPDATE OF w SKIP LOCKED"),
        }
    };
    (@text $scheduled:literal) => {
        concat!(
            "SELECT w.id, m.manifest_group_id, g.max_active_jobs, w.subject_key,
                w.group_priority, w.priority, w.created_at,
                w.subject_key IS NOT NULL AND EXISTS (SELECT 1 FROM metadata r
                    WHERE r.tenant_id = w.tenant_id AND r.subject_key = w.subject_key
                        AND r.train_state IN ('pending', 'in_progress')
                        AND r.subject_key IS NOT NULL) AS is_subject_busy
            FROM work_queue w
            LEFT JOIN manifest m ON m.id = w.manifest_id
            LEFT JOIN manifest_group g ON g.id = m.manifest_group_id
            WHERE w.tenant_id = $1 AND w.status = 'queued' AND w.confirmed_at IS NOT NULL
                AND (w.manifest_id IS NULL OR (g.is_enabled AND (m.is_enabled
                OR w.is_explicit_trigger)))
                AND NOT w.waits_for_subject
                -- The groups that are full, as text between commas.
                AND (m.manifest_group_id IS NULL
                    OR $3 NOT LIKE '%,' || CAST(m.manifest_group_id AS TEXT) || ',%')
                AND ",
            $scheduled,
            " ORDER BY w.group_priority DESC, w.priority DESC, w.created_at, w.id LIMIT $2"
        )
    };
}

const UNSCHEDULED: Sql = candidates!("w.scheduled_at IS NULL");
const SCHEDULED: Sql = candidates!("w.scheduled_at IS NOT NULL AND w.scheduled_at <= $4");

async fn candidates(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    window: usize,
    full: &BTreeSet<GroupId>,
) -> Result<Vec<Candidate>, StoreError> {
    let now = tx.now().await?;
    let limit = i64::try_from(window).unwrap_or(i64::MAX);
    let full = full.iter().fold(",".to_owned(), |text, group| format!("{text}{group},"));
    let sql = tx.pick(UNSCHEDULED);
    let mut found: Vec<Candidate> =
        on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(limit).bind(&full).fetch_all(c))?;
    let sql = tx.pick(SCHEDULED);
    let due: Vec<Candidate> = on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(limit)
        .bind(&full)
        .bind(now)
        .fetch_all(c))?;
    found.extend(due);
    found.sort_by_key(Candidate::order);
    found.truncate(window);
    Ok(found)
}

/// Writes the runs of the picked entries, and takes the entries out of the queue. An entry whose train no active
/// component declares gets no run.
async fn dispatch(
    tx: &mut Tx<'_>,
    request: &ClaimRequest<'_>,
    picked: &[&Candidate],
    capacity: &mut Capacity,
    claimed: &mut Claimed,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let entries = ids(picked.iter().map(|candidate| candidate.id.0));
    drop_links(tx, &entries, &mut claimed.dropped).await?;
    let runs = insert_runs(tx, request, &entries).await?;
    let sql = tx.pick(of_ids!(
        "UPDATE work_queue SET status = 'dispatched', dispatched_at = $2, metadata_id = r.id
        FROM metadata r WHERE r.tenant_id = work_queue.tenant_id
        AND r.external_id = work_queue.external_id
            AND work_queue.status = 'queued' AND r.id",
        ""
    ));
    execute!(tx, sqlx::query(sql).bind(&runs).bind(now))?;
    let sql = tx.pick(of_ids!(
        "UPDATE dead_letter SET retry_metadata_id = w.metadata_id
        FROM work_queue w WHERE w.dead_letter_id = dead_letter.id
            AND w.status = 'dispatched' AND w.id",
        ""
    ));
    execute!(tx, sqlx::query(sql).bind(&entries))?;
    let sql = tx.pick(of_ids!(
        "SELECT w.id AS entry, r.id AS run, r.claim_token, r.external_id, w.train_name, w.input,
            w.input_type_name,
            w.manifest_id, r.component_version_id, r.occurrence_id, r.replay_decisions_of,
            r.resume_from, r.resume_at, r.start_time, r.scheduled_time, r.subject_key, r.host_name,
            r.decisions_recorded, r.invoking_machine
        FROM work_queue w JOIN metadata r ON r.id = w.metadata_id WHERE w.id",
        ""
    ));
    let mut rows: Vec<ClaimedRun> = on!(tx, |c| sqlx::query_as(sql).bind(&entries).fetch_all(c))?;
    rows.sort_by_key(|run| picked.iter().position(|candidate| candidate.id == run.entry));
    for candidate in picked {
        if rows.iter().all(|run| run.entry != candidate.id) {
            capacity.give_back(request.tenant, candidate.manifest_group_id);
            claimed.unknown.push(dispatch::unknown(tx, candidate.id, request.policy).await?);
        }
    }
    claimed.runs.extend(rows);
    Ok(())
}

/// Drops links to replay that may no longer be followed: the manifest opted out, or the answers were replayed before.
async fn drop_links(
    tx: &mut Tx<'_>,
    entries: &str,
    dropped: &mut Vec<DroppedLink>,
) -> Result<(), StoreError> {
    // Taking the lock of each source's row: whoever else links to it waits until this claim is decided.
    let sql = tx.pick(of_ids!(
        "UPDATE metadata SET replay_abandoned = replay_abandoned WHERE id IN
            (SELECT w.replay_decisions_of FROM work_queue w
            WHERE w.replay_decisions_of IS NOT NULL AND w.id",
        ")"
    ));
    execute!(tx, sqlx::query(sql).bind(entries))?;
    let sql = tx.pick(of_ids!(
        "SELECT w.id, w.replay_decisions_of, COALESCE(m.replay_decisions_on_retry, TRUE)
        FROM work_queue w LEFT JOIN manifest m ON m.id = w.manifest_id
        WHERE w.replay_decisions_of IS NOT NULL
            AND (m.replay_decisions_on_retry = FALSE OR EXISTS (SELECT 1 FROM metadata r
                WHERE r.replay_decisions_of = w.replay_decisions_of AND NOT r.replay_abandoned
                    AND COALESCE(r.failure_exception, '') <> 'DispatchRequeued'))
            AND w.id",
        "ORDER BY w.id"
    ));
    let found: Vec<(EntryId, RunId, bool)> =
        on!(tx, |c| sqlx::query_as(sql).bind(entries).fetch_all(c))?;
    for (entry, replay_decisions_of, is_opted_in) in found {
        let sql = "UPDATE work_queue SET replay_decisions_of = NULL WHERE id = $1";
        execute!(tx, sqlx::query(sql).bind(entry))?;
        let reason = if is_opted_in { DropReason::AlreadyReplayed } else { DropReason::OptedOut };
        dropped.push(DroppedLink { entry, replay_decisions_of, reason });
    }
    Ok(())
}

/// Inserts the runs of entries, and gives their ids as a JSON array.
async fn insert_runs(
    tx: &mut Tx<'_>,
    request: &ClaimRequest<'_>,
    entries: &str,
) -> Result<String, StoreError> {
    let now = tx.now().await?;
    let host = request.starts.then_some(request.host);
    let state = if request.starts { "in_progress" } else { "pending" };
    let sql = tx.pick(of_ids!(
        "INSERT INTO metadata (tenant_id, external_id, name, train_state, start_time,
            manifest_id, scheduled_time,
            occurrence_id, component_version_id, subject_key, replay_decisions_of, resume_from,
            resume_at,
            invoking_machine, claim_token, host_incarnation, host_name, host_environment,
            host_instance_id, host_labels, decisions_recorded)
        SELECT w.tenant_id, w.external_id, w.train_name, $2, $3, w.manifest_id, w.scheduled_time,
            w.occurrence_id, t.component_version_id, w.subject_key, w.replay_decisions_of,
            w.resume_from, w.resume_at,
            w.invoking_machine, $4, $5, $6, $7, $8, $9, $10
        FROM work_queue w
        JOIN train t ON t.tenant_id = w.tenant_id AND t.name = w.train_name AND t.is_active
        WHERE w.id",
        "RETURNING id"
    ));
    let runs: Vec<i64> = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(entries)
        .bind(state)
        .bind(now)
        .bind(i64::from(request.starts))
        .bind(host.map(|host| &host.incarnation))
        .bind(host.map(|host| &host.name))
        .bind(host.map(|host| &host.environment))
        .bind(host.map(|host| &host.instance_id))
        .bind(host.map(|host| &host.labels))
        .bind(request.starts && request.records_decisions)
        .fetch_all(c))?;
    Ok(ids(runs.into_iter()))
}
