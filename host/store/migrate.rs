//! Migrations: the schema as a list of steps, applied in order, each once, under a lock.
//!
//! Both databases have the same steps with the same numbers and names. Each step and the note that it was applied are
//! one transaction, and each is safe to run again.

use std::time::Duration;

use super::db::{Connection, Db, LockKey, Sql, Tx, execute, on};
use super::error::StoreError;

/// One step.
struct Migration {
    number: i64,
    name: &'static str,
    sql: Sql,
}

macro_rules! migrations {
    ($($number:literal $name:literal),* $(,)?) => {
        &[$(Migration {
            number: $number,
            name: $name,
            sql: Sql {
                sqlite: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
                postgres: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
            },
        }),*]
    };
}

const MIGRATIONS: &[Migration] = migrations![
    1 "0001_tenants",
    2 "0002_components",
    3 "0003_manifests",
    4 "0004_hosts",
    5 "0005_runs",
    6 "0006_dead_letters",
    7 "0007_work_queue",
    8 "0008_decisions",
    9 "0009_checkpoints",
    10 "0010_junction_runs",
    11 "0011_logs",
    12 "0012_parked_runs",
    13 "0013_dispatch",
    15 "0015_schedules",
    16 "0016_wake_ups",
    17 "0017_cleanup",
    18 "0018_labels",
    24 "0024_access",
];

/// How long a step waits for the tables it changes. A longer wait would queue every other user of them behind it.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The newest schema version this trax knows: the number of the last migration.
pub const VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].number;

/// Brings the schema up to date, and says which migrations that took.
pub async fn migrate(db: &Db) -> Result<Vec<&'static str>, StoreError> {
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        let mut tx = db.begin().await?;
        // Another host may be at a migration that takes long.
        tx.wait_for_locks(Duration::ZERO).await?;
        tx.lock(LockKey::Migrate).await?;
        let found = version(&mut tx).await?;
        refuse_newer(&tx, found)?;
        if found < migration.number {
            apply(&mut tx, migration, found).await?;
            tx.commit().await?;
            applied.push(migration.name);
        } else {
            // Dropping it would keep the lock until the pool gets round to it.
            tx.rollback().await?;
        }
    }
    Ok(applied)
}

/// Refuses a schema that is older or newer than this trax needs.
pub async fn check(db: &Db) -> Result<(), StoreError> {
    let mut tx = db.read().await?;
    let found = version(&mut tx).await?;
    refuse_newer(&tx, found)?;
    if found < VERSION {
        return Err(StoreError::Older { place: tx.place.clone(), found, known: VERSION });
    }
    Ok(())
}

/// The schema's version: the number of the last migration applied, 0 when there is no schema.
pub async fn version(tx: &mut Tx<'_>) -> Result<i64, StoreError> {
    let exists = tx.pick(Sql {
        sqlite: "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'trax_migration'",
        postgres: "SELECT COUNT(*) FROM pg_tables
            WHERE schemaname = 'trax' AND tablename = 'trax_migration'",
    });
    let tables: i64 = on!(tx, |c| sqlx::query_scalar(exists).fetch_one(c))?;
    if tables == 0 {
        return Ok(0);
    }
    on!(tx, |c| sqlx::query_scalar("SELECT COALESCE(MAX(number), 0) FROM trax_migration")
        .fetch_one(c))
}

fn refuse_newer(tx: &Tx<'_>, found: i64) -> Result<(), StoreError> {
    if found > VERSION {
        return Err(StoreError::Newer { place: tx.place.clone(), found, known: VERSION });
    }
    Ok(())
}

async fn apply(tx: &mut Tx<'_>, migration: &Migration, found: i64) -> Result<(), StoreError> {
    tx.wait_for_locks(LOCK_WAIT).await?;
    if found == 0 {
        let start = tx.pick(Sql {
            sqlite: "CREATE TABLE IF NOT EXISTS trax_migration (
                number INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL,
                applied_at INTEGER NOT NULL) STRICT",
            postgres: "CREATE SCHEMA IF NOT EXISTS trax;
                CREATE TABLE IF NOT EXISTS trax.trax_migration (
                number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL,
                applied_at TIMESTAMPTZ NOT NULL)",
        });
        tx.execute_text(start).await?;
    }
    let sql = match &tx.connection {
        Connection::Sqlite(_) => without_columns_there_are(tx, migration.sql.sqlite).await?,
        Connection::Postgres(_) => migration.sql.postgres.to_owned(),
    };
    tx.execute_text(&sql).await.map_err(|error| match error {
        StoreError::Driver { place, source } => {
            StoreError::Migration { place, migration: migration.name.to_owned(), source }
        }
        other => other,
    })?;
    let now = tx.now().await?;
    let note = "INSERT INTO trax_migration (number, name, applied_at) VALUES ($1, $2, $3)";
    execute!(tx, sqlx::query(note).bind(migration.number).bind(migration.name).bind(now))?;
    Ok(())
}

/// SQLite has no `ADD COLUMN IF NOT EXISTS`, which statements of a migration say: here they are taken at their word.
async fn without_columns_there_are(tx: &mut Tx<'_>, sql: &str) -> Result<String, StoreError> {
    let mut kept = String::with_capacity(sql.len());
    for statement in sql.split_inclusive(";\n") {
        // Comments may stand above it.
        let start = statement.find("ALTER TABLE ").unwrap_or(0);
        let Some((table, column)) = added_column(&statement[start..]) else {
            kept.push_str(statement);
            continue;
        };
        let exists = "SELECT COUNT(*) FROM pragma_table_info($1) WHERE name = $2";
        let found: i64 =
            on!(tx, |c| sqlx::query_scalar(exists).bind(table).bind(column).fetch_one(c))?;
        if found == 0 {
            kept.push_str(&statement.replacen("IF NOT EXISTS ", "", 1));
        }
    }
    Ok(kept)
}

/// The table and the column that a statement adds, unless it exists.
fn added_column(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("ALTER TABLE ")?;
    let (table, rest) = rest.split_once(" ADD COLUMN IF NOT EXISTS ")?;
    Some((table, rest.split_once(' ')?.0))
}
