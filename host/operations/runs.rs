//! Reading and cancelling runs. What a train declares sensitive does not leave the store.

use std::collections::BTreeSet;

use crate::chain::declaration::Train;
use crate::chain::schema::Types;
use crate::model::ids::{DecisionId, ManifestId, RunId, TenantId, VersionId};
use crate::model::message;
use crate::model::value::Shown;
use crate::operations::batch;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::run_picture::{self, RunPicture};
use crate::operations::trains;
use crate::store::decisions::{self, Decision};
use crate::store::junction_runs::{self, Step};
use crate::store::logs::{self, Line};
use crate::store::runs::{self, Run, RunFilter};
use crate::store::{Db, StoreError, TrainState, Tx, components, manifests, resolve};

/// The most decisions and log lines of a run that are shown.
const SHOWN_MAX: u32 = 1_000;

/// Which runs a list shows. What is `None` does not matter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// In this state.
    pub state: Option<TrainState>,
    /// Of this train.
    pub train: Option<String>,
    /// Of the manifest with this external id.
    pub manifest: Option<String>,
    /// With ids below this one.
    pub before: Option<RunId>,
}

/// A run with the name of its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The run.
    pub run: Run,
    /// Its manifest's external id.
    pub manifest: Option<String>,
}

/// All of a run that operators see.
#[derive(Debug, Clone)]
pub struct Detail {
    /// The run.
    pub run: Run,
    /// Its manifest's external id.
    pub manifest: Option<String>,
    /// The type of its input.
    pub input_type: Option<String>,
    /// Its input.
    pub input: Option<Shown>,
    /// The type of its output.
    pub output_type: Option<String>,
    /// Its output.
    pub output: Option<Shown>,
    /// What it did, node by node.
    pub steps: Vec<Step>,
    /// How far it has come on its chain, and whether it could be resumed.
    pub picture: RunPicture,
    /// What was decided, in order; answers as they are shown.
    pub decisions: Vec<(Decision, Option<Shown>)>,
    /// What its junctions wrote to the log, from the start.
    pub log: Vec<Line>,
}

/// The run of that id, or the refusal that says there is none.
pub(super) async fn found(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RunId,
) -> Result<Result<Run, Outcome>, StoreError> {
    match runs::detail(tx, tenant, id).await {
        Ok(run) => Ok(Ok(run)),
        Err(StoreError::NotFound { .. }) => Ok(Err(Outcome::missing(message::run_not_found(id.0)))),
        Err(error) => Err(error),
    }
}

/// A page of a tenant's runs, newest first.
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
    let filter = RunFilter {
        state: filter.state,
        train: filter.train.as_deref(),
        manifest,
        before: filter.before,
    };
    let mut listed: Vec<Listed> = Vec::new();
    for run in runs::list(&mut tx, tenant, filter, limit).await? {
        let same = listed.iter().find(|other| other.run.manifest_id == run.manifest_id);
        let manifest = match same {
            Some(other) => other.manifest.clone(),
            None => name_of(&mut tx, tenant, run.manifest_id).await?,
        };
        listed.push(Listed { run, manifest });
    }
    Ok(listed)
}

/// All of one run.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none of that id.
pub async fn detail(db: &Db, tenant: TenantId, id: RunId) -> Result<Detail, OperationError> {
    let mut tx = db.read().await?;
    let run = runs::detail(&mut tx, tenant, id).await?;
    let manifest = name_of(&mut tx, tenant, run.manifest_id).await?;
    let payload = runs::payload(&mut tx, tenant, id).await?;
    let secrecy = Secrecy::of(&mut tx, tenant, &run).await?;
    let mut decided = Vec::new();
    for decision in decisions::of_run(&mut tx, tenant, id, DecisionId(0), SHOWN_MAX).await? {
        let answer = decision.answer.clone().map(|answer| secrecy.answer(&decision, answer));
        decided.push((decision, answer));
    }
    let mut steps = junction_runs::of_run(&mut tx, tenant, id).await?;
    for step in &mut steps {
        let is_hidden = step.question_key.as_ref().is_some_and(|key| secrecy.hides_question(key));
        if is_hidden {
            step.answer = None;
        }
    }
    let picture = run_picture::of(&mut tx, tenant, &run, &steps, &decided).await?;
    let output_type = secrecy.train.as_ref().map(|train| train.output.clone());
    let shown = |name: Option<&String>, text| secrecy.value(name.map(String::as_str), text);
    Ok(Detail {
        input: payload.input.map(|text| shown(payload.input_type_name.as_ref(), text)),
        input_type: payload.input_type_name,
        output: payload.output.map(|text| shown(output_type.as_ref(), text)),
        output_type,
        picture,
        steps,
        decisions: decided,
        log: logs::of_run(&mut tx, tenant, id, 0, SHOWN_MAX).await?,
        run,
        manifest,
    })
}

/// Asks that a run end as cancelled. Its host sees that at the next boundary, or inside a junction that computes.
///
/// # Errors
/// Those of the store.
pub async fn cancel(db: &Db, tenant: TenantId, id: RunId) -> Result<Outcome, StoreError> {
    Ok(match flag(db, tenant, &[id]).await? {
        0 => Outcome::refused(message::run_not_cancellable(id.0)).with_count(0),
        _ => Outcome::done(message::runs_cancelled(1, 1)).with_id(id.0).with_count(1),
    })
}

/// Asks that runs end as cancelled. Those that ended, and ids of none, are passed over.
///
/// # Errors
/// Those of the store.
pub async fn cancel_batch(db: &Db, tenant: TenantId, ids: &[RunId]) -> Result<Outcome, StoreError> {
    if let Some(refusal) = batch::refusal(ids.len()) {
        return Ok(refusal);
    }
    let named: BTreeSet<RunId> = ids.iter().copied().collect();
    let flagged = flag(db, tenant, &named.iter().copied().collect::<Vec<_>>()).await?;
    Ok(Outcome::done(message::runs_cancelled(flagged, named.len())).with_count(flagged))
}

/// Flags runs that are pending or in progress, and says how many that were.
pub(in crate::operations) async fn flag(
    db: &Db,
    tenant: TenantId,
    ids: &[RunId],
) -> Result<i64, StoreError> {
    db.write(async |tx| {
        let mut flagged = 0;
        let mut of = BTreeSet::new();
        for id in ids {
            match runs::request_cancel(tx, tenant, *id).await {
                Ok(()) => flagged += 1,
                Err(StoreError::WrongState { .. } | StoreError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            }
            of.extend(runs::detail(tx, tenant, *id).await?.manifest_id);
        }
        // A parked run ends at once, and then its manifest waits for nothing any more.
        resolve::free(tx, tenant, of).await?;
        Ok(flagged)
    })
    .await
}

async fn name_of(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: Option<ManifestId>,
) -> Result<Option<String>, StoreError> {
    let Some(manifest) = manifest else { return Ok(None) };
    match manifests::detail(tx, tenant, manifest).await {
        Ok(manifest) => Ok(Some(manifest.external_id)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a run's train declares sensitive. Of a train that is not known, everything is.
pub(in crate::operations) struct Secrecy {
    train: Option<Train>,
    types: Option<Types>,
}

impl Secrecy {
    async fn of(tx: &mut Tx<'_>, tenant: TenantId, run: &Run) -> Result<Self, OperationError> {
        Self::of_version(tx, tenant, run.component_version_id, &run.name).await
    }

    /// What a train declared in that version of its component.
    pub(in crate::operations) async fn of_version(
        tx: &mut Tx<'_>,
        tenant: TenantId,
        version: Option<VersionId>,
        name: &str,
    ) -> Result<Self, OperationError> {
        let Some(version) = version else { return Self::of_train(tx, tenant, name).await };
        Self::declared(components::train_of_version(tx, tenant, version, name).await)
    }

    /// What a train declares that new runs use.
    pub(in crate::operations) async fn of_train(
        tx: &mut Tx<'_>,
        tenant: TenantId,
        name: &str,
    ) -> Result<Self, OperationError> {
        Self::declared(components::active_train(tx, tenant, name).await)
    }

    fn declared(stored: Result<components::Train, StoreError>) -> Result<Self, OperationError> {
        let train = match stored {
            Ok(stored) => Some(trains::declared(&stored)?),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let types = train.as_ref().and_then(|train| Types::compile(&train.types).ok());
        Ok(Self { train, types })
    }

    pub(in crate::operations) fn value(&self, type_name: Option<&str>, text: String) -> Shown {
        match (&self.types, type_name) {
            (Some(types), Some(name)) => types.shown(name, text),
            _ => Shown::Sensitive,
        }
    }

    fn answer(&self, decision: &Decision, text: String) -> Shown {
        if self.hides_question(&decision.question_key) {
            Shown::Sensitive
        } else {
            Shown::Plain(text)
        }
    }

    pub(in crate::operations) fn hides_question(&self, key: &str) -> bool {
        let questions = self.train.as_ref().map(|train| &train.questions);
        let found = questions.and_then(|questions| questions.iter().find(|it| it.key == key));
        found.is_none_or(|question| question.sensitive)
    }
}
