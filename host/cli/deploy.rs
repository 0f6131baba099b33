//! `trax deploy`: components and manifest files into a database, all of them or none.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::output::{FAINT, GOOD, NOTABLE, Output, styled};
use crate::cli::{Global, exit, load};
use crate::clock::Clock;
use crate::guest::component::GuestHost;
use crate::model::ids::TenantId;
use crate::operations::apply::{self, Applied, Change};
use crate::operations::deploy::{self, Checked, Deployed};
use crate::operations::duration;
use crate::operations::error::OperationError;
use crate::operations::manifest_file::{self, ManifestFile, agreement};
use crate::operations::prune::{self, Pruned};
use crate::operations::seeding;
use crate::store::{Db, ScheduleType, StoreError};

/// How often a deployment is tried while hosts at work hold what it changes.
const TRIES: u32 = 5;

/// Deploy components (.wasm) and state manifests (.toml): all of them, or none if one is wrong
#[derive(Debug, Args)]
pub struct Deploy {
    /// Components and manifest files
    #[arg(required_unless_present = "roll_back", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Instead, let new runs use the version of this component that was active before
    #[arg(long, value_name = "COMPONENT", conflicts_with = "files")]
    roll_back: Option<String>,
    #[command(flatten)]
    database: Database,
}

/// Files that were read and checked, so that only storing them is left.
pub struct Checkout {
    components: Vec<Checked>,
    /// The manifest files.
    pub manifests: Vec<ManifestFile>,
}

/// What storing them came to.
pub struct Stored {
    components: Vec<Deployed>,
    manifests: Vec<Applied>,
}

impl Deploy {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Operation`] with every reason; then nothing was written.
    pub async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        if let Some(component) = &self.roll_back {
            return self.roll_back(component, output).await;
        }
        let guests = load::guests(global)?;
        let checkout = Checkout::read(&self.files, &guests).await?;
        let (db, tenant) = self.database.open_to_write().await?;
        let stored = checkout.store(&db, tenant).await?;
        if output.is_json {
            let mut data = stored.data();
            let unused = checkout.host_options().flat_map(|(_, options)| options);
            data["host_options"] = unused.collect();
            output.json(&data)?;
            return Ok(exit::DONE);
        }
        stored.print(output)?;
        for (file, options) in checkout.host_options() {
            let options = options.join(", ");
            let what = "are options of the host that runs, and not stored";
            output.line(styled(NOTABLE, format!("{file}: {options}: {what}")))?;
        }
        Ok(exit::DONE)
    }

    async fn roll_back(&self, component: &str, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let version = deploy::roll_back(&db, tenant, component).await?;
        if output.is_json {
            output.json(&json!({
                "component": version.component_name, "version": version.version,
                "content_hash": version.content_hash,
            }))?;
        } else {
            let what = styled(GOOD, "rolled back");
            output.line(format!("{what}  {component} to version {}", version.version))?;
        }
        Ok(exit::DONE)
    }
}

impl Checkout {
    /// Reads and checks files.
    ///
    /// # Errors
    /// [`CliError::Operation`] of the first component that is wrong, and else of the first manifest file.
    pub async fn read(files: &[PathBuf], guests: &Arc<GuestHost>) -> Result<Self, CliError> {
        let mut checkout = Self { components: Vec::new(), manifests: Vec::new() };
        // Manifest files are read first: that takes no time, and compiling does.
        for path in files {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("toml") => checkout.manifests.push(manifest_file::read(path)?),
                Some("wasm") => {}
                _ => {
                    return Err(CliError::Usage(format!(
                        "{} is neither a component (.wasm) nor a manifest file (.toml)",
                        path.display()
                    )));
                }
            }
        }
        agreement::agree(&checkout.manifests)?;
        for path in files.iter().filter(|path| path.extension().is_some_and(|it| it == "wasm")) {
            checkout.components.push(deploy::check(path, guests).await?);
        }
        Ok(checkout)
    }

    /// The same, with manifests that belong to an owner.
    #[must_use]
    pub fn owned_by(mut self, owner: &str) -> Self {
        for file in &mut self.manifests {
            file.owner = Some(owner.to_owned());
        }
        self
    }

    /// Removes the manifests that their owner stated once and that are not among these.
    ///
    /// # Errors
    /// [`StoreError`]; what was removed before it stays so.
    pub async fn prune(
        &self,
        db: &Db,
        tenant: TenantId,
        owner: &str,
    ) -> Result<Pruned, StoreError> {
        let files = self.manifests.iter();
        let declared = files.flat_map(|file| &file.manifests).map(|manifest| manifest.id.as_str());
        prune::prune(db, tenant, owner, &declared.collect()).await
    }

    /// Options that are stated and that `trax deploy` does not store, with the file that states them.
    fn host_options(&self) -> impl Iterator<Item = (String, Vec<&'static str>)> {
        let stated = |file: &ManifestFile| {
            let mut options = file.scheduler.host_options();
            options.extend(file.decisions.host_options());
            (!options.is_empty()).then(|| (file.path.display().to_string(), options))
        };
        self.manifests.iter().filter_map(stated)
    }

    /// Stores them in one transaction. It is made again when hosts at work are in its way.
    ///
    /// # Errors
    /// [`CliError::Operation`] when they do not fit what is stored, or each other.
    pub async fn store(&self, db: &Db, tenant: TenantId) -> Result<Stored, CliError> {
        for _ in 1..TRIES {
            match self.store_once(db, tenant).await {
                Err(OperationError::Store(StoreError::Busy(_))) => {}
                stored => return Ok(stored?),
            }
        }
        Ok(self.store_once(db, tenant).await?)
    }

    /// The same, by a host that starts: a database that fails is given time to come back.
    ///
    /// # Errors
    /// Those of [`Self::store`].
    pub async fn store_patiently(&self, db: &Db, tenant: TenantId) -> Result<Stored, CliError> {
        let once = async || self.store_once(db, tenant).await;
        Ok(seeding::patiently(once, async |pause| Clock.sleep(pause).await).await?)
    }

    async fn store_once(&self, db: &Db, tenant: TenantId) -> Result<Stored, OperationError> {
        db.write(async |tx| {
            let mut stored = Stored { components: Vec::new(), manifests: Vec::new() };
            for checked in &self.components {
                stored.components.push(deploy::deploy(tx, tenant, checked).await?);
            }
            for file in &self.manifests {
                stored.manifests.extend(apply::apply(tx, tenant, file).await?);
            }
            Ok(stored)
        })
        .await
    }
}

impl Stored {
    /// Manifests alone.
    pub const fn of_manifests(manifests: Vec<Applied>) -> Self {
        Self { components: Vec::new(), manifests }
    }

    /// Prints it for people.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print(&self, output: &mut Output) -> Result<(), CliError> {
        self.print_if(|_| true, output)
    }

    /// Prints what changed.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print_changes(&self, output: &mut Output) -> Result<(), CliError> {
        self.print_if(|is_unchanged| !is_unchanged, output)
    }

    fn print_if(
        &self,
        is_printed: impl Fn(bool) -> bool,
        output: &mut Output,
    ) -> Result<(), CliError> {
        for deployed in self.components.iter().filter(|it| is_printed(it.is_unchanged)) {
            let version = &deployed.version;
            let word = if deployed.is_unchanged {
                styled(FAINT, "unchanged")
            } else {
                styled(GOOD, "deployed ")
            };
            let hash = styled(FAINT, &version.content_hash[..12]);
            output.line(format!(
                "{word}  {} version {}  {hash}  {}",
                version.component_name,
                version.version,
                deployed.trains.join(", ")
            ))?;
        }
        for applied in self.manifests.iter().filter(|it| is_printed(it.change == Change::Unchanged))
        {
            let word = format!("{:<9}", applied.change.as_str());
            let word = match applied.change {
                Change::Unchanged => styled(FAINT, word),
                Change::New | Change::Changed => styled(GOOD, word),
            };
            let manifest = &applied.manifest;
            let id = &manifest.external_id;
            output.line(format!("{word}  manifest {id}: {} {}", manifest.name, when(applied)))?;
        }
        Ok(())
    }

    /// The same as data.
    pub fn data(&self) -> Value {
        let components = self.components.iter().map(|deployed| {
            json!({
                "component": deployed.version.component_name, "version": deployed.version.version,
                "content_hash": deployed.version.content_hash, "trains": deployed.trains,
                "is_unchanged": deployed.is_unchanged,
            })
        });
        let manifests = self.manifests.iter().map(|applied| {
            let manifest = &applied.manifest;
            json!({
                "id": manifest.external_id, "train": manifest.name,
                "change": applied.change.as_str(), "enabled": manifest.is_enabled,
                "schedule_type": manifest.schedule_type.as_str(),
                "interval_seconds": manifest.interval_seconds,
                "cron_expression": manifest.cron_expression, "time_zone": manifest.time_zone,
                "scheduled_at": manifest.scheduled_at.map(|at| at.to_string()),
                "max_retries": manifest.max_retries, "priority": manifest.priority,
                "timeout_seconds": manifest.timeout_seconds,
                "next_due_at": manifest.next_due_at.map(|at| at.to_string()),
            })
        });
        json!({
            "components": components.collect::<Vec<_>>(),
            "manifests": manifests.collect::<Vec<_>>(),
        })
    }
}

/// When a manifest runs, in words.
fn when(applied: &Applied) -> String {
    let manifest = &applied.manifest;
    if !manifest.is_enabled {
        return "disabled".to_owned();
    }
    let seconds = manifest.interval_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let expression = manifest.cron_expression.as_deref().unwrap_or_default();
    match manifest.schedule_type {
        ScheduleType::Interval => {
            let every = Duration::from_secs(seconds.unwrap_or_default());
            format!("every {}", duration::written(every))
        }
        ScheduleType::Cron => format!("at {expression} in {}", manifest.time_zone),
        ScheduleType::Once => match manifest.scheduled_at {
            Some(at) => format!("once at {at}"),
            None => "once".to_owned(),
        },
        ScheduleType::Dependent => "after another one".to_owned(),
        ScheduleType::DormantDependent => "when a run of another one asks for it".to_owned(),
        ScheduleType::None | ScheduleType::OnDemand => "on demand".to_owned(),
    }
}
