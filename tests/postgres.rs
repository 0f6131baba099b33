//! A Postgres for the tests.
//!
//! `TRAX_TEST_POSTGRES_URL` names one, as a user who may create databases. Without it the first test of a run starts a
//! cluster of its own from the installed server, in a temporary folder, on a Unix socket, and without waiting for the
//! disk. The tests of a run are processes that share it; a watcher stops it when the run's own process ends. The server
//! refuses to run as root, so as root it runs as `postgres` or `nobody`.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use trax::store::{OpenOptions, open};

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
            start(&folder);
            let mut admin = server.admin().await;
            run(&mut admin, "CREATE DATABASE trax_template").await;
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

/// Starts a cluster, and the watcher that stops and removes it when this run's process is gone.
fn start(folder: &Path) {
    let binaries = binaries();
    let user = user();
    fs::remove_dir_all(folder).ok();
    fs::create_dir(folder).unwrap();
    if let Some((uid, gid)) = user {
        chown(folder, Some(uid), Some(gid)).unwrap();
    }
    let program = |name: &str| {
        let mut command = Command::new(binaries.join(name));
        command.current_dir(folder).stdin(Stdio::null());
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        command
    };
    let data = folder.join("data");
    let mut initdb = program("initdb");
    initdb.args(["--username=trax", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
    succeed(initdb.arg("--no-sync").arg(&data));
    let settings = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c synchronous_commit=off \
         -c full_page_writes=off -c max_connections=300 -c shared_buffers=64MB",
        folder.display()
    );
    let mut pg_ctl = program("pg_ctl");
    pg_ctl.args(["-w", "-s", "-o", &settings, "-l"]).arg(folder.join("log")).arg("-D").arg(&data);
    succeed(pg_ctl.arg("start"));
    let watcher = "while kill -0 $0 2>/dev/null; do sleep 1; done
        kill -QUIT $(head -n 1 $1/data/postmaster.pid); sleep 1; rm -rf $1 $1.lock";
    let shell = Command::new("sh")
        .args(["-c", &format!("({watcher}) &"), &parent_id().to_string()])
        .arg(folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(shell.is_ok_and(|status| status.success()), "a shell runs");
}

/// The standard streams are not inherited: the server would hold them open long after this test.
fn succeed(command: &mut Command) {
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_done = done.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(is_done, "failed to start a Postgres for the tests: {command:?} gave {done:?}");
}

/// The folder with the newest installed server.
fn binaries() -> PathBuf {
    let version = |folder: &Path| {
        folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or(0)
    };
    let mut installed: Vec<PathBuf> = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"]
        .iter()
        .filter_map(|root| fs::read_dir(root).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .collect();
    installed.sort_by_key(|folder| version(folder));
    let debian = installed.iter().rev().map(|folder| folder.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    debian.chain(on_path).find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists()).expect(
        "the tests of the store need Postgres: install its server (Debian: `apt-get install postgresql`), \
         or let TRAX_TEST_POSTGRES_URL name a server where databases may be created",
    )
}

/// Who the server runs as, when this process is root.
fn user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody")).or(Some((65534, 65534)))
}
