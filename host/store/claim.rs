//! Claiming: queued entries become runs, in the order of priority and within every limit, in one transaction.
//!
//! Hosts take turns (a lock until the transaction ends), so limits are hard. A claim works in rounds: it looks at the
//! entries that go first, takes what limits allow, and looks again without the groups that are full by then.

use std::collections::{BTreeMap, BTreeSet};

use super::db::{LockKey, Sql, Tx, execute, on};
use super::error::StoreError;
use super::hosts::Host;
use super::types::row;
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
    /// At most this many of one manifest group.
    pub group_limit: usize,
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
    /// The version of the component it runs; `None`: no active component declares the train.
    pub component_version_id: Option<VersionId>,
    /// Shared by everything that repeats this occurrence.
    pub occurrence_id: String,
    /// The run whose answers it replays.
    pub replay_decisions_of: Option<RunId>,
    /// The run it resumes.
    pub resume_from: Option<RunId>,
    /// The node it resumes at.
    pub resume_at: Option<String>,
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
});

impl ClaimedRun {
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
}

/// How many entries a round looks at beyond those it may take: those that limits hold back.
const LOOK_AHEAD: usize = 100;

/// Turns the entries that go first into runs.
pub async fn claim(tx: &mut Tx<'_>, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
    tx.lock(LockKey::Claim).await?;
    let mut room = Room::of(tx, request).await?;
    let mut claimed = Claimed::default();
    while claimed.runs.len() < request.limit {
        let window = request.limit - claimed.runs.len() + LOOK_AHEAD;
        let candidates = candidates(tx, request.tenant, window, &room.full).await?;
        let is_last_round = candidates.len() < window;
        let before = room.full.len();
        let picked = room.pick(&candidates, request.limit - claimed.runs.len());
        if !picked.is_empty() {
            dispatch(tx, request, &picked, &mut claimed).await?;
        }
        if is_last_round || (picked.is_empty() && room.full.len() == before) {
            break;
        }
    }
    Ok(claimed)
}

/// The tenants that have something to dispatch, by id.
pub async fn tenants_with_work(tx: &mut Tx<'_>) -> Result<Vec<TenantId>, StoreError> {
    let now = tx.now().await?;
    let sql = "SELECT t.id FROM tenant t
        WHERE EXISTS (SELECT 1 FROM work_queue w WHERE w.tenant_id = t.id AND w.status = 'queued'
                AND w.confirmed_at IS NOT NULL AND w.scheduled_at IS NULL)
            OR EXISTS (SELECT 1 FROM work_queue w WHERE w.tenant_id = t.id AND w.status = 'queued'
                AND w.scheduled_at IS NOT NULL AND w.scheduled_at <= $1
                AND w.confirmed_at IS NOT NULL)
        ORDER BY t.id";
    on!(tx, |c| sqlx::query_scalar(sql).bind(now).fetch_all(c))
}

/// What limits still allow.
struct Room {
    active: BTreeMap<GroupId, usize>,
    taken: BTreeMap<GroupId, usize>,
    full: BTreeSet<GroupId>,
    group_limit: usize,
}

impl Room {
    async fn of(tx: &mut Tx<'_>, request: &ClaimRequest<'_>) -> Result<Self, StoreError> {
        let sql = "SELECT m.manifest_group_id, COUNT(*) FROM metadata r
            JOIN manifest m ON m.id = r.manifest_id
            WHERE r.train_state IN ('pending', 'in_progress') AND r.tenant_id = $1
            AND r.parked_at IS NULL
            GROUP BY m.manifest_group_id";
        let counts: Vec<(GroupId, i64)> =
            on!(tx, |c| sqlx::query_as(sql).bind(request.tenant).fetch_all(c))?;
        let active =
            counts.into_iter().map(|(group, count)| (group, usize::try_from(count).unwrap_or(0)));
        Ok(Self {
            active: active.collect(),
            taken: BTreeMap::new(),
            full: BTreeSet::new(),
            group_limit: request.group_limit,
        })
    }

    /// The candidates to take, in order. Groups that turn out to be full are noted.
    fn pick(&mut self, candidates: &[Candidate], limit: usize) -> Vec<EntryId> {
        let mut subjects = BTreeSet::new();
        let mut picked = Vec::new();
        for candidate in candidates {
            if picked.len() == limit {
                break;
            }
            let is_free = |group| self.has_room(group, candidate.max_active_jobs);
            if candidate.manifest_group_id.is_some_and(|group| !is_free(group)) {
                self.full.extend(candidate.manifest_group_id);
                continue;
            }
            // The first entry of a subject only: the others wait for its run.
            if candidate.subject_key.as_ref().is_some_and(|subject| !subjects.insert(subject)) {
                continue;
            }
            if let Some(group) = candidate.manifest_group_id {
                *self.taken.entry(group).or_default() += 1;
            }
            picked.push(candidate.id);
        }
        picked
    }

    fn has_room(&self, group: GroupId, max: Option<i32>) -> bool {
        let taken = self.taken.get(&group).copied().unwrap_or(0);
        let active = self.active.get(&group).copied().unwrap_or(0);
        let max = max.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(0));
        taken < self.group_limit && active + taken < max
    }
}

/// An entry that could go.
#[derive(Debug, Clone)]
struct Candidate {
    id: EntryId,
    manifest_group_id: Option<GroupId>,
    max_active_jobs: Option<i32>,
    subject_key: Option<String>,
    group_priority: i16,
    priority: i16,
    created_at: Timestamp,
}

row!(Candidate {
    id,
    manifest_group_id,
    max_active_jobs,
    subject_key,
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
                w.group_priority, w.priority,
                w.created_at
            FROM work_queue w
            LEFT JOIN manifest m ON m.id = w.manifest_id
            LEFT JOIN manifest_group g ON g.id = m.manifest_group_id
            WHERE w.tenant_id = $1 AND w.status = 'queued' AND w.confirmed_at IS NOT NULL
                AND (w.manifest_id IS NULL OR (g.is_enabled AND (m.is_enabled
                OR w.is_explicit_trigger)))
                AND (w.subject_key IS NULL OR NOT EXISTS (SELECT 1 FROM metadata r
                    WHERE r.tenant_id = w.tenant_id AND r.subject_key = w.subject_key
                        AND r.train_state IN ('pending', 'in_progress')
                        AND r.subject_key IS NOT NULL))
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

/// A statement about the entries or runs whose ids `$1` lists as a JSON array.
macro_rules! of_ids {
    ($before:literal, $after:literal) => {
        Sql {
            sqlite: concat!($before, " IN (SELECT value FROM json_each($1)) ", $after),
            postgres: concat!(
                $before,
                " IN (SELECT CAST(value AS BIGINT)
                    FROM json_array_elements_text(CAST($1 AS JSON))) ",
                $after
            ),
        }
    };
}

/// Writes the runs of the picked entries, and takes the entries out of the queue.
async fn dispatch(
    tx: &mut Tx<'_>,
    request: &ClaimRequest<'_>,
    picked: &[EntryId],
    claimed: &mut Claimed,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let entries = ids(picked.iter().map(|entry| entry.0));
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
        FROM work_queue w WHERE w.dead_letter_id = dead_letter.id AND w.id",
        ""
    ));
    execute!(tx, sqlx::query(sql).bind(&entries))?;
    let sql = tx.pick(of_ids!(
        "SELECT w.id AS entry, r.id AS run, r.claim_token, r.external_id, w.train_name, w.input,
            w.input_type_name,
            w.manifest_id, r.component_version_id, r.occurrence_id, r.replay_decisions_of,
            r.resume_from, r.resume_at
        FROM work_queue w JOIN metadata r ON r.id = w.metadata_id WHERE w.id",
        ""
    ));
    let mut rows: Vec<ClaimedRun> = on!(tx, |c| sqlx::query_as(sql).bind(&entries).fetch_all(c))?;
    rows.sort_by_key(|run| picked.iter().position(|entry| *entry == run.entry));
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
            host_instance_id, host_labels)
        SELECT w.tenant_id, w.external_id, w.train_name, $2, $3, w.manifest_id, w.scheduled_time,
            w.occurrence_id, t.component_version_id, w.subject_key, w.replay_decisions_of,
            w.resume_from, w.resume_at,
            w.invoking_machine, $4, $5, $6, $7, $8, $9
        FROM work_queue w
        LEFT JOIN train t ON t.tenant_id = w.tenant_id AND t.name = w.train_name AND t.is_active
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
        .fetch_all(c))?;
    Ok(ids(runs.into_iter()))
}

fn ids(ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    format!("[{}]", ids.join(","))
}
