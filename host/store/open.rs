//! Opening a store by its URL.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};

use super::db::{Db, Pools};
use super::error::{Place, StoreError};
use super::faults::Faults;
use super::migrate;

/// How long a host may hold a transaction open without saying anything. One that is frozen would keep its locks.
const IDLE_TIMEOUT: (&str, &str) = ("idle_in_transaction_session_timeout", "30s");

/// How to open a store.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Whether the schema is brought up to date; otherwise an older one is refused.
    pub is_migrating: bool,
    /// What a commit on SQLite waits for.
    pub durability: Durability,
    /// Most connections to Postgres, or most readers of SQLite.
    pub connections_max: u32,
    /// How long a call waits for a free connection.
    pub wait_max: Duration,
    /// Whether hosts on one Postgres tell each other of queued work. Without, they find it when they look.
    pub has_wake_ups: bool,
    /// How long a statement waits for what somebody else holds. Without a limit one transaction that is left open
    /// somewhere would stop whatever waits for it, and all that is written with it.
    pub lock_wait_max: Duration,
    /// Injected faults, in tests.
    pub faults: Option<Faults>,
}

/// What a commit on SQLite waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The disk: a commit survives a loss of power.
    Full,
    /// The operating system: a loss of power can undo the last commits, and damages nothing.
    Fast,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            is_migrating: true,
            durability: Durability::Full,
            // Fewer than a Postgres admits by default (100) even with several hosts on it.
            connections_max: 16,
            wait_max: Duration::from_secs(30),
            has_wake_ups: true,
            lock_wait_max: Duration::from_secs(5),
            faults: None,
        }
    }
}

/// Opens the store at a URL: `sqlite:path/to/file`, `sqlite::memory:` or `postgres://user@host/database`. A file that
/// does not exist is made; `?mode=ro` at its end opens it for reading.
pub async fn open(url: &str, options: &OpenOptions) -> Result<Db, StoreError> {
    let db = if let Some(file) = url.strip_prefix("sqlite:") {
        open_sqlite(file, options).await?
    } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        open_postgres(url, options).await?
    } else {
        return Err(StoreError::Url(unknown(url)));
    };
    if options.is_migrating {
        migrate::migrate(&db).await?;
    } else {
        migrate::check(&db).await?;
    }
    Ok(db)
}

/// What is wrong with a URL of no store. Of its text only what may be a scheme is told: the rest may hold a password.
fn unknown(url: &str) -> String {
    let is_scheme = |text: &&str| {
        (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    match url.split_once(':').map(|(scheme, _)| scheme).filter(is_scheme) {
        Some(scheme @ ("postgres" | "postgresql")) => {
            format!("'{scheme}:' is to be followed by '//'")
        }
        Some(scheme) => format!("'{scheme}' is no store this trax knows"),
        None => "the URL of the database does not say which store it is".to_owned(),
    }
}

async fn open_sqlite(file: &str, options: &OpenOptions) -> Result<Db, StoreError> {
    if file == ":memory:" {
        return open_memory(options).await;
    }
    let file = file.strip_prefix("//").unwrap_or(file);
    let (path, mode) = file.split_once('?').map_or((file, None), |(path, mode)| (path, Some(mode)));
    let is_read_only = match mode {
        None => false,
        Some("mode=ro") => true,
        Some(other) => return Err(StoreError::Url(format!("'?{other}' is no option of a file"))),
    };
    if path.is_empty() {
        return Err(StoreError::Url("the path of the SQLite file is missing".to_owned()));
    }
    let place = Place::file(path);
    let is_made = options.is_migrating && !is_read_only;
    let connect = sqlite_options(options)
        .filename(Path::new(path))
        .create_if_missing(is_made)
        .read_only(is_read_only);
    refuse(Path::new(path), is_made, &connect, &place).await?;
    // The journal's mode is kept in the file; changing it needs the right to write.
    let connect = if is_made { connect.journal_mode(SqliteJournalMode::Wal) } else { connect };
    let pool = |connections| {
        SqlitePoolOptions::new().max_connections(connections).acquire_timeout(options.wait_max)
    };
    let error = |source| place.error(source);
    let writer = pool(1).connect_with(connect.clone()).await.map_err(error)?;
    let readers = pool(options.connections_max)
        .connect_with(connect.read_only(true).create_if_missing(false))
        .await
        .map_err(error)?;
    Ok(Db::new(Pools::Sqlite { writer, readers }, place, options))
}

/// Refuses a file that cannot be one of trax, before anything of it is changed.
async fn refuse(
    path: &Path,
    is_made: bool,
    connect: &SqliteConnectOptions,
    place: &Place,
) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let problem = if path.is_dir() {
        Some("it is a folder; name a file")
    } else if folder.is_some_and(|folder| !folder.is_dir()) {
        Some("its folder does not exist; make it, or choose another path")
    } else if !is_made && !path.exists() {
        Some("it does not exist; `trax db migrate` makes it")
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(StoreError::NotOpened { place: place.clone(), problem });
    }
    // An empty file is as good as none.
    if path.metadata().is_ok_and(|file| file.len() > 0) {
        let error = |source| place.error(source);
        let mut connection = SqliteConnection::connect_with(connect).await.map_err(error)?;
        let sql = "SELECT COUNT(*) > 0 AND SUM(name = 'trax_migration') = 0
            FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
        let is_foreign: bool =
            sqlx::query_scalar(sql).fetch_one(&mut connection).await.map_err(error)?;
        connection.close().await.map_err(error)?;
        if is_foreign {
            return Err(StoreError::Foreign(place.clone()));
        }
    }
    Ok(())
}

/// One connection for everything, kept for ever: the database is gone with it.
async fn open_memory(options: &OpenOptions) -> Result<Db, StoreError> {
    let place = Place::memory();
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(options.wait_max)
        .connect_with(sqlite_options(options).in_memory(true).filename(":memory:"))
        .await
        .map_err(|source| place.error(source))?;
    let pools = Pools::Sqlite { writer: pool.clone(), readers: pool };
    Ok(Db::new(pools, place, options))
}

fn sqlite_options(options: &OpenOptions) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .foreign_keys(true)
        // For other processes: inside this one, writers queue for the one connection.
        .busy_timeout(options.lock_wait_max)
        .synchronous(match options.durability {
            Durability::Full => SqliteSynchronous::Full,
            Durability::Fast => SqliteSynchronous::Normal,
        })
        .pragma("temp_store", "memory")
        // In KiB: enough for the hot tables and indexes of a busy laptop.
        .pragma("cache_size", "-16384")
}

async fn open_postgres(url: &str, options: &OpenOptions) -> Result<Db, StoreError> {
    // The parser's error is left out: it may quote the URL, and with it the password.
    let connect = PgConnectOptions::from_str(url)
        .map_err(|_| {
            StoreError::Url(
                "the Postgres URL cannot be read: check its port and options, and write '@', '/', '#' and '%' in a \
                 password as '%40', '%2F', '%23' and '%25'"
                    .to_owned(),
            )
        })?
        .application_name("trax")
        .options([
            ("search_path", "trax"),
            ("trax.wake_ups", if options.has_wake_ups { "on" } else { "off" }),
            IDLE_TIMEOUT,
        ])
        .options([("lock_timeout", options.lock_wait_max.as_millis())]);
    let user = connect.get_username().to_owned();
    let database = connect.get_database().unwrap_or(&user);
    let place = Place::postgres(connect.get_host(), connect.get_port(), &user, database);
    // A pool would try for as long as it may wait, and then not say why it failed.
    let first = PgConnection::connect_with(&connect).await.map_err(|source| place.error(source))?;
    first.close().await.map_err(|source| place.error(source))?;
    let pool = PgPoolOptions::new()
        .max_connections(options.connections_max)
        .acquire_timeout(options.wait_max)
        .connect_with(connect)
        .await
        .map_err(|source| place.error(source))?;
    Ok(Db::new(Pools::Postgres(pool), place, options))
}
