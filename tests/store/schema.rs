//! The schema: equal on both databases, made by migrations that may run again, and used as the statements expect.

use std::collections::BTreeSet;

use trax::store::{Db, OpenOptions, StoreError, VERSION, check, migrate, open, version};

use super::world::{World, runtime};
use crate::postgres::Database;

/// S2: a migration that was interrupted before its note was written runs again, and changes nothing.
async fn migrations_may_run_again(w: World) {
    let before = columns(&w.db).await;
    let known = w.sql("DELETE FROM trax_migration WHERE number > 0").await.unwrap();

    let applied = migrate(&w.db).await.unwrap();

    assert_eq!(applied.len() as u64, known);
    assert_eq!(columns(&w.db).await, before);
    assert_eq!(w.rows("SELECT name FROM tenant").await, ["default"]);
    assert_eq!(migrate(&w.db).await.unwrap(), [""; 0]);
    check(&w.db).await.unwrap();
}

async fn hosts_that_start_together_migrate_once(w: World) {
    let newer = w.sql("DELETE FROM trax_migration WHERE number > 5").await.unwrap();
    let other = open(&w.url, &OpenOptions { is_migrating: false, ..OpenOptions::default() }).await;
    assert!(matches!(other, Err(StoreError::Older { .. })), "{other:?}");

    let (one, two) = tokio::join!(migrate(&w.db), migrate(&w.db));

    let applied = [one.unwrap(), two.unwrap()].concat();
    assert_eq!(applied.len(), BTreeSet::from_iter(&applied).len(), "{applied:?}");
    assert_eq!(applied.len() as u64, newer);
}

async fn a_schema_of_a_newer_trax_is_refused(w: World) {
    let newer = VERSION + 7;
    w.sql(&format!(
        "INSERT INTO trax_migration SELECT {newer}, name, applied_at FROM trax_migration LIMIT 1"
    ))
    .await
    .unwrap();

    let refused = open(&w.url, &OpenOptions::default()).await.unwrap_err().to_string();

    assert!(refused.contains(&format!("has schema version {newer}")), "{refused}");
    assert!(refused.ends_with("; run the newer trax"), "{refused}");
    let mut tx = w.db.read().await.unwrap();
    assert_eq!(version(&mut tx).await.unwrap(), newer);
}

on_both!(
    migrations_may_run_again,
    hosts_that_start_together_migrate_once,
    a_schema_of_a_newer_trax_is_refused,
);

#[test]
fn an_empty_database_is_refused_until_it_is_migrated() {
    runtime().block_on(async {
        let database = Database::empty("an_empty_database_is_refused").await;
        let folder = tempfile::tempdir().unwrap();
        let file = format!("sqlite:{}", folder.path().join("trax.db").display());
        let unmigrated = format!(
            "has schema version 0, and this trax needs version {VERSION}; run `trax db migrate`"
        );
        let missing = "it does not exist; `trax db migrate` makes it".to_owned();
        for (url, expected) in [(database.url(), unmigrated), (file, missing)] {
            let unmigrated = OpenOptions { is_migrating: false, ..OpenOptions::default() };
            let refused = open(&url, &unmigrated).await.unwrap_err().to_string();
            assert!(refused.ends_with(&expected), "{refused}");

            open(&url, &OpenOptions::default()).await.unwrap().close().await;
            open(&url, &unmigrated).await.unwrap().close().await;
        }
        database.remove().await;
    });
}

/// S3: tables, columns, whether they may be null, and indexes have the same names on both databases.
#[test]
fn both_databases_have_one_schema() {
    runtime().block_on(async {
        let database = Database::migrated("both_databases_have_one_schema").await;
        let sqlite = open("sqlite::memory:", &OpenOptions::default()).await.unwrap();
        let postgres = open(&database.url(), &OpenOptions::default()).await.unwrap();

        let schema = columns(&sqlite).await;

        assert_eq!(schema, columns(&postgres).await);
        insta::assert_snapshot!(schema.join("\n"));
        postgres.close().await;
        database.remove().await;
    });
}

/// Columns as `table column not-null` and indexes as `table index unique partial columns`.
async fn columns(db: &Db) -> Vec<String> {
    let sql = if db.is_postgres() { POSTGRES_SCHEMA } else { SQLITE_SCHEMA };
    let mut tx = db.read().await.unwrap();
    let rows = tx.text_rows(sql).await.unwrap();
    let mut lines: Vec<String> = rows
        .into_iter()
        .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines
}

const SQLITE_SCHEMA: &str = "
    SELECT t.name, 'column', c.name, CASE WHEN c.\"notnull\" OR c.pk > 0 THEN 'not null' END,
        NULL, NULL
    FROM sqlite_schema t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
    UNION ALL
    SELECT t.name, 'index', i.name, CASE WHEN i.\"unique\" THEN 'unique' END, CASE WHEN i.partial THEN 'partial' END,
        (SELECT GROUP_CONCAT(name, ', ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno))
    FROM sqlite_schema t JOIN pragma_index_list(t.name) i
    WHERE t.type = 'table' AND i.origin = 'c'";

const POSTGRES_SCHEMA: &str = "
    SELECT CAST(table_name AS TEXT), 'column', CAST(column_name AS TEXT),
        CASE WHEN is_nullable = 'NO' THEN 'not null' END, NULL, NULL
    FROM information_schema.columns WHERE table_schema = 'trax'
    UNION ALL
    SELECT CAST(t.relname AS TEXT), 'index', CAST(i.relname AS TEXT), CASE WHEN x.indisunique THEN 'unique' END,
        CASE WHEN x.indpred IS NOT NULL THEN 'partial' END,
        (SELECT STRING_AGG(CAST(a.attname AS TEXT), ', ' ORDER BY k.n)
         FROM UNNEST(x.indkey) WITH ORDINALITY AS k(attnum, n)
         JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum)
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
    JOIN pg_namespace s ON s.oid = t.relnamespace
    WHERE s.nspname = 'trax' AND NOT x.indisprimary";
