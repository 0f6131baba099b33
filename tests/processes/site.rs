//! A database that several host processes work on, and a view of it.

use std::path::Path;
use std::time::Duration;

use trax::clock::Clock;
use trax::engine::due;
use trax::model::ids::EntryId;
use trax::store::dead_letters;
use trax::store::queue::NewEntry;

use crate::cli_store::Desk;
use crate::invariants;
use crate::postgres::cluster;
use crate::store::world::{self as store_world, World};

/// How long the database may take to become what a test waits for.
const PATIENCE: Duration = Duration::from_mins(2);
/// The time between two looks at the database.
const LOOK: Duration = Duration::from_millis(10);

/// A database with the schema, and what runs on it.
pub(crate) struct Site {
    store: World,
    runtime: tokio::runtime::Runtime,
}

/// Runs a case on a SQLite file.
pub(crate) fn on_sqlite(case: fn(&Site)) {
    let folder = tempfile::tempdir().unwrap();
    run(format!("sqlite:{}", folder.path().join("trax.db").display()), case);
}

/// Runs a case on a Postgres database.
pub(crate) fn on_postgres(name: &str, case: fn(&Site)) {
    let runtime = store_world::runtime();
    let database = runtime.block_on(crate::postgres::Database::migrated(name));
    let url = database.url();
    let ended = std::thread::spawn(move || run(url, case)).join();
    runtime.block_on(database.remove());
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a case on a Postgres server that nobody else uses, in this folder.
pub(crate) fn on_a_server_of_its_own(folder: &Path, case: impl FnOnce(&Site)) {
    cluster::start(folder, std::process::id(), "-c fsync=off -c max_connections=50");
    run(format!("postgres://trax@localhost/postgres?host={}", folder.display()), case);
}

fn run(url: String, case: impl FnOnce(&Site)) {
    let runtime = store_world::runtime();
    let store = runtime.block_on(World::open(url));
    let site = Site { store, runtime };
    case(&site);
    site.hold();
    site.runtime.block_on(site.store.db.close());
}

impl Site {
    /// A folder for a host, with the guest `probe` and these manifests.
    pub(crate) fn desk(&self, manifests: &str) -> Desk {
        let desk = Desk::on(self.store.url.clone());
        desk.guest("probe");
        desk.write("manifests.toml", manifests);
        desk
    }

    /// Whether hosts of several machines share it.
    pub(crate) fn is_postgres(&self) -> bool {
        self.store.db.is_postgres()
    }

    /// The rows of a query of text columns, `NULL` as `-`.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        self.runtime.block_on(self.store.rows(sql))
    }

    /// Waits until a query of text columns gives these rows.
    pub(crate) fn wait_for_rows(&self, sql: &str, expected: &[&str]) {
        let started = Clock.instant();
        loop {
            let rows = self.rows(sql);
            if rows == expected {
                return;
            }
            assert!(
                Clock.instant() - started < PATIENCE,
                "{sql}\nis still {rows:?}, not {expected:?}"
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Queues a run that belongs to no manifest.
    pub(crate) fn enqueue(&self, train: &str, input: &str) -> EntryId {
        let new = NewEntry { input: Some(input), ..NewEntry::new(self.store.tenant, train) };
        self.runtime.block_on(self.store.enqueue(&new))
    }

    /// Acknowledges every dead letter that awaits somebody, and says how many.
    pub(crate) fn acknowledge_all(&self) -> usize {
        let tenant = self.store.tenant;
        let acknowledged = async {
            let mut tx = self.store.db.begin().await.unwrap();
            let awaiting = dead_letters::list(&mut tx, tenant, None, None, 100).await.unwrap();
            let is_open = |letter: &&dead_letters::DeadLetter| letter.resolved_at.is_none();
            let open: Vec<_> = awaiting.iter().filter(is_open).collect();
            for letter in &open {
                dead_letters::acknowledge(&mut tx, tenant, letter.id, "seen").await.unwrap();
                let day = Duration::from_hours(24);
                due::settle(&mut tx, tenant, letter.manifest_id, day).await.unwrap();
            }
            tx.commit().await.unwrap();
            open.len()
        };
        self.runtime.block_on(acknowledged)
    }

    /// Panics when an invariant does not hold now.
    pub(crate) fn hold(&self) {
        self.runtime.block_on(invariants::hold(&self.store.db));
    }
}
