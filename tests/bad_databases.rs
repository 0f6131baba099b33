//! Databases that cannot be used, as a person meets them: one error that says what, where and what to do, and nothing
//! half-written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use sqlx::{Connection, SqliteConnection};
use trax::store::{self, OpenOptions, VERSION};

use crate::cli_store::{Desk, Said};
use crate::postgres::{Database, cluster};
use crate::world::TRAX;

/// What a command says when it is run by somebody whom permissions bind.
fn as_somebody(desk: &Desk, arguments: &[&str]) -> Said {
    let mut command = desk.command(arguments);
    if let Some((user, group)) = cluster::user() {
        command.uid(user).gid(group);
    }
    Said::by(&mut command)
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_that_may_not_be_written_is_told() {
    let desk = Desk::new();
    desk.trax(&["db", "migrate"]);
    let (folder, file) = (desk.path(".trax"), desk.path(".trax/trax.db"));
    permit(&desk.path(""), 0o755);
    let (user, group) = cluster::user().unzip();
    chown(&folder, user, group).unwrap();
    permit(&file, 0o444);

    let read = as_somebody(&desk, &["runs"]);
    let written = as_somebody(&desk, &["dead-letters", "acknowledge", "1"]);

    assert_eq!((read.code, read.out.as_str()), (0, "no run\n"), "{}", read.err);
    let expected = "the SQLite file '.trax/trax.db' is read-only; make it writable for this user, or choose another";
    assert_eq!(written.refused(5), expected);

    permit(&file, 0o000);
    let expected = "cannot open the SQLite file '.trax/trax.db': this user may not read or write the file or its \
                    folder; change their permissions, or choose another";
    assert_eq!(as_somebody(&desk, &["runs"]).refused(5), expected);
    permit(&file, 0o644);
}

#[tokio::test]
async fn a_damaged_file_is_told_and_left_as_it_is() {
    let desk = Desk::new();
    desk.guest("hello");
    desk.deploy(&["hello.wasm"]).data();
    // Closed in good order, everything is in the one file.
    let db = store::open(&desk.database(), &OpenOptions::default()).await.unwrap();
    db.close().await;
    let file = desk.path(".trax/trax.db");
    let good = fs::read(&file).unwrap();
    let mut scribbled = good.clone();
    scribbled[4096..].fill(0xa5);

    for bad in [&scribbled[..], &good[..good.len() / 2], &b"no database ".repeat(999)] {
        fs::write(&file, bad).unwrap();
        for arguments in [&["trains"][..], &["deploy", "hello.wasm"]] {
            let said = desk.trax(arguments);
            let expected = "the SQLite file '.trax/trax.db' is damaged or is no SQLite database; restore it from a \
                            backup, or choose another";
            assert_eq!(said.refused(5), expected);
        }
        assert!(fs::read(&file).unwrap() == bad, "the file was changed");
    }
    fs::write(&file, good).unwrap();
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let desk = Desk::new();
    desk.write("other.db", "");
    let path = desk.path("other.db").display().to_string();
    let mut other = SqliteConnection::connect(&path).await.unwrap();
    sqlx::raw_sql("CREATE TABLE customer (name TEXT)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let before = fs::read(&path).unwrap();
    desk.guest("hello");

    for arguments in [&["runs"][..], &["db", "migrate"], &["deploy", "hello.wasm"]] {
        let arguments = [arguments, &["--database", "sqlite:other.db"]].concat();
        let expected = "the SQLite file 'other.db' belongs to another program: its tables are not those of trax; \
                        choose another file";
        assert_eq!(desk.trax(&arguments).refused(5), expected);
    }
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

/// A shell's limit on the size of files stands for a full disk: it is reached in the middle of the migrations.
#[test]
fn a_disk_that_takes_no_more_is_told_and_nothing_is_half_written() {
    let desk = Desk::new();
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("ulimit -f 200; exec {TRAX} db migrate"));
    desk.prepare(&mut limited);

    let said = Said::by(&mut limited);
    let status = desk.trax(&["db", "status", "--json"]).data();
    let again = desk.trax(&["db", "migrate", "--json"]).data();

    let expected = "failed to read or write the SQLite file '.trax/trax.db'; check its disk, and the limit on the \
                    size of files";
    assert!(said.refused(5).starts_with(expected), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    let reached = status["version"].as_i64().unwrap();
    assert!((1..VERSION).contains(&reached), "{reached}: a migration is there, or it is not");
    assert_eq!((&again["before"], &again["version"]), (&status["version"], &VERSION.into()));
}

#[test]
fn a_path_that_leads_nowhere_is_told() {
    let desk = Desk::new();
    desk.guest("hello");
    let cases = [
        (
            "sqlite:no/such/a.db",
            5,
            "cannot open the SQLite file 'no/such/a.db': its folder does not exist; make it, or choose another path",
        ),
        ("sqlite:.", 5, "cannot open the SQLite file '.': it is a folder; name a file"),
        ("sqlite:a.db?mode=rw", 2, "'?mode=rw' is no option of a file; give "),
        (
            "a.db",
            2,
            "the URL of the database does not say which store it is; give `sqlite:path/to/file`",
        ),
        ("postgrs://bob:hush@db/x", 2, "'postgrs' is no store this trax knows; give "),
        (
            "postgres://bob:hush@db:port/x",
            2,
            "the Postgres URL cannot be read: check its port and options",
        ),
        (
            "postgres://bob:hu/sh@db/x",
            2,
            "the Postgres URL cannot be read: check its port and options",
        ),
        ("hush@db/x", 2, "the URL of the database does not say which store it is; give "),
    ];
    for (url, code, expected) in cases {
        let said = desk.trax(&["deploy", "hello.wasm", "--database", url]);
        assert!(said.refused(code).starts_with(expected), "{url}\n{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(!said.err.contains("hush"), "{}", said.err);
    }
}

/// A Postgres as it may be met: with an older schema, a newer one, none, another password, or not there.
#[tokio::test]
async fn a_postgres_that_does_not_fit_is_told() {
    let database = Database::migrated("bad_postgres").await;
    let desk = Desk::on(database.url());
    desk.guest("hello");
    let db = store::open(&database.url(), &OpenOptions::default()).await.unwrap();
    let change = async |sql: String| {
        let mut tx = db.begin().await.unwrap();
        tx.execute_text(&sql).await.unwrap();
        tx.commit().await.unwrap();
    };

    change("DELETE FROM trax_migration WHERE number > 5".to_owned()).await;
    let older = desk.trax(&["runs"]);
    let status = desk.trax(&["db", "status"]);
    let migrated = desk.deploy(&["hello.wasm"]).data();
    let current = desk.trax(&["db", "status", "--json"]).data();
    change(format!("INSERT INTO trax_migration VALUES ({}, 'later', now())", VERSION + 1)).await;
    let newer = [desk.trax(&["runs"]), desk.trax(&["deploy", "hello.wasm"])];

    let needs = format!(
        " has schema version 5, and this trax needs version {VERSION}; run `trax db migrate`"
    );
    assert!(older.refused(5).ends_with(&needs), "{}", older.err);
    assert_eq!(status.code, 0);
    let expected =
        format!(" has schema version 5: version {VERSION} is needed; run `trax db migrate`\n");
    assert!(status.out.ends_with(&expected), "{}", status.out);
    assert_eq!(migrated["components"][0]["version"], 1);
    assert_eq!(current["is_up_to_date"], true);
    for said in newer {
        let knows = format!(
            " has schema version {}, and this trax knows versions up to {VERSION}; run the newer trax",
            VERSION + 1
        );
        assert!(said.refused(5).ends_with(&knows), "{}", said.err);
    }
    change(format!("DELETE FROM trax_migration WHERE number > {VERSION}")).await;
    db.close().await;
    drop(desk);
    database.remove().await;
}

#[tokio::test]
async fn a_refused_password_is_told_and_never_shown() {
    let database = Database::migrated("bad_password").await;
    if let Some(url) = database.with_password("hush-hush").await {
        let desk = Desk::new();
        assert_eq!(desk.trax(&["runs", "--database", &url]).out, "no run\n");

        let wrong = url.replace("hush-hush", "not-hush");
        let mut traced = desk.command(&["runs", "--database", &wrong]);
        let said = Said::by(traced.env("TRAX_LOG", "trace"));

        assert_eq!((said.code, said.out.as_str()), (5, ""));
        let error = said.err.lines().last().unwrap();
        let expected =
            " refused the connection; check user name, password and database in the URL: ";
        assert!(
            error.starts_with("error: the Postgres database '") && error.contains(expected),
            "{error}"
        );
        for secret in ["hush-hush", "not-hush"] {
            assert!(!said.err.contains(secret), "{}", said.err);
        }
    }
    database.remove().await;
}
