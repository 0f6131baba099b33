//! Dead letters: reading them, and resolving them by requeueing or acknowledging, one by one or many at once.
//!
//! What an operator asks for and cannot be done is an [`Outcome`] that says why; then nothing was changed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

use crate::engine::chains::Chains;
use crate::engine::sources::Sources;
use crate::model::ids::{DeadLetterId, EntryId, ManifestId, TenantId};
use crate::model::message;
use crate::operations::batch;
use crate::operations::manifests::FAILURE_COUNT_WINDOW;
use crate::operations::outcome::Outcome;
use crate::store::dead_letters::{self, DeadLetter};
use crate::store::queue::{self, Enqueued, NewEntry};
use crate::store::resolve::{self, Requeued, Which};
use crate::store::{Db, DeadLetterStatus, StoreError, Tx, due, manifests, runs};

/// How many manifests one transaction of requeueing all deals with.
const MANIFESTS_PER_PAGE: u32 = 1_000;

/// How many dead letters one transaction of acknowledging all deals with.
const ACKNOWLEDGED_PER_PAGE: u32 = 50_000;

/// How often a page is tried while others are in its way.
const ATTEMPTS_MAX: u32 = 3;

/// How many characters a note may have.
const NOTE_MAX: usize = 1_000;

/// A dead letter with the name of its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The dead letter.
    pub dead_letter: DeadLetter,
    /// Its manifest's external id.
    pub manifest: String,
    /// The train that its manifest runs.
    pub train: String,
}

/// Which dead letters a list shows.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// In this status.
    pub status: Option<DeadLetterStatus>,
    /// Of the manifest with this external id.
    pub manifest: Option<String>,
    /// With ids below this one.
    pub before: Option<DeadLetterId>,
}

/// A page of a tenant's dead letters, newest first.
///
/// # Errors
/// [`StoreError::NotFound`] when the filter names a manifest that does not exist.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    filter: &Filter,
    limit: u32,
) -> Result<Vec<Listed>, StoreError> {
    let mut tx = db.read().await?;
    let manifest = manifests::named_by(&mut tx, tenant, filter.manifest.as_deref()).await?;
    let (status, before) = (filter.status, filter.before);
    let found = match manifest {
        None => dead_letters::list(&mut tx, tenant, status, before, limit).await?,
        Some(of) => {
            dead_letters::list_of_manifest(&mut tx, tenant, of, status, before, limit).await?
        }
    };
    let mut known: BTreeMap<ManifestId, (String, String)> = BTreeMap::new();
    let mut listed = Vec::new();
    for dead_letter in found {
        let id = dead_letter.manifest_id;
        let (manifest, train) = match known.entry(id) {
            Entry::Occupied(found) => found.get().clone(),
            Entry::Vacant(place) => place.insert(names(&mut tx, tenant, id).await?).clone(),
        };
        listed.push(Listed { dead_letter, manifest, train });
    }
    Ok(listed)
}

/// One dead letter.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none of that id.
pub async fn detail(db: &Db, tenant: TenantId, id: DeadLetterId) -> Result<Listed, StoreError> {
    let mut tx = db.read().await?;
    let dead_letter = dead_letters::detail(&mut tx, tenant, id).await?;
    let (manifest, train) = names(&mut tx, tenant, dead_letter.manifest_id).await?;
    Ok(Listed { dead_letter, manifest, train })
}

/// A manifest's external id and its train.
async fn names(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
) -> Result<(String, String), StoreError> {
    let manifest = manifests::detail(tx, tenant, manifest).await?;
    Ok((manifest.external_id, manifest.name))
}

/// Queues a new run of a dead letter's manifest, at once, and resolves the dead letter as requeued in it. The run
/// replays what the failed one decided, as a retry would, unless it is to ask afresh.
///
/// # Errors
/// Those of the store.
pub async fn requeue(
    db: &Db,
    tenant: TenantId,
    id: DeadLetterId,
    asks_afresh: bool,
) -> Result<Outcome, StoreError> {
    db.write(async |tx| {
        let Some(dead_letter) = awaiting(tx, tenant, id).await? else {
            return Ok(Outcome::refused(message::DEAD_LETTER_GONE));
        };
        let manifest = dead_letter.manifest_id;
        if let Some(entry) = queue::queued_of(tx, manifest).await? {
            return Ok(Outcome::refused(message::dead_letter_left(Some(entry.0))));
        }
        match enqueue(tx, tenant, &dead_letter, asks_afresh).await? {
            Some((entry, has_lost)) => {
                dead_letters::resolve_as_retried(tx, tenant, id, entry).await?;
                let text = message::dead_letter_requeued(i64::from(has_lost));
                Ok(Outcome::done(text).with_id(entry.0).with_count(1))
            }
            None => Ok(Outcome::refused(message::dead_letter_left(None))),
        }
    })
    .await
}

/// The dead letter, if it awaits somebody.
async fn awaiting(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: DeadLetterId,
) -> Result<Option<DeadLetter>, StoreError> {
    match dead_letters::detail(tx, tenant, id).await {
        Ok(found) => {
            let is_awaiting = found.status == DeadLetterStatus::AwaitingIntervention;
            Ok(is_awaiting.then_some(found))
        }
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An entry for a dead letter, which repeats the occurrence that failed, and whether it asks afresh because the
/// decisions that it would replay are replayed already. `None`: another came first.
async fn enqueue(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    dead_letter: &DeadLetter,
    asks_afresh: bool,
) -> Result<Option<(EntryId, bool)>, StoreError> {
    let manifest = manifests::locked(tx, tenant, dead_letter.manifest_id).await?;
    let sources =
        Sources::look_up(tx, &[manifest.id], FAILURE_COUNT_WINDOW, &Chains::default()).await?;
    let taken = sources.take_over(manifest.id, asks_afresh);
    let failed = match due::latest_finished(tx, manifest.id).await? {
        Some((run, crate::store::TrainState::Failed)) => Some(runs::detail(tx, tenant, run).await?),
        _ => None,
    };
    let new = NewEntry {
        input: manifest.properties.as_deref(),
        input_type: manifest.property_type.as_deref(),
        manifest: Some(manifest.id),
        priority: manifest.priority,
        scheduled_time: failed.as_ref().and_then(|run| run.scheduled_time),
        occurrence_id: failed.as_ref().map(|run| run.occurrence_id.as_str()),
        dead_letter: Some(dead_letter.id),
        is_explicit_trigger: true,
        replay_decisions_of: taken.replay_decisions_of,
        resume_from: taken.resume_from,
        ..NewEntry::new(tenant, &manifest.name)
    };
    match queue::enqueue(tx, &new).await? {
        Enqueued::Created { entry, asks_afresh, .. } => {
            Ok(Some((entry, asks_afresh || taken.is_spent)))
        }
        Enqueued::ManifestQueued(_) | Enqueued::ExternalIdTaken(_) => Ok(None),
    }
}

/// Requeues dead letters by their ids: one entry per manifest. Ids of none that awaits somebody are passed over.
///
/// # Errors
/// Those of the store.
pub async fn requeue_batch(
    db: &Db,
    tenant: TenantId,
    ids: &[DeadLetterId],
    asks_afresh: bool,
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = batch::refusal(ids.len()) {
        return Ok(refusal);
    }
    let done = requeue_page(db, tenant, Which::With(ids), asks_afresh).await?;
    Ok(requeued(done))
}

/// Which dead letters an action on all of them is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every one of the tenant.
    All,
    /// Those of a manifest.
    Manifest(ManifestId),
}

/// Requeues every dead letter that awaits somebody, a thousand manifests at a time: one entry per manifest. After each
/// page `progress` is told how many are resolved so far, and may end it there. What a page did stays done, whatever
/// happens to the next.
///
/// # Errors
/// Those of the store.
pub async fn requeue_all(
    db: &Db,
    tenant: TenantId,
    scope: Scope,
    asks_afresh: bool,
    mut progress: impl FnMut(i64) -> ControlFlow<()>,
) -> Result<Outcome, StoreError> {
    let mut total = Requeued::default();
    let mut after = ManifestId(0);
    loop {
        let page = page(db, tenant, scope, after).await?;
        let Some(last) = page.last() else { return Ok(requeued(total)) };
        after = *last;
        add(&mut total, requeue_page(db, tenant, Which::Of(&page), asks_afresh).await?);
        if progress(total.resolved).is_break() || matches!(scope, Scope::Manifest(_)) {
            return Ok(requeued(total));
        }
    }
}

/// What [`requeue_all`] would come to now, in the same words; it changes nothing.
///
/// # Errors
/// Those of the store.
pub async fn preview_all(db: &Db, tenant: TenantId, scope: Scope) -> Result<Outcome, StoreError> {
    let mut total = Requeued::default();
    let mut after = ManifestId(0);
    loop {
        let page = page(db, tenant, scope, after).await?;
        let Some(last) = page.last() else { return Ok(requeued(total)) };
        after = *last;
        let mut tx = db.read().await?;
        add(&mut total, resolve::preview(&mut tx, tenant, Which::Of(&page)).await?);
        if matches!(scope, Scope::Manifest(_)) {
            return Ok(requeued(total));
        }
    }
}

/// What [`requeue_batch`] would come to now, in the same words; it changes nothing.
///
/// # Errors
/// Those of the store.
pub async fn preview_batch(
    db: &Db,
    tenant: TenantId,
    ids: &[DeadLetterId],
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = batch::refusal(ids.len()) {
        return Ok(refusal);
    }
    let mut tx = db.read().await?;
    Ok(requeued(resolve::preview(&mut tx, tenant, Which::With(ids)).await?))
}

async fn page(
    db: &Db,
    tenant: TenantId,
    scope: Scope,
    after: ManifestId,
) -> Result<Vec<ManifestId>, StoreError> {
    let mut tx = db.read().await?;
    match scope {
        Scope::All => resolve::awaiting_manifests(&mut tx, tenant, after, MANIFESTS_PER_PAGE).await,
        Scope::Manifest(manifest) => Ok(vec![manifest]),
    }
}

/// Requeues a page in one transaction, again if it met another that does the same.
async fn requeue_page(
    db: &Db,
    tenant: TenantId,
    which: Which<'_>,
    asks_afresh: bool,
) -> Result<Requeued, StoreError> {
    let mut attempt = 1;
    loop {
        match requeue_held(db, tenant, which, asks_afresh).await {
            Err(StoreError::Busy(place)) if attempt < ATTEMPTS_MAX => {
                tracing::info!(%place, attempt, "a page of dead letters is requeued again");
                attempt += 1;
            }
            done => return done,
        }
    }
}

async fn requeue_held(
    db: &Db,
    tenant: TenantId,
    which: Which<'_>,
    asks_afresh: bool,
) -> Result<Requeued, StoreError> {
    db.write(async |tx| {
        let held = resolve::hold(tx, tenant, which).await?;
        let sources = Sources::look_up(tx, &held, FAILURE_COUNT_WINDOW, &Chains::default()).await?;
        let take_over = |manifest| (manifest, sources.take_over(manifest, asks_afresh));
        let taken = held.into_iter().map(take_over).collect();
        resolve::requeue(tx, tenant, which, &taken).await
    })
    .await
}

fn add(total: &mut Requeued, page: Requeued) {
    total.resolved += page.resolved;
    total.folded += page.folded;
    total.skipped += page.skipped;
    total.ask_afresh += page.ask_afresh;
}

fn requeued(done: Requeued) -> Outcome {
    let Requeued { resolved, folded, skipped, ask_afresh } = done;
    let text = message::dead_letters_requeued(resolved, folded, skipped, ask_afresh);
    Outcome::done(text).with_count(done.resolved)
}

/// Resolves a dead letter as one that needs nothing more.
///
/// # Errors
/// Those of the store.
pub async fn acknowledge(
    db: &Db,
    tenant: TenantId,
    id: DeadLetterId,
    note: Option<&str>,
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = refused_note(note) {
        return Ok(refusal);
    }
    let which = [id];
    let count = db
        .write(async |tx| resolve::acknowledge(tx, tenant, Which::With(&which), note).await)
        .await?;
    Ok(match count {
        0 => Outcome::refused(message::DEAD_LETTER_GONE),
        _ => Outcome::done(message::DEAD_LETTER_ACKNOWLEDGED).with_id(id.0).with_count(1),
    })
}

/// Acknowledges dead letters by their ids. Ids of none that awaits somebody are passed over.
///
/// # Errors
/// Those of the store.
pub async fn acknowledge_batch(
    db: &Db,
    tenant: TenantId,
    ids: &[DeadLetterId],
    note: Option<&str>,
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = refused_note(note).or_else(|| batch::refusal(ids.len())) {
        return Ok(refusal.with_count(0));
    }
    let count =
        db.write(async |tx| resolve::acknowledge(tx, tenant, Which::With(ids), note).await).await?;
    Ok(acknowledged(count))
}

/// Acknowledges every dead letter that awaits somebody when it begins, a page at a time; what a page did stays done,
/// whatever happens to the next.
///
/// # Errors
/// Those of the store.
pub async fn acknowledge_all(
    db: &Db,
    tenant: TenantId,
    scope: Scope,
    note: Option<&str>,
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = refused_note(note) {
        return Ok(refusal.with_count(0));
    }
    if let Scope::Manifest(manifest) = scope {
        let which = [manifest];
        let count = db
            .write(async |tx| resolve::acknowledge(tx, tenant, Which::Of(&which), note).await)
            .await?;
        return Ok(acknowledged(count));
    }
    let mut tx = db.read().await?;
    let up_to = resolve::newest(&mut tx, tenant).await?.unwrap_or(DeadLetterId(0));
    drop(tx);
    let (mut total, mut after) = (0, DeadLetterId(0));
    loop {
        let limit = ACKNOWLEDGED_PER_PAGE;
        let page = db
            .write(async |tx| {
                resolve::acknowledge_page(tx, tenant, after, up_to, note, limit).await
            })
            .await?;
        let Some(page) = page else { return Ok(acknowledged(total)) };
        total += page.count;
        after = page.last;
    }
}

/// What [`acknowledge_all`] would come to now, in the same words; it changes nothing.
///
/// # Errors
/// Those of the store.
pub async fn count(db: &Db, tenant: TenantId, scope: Scope) -> Result<Outcome, StoreError> {
    let mut tx = db.read().await?;
    let count = match scope {
        Scope::All => dead_letters::count_awaiting(&mut tx, tenant).await?,
        Scope::Manifest(manifest) => {
            resolve::count(&mut tx, tenant, Which::Of(&[manifest])).await?
        }
    };
    Ok(acknowledged(u64::try_from(count).unwrap_or(0)))
}

/// What [`acknowledge_batch`] would come to now, in the same words; it changes nothing.
///
/// # Errors
/// Those of the store.
pub async fn count_batch(
    db: &Db,
    tenant: TenantId,
    ids: &[DeadLetterId],
) -> Result<Outcome, StoreError> {
    if let Some(refusal) = batch::refusal(ids.len()) {
        return Ok(refusal);
    }
    let mut tx = db.read().await?;
    let count = resolve::count(&mut tx, tenant, Which::With(ids)).await?;
    Ok(acknowledged(u64::try_from(count).unwrap_or(0)))
}

fn acknowledged(count: u64) -> Outcome {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Outcome::done(message::dead_letters_acknowledged(count)).with_count(count)
}

fn refused_note(note: Option<&str>) -> Option<Outcome> {
    let length = note.map_or(0, |note| note.chars().count());
    (length > NOTE_MAX).then(|| Outcome::refused(message::note_too_long(length)))
}
