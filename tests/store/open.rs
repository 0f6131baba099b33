//! Opening, the clock, transactions and injected faults; and what an operator reads when opening fails.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trax::store::{Db, Faults, LockKey, OpenOptions, StoreError, open, tenants};

use super::world::{World, runtime, write};

async fn refusal(url: &str) -> String {
    let options = OpenOptions { wait_max: Duration::from_secs(5), ..OpenOptions::default() };
    open(url, &options).await.unwrap_err().to_string()
}

#[test]
fn what_cannot_be_opened_is_told_with_what_where_and_what_to_do() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("text"), "This is no database, but long enough to look at. ".repeat(40)).unwrap();
        open(&format!("sqlite:{}", path("made")), &OpenOptions::default()).await.unwrap().close().await;
        let cases = [
            (
                "mysql://bob:secret@db/x".to_owned(),
                "'mysql' is no store this trax knows; give `sqlite:path/to/file`, `sqlite::memory:` or \
                 `postgres://user@host/database`"
                    .to_owned(),
            ),
            (
                "sqlite:".to_owned(),
                "the path of the SQLite file is missing; give `sqlite:path/to/file`, `sqlite::memory:` or \
                 `postgres://user@host/database`"
                    .to_owned(),
            ),
            (
                format!("sqlite:{}", path("text")),
                format!(
                    "the SQLite file '{}' is damaged or is no SQLite database; restore it from a backup, or choose \
                     another",
                    path("text")
                ),
            ),
            (
                format!("sqlite:{}", path("no/such/folder")),
                format!(
                    "cannot open the SQLite file '{}': its folder does not exist; make it, or choose another path",
                    path("no/such/folder")
                ),
            ),
            (
                format!("sqlite:{}", folder.path().display()),
                format!("cannot open the SQLite file '{}': it is a folder; name a file", folder.path().display()),
            ),
            (
                "bob.secret@db:5432/x".to_owned(),
                "the URL of the database does not say which store it is; give `sqlite:path/to/file`, \
                 `sqlite::memory:` or `postgres://user@host/database`"
                    .to_owned(),
            ),
            (
                "postgres:bob:secret@db/x".to_owned(),
                "'postgres:' is to be followed by '//'; give `sqlite:path/to/file`, `sqlite::memory:` or \
                 `postgres://user@host/database`"
                    .to_owned(),
            ),
            (
                "postgres://bob:secret@127.0.0.1:1/x".to_owned(),
                "cannot reach the Postgres database 'x' at 127.0.0.1:1, as user 'bob'; check that it runs and that the \
                 URL is right"
                    .to_owned(),
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(refusal(&url).await, expected, "{url}");
        }
    });
}

/// A Postgres that refuses every password.
async fn refuse_password(listener: TcpListener) {
    let (mut client, _) = listener.accept().await.unwrap();
    let mut bytes = [0; 1024];
    // Whatever comes first may be a wish for TLS, which is declined.
    let read = client.read(&mut bytes).await.unwrap();
    if read == 8 {
        client.write_all(b"N").await.unwrap();
        assert!(client.read(&mut bytes).await.unwrap() > 0);
    }
    // It asks for the password in clear text, and then says no.
    client.write_all(b"R\0\0\0\x08\0\0\0\x03").await.unwrap();
    assert!(client.read(&mut bytes).await.unwrap() > 0);
    let fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0\0";
    let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
    client.write_all(&[b"E".as_slice(), &length, fields].concat()).await.unwrap();
}

#[test]
fn a_refused_password_is_told_without_the_password() {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(refuse_password(listener));

        let url = format!("postgres://bob:secret@127.0.0.1:{port}/x");
        let error = open(&url, &OpenOptions::default()).await.unwrap_err();

        assert_eq!(
            error.to_string(),
            format!(
                "the Postgres database 'x' at 127.0.0.1:{port}, as user 'bob' refused the connection; check user name, \
                 password and database in the URL"
            )
        );
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    });
}

#[test]
fn a_file_opened_for_reading_is_not_written() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("trax.db").display());
        open(&url, &OpenOptions::default()).await.unwrap().close().await;

        let db = open(&format!("{url}?mode=ro"), &OpenOptions::default()).await.unwrap();
        let error = write(&db, async |tx| tenants::add(tx, "acme").await).await.unwrap_err();

        assert!(matches!(error, StoreError::ReadOnly(_)), "{error:?}");
    });
}

#[test]
fn a_full_disk_is_told_and_nothing_is_kept() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("trax.db").display());
        let db = open(&url, &OpenOptions::default()).await.unwrap();
        let full = write(&db, async |tx| {
            tenants::add(tx, "acme").await?;
            tx.execute_text("PRAGMA max_page_count = 1").await?;
            let long = "x".repeat(1 << 20);
            tx.execute_text(&format!("INSERT INTO tenant (name) VALUES ('{long}')")).await
        })
        .await;

        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
        assert_eq!(names(&db).await, ["default"]);
    });
}

async fn names(db: &Db) -> Vec<String> {
    let mut tx = db.read().await.unwrap();
    tenants::list(&mut tx).await.unwrap().into_iter().map(|tenant| tenant.name).collect()
}

/// R24: stored instants are the database's: moving its clock moves them, and each transaction has one now.
async fn the_databases_clock_can_be_moved_and_stopped(w: World) {
    let plain = w.read(async |tx| tx.now().await).await;
    w.db.set_clock_skew(3_600_000_000);
    let ahead = w.read(async |tx| tx.now().await).await;
    assert!(ahead.since(plain) >= Duration::from_secs(3_599), "{plain} {ahead}");

    w.db.set_clock_skew(0);
    let stopped = w.advance(Duration::from_secs(5)).await;
    w.write(async |tx| tenants::add(tx, "acme").await.map(|_| ())).await;

    let added = w.read(async |tx| Ok(tenants::list(tx).await?.remove(1))).await;
    assert_eq!(added.created_at, stopped);
    assert!(plain.since(added.created_at) < Duration::from_mins(1));
}

async fn what_fails_in_a_savepoint_leaves_the_rest(w: World) {
    w.write(async |tx| {
        tenants::add(tx, "one").await?;
        let mut part = tx.savepoint().await?;
        tenants::add(&mut part, "two").await?;
        assert!(part.execute_text("INSERT INTO tenant (name) VALUES ('one')").await.is_err());
        part.rollback().await?;
        let mut part = tx.savepoint().await?;
        tenants::add(&mut part, "three").await?;
        part.commit().await
    })
    .await;

    assert_eq!(names(&w.db).await, ["default", "one", "three"]);
}

async fn tenants_have_names_of_their_own(w: World) {
    let added = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let again = w.try_write(async |tx| tenants::add(tx, "acme").await).await;

    assert!(again.unwrap_err().to_string().starts_with("tenant 'acme' exists already"));
    assert_eq!(w.read(async |tx| tenants::of_name(tx, "acme").await).await, added);
    let mut tx = w.db.read().await.unwrap();
    let missing = tenants::of_name(&mut tx, "nobody").await.unwrap_err();
    assert_eq!(missing.to_string(), "tenant 'nobody' not found");
}

/// M2: one holder at a time; whoever does not get the lock is told at once.
async fn a_lock_has_one_holder(w: World) {
    let mut first = w.db.begin().await.unwrap();
    assert!(first.try_lock(LockKey::ManifestManager).await.unwrap());
    // On SQLite the transaction itself is the lock, and a second one waits for it.
    if first.is_postgres() {
        let mut second = w.db.begin().await.unwrap();
        assert!(!second.try_lock(LockKey::ManifestManager).await.unwrap());
        assert!(second.try_lock(LockKey::Claim).await.unwrap());
    }
    first.commit().await.unwrap();
    assert!(w.write(async |tx| tx.try_lock(LockKey::ManifestManager).await).await);
}

async fn an_injected_crash_keeps_that_commit_and_no_later_one(w: World) {
    let faults = Faults::crash_after(2);
    let options =
        OpenOptions { is_migrating: false, faults: Some(faults.clone()), ..OpenOptions::default() };
    let db = open(&w.url, &options).await.unwrap();

    write(&db, async |tx| tenants::add(tx, "one").await).await.unwrap();
    let crashed = write(&db, async |tx| tenants::add(tx, "two").await).await;
    let after = write(&db, async |tx| tenants::add(tx, "three").await).await;

    assert!(matches!(crashed, Err(StoreError::Injected)), "{crashed:?}");
    assert!(matches!(after, Err(StoreError::Injected)), "{after:?}");
    assert_eq!(faults.commits(), 2);
    assert_eq!(names(&w.db).await, ["default", "one", "two"]);
}

on_both!(
    the_databases_clock_can_be_moved_and_stopped,
    what_fails_in_a_savepoint_leaves_the_rest,
    tenants_have_names_of_their_own,
    a_lock_has_one_holder,
    an_injected_crash_keeps_that_commit_and_no_later_one,
);
