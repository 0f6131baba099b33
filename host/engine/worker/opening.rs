//! What a run is before it goes on its way: read from the store, its train made ready, its input admitted.

use std::sync::Arc;

use super::{Inner, Left, Work, failure_of};
use crate::chain::Chain;
use crate::chain::snapshot::Snapshot;
use crate::chain::walk::Walk;
use crate::engine::completion::Outcome;
use crate::engine::resume;
use crate::engine::seal::{self, MemoryKey, Sealed};
use crate::engine::trains::{Ready, Unready};
use crate::guest::context::RunInfo;
use crate::model::failure::Failure;
use crate::model::ids::RunId;
use crate::model::message;
use crate::model::timestamp::Timestamp;
use crate::model::value::Value;
use crate::store::manifests::{self, Manifest};
use crate::store::runs::{self, Payload, Run, RunFilter};
use crate::store::{StoreError, dispatch, lines};

/// The most runs of a manifest looked through for earlier attempts of an occurrence.
const ATTEMPTS_MAX: u32 = 200;

/// Everything that is known of a run before it starts.
pub(super) struct Opened {
    pub(super) run: Run,
    pub(super) tenant: Arc<str>,
    pub(super) manifest: Option<Manifest>,
    pub(super) payload: Payload,
    pub(super) attempt: u32,
}

/// Everything that a run needs to go on its way.
pub(super) struct Prepared {
    pub(super) ready: Ready,
    pub(super) input: Value,
    pub(super) walk: Walk,
}

impl Inner {
    /// Finds out what the run is made of. The claim of a fresh one has said most of it.
    pub(super) async fn open(&self, work: &Work) -> Result<Opened, StoreError> {
        let (claim, tenant) = (work.claim(), work.tenant());
        let known = self.tenants.known(tenant);
        if let (Work::Fresh(_, claimed), Some(name)) = (work, &known)
            && claimed.manifest_id.is_none()
        {
            let (run, payload) = (claimed.started(), claimed.payload());
            return Ok(Opened {
                run,
                tenant: Arc::clone(name),
                manifest: None,
                payload,
                attempt: 1,
            });
        }
        let mut tx = self.shared.db.read().await?;
        let (run, payload) = match work {
            Work::Fresh(_, claimed) => (claimed.started(), claimed.payload()),
            Work::Continued(_) => (
                runs::detail(&mut tx, tenant, claim.run).await?,
                runs::payload(&mut tx, tenant, claim.run).await?,
            ),
        };
        let tenant_name = self.tenants.name(&mut tx, tenant).await?;
        let mut opened = Opened { run, tenant: tenant_name, manifest: None, payload, attempt: 1 };
        if let Some(id) = opened.run.manifest_id {
            opened.manifest = Some(manifests::detail(&mut tx, tenant, id).await?);
            let before =
                RunFilter { manifest: Some(id), before: Some(claim.run), ..RunFilter::default() };
            let earlier = runs::list(&mut tx, tenant, before, ATTEMPTS_MAX).await?;
            let is_attempt = |run: &&Run| {
                run.occurrence_id == opened.run.occurrence_id
                    && run.failure_exception.as_deref() != Some(dispatch::DISPATCH_REQUEUED)
            };
            let attempts = earlier.iter().filter(is_attempt).count();
            opened.attempt = u32::try_from(attempts).unwrap_or(u32::MAX).saturating_add(1);
        }
        Ok(opened)
    }

    /// Gets the train ready and reads the run's input. What fails here was no run: it never started.
    pub(super) async fn prepare(
        &self,
        work: &Work,
        opened: &Opened,
    ) -> Result<Prepared, Undelivered> {
        let elsewhere = |unready| Undelivered { unready, is_final: false };
        let Some(version) = opened.run.component_version_id else {
            let what = message::unknown_train(&opened.run.name);
            let failure = Failure::permanent("UnknownTrain", what);
            return Err(elsewhere(Unready::Failed(failure)));
        };
        let ready = self.trains.ready(work.tenant(), version, &opened.run.name).await;
        let ready = ready.map_err(elsewhere)?;
        let never = |failure| Undelivered { unready: Unready::Failed(failure), is_final: true };
        let input = admitted(&ready.chain, work, opened).map_err(never)?;
        let walk = match (memory_of(work), opened.run.resume_from) {
            (None, Some(from)) => self
                .resumed(work, (opened, from), &ready.chain, &input)
                .await
                .map_err(|error| elsewhere(Unready::Host(error.into())))?,
            _ => walk(&ready.chain, work, &input, self.shared.config.memory_key.as_ref())
                .map_err(never)?,
        };
        Ok(Prepared { ready, input, walk })
    }

    /// The walk of a run that resumes another. One that cannot be trusted starts at the top.
    async fn resumed(
        &self,
        work: &Work,
        (opened, from): (&Opened, RunId),
        chain: &Arc<Chain>,
        input: &Value,
    ) -> Result<Walk, StoreError> {
        let mut tx = self.shared.db.read().await?;
        let run = (work.tenant(), &opened.run, from);
        let refusal = match resume::walk(&mut tx, run, chain, input).await? {
            Ok(walk) => return Ok(walk),
            Err(refusal) => refusal,
        };
        drop(tx);
        tracing::warn!(
            run = %opened.run.id,
            code = refusal.code.as_str(),
            "the run starts at the top instead of resuming run {from}: {refusal}"
        );
        let mut tx = self.shared.db.begin().await?;
        lines::abandon(&mut tx, work.claim()).await?;
        tx.commit().await?;
        Ok(Walk::start(Arc::clone(chain), input.clone()))
    }
}

/// Why a run never started here, or does not go on.
pub(super) struct Undelivered {
    pub(super) unready: Unready,
    /// Whether it would fail anywhere.
    is_final: bool,
}

impl Undelivered {
    pub(super) fn left(self, work: &Work) -> Left {
        let failure = failure_of(self.unready);
        let outcome = match work.entry() {
            Some(entry) => {
                let entry = (!self.is_final).then_some(entry);
                Outcome::Undelivered { entry, failure }
            }
            None => Outcome::Failed { junction: None, failure },
        };
        Left { outcome, journal: None }
    }
}

/// What is kept of a run that continues, should it be put back untouched.
pub(super) fn memory_of(work: &Work) -> Option<Sealed> {
    match work {
        Work::Fresh(..) => None,
        Work::Continued(run) => run.memory.clone().zip(run.key_id.clone()),
    }
}

/// The run's input as its train takes it.
fn admitted(chain: &Chain, work: &Work, opened: &Opened) -> Result<Value, Failure> {
    let type_name = &chain.train().input;
    let Payload { input, input_type_name, .. } = &opened.payload;
    let stated = input_type_name.as_deref().unwrap_or(type_name);
    let checked = if stated == type_name {
        let text = input.as_deref().unwrap_or("null");
        chain.types().admit(type_name, text).map_err(|fault| fault.to_string())
    } else {
        Err(format!("the train takes '{type_name}'"))
    };
    checked.map_err(|cause| {
        let entry = match work.entry() {
            Some(entry) => format!("work queue entry {entry}"),
            None => format!("run {}", opened.run.id),
        };
        Failure::permanent("UnreadableInput", message::unreadable_input(&entry, stated, &cause))
    })
}

/// The walk from its start, or from where the run was parked.
fn walk(
    chain: &Arc<Chain>,
    work: &Work,
    input: &Value,
    key: Option<&MemoryKey>,
) -> Result<Walk, Failure> {
    let Some((memory, key_id)) = memory_of(work) else {
        return Ok(Walk::start(Arc::clone(chain), input.clone()));
    };
    let bad = |why: String| {
        Failure::permanent(
            "BadParkedRun",
            format!("the run cannot go on from where it stopped: {why}"),
        )
    };
    let memory = seal::open(key, work.claim().run, (&memory, &key_id)).map_err(bad)?;
    let snapshot: Snapshot =
        serde_json::from_slice(&memory).map_err(|error| bad(error.to_string()))?;
    Walk::restore(Arc::clone(chain), snapshot).map_err(|error| bad(error.to_string()))
}

pub(super) fn run_info(opened: &Opened, ready: &Ready) -> RunInfo {
    RunInfo {
        tenant: opened.tenant.to_string(),
        train: opened.run.name.clone(),
        run_id: opened.run.id.to_string(),
        occurrence_id: opened.run.occurrence_id.clone(),
        component: ready.component.digest().to_owned(),
        attempt: opened.attempt,
        manifest: opened.manifest.as_ref().map(|manifest| manifest.external_id.clone()),
        scheduled_at: opened.run.scheduled_time.map(Timestamp::as_micros),
    }
}
