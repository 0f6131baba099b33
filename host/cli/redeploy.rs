//! What `trax dev` does when files of its folder change.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use crate::cli::deploy::{Checkout, Stored};
use crate::cli::error::CliError;
use crate::cli::folder::Folder;
use crate::cli::news::News;
use crate::cli::output::{BAD, FAINT, GOOD, NOTABLE, Output, styled};
use crate::clock::Clock;
use crate::guest::component::GuestHost;
use crate::model::ids::TenantId;
use crate::operations::prune::Pruned;
use crate::store::{Db, StoreError};

/// When it is tried again to remove a manifest of which a run was in progress.
const PRUNE_AGAIN: Duration = Duration::from_secs(1);

/// Deploys a folder again and again.
pub struct Redeploy {
    /// Checks components.
    pub guests: Arc<GuestHost>,
    /// Where everything is stored.
    pub db: Db,
    /// For whom.
    pub tenant: TenantId,
    /// Whose the manifests are.
    pub owner: String,
    /// What is deployed.
    pub checkout: Checkout,
}

/// What came of a change.
pub enum Change {
    /// These files changed, and what they say is stored.
    Stored {
        /// Their names.
        files: Vec<String>,
        /// What that came to.
        stored: Stored,
        /// Whether options changed that are read at the start only.
        has_other_options: bool,
    },
    /// These files changed, and what they say is wrong; what was stored stays.
    Kept {
        /// Their names.
        files: Vec<String>,
        /// What is wrong.
        error: CliError,
    },
    /// Manifests that are stated no more were removed, or could not be yet.
    Pruned(Pruned),
    /// Manifests could not be removed.
    NotPruned(StoreError),
}

impl Redeploy {
    /// Removes what is no longer stated, and then takes up every change, and tells of each.
    pub async fn whenever_changed(mut self, folder: &mut Folder, changes: mpsc::Sender<Change>) {
        let mut told = Vec::new();
        loop {
            let mut wait = None;
            match self.checkout.prune(&self.db, self.tenant, &self.owner).await {
                Ok(pruned) => {
                    let is_news = !pruned.deleted.is_empty() || pruned.busy != told;
                    told.clone_from(&pruned.busy);
                    wait = (!pruned.busy.is_empty()).then_some(PRUNE_AGAIN);
                    if is_news && changes.send(Change::Pruned(pruned)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    if changes.send(Change::NotPruned(error)).await.is_err() {
                        return;
                    }
                }
            }
            let files = match wait {
                None => folder.changed().await,
                Some(wait) => match Clock.timeout(wait, folder.changed()).await {
                    Ok(files) => files,
                    Err(_elapsed) => continue,
                },
            };
            let change = match self.take_up(folder).await {
                Ok((stored, has_other_options)) => {
                    Change::Stored { files, stored, has_other_options }
                }
                Err(error) => Change::Kept { files, error },
            };
            if changes.send(change).await.is_err() {
                return;
            }
        }
    }

    async fn take_up(&mut self, folder: &Folder) -> Result<(Stored, bool), CliError> {
        let checkout = Checkout::read(&folder.paths()?, &self.guests).await?.owned_by(&self.owner);
        let stored = checkout.store(&self.db, self.tenant).await?;
        let options = |checkout: &Checkout| {
            let files = checkout.manifests.iter();
            files.map(|file| (file.scheduler.clone(), file.decisions.clone())).collect::<Vec<_>>()
        };
        let has_other_options = options(&checkout) != options(&self.checkout);
        self.checkout = checkout;
        Ok((stored, has_other_options))
    }
}

impl Change {
    /// Prints it.
    ///
    /// # Errors
    /// [`CliError::Print`].
    pub fn print(&self, news: &News, output: &mut Output) -> Result<(), CliError> {
        if output.is_json {
            output.json_line(&self.data())?;
            return output.flush();
        }
        match self {
            Self::Stored { files, stored, has_other_options } => {
                news.say(
                    &format!("{}   {}", styled(NOTABLE, "changed"), files.join(", ")),
                    output,
                )?;
                stored.print_changes(output)?;
                if *has_other_options {
                    let text = "options of [scheduler] changed; they hold from the next start";
                    output.line(styled(NOTABLE, text))?;
                }
            }
            Self::Kept { files, error } => {
                news.say(
                    &format!("{}   {}", styled(NOTABLE, "changed"), files.join(", ")),
                    output,
                )?;
                output.line(format!("{} {}", styled(BAD, "error:"), error.chain()))?;
                output.line(styled(FAINT, "what was deployed before goes on"))?;
            }
            Self::Pruned(pruned) => {
                for id in &pruned.deleted {
                    news.say(&format!("{}   manifest {id}", styled(GOOD, "removed")), output)?;
                }
                for id in &pruned.busy {
                    let text = "is removed once its run has ended";
                    news.say(
                        &format!("{}      manifest {id} {text}", styled(FAINT, "busy")),
                        output,
                    )?;
                }
            }
            Self::NotPruned(error) => {
                let text = format!("{} {error}", styled(BAD, "error:"));
                news.say(&text, output)?;
            }
        }
        output.flush()
    }

    fn data(&self) -> serde_json::Value {
        match self {
            Self::Stored { files, stored, has_other_options } => json!({
                "event": "redeployed", "files": files, "stored": stored.data(),
                "has_other_options": has_other_options,
            }),
            Self::Kept { files, error } => {
                json!({ "event": "redeploy_failed", "files": files, "error": error.chain() })
            }
            Self::Pruned(pruned) => {
                json!({ "event": "pruned", "deleted": pruned.deleted, "busy": pruned.busy })
            }
            Self::NotPruned(error) => {
                json!({ "event": "prune_failed", "error": error.to_string() })
            }
        }
    }
}
