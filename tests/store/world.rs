//! A fresh database for each case, and the macro that runs a case on both.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use std::time::Duration;

use trax::model::dispatch::DispatchPolicy;
use trax::model::ids::{Claim, EntryId, Incarnation, ManifestId, TenantId};
use trax::model::timestamp::Timestamp;
use trax::store::claim::{ClaimRequest, Claimed, ClaimedRun, claim};
use trax::store::components::{self, NewTrain, NewVersion};
use trax::store::groups::{self, GroupStatement};
use trax::store::hosts::{self, Host};
use trax::store::manifests::{self, Schedule, Setting, Statement};
use trax::store::queue::{self, Enqueued, NewEntry};
use trax::store::runs::{self, NewRun};
use trax::store::{Db, Durability, OpenOptions, ScheduleType, StoreError, Tx, open};

use crate::postgres::Database;

/// Makes each case two tests, so that a failure names the database.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $case() { $crate::store::world::on_sqlite(super::$case); })*
        }

        mod postgres {
            $(#[test] fn $case() { $crate::store::world::on_postgres(stringify!($case), super::$case); })*
        }
    };
}

/// A store with the schema, and nothing in it but the tenant `default` and its train `train`.
pub(crate) struct World {
    /// The store.
    pub(crate) db: Db,
    /// The tenant `default`.
    pub(crate) tenant: TenantId,
    /// Where the store is.
    pub(crate) url: String,
}

impl World {
    /// The one at a URL.
    pub(crate) async fn open(url: String) -> Self {
        let options = OpenOptions { durability: Durability::Fast, ..OpenOptions::default() };
        let db = open(&url, &options).await.unwrap();
        Self { db, tenant: TenantId(1), url }
    }

    /// The same, with an active component that declares the train `train`.
    async fn with_train(url: String) -> Self {
        let world = Self::open(url).await;
        world.declare(world.tenant, &["train"]).await;
        world
    }

    /// Activates a component named `world` that declares trains.
    pub(crate) async fn declare(&self, tenant: TenantId, trains: &[&str]) {
        let train = |name: &&str| NewTrain {
            name: (*name).to_owned(),
            declaration: "{}".to_owned(),
            chain_hash: "hash".to_owned(),
        };
        let trains: Vec<_> = trains.iter().map(train).collect();
        let wasm = format!("{trains:?}");
        let new = NewVersion { tenant, component: "world", wasm: wasm.as_bytes(), trains: &trains };
        self.write(async |tx| {
            let version = components::add_version(tx, &new).await?;
            components::activate(tx, tenant, version.id).await
        })
        .await;
    }

    /// Runs work in a transaction, kept if it succeeds.
    pub(crate) async fn try_write<T>(
        &self,
        work: impl AsyncFnOnce(&mut Tx<'static>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        write(&self.db, work).await
    }

    /// Runs work in a transaction that must succeed.
    pub(crate) async fn write<T>(
        &self,
        work: impl AsyncFnOnce(&mut Tx<'static>) -> Result<T, StoreError>,
    ) -> T {
        self.try_write(work).await.unwrap()
    }

    /// Stops the database's clock, or moves it on once it is stopped.
    pub(crate) async fn advance(&self, duration: Duration) -> Timestamp {
        let now = self.read(async |tx| tx.now().await).await.saturating_add(duration);
        self.db.set_clock(now);
        now
    }

    /// Reads in a transaction that must succeed.
    pub(crate) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&mut Tx<'static>) -> Result<T, StoreError>,
    ) -> T {
        let mut tx = self.db.read().await.unwrap();
        work(&mut tx).await.unwrap()
    }

    /// A host that has started.
    pub(crate) async fn host(&self, name: &str) -> Host {
        let host = host(name);
        self.write(async |tx| hosts::register(tx, &host).await).await;
        host
    }

    /// A manifest of the train `train`, in a group of its own name.
    pub(crate) async fn manifest(&self, external_id: &str) -> ManifestId {
        self.manifest_in(external_id, external_id).await
    }

    /// A manifest of the train `train`, in a group.
    pub(crate) async fn manifest_in(&self, group: &str, external_id: &str) -> ManifestId {
        self.write(async |tx| {
            let group = groups::upsert(tx, &group_named(self.tenant, group)).await?;
            manifests::upsert(tx, &statement(self.tenant, external_id, group)).await
        })
        .await
    }

    /// An entry of a manifest, or of none.
    pub(crate) async fn entry(&self, manifest: Option<ManifestId>) -> EntryId {
        let new = NewEntry { manifest, input: Some("{}"), ..NewEntry::new(self.tenant, "train") };
        self.enqueue(&new).await
    }

    /// An entry that is queued.
    pub(crate) async fn enqueue(&self, new: &NewEntry<'_>) -> EntryId {
        match self.write(async |tx| queue::enqueue(tx, new).await).await {
            Enqueued::Created { entry, .. } => entry,
            other => panic!("{other:?}"),
        }
    }

    /// Runs of what goes first in the queue, in progress on a host.
    pub(crate) async fn claim(&self, host: &Host, limit: usize) -> Vec<ClaimedRun> {
        let request = request(self.tenant, host, limit);
        let claimed: Claimed = self.write(async |tx| claim(tx, &request).await).await;
        claimed.runs
    }

    /// A run in progress that no entry stands for.
    pub(crate) async fn run(&self, host: &Host) -> Claim {
        let new = NewRun {
            tenant: self.tenant,
            train: "train",
            input: "{\"n\":1}",
            input_type: "Input",
            version: None,
            parent: None,
            host,
        };
        self.write(async |tx| runs::start_direct(tx, &new).await).await
    }

    /// The rows of a query of text columns, `NULL` as `-`.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<String> {
        let mut tx = self.db.read().await.unwrap();
        let rows = tx.text_rows(sql).await.unwrap();
        let cell = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        rows.into_iter()
            .map(|row| row.into_iter().map(cell).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// Runs statements as an operator with a database shell would.
    pub(crate) async fn sql(&self, sql: &str) -> Result<u64, StoreError> {
        self.try_write(async |tx| tx.execute_text(sql).await).await
    }
}

/// Runs a case on a SQLite file.
pub(crate) fn on_sqlite<F: Future<Output = ()>>(case: impl FnOnce(World) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("trax.db").display());
    runtime().block_on(async { case(World::with_train(url).await).await });
}

/// Runs a case on a Postgres database.
pub(crate) fn on_postgres<F: Future<Output = ()>>(name: &str, case: impl FnOnce(World) -> F) {
    let runtime = runtime();
    let database = runtime.block_on(Database::migrated(name));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async { case(World::with_train(database.url()).await).await });
    }));
    runtime.block_on(database.remove());
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

/// Two threads, so that tasks of a case truly meet.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A claim of a tenant's entries that start at once.
pub(crate) fn request(tenant: TenantId, host: &Host, limit: usize) -> ClaimRequest<'_> {
    ClaimRequest {
        tenant,
        host,
        limit,
        policy: DispatchPolicy::default(),
        records_decisions: false,
        starts: true,
    }
}

/// A host that has not started.
pub(crate) fn host(name: &str) -> Host {
    Host {
        incarnation: Incarnation(format!("{name}-1")),
        name: name.to_owned(),
        environment: "server".to_owned(),
        instance_id: format!("{name}-7"),
        labels: "{}".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

/// A group of which only the name is stated.
pub(crate) fn group_named(tenant: TenantId, name: &str) -> GroupStatement<'_> {
    GroupStatement {
        tenant,
        name,
        max_active_jobs: Setting::Keep,
        priority: None,
        is_enabled: None,
    }
}

/// A manifest of the train `train`, of which only what must be is stated.
pub(crate) fn statement(
    tenant: TenantId,
    external_id: &str,
    group: trax::model::ids::GroupId,
) -> Statement<'_> {
    Statement {
        tenant,
        external_id,
        train: "train",
        input_type: Some("Input"),
        input: Some("{}"),
        group,
        schedule: Schedule::new(ScheduleType::OnDemand),
        owner: None,
        is_enabled: None,
        max_retries: None,
        default_max_retries: 3,
        timeout_seconds: Setting::Keep,
        priority: None,
        failure_window_seconds: Setting::Keep,
        replay_decisions_on_retry: None,
        is_dead_letter_on_permanent: false,
    }
}

/// Runs work in a transaction, kept if it succeeds.
pub(crate) async fn write<T>(
    db: &Db,
    work: impl AsyncFnOnce(&mut Tx<'static>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut tx = db.begin().await?;
    let value = work(&mut tx).await?;
    tx.commit().await?;
    Ok(value)
}
