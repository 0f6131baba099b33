//! The queue: what is entered, brought forward, withdrawn and put back. Claiming is in [`claim`](super::claim).

mod rows;

use std::time::Duration;

pub use rows::{Entry, depth, detail, list};

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::clock;
use crate::model::ids::{DeadLetterId, EntryId, ManifestId, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// The highest priority of an entry.
pub const PRIORITY_MAX: i16 = 31;

/// When an entry may be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At the next pass.
    Now,
    /// This long after now on the database's clock. Zero is [`Now`](Self::Now), whatever any clock says.
    After(Duration),
    /// At an instant.
    At(Timestamp),
}

/// An entry to queue.
#[derive(Debug, Clone)]
pub struct NewEntry<'a> {
    /// Whose it is.
    pub tenant: TenantId,
    /// The train to run.
    pub train: &'a str,
    /// 32 hex digits by which the caller knows it; `None`: random.
    pub external_id: Option<&'a str>,
    /// Canonical JSON.
    pub input: Option<&'a str>,
    /// The input's type.
    pub input_type: Option<&'a str>,
    /// The manifest it is a run of.
    pub manifest: Option<ManifestId>,
    /// Brought into the range from 0 to [`PRIORITY_MAX`].
    pub priority: i16,
    /// When it may be dispatched.
    pub when: When,
    /// The occurrence of the schedule it runs for.
    pub scheduled_time: Option<Timestamp>,
    /// The occurrence of the run it repeats; `None`: a new one.
    pub occurrence_id: Option<&'a str>,
    /// The dead letter it retries.
    pub dead_letter: Option<DeadLetterId>,
    /// False: staged, and dispatched only once confirmed.
    pub is_confirmed: bool,
    /// No two runs of one subject at once.
    pub subject_key: Option<&'a str>,
    /// Whether an operator asked for it: it runs although its manifest is disabled.
    pub is_explicit_trigger: bool,
    /// The run whose answers it replays.
    pub replay_decisions_of: Option<RunId>,
    /// The run it resumes.
    pub resume_from: Option<RunId>,
    /// The node it resumes at; `None`: after the latest checkpoint.
    pub resume_at: Option<&'a str>,
}

impl<'a> NewEntry<'a> {
    /// An entry for a train, to run now, with nothing else said.
    pub fn new(tenant: TenantId, train: &'a str) -> Self {
        Self {
            tenant,
            train,
            external_id: None,
            input: None,
            input_type: None,
            manifest: None,
            priority: 0,
            when: When::Now,
            scheduled_time: None,
            occurrence_id: None,
            dead_letter: None,
            is_confirmed: true,
            subject_key: None,
            is_explicit_trigger: false,
            replay_decisions_of: None,
            resume_from: None,
            resume_at: None,
        }
    }
}

/// What became of a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It is queued.
    Created {
        /// Its id.
        entry: EntryId,
        /// Whether the link to replay was dropped: another queued entry replays that run.
        asks_afresh: bool,
        /// Whether the link to resume was dropped: another queued entry resumes that run.
        starts_at_the_top: bool,
    },
    /// The manifest has a queued entry already; nothing was queued.
    ManifestQueued(EntryId),
    /// That external id is taken by this entry; nothing was queued.
    ExternalIdTaken(EntryId),
}

/// 32 random hex digits.
pub fn new_id() -> Result<String, StoreError> {
    clock::random::<16>().map(hex::encode).map_err(StoreError::Random)
}

/// Queues an entry. A link that another queued entry has taken is dropped rather than fail, and the entry's manifest is
/// not due as long as the entry is queued.
///
/// # Errors
/// [`StoreError::QueueFull`] when the tenant has as many queued entries as it may. Those that enqueue at once do not
/// see each other's entries, so a queue may grow past that limit by as many.
pub async fn enqueue(tx: &mut Tx<'_>, new: &NewEntry<'_>) -> Result<Enqueued, StoreError> {
    let external_id = new.external_id.map_or_else(new_id, |id| Ok(id.to_owned()))?;
    if let Some(manifest) = new.manifest {
        super::manifests::hold(tx, manifest).await?;
    }
    let mut entry = new.clone();
    let mut is_counted = false;
    loop {
        if let Some(id) = insert(tx, &entry, &external_id, is_counted).await? {
            if new.is_confirmed && matches!(new.when, When::Now | When::After(Duration::ZERO)) {
                tx.note_queued();
            }
            if let Some(manifest) = new.manifest {
                super::manifests::set_due(tx, manifest, None).await?;
            }
            return Ok(Enqueued::Created {
                entry: id,
                asks_afresh: new.replay_decisions_of.is_some()
                    && entry.replay_decisions_of.is_none(),
                starts_at_the_top: new.resume_from.is_some() && entry.resume_from.is_none(),
            });
        }
        let in_the_way = in_the_way(tx, &entry, &external_id).await?;
        if let Some(queued) = in_the_way.manifest {
            return Ok(Enqueued::ManifestQueued(queued));
        }
        if let Some(taken) = in_the_way.external_id {
            return Ok(Enqueued::ExternalIdTaken(taken));
        }
        if let Some(max) = in_the_way.max_queued_jobs.filter(|_| !is_counted) {
            let limit = u32::try_from(max).unwrap_or(0);
            if depth(tx, new.tenant, limit).await? >= i64::from(max) {
                return Err(StoreError::QueueFull(max));
            }
            is_counted = true;
        }
        // What was in the way may have gone meanwhile; then the same entry is tried again.
        if in_the_way.is_replay_taken {
            entry.replay_decisions_of = None;
        }
        if in_the_way.is_resume_taken {
            entry.resume_from = None;
            entry.resume_at = None;
        }
    }
}

/// Inserts an entry, unless something is in the way. A tenant whose queue has a limit is in the way of itself until its
/// entries were counted.
async fn insert(
    tx: &mut Tx<'_>,
    new: &NewEntry<'_>,
    external_id: &str,
    is_counted: bool,
) -> Result<Option<EntryId>, StoreError> {
    let now = tx.now().await?;
    let scheduled_at = match new.when {
        When::Now | When::After(Duration::ZERO) => None,
        When::After(delay) => Some(now.saturating_add(delay)),
        When::At(at) => Some(at),
    };
    let occurrence_id = new.occurrence_id.map_or_else(new_id, |id| Ok(id.to_owned()))?;
    let sql = "INSERT INTO work_queue
            (tenant_id, external_id, train_name, input, input_type_name, manifest_id, priority,
            group_priority,
             scheduled_at, scheduled_time, occurrence_id, dead_letter_id, confirmed_at, subject_key,
             is_explicit_trigger, replay_decisions_of, resume_from, resume_at, created_at)
        SELECT $1, $2, $3, $4, $5, $6, $7,
            COALESCE((SELECT g.priority FROM manifest m
            JOIN manifest_group g ON g.id = m.manifest_group_id
                WHERE m.id = $6), 0),
            $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18
        FROM tenant t WHERE t.id = $1 AND (t.max_queued_jobs IS NULL OR $19)
        ON CONFLICT DO NOTHING RETURNING id";
    on!(tx, |c| sqlx::query_scalar(sql)
        .bind(new.tenant)
        .bind(external_id)
        .bind(new.train)
        .bind(new.input)
        .bind(new.input_type)
        .bind(new.manifest)
        .bind(new.priority.clamp(0, PRIORITY_MAX))
        .bind(scheduled_at)
        .bind(new.scheduled_time)
        .bind(occurrence_id)
        .bind(new.dead_letter)
        .bind(new.is_confirmed.then_some(now))
        .bind(new.subject_key)
        .bind(new.is_explicit_trigger)
        .bind(new.replay_decisions_of)
        .bind(new.resume_from)
        .bind(new.resume_at)
        .bind(now)
        .bind(is_counted)
        .fetch_optional(c))
}

/// Which unique indexes an entry would break.
struct InTheWay {
    manifest: Option<EntryId>,
    external_id: Option<EntryId>,
    is_replay_taken: bool,
    is_resume_taken: bool,
    max_queued_jobs: Option<i32>,
}

row!(InTheWay { manifest, external_id, is_replay_taken, is_resume_taken, max_queued_jobs });

async fn in_the_way(
    tx: &mut Tx<'_>,
    new: &NewEntry<'_>,
    external_id: &str,
) -> Result<InTheWay, StoreError> {
    let sql = "SELECT
        (SELECT id FROM work_queue WHERE manifest_id = $1 AND status = 'queued') AS manifest,
        (SELECT id FROM work_queue WHERE tenant_id = $2 AND external_id = $3) AS external_id,
        EXISTS (SELECT 1 FROM work_queue WHERE replay_decisions_of = $4
        AND status = 'queued') AS is_replay_taken,
        EXISTS (SELECT 1 FROM work_queue WHERE resume_from = $5
        AND status = 'queued') AS is_resume_taken,
        max_queued_jobs
        FROM tenant WHERE id = $2";
    let found = on!(tx, |c| sqlx::query_as(sql)
        .bind(new.manifest)
        .bind(new.tenant)
        .bind(external_id)
        .bind(new.replay_decisions_of)
        .bind(new.resume_from)
        .fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "tenant", id: new.tenant.to_string() })
}

/// The entry that a manifest has queued.
pub async fn queued_of(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
) -> Result<Option<EntryId>, StoreError> {
    let sql = "SELECT id FROM work_queue WHERE manifest_id = $1 AND status = 'queued'";
    on!(tx, |c| sqlx::query_scalar(sql).bind(manifest).fetch_optional(c))
}

/// What a trigger of a manifest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triggered {
    /// It queued a new entry.
    Created {
        /// The entry.
        entry: EntryId,
        /// When it may be dispatched; `None`: now.
        scheduled_at: Option<Timestamp>,
    },
    /// An entry was queued already, and runs as the trigger now.
    Joined {
        /// The entry.
        entry: EntryId,
        /// When it may be dispatched; `None`: now.
        scheduled_at: Option<Timestamp>,
        /// Whether that is sooner than it was.
        is_moved_forward: bool,
    },
    /// The queued entry was claimed as the trigger reached it; nothing was changed.
    AlreadyDispatched {
        /// The entry.
        entry: EntryId,
        /// The run whose answers its run replays.
        replay_decisions_of: Option<RunId>,
    },
}

impl Triggered {
    /// The entry that runs the manifest.
    pub const fn entry(&self) -> EntryId {
        match self {
            Self::Created { entry, .. }
            | Self::Joined { entry, .. }
            | Self::AlreadyDispatched { entry, .. } => *entry,
        }
    }
}

/// Runs a manifest now or after a delay: as a new entry, or by way of the one that is queued. `new` is that new entry.
pub async fn trigger(
    tx: &mut Tx<'_>,
    manifest: ManifestId,
    delay: Duration,
    asks_afresh: bool,
    new: &NewEntry<'_>,
) -> Result<Triggered, StoreError> {
    let now = tx.now().await?;
    let asked = (!delay.is_zero()).then(|| now.saturating_add(delay));
    let sql =
        "SELECT id, scheduled_at FROM work_queue WHERE manifest_id = $1 AND status = 'queued'";
    loop {
        let queued: Option<(EntryId, Option<Timestamp>)> =
            on!(tx, |c| sqlx::query_as(sql).bind(manifest).fetch_optional(c))?;
        if let Some((entry, due)) = queued {
            return join(tx, entry, due, asked, asks_afresh).await;
        }
        let new = NewEntry {
            manifest: Some(manifest),
            when: asked.map_or(When::Now, When::At),
            is_explicit_trigger: true,
            ..new.clone()
        };
        match enqueue(tx, &new).await? {
            Enqueued::Created { entry, .. } => {
                return Ok(Triggered::Created { entry, scheduled_at: asked });
            }
            // It came meanwhile; joined in the next round.
            Enqueued::ManifestQueued(_) => {}
            Enqueued::ExternalIdTaken(entry) => {
                return Err(StoreError::Conflict {
                    what: "external id",
                    name: new.external_id.unwrap_or_default().to_owned(),
                    problem: format!("is that of work queue entry {entry}"),
                });
            }
        }
    }
}

async fn join(
    tx: &mut Tx<'_>,
    entry: EntryId,
    due: Option<Timestamp>,
    asked: Option<Timestamp>,
    asks_afresh: bool,
) -> Result<Triggered, StoreError> {
    let is_moved_forward = due.is_some_and(|due| asked.is_none_or(|asked| asked < due));
    let scheduled_at = if is_moved_forward { asked } else { due };
    let sql = "UPDATE work_queue SET is_explicit_trigger = TRUE, scheduled_at = $2,
            replay_decisions_of = CASE WHEN $3 THEN NULL ELSE replay_decisions_of END
        WHERE id = $1 AND status = 'queued'";
    let rows = execute!(tx, sqlx::query(sql).bind(entry).bind(scheduled_at).bind(asks_afresh))?;
    if rows == 1 {
        if scheduled_at.is_none() {
            tx.note_queued();
        }
        return Ok(Triggered::Joined { entry, scheduled_at, is_moved_forward });
    }
    let sql = "SELECT r.replay_decisions_of FROM work_queue w
        JOIN metadata r ON r.id = w.metadata_id WHERE w.id = $1";
    let replayed: Option<Option<RunId>> =
        on!(tx, |c| sqlx::query_scalar(sql).bind(entry).fetch_optional(c))?;
    Ok(Triggered::AlreadyDispatched { entry, replay_decisions_of: replayed.flatten() })
}

/// Lets a staged entry be dispatched. False: it was cancelled meanwhile, or confirmed before.
pub async fn confirm(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    entry: EntryId,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE work_queue SET confirmed_at = $3
        WHERE id = $2 AND tenant_id = $1 AND status = 'queued' AND confirmed_at IS NULL";
    let rows = execute!(tx, sqlx::query(sql).bind(tenant).bind(entry).bind(now))?;
    if rows == 1 {
        tx.note_queued();
    }
    Ok(rows == 1)
}

/// Withdraws a queued entry.
///
/// # Errors
/// [`StoreError::WrongState`] when it is not queued, [`StoreError::NotFound`] when this tenant has none.
pub async fn cancel(tx: &mut Tx<'_>, tenant: TenantId, entry: EntryId) -> Result<(), StoreError> {
    let sql = "UPDATE work_queue SET status = 'cancelled' WHERE id = $2 AND tenant_id = $1
        AND status = 'queued'";
    if execute!(tx, sqlx::query(sql).bind(tenant).bind(entry))? == 1 {
        return Ok(());
    }
    detail(tx, tenant, entry).await?;
    Err(StoreError::WrongState {
        what: "work queue entry",
        id: entry.to_string(),
        expected: "queued",
    })
}

/// Lets a queued entry wait, because this host cannot read its input, and counts that as an attempt. Gives the number
/// of attempts so far; `None` when it is no longer queued.
pub async fn postpone(
    tx: &mut Tx<'_>,
    entry: EntryId,
    delay: Duration,
) -> Result<Option<i32>, StoreError> {
    let at = tx.now().await?.saturating_add(delay);
    let sql = "UPDATE work_queue SET dispatch_attempts = dispatch_attempts + 1, scheduled_at = $2
        WHERE id = $1 AND status = 'queued' RETURNING dispatch_attempts";
    on!(tx, |c| sqlx::query_scalar(sql).bind(entry).bind(at).fetch_optional(c))
}
