//! `trax dev`: everything in one process, on the components and manifests of a folder.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use crate::cli::database::{self, Database};
use crate::cli::deploy::Checkout;
use crate::cli::error::CliError;
use crate::cli::folder::Folder;
use crate::cli::news::News;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::redeploy::{Change, Redeploy};
use crate::cli::settings::Settings;
use crate::cli::{Global, exit, input, load};
use crate::decide::state_hash::{KEY_BYTES_MIN, StateHasher};
use crate::engine::config::EngineConfig;
use crate::engine::supervisor::Engine;
use crate::operations::manifest_file::ManifestFile;
use crate::operations::{recording, vetting};
use crate::store::Db;
use crate::store::manifests::Setting;

/// Where the key is that states are hashed under, in base64.
const STATE_HASH_KEY: &str = "TRAX_DECISIONS__STATE_HASH_KEY";

/// Deploy and run everything in a folder, and print what happens until Ctrl-C
#[derive(Debug, Args)]
#[command(
    long_about = "Deploy the components (*.wasm) and state the manifests (manifests.toml) of a folder, \
        run everything in this process, and print what happens. Ctrl-C lets runs reach their next \
        boundary and ends; starting again continues. A second Ctrl-C ends at once.\n\n\
        Files that change meanwhile are deployed again, and manifests taken out of the file are \
        removed; what is wrong is told, and what was there stays.\n\n\
        The database is FOLDER/.trax/trax.db unless --database names another."
)]
pub struct Dev {
    /// The folder
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Answer every question from this script instead of asking the trains' deciders
    #[arg(long, value_name = "JSON|@FILE")]
    answers: Option<String>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    database: Database,
}

impl Dev {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError`] when nothing was started.
    pub async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        let mut folder = Folder::open(&self.folder)?;
        let _lock = lock(&self.folder)?;
        let mut interrupts = interrupts()?;
        let guests = load::guests(global)?;
        let answers = self.answers.as_deref().map(input::read).transpose()?;
        let deciders = Arc::new(self.settings.deciders(&self.folder)?);
        let checkout = Checkout::read(&folder.paths()?, &guests).await?.owned_by(&self.owner());
        let (db, tenant) = self.database.open(&self.folder).await?;
        let stored = checkout.store(&db, tenant).await?;
        let news = News::start();
        if output.is_json {
            output.json_line(&stored.data())?;
        } else {
            stored.print(output)?;
            output.line(styled(FAINT, format!("running on {}; Ctrl-C ends", db.place())))?;
        }
        output.flush()?;
        let mut config = EngineConfig::of_this_machine()?;
        for file in &checkout.manifests {
            set(&mut config, file);
        }
        config.answers = answers;
        config.deciders = deciders;
        ready(&mut config, &db).await?;
        let engine = Engine::start(config, db.clone(), Arc::clone(&guests));
        let redeploy = Redeploy { guests, db: db.clone(), tenant, owner: self.owner(), checkout };
        let (sender, changes) = mpsc::channel(1);
        let watched = {
            let redeploying = redeploy.whenever_changed(&mut folder, sender);
            watch(&engine, &news, &mut interrupts, redeploying, changes, output).await
        };
        if watched.is_ok() && !output.is_json {
            output.line(styled(FAINT, "ending: runs stop at their next boundary"))?;
            output.flush()?;
        }
        let ended = drain(engine, &news, &mut interrupts, output).await?;
        db.close().await;
        watched?;
        if !output.is_json && ended == exit::DONE {
            output.line(styled(FAINT, "ended; start again to continue"))?;
        }
        Ok(ended)
    }

    /// Who the folder's manifests belong to: what is removed from its file is removed from the database.
    fn owner(&self) -> String {
        let path = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        format!("trax dev {}", path.display())
    }
}

/// Sees to it that one process works in a folder. The lock goes with the process, however that ends.
fn lock(folder: &Path) -> Result<File, CliError> {
    let path = database::make_folder(folder)?.join("lock");
    let fail = |source| CliError::File { path: path.clone(), source };
    let file = File::create(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CliError::Conflict(format!(
            "another `trax dev` runs in {}; end it first",
            folder.display()
        ))),
        Err(TryLockError::Error(source)) => Err(fail(source)),
    }
}

/// Every Ctrl-C and every request to terminate from now on.
pub(super) fn interrupts() -> Result<mpsc::Receiver<()>, CliError> {
    let (sender, receiver) = mpsc::channel(1);
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Gives a host its key, and refuses one that would run what it must not.
///
/// # Errors
/// [`CliError::Operation`] when it does not record decisions and there are trains that ask, or when its deciders cannot
/// be asked what trains ask.
pub(super) async fn ready(config: &mut EngineConfig, db: &Db) -> Result<(), CliError> {
    if let Some(key) = std::env::var_os(STATE_HASH_KEY) {
        let key = key.to_str().and_then(|key| StateHasher::of_base64(key).ok());
        if key.is_none() {
            tracing::error!(
                "{STATE_HASH_KEY} is no base64 of at least {KEY_BYTES_MIN} bytes: no state is hashed, and no decision \
                 replayed"
            );
        }
        config.hasher = key.unwrap_or_else(StateHasher::unresolved);
    }
    if !config.records_decisions {
        recording::refuse_without(db).await?;
    }
    // A script that answers everything takes everything.
    if config.answers.is_none() {
        vetting::refuse_unaskable(db, &config.deciders).await?;
    }
    Ok(())
}

/// Options that a file states for the host.
pub(super) fn set(config: &mut EngineConfig, file: &ManifestFile) {
    fn take<T: Copy>(stated: Option<T>, into: &mut T) {
        *into = stated.unwrap_or(*into);
    }
    take(file.decisions.recording, &mut config.records_decisions);
    match file.decisions.replay_answers_for {
        Setting::Keep => {}
        Setting::Clear => config.replay_answers_for = None,
        Setting::Set(most) => config.replay_answers_for = Some(most),
    }
    let stated = &file.scheduler;
    take(stated.manifest_manager_polling_interval, &mut config.manifest_manager_interval);
    take(stated.job_dispatcher_polling_interval, &mut config.job_dispatcher_interval);
    take(stated.default_max_retries, &mut config.default_max_retries);
    take(stated.failure_count_window, &mut config.failure_count_window);
    take(stated.default_job_timeout, &mut config.default_job_timeout);
    take(stated.shutdown_timeout, &mut config.shutdown_timeout);
    take(stated.host_lease, &mut config.lease);
    take(stated.worker_count, &mut config.worker_count);
    take(stated.retry_delay, &mut config.retry.delay);
    take(stated.retry_backoff_multiplier, &mut config.retry.multiplier);
    take(stated.max_retry_delay, &mut config.retry.delay_max);
    match stated.max_active_jobs {
        Setting::Keep => {}
        Setting::Clear => config.max_active_jobs = None,
        Setting::Set(most) => config.max_active_jobs = Some(most),
    }
    match stated.max_queued_jobs_per_cycle {
        Setting::Keep => {}
        Setting::Clear => config.max_queued_jobs_per_cycle = None,
        Setting::Set(most) => config.max_queued_jobs_per_cycle = Some(most),
    }
    if let Some(trains) = &stated.exclude_from_max_active_jobs {
        config.exclude_from_max_active_jobs.clone_from(trains);
    }
    take(stated.max_dispatch_attempts, &mut config.dispatch.attempts_max);
    match stated.max_work_queue_entries_per_cycle {
        Setting::Keep => {}
        Setting::Clear => config.max_work_queue_entries_per_cycle = None,
        Setting::Set(most) => config.max_work_queue_entries_per_cycle = Some(most),
    }
    take(stated.dependent_priority_boost, &mut config.dependent_priority_boost);
    take(stated.stale_staged_entry_timeout, &mut config.stale_staged_entry_timeout);
    take(stated.promote_stale_staged_entries, &mut config.promotes_stale_staged_entries);
    take(stated.stale_pending_timeout, &mut config.stale_pending_timeout);
    take(stated.stale_in_progress_timeout, &mut config.stale_in_progress_timeout);
    config.liveness_timeout = stated.liveness_timeout.or(config.liveness_timeout);
    let cleanup = &mut config.cleanup;
    take(stated.metadata_cleanup_interval, &mut cleanup.interval);
    take(stated.metadata_cleanup_retention, &mut cleanup.retention);
    take(stated.metadata_cleanup_batch_size, &mut cleanup.batch_size);
    cleanup.log_retention = stated.log_retention.or(cleanup.log_retention);
    if let Some(trains) = &stated.metadata_cleanup_trains {
        cleanup.trains.clone_from(trains);
    }
    match (stated.auto_purge_dead_letters, stated.dead_letter_retention_period) {
        (Some(false), _) => cleanup.dead_letter_retention = None,
        (_, Some(retention)) => cleanup.dead_letter_retention = Some(retention),
        (_, None) => {}
    }
}

/// Prints what happens until somebody interrupts.
async fn watch(
    engine: &Engine,
    news: &News,
    interrupts: &mut mpsc::Receiver<()>,
    redeploying: impl Future<Output = ()>,
    mut changes: mpsc::Receiver<Change>,
    output: &mut Output,
) -> Result<(), CliError> {
    let mut events = engine.events();
    let mut redeploying = pin!(redeploying);
    loop {
        tokio::select! {
            _ = interrupts.recv() => return Ok(()),
            () = &mut redeploying => return Ok(()),
            Some(change) = changes.recv() => {
                change.print(news, output)?;
                engine.nudge();
            }
            event = events.recv() => match event {
                Ok(event) => news.print(&event, output)?,
                Err(RecvError::Lagged(missed)) => news.print_missed(missed, output)?,
                Err(RecvError::Closed) => return Ok(()),
            },
        }
    }
}

/// Lets runs reach their next boundary, and prints what happens meanwhile.
async fn drain(
    engine: Engine,
    news: &News,
    interrupts: &mut mpsc::Receiver<()>,
    output: &mut Output,
) -> Result<u8, CliError> {
    let mut events = engine.events();
    let mut drained = pin!(engine.drain());
    loop {
        tokio::select! {
            () = &mut drained => break,
            _ = interrupts.recv() => return Ok(exit::INTERRUPTED),
            event = events.recv() => match event {
                Ok(event) => news.print(&event, output)?,
                Err(RecvError::Lagged(missed)) => news.print_missed(missed, output)?,
                Err(RecvError::Closed) => {}
            },
        }
    }
    while let Ok(event) = events.try_recv() {
        news.print(&event, output)?;
    }
    Ok(exit::DONE)
}
