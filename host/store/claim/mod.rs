//! Claiming: queued entries become runs, in the order of priority and within every limit, in one transaction.
//!
//! A claim works in rounds: it looks at the entries that go first, takes what limits allow, and looks again without the
//! groups that are full by then and the entries whose subject is busy.

mod candidates;
mod request;

use std::collections::{BTreeMap, BTreeSet};

use candidates::{Candidate, candidates};
pub use request::{ClaimRequest, Claimed, ClaimedRun, DropReason, DroppedLink};

use super::capacity::{Capacity, CapacityLimits};
use super::db::{Tx, execute, ids, of_ids, on};
use super::dispatch;
use super::error::StoreError;
use super::subjects;
use crate::model::ids::{EntryId, GroupId, RunId, TenantId};

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
