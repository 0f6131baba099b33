//! Reading runs. What a train declares sensitive does not leave the store.

use crate::chain::declaration::Train;
use crate::chain::schema::Types;
use crate::model::ids::{DecisionId, ManifestId, RunId, TenantId};
use crate::operations::error::OperationError;
use crate::operations::trains;
use crate::store::decisions::{self, Decision};
use crate::store::junction_runs::{self, Step};
use crate::store::logs::{self, Line};
use crate::store::runs::{self, Run, RunFilter};
use crate::store::{Db, StoreError, TrainState, Tx, components, manifests};

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

/// A value that operators see, or that one is there and they do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The value as JSON.
    Plain(String),
    /// Its type, or its question, is declared sensitive.
    Sensitive,
}

/// All of a run that operators see.
#[derive(Debug, Clone, PartialEq)]
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
    /// What was decided, in order; answers as they are shown.
    pub decisions: Vec<(Decision, Option<Shown>)>,
    /// What its junctions wrote to the log, from the start.
    pub log: Vec<Line>,
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
    let manifest = match &filter.manifest {
        Some(id) => Some(manifests::of_external_id(&mut tx, tenant, id).await?.id),
        None => None,
    };
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
    let output_type = secrecy.train.as_ref().map(|train| train.output.clone());
    let shown = |name: Option<&String>, text| secrecy.value(name.map(String::as_str), text);
    Ok(Detail {
        input: payload.input.map(|text| shown(payload.input_type_name.as_ref(), text)),
        input_type: payload.input_type_name,
        output: payload.output.map(|text| shown(output_type.as_ref(), text)),
        output_type,
        steps,
        decisions: decided,
        log: logs::of_run(&mut tx, tenant, id, 0, SHOWN_MAX).await?,
        run,
        manifest,
    })
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
struct Secrecy {
    train: Option<Train>,
    types: Option<Types>,
}

impl Secrecy {
    async fn of(tx: &mut Tx<'_>, tenant: TenantId, run: &Run) -> Result<Self, OperationError> {
        let stored = match run.component_version_id {
            Some(version) => components::train_of_version(tx, tenant, version, &run.name).await,
            None => components::active_train(tx, tenant, &run.name).await,
        };
        let train = match stored {
            Ok(stored) => Some(trains::declared(&stored)?),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let types = train.as_ref().and_then(|train| Types::compile(&train.types).ok());
        Ok(Self { train, types })
    }

    fn value(&self, type_name: Option<&str>, text: String) -> Shown {
        match (&self.types, type_name) {
            (Some(types), Some(name)) if types.contains(name) && !types.is_sensitive(name) => {
                Shown::Plain(text)
            }
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

    fn hides_question(&self, key: &str) -> bool {
        let questions = self.train.as_ref().map(|train| &train.questions);
        let found = questions.and_then(|questions| questions.iter().find(|it| it.key == key));
        found.is_none_or(|question| question.sensitive)
    }
}
