//! A Postgres for the tests.
//!
//! `TRAX_TEST_POSTGRES_URL` names one, as a user who may create databases. Without it the first test of a run starts a
//! cluster of its own from the installed server, in a temporary folder, on a Unix socket, and without waiting for the
//! disk. The tests of a run are processes that share it; a watcher stops it when the run's own process ends.

use std::fs::File;
use std::os::unix::process::parent_id;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use trax::store::{OpenOptions, open};

use cluster::PASSWORD_ROLE;

pub(crate) mod cluster;

/// Tests are not there to wait for the disk.
const SETTINGS: &str = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=300 \
    -c shared_buffers=64MB";

/// A database that only this test uses.
pub(crate) struct Database {
    server: Server,
    name: String,
}

impl Database {
    /// An empty one.
    pub(crate) async fn empty(name: &str) -> Self {
        Self::create(name, false).await
    }

    /// One with the schema.
    pub(crate) async fn migrated(name: &str) -> Self {
        let made = Self::create(name, true).await;
        if made.server.template.is_none() {
            let db = open(&made.url(), &OpenOptions::default()).await.unwrap();
            db.close().await;
        }
        made
    }

    async fn create(test: &str, is_migrated: bool) -> Self {
        let server = Server::of_this_run().await;
        let name = format!("trax_{}_{test}", std::process::id()).chars().take(63).collect();
        let template = server.template.as_deref().filter(|_| is_migrated).unwrap_or("template0");
        let mut admin = server.admin().await;
        run(&mut admin, &format!("CREATE DATABASE \"{name}\" TEMPLATE \"{template}\"")).await;
        admin.close().await.unwrap();
        Self { server, name }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Where it is, for a role that has to give this password. `None` on a server that trusts or refuses whom it likes.
    pub(crate) async fn with_password(&self, password: &str) -> Option<String> {
        self.server.template.as_ref()?;
        let role = format!("{PASSWORD_ROLE}_{}", std::process::id());
        let mut admin = self.server.admin().await;
        run(&mut admin, &format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{password}'")).await;
        run(&mut admin, &format!("GRANT {PASSWORD_ROLE} TO {role}")).await;
        Some(self.url().replacen("trax@", &format!("{role}:{password}@"), 1))
    }

    /// Removes it, whoever is still connected.
    pub(crate) async fn remove(self) {
        let mut admin = self.server.admin().await;
        run(&mut admin, &format!("DROP DATABASE \"{}\" WITH (FORCE)", self.name)).await;
    }
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

struct Server {
    /// Up to the database's name, and after it.
    url: (String, String),
    admin_database: String,
    /// A database that has the schema already.
    template: Option<String>,
}

impl Server {
    async fn of_this_run() -> Self {
        match std::env::var("TRAX_TEST_POSTGRES_URL") {
            Ok(url) => Self::named(&url),
            Err(_) => Self::own().await,
        }
    }

    fn named(url: &str) -> Self {
        let (address, query) = url.split_once('?').map_or((url, ""), |(a, q)| (a, q));
        let after_scheme =
            address.find("://").expect("TRAX_TEST_POSTGRES_URL starts with postgres://") + 3;
        let (host, database) = match address[after_scheme..].split_once('/') {
            Some((host, database)) if !database.is_empty() => (host, database),
            Some((host, _)) => (host, "postgres"),
            None => (&address[after_scheme..], "postgres"),
        };
        Self {
            url: (format!("postgres://{host}/"), format!("?{query}")),
            admin_database: database.to_owned(),
            template: None,
        }
    }

    async fn own() -> Self {
        let folder = std::env::temp_dir().join(format!("trax-postgres-{}", parent_id()));
        let server = Self {
            url: ("postgres://trax@localhost/".to_owned(), format!("?host={}", folder.display())),
            admin_database: "postgres".to_owned(),
            template: Some("trax_template".to_owned()),
        };
        let lock =
            File::create(folder.with_extension("lock")).expect("the temporary folder is writable");
        lock.lock().expect("a lock file can be locked");
        if !folder.join("ready").exists() {
            cluster::start(&folder, parent_id(), SETTINGS);
            let mut admin = server.admin().await;
            run(&mut admin, "CREATE DATABASE trax_template").await;
            run(&mut admin, &format!("CREATE ROLE {PASSWORD_ROLE}")).await;
            let db = open(&server.url("trax_template"), &OpenOptions::default()).await.unwrap();
            db.close().await;
            File::create(folder.join("ready")).unwrap();
        }
        server
    }

    fn url(&self, database: &str) -> String {
        format!("{}{database}{}", self.url.0, self.url.1)
    }

    async fn admin(&self) -> PgConnection {
        PgConnection::connect(&self.url(&self.admin_database)).await.expect(
            "the Postgres for the tests answers: unset TRAX_TEST_POSTGRES_URL, or let it name a running server",
        )
    }
}
