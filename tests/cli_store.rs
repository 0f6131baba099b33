//! The commands that work on a database, as a person meets them: the real binary, SQLite and Postgres.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::invariants;
use crate::postgres::Database;
use crate::world::{TRAX, guest_path};

/// What the binary said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// What a command says.
    pub(crate) fn by(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it printed, if it did what it was asked.
    pub(crate) fn data(self) -> Value {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        serde_json::from_str(&self.out).unwrap()
    }

    /// Its one error.
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        self.err.strip_prefix("error: ").unwrap().trim_end()
    }
}

/// A folder to work in, and the database that commands are told to use.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
    url: Option<String>,
}

impl Desk {
    /// With a database file in the folder.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), url: None }
    }

    /// With this database.
    pub(crate) fn on(url: impl Into<String>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), url: Some(url.into()) }
    }

    /// The database that commands use.
    pub(crate) fn database(&self) -> String {
        let file = || format!("sqlite:{}", self.path(".trax/trax.db").display());
        self.url.clone().unwrap_or_else(file)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Copies a built guest into the folder.
    pub(crate) fn guest(&self, name: &str) {
        let file = format!("{name}.wasm");
        std::fs::copy(guest_path(name), self.path(&file)).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TRAX);
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    /// Lets a command run in the folder, with the database.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("TRAX_CODE_FOLDER", Path::new(env!("CARGO_TARGET_TMPDIR")).join("code"))
            .env_remove("TRAX_LOG")
            .env_remove("TRAX_DATABASE");
        if let Some(url) = &self.url {
            command.env("TRAX_DATABASE", url);
        }
    }

    pub(crate) fn trax(&self, arguments: &[&str]) -> Said {
        Said::by(&mut self.command(arguments))
    }

    pub(crate) fn deploy(&self, files: &[&str]) -> Said {
        let mut arguments = vec!["deploy", "--json"];
        arguments.extend(files);
        self.trax(&arguments)
    }
}

/// Whatever a test did, the invariants hold.
impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() && (self.url.is_some() || self.path(".trax/trax.db").exists())
        {
            invariants::hold_at(&self.database());
        }
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

/// What a manifest came to when it was stated.
fn stated<'a>(data: &'a Value, id: &str) -> &'a Value {
    let manifests = data["manifests"].as_array().unwrap();
    manifests.iter().find(|manifest| manifest["id"] == id).unwrap()
}

const GREET: &str =
    "[[manifest]]\nid = 'greet'\ntrain = 'hello'\nevery = '30s'\ninput = { name = 'Ada' }\n";

/// Deploys, lists, states again, and rolls back.
fn components_and_manifests_are_deployed_together(desk: &Desk) {
    desk.guest("hello");
    desk.write("manifests.toml", GREET);

    let first = desk.deploy(&["manifests.toml", "hello.wasm"]).data();
    let again = desk.deploy(&["hello.wasm", "manifests.toml"]).data();

    assert_eq!(first["components"][0]["version"], 1);
    assert_eq!(first["components"][0]["is_unchanged"], false);
    assert_eq!(stated(&first, "greet")["change"], "new");
    assert!(stated(&first, "greet")["next_due_at"].is_string());
    assert_eq!(again["components"][0]["is_unchanged"], true);
    assert_eq!(stated(&again, "greet")["change"], "unchanged");
    let trains = desk.trax(&["trains", "--json"]).data();
    assert_eq!(names(&trains["trains"]), ["hello"]);
    assert!(desk.trax(&["trains"]).out.contains("hello  Person  Shout"));

    std::fs::copy(guest_path("flaky"), desk.path("hello.wasm")).unwrap();
    assert_eq!(desk.deploy(&["hello.wasm"]).data()["components"][0]["version"], 2);
    assert_eq!(names(&desk.trax(&["trains", "--json"]).data()["trains"]), ["flaky"]);
    let back = desk.trax(&["deploy", "--roll-back", "hello", "--json"]).data();
    assert_eq!(back["version"], 1);
    assert_eq!(names(&desk.trax(&["trains", "--json"]).data()["trains"]), ["hello"]);
    let nothing = desk.trax(&["deploy", "--roll-back", "gone"]);
    assert_eq!(nothing.refused(3), "an earlier active version of component 'gone' not found");
    assert_eq!(desk.trax(&["runs", "--json"]).data()["runs"], Value::Array(Vec::new()));
    assert_eq!(desk.trax(&["dead-letters"]).out, "no dead letter\n");
    assert_eq!(desk.trax(&["runs", "show", "7"]).refused(3), "run 7 not found");
}

#[test]
fn components_and_manifests_are_deployed_together_on_sqlite() {
    components_and_manifests_are_deployed_together(&Desk::new());
}

#[tokio::test]
async fn components_and_manifests_are_deployed_together_on_postgres() {
    let database = Database::migrated("cli_deploy").await;
    components_and_manifests_are_deployed_together(&Desk::on(database.url()));
    database.remove().await;
}

/// M27: stating a manifest again changes the options that are stated, and keeps the others.
#[test]
fn what_is_not_stated_again_stays() {
    let desk = Desk::new();
    desk.guest("hello");
    let full = "max_retries = 7\ntimeout = '1m'\npriority = 9\nenabled = false\n";
    desk.write("a.toml", &format!("{GREET}{full}"));
    desk.deploy(&["hello.wasm", "a.toml"]).data();

    desk.write("b.toml", &GREET.replace("30s", "1h"));
    let kept = desk.deploy(&["b.toml"]).data();
    desk.write("c.toml", &format!("{GREET}timeout = 'none'\nenabled = true\n"));
    let changed = desk.deploy(&["c.toml"]).data();

    let kept = stated(&kept, "greet");
    assert_eq!(kept["interval_seconds"], 3_600);
    assert_eq!((&kept["max_retries"], &kept["timeout_seconds"]), (&7.into(), &60.into()));
    assert_eq!((&kept["priority"], &kept["enabled"]), (&9.into(), &false.into()));
    assert_eq!(kept["next_due_at"], Value::Null);
    let changed = stated(&changed, "greet");
    assert_eq!((&changed["max_retries"], &changed["timeout_seconds"]), (&7.into(), &Value::Null));
    assert!(changed["next_due_at"].is_string(), "an enabled manifest is due");
}

/// M27, M28: a new manifest gets the file's defaults, and a stored one keeps what it got.
#[test]
fn defaults_reach_manifests_that_are_new() {
    let desk = Desk::new();
    desk.guest("hello");
    desk.write("a.toml", &format!("[scheduler]\ndefault_max_retries = 1\n{GREET}"));
    desk.write("b.toml", &format!("[scheduler]\ndefault_max_retries = 5\n{GREET}"));

    let first = desk.deploy(&["hello.wasm", "a.toml"]).data();
    let second = desk.deploy(&["b.toml"]).data();

    assert_eq!(stated(&first, "greet")["max_retries"], 1);
    assert_eq!(stated(&second, "greet")["max_retries"], 1);
}

#[test]
fn if_one_thing_is_wrong_nothing_is_deployed() {
    let desk = Desk::new();
    desk.guest("hello");
    let second = "[[manifest]]\nid = 'b'\ntrain = 'helo'\n\
        [[manifest]]\nid = 'c'\ntrain = 'hello'\ninput = { name = 1 }\n";
    desk.write("bad.toml", &format!("{GREET}{second}"));
    desk.write("good.toml", GREET);

    let refused = desk.deploy(&["hello.wasm", "bad.toml"]);

    let lines: Vec<_> = refused.refused(2).lines().collect();
    assert_eq!(
        lines[0],
        "bad.toml:8: manifest 'b': train: unknown train 'helo'; did you mean 'hello'?; deploy its component first"
    );
    assert!(lines[1].starts_with("bad.toml:12: manifest 'c': input: does not fit train 'hello': "));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let trains = desk.trax(&["trains", "--json"]).data();
    assert_eq!(trains["trains"], Value::Array(Vec::new()), "the component was not stored either");
    assert_eq!(stated(&desk.deploy(&["hello.wasm", "good.toml"]).data(), "greet")["change"], "new");
}

#[test]
fn files_that_cannot_be_deployed_are_named() {
    let desk = Desk::new();
    desk.write("text.wasm", "no component");
    desk.write("typo.toml", "[[manifest]]\nid = 'a'\ntrain = 'hello'\nevry = '30s'\n");
    desk.write("notes.txt", "");
    let cases = [
        ("gone.wasm", 3, "cannot read gone.wasm: No such file or directory"),
        ("gone.toml", 3, "cannot read gone.toml: No such file or directory"),
        ("text.wasm", 4, "text.wasm is refused:\n"),
        ("typo.toml", 2, "typo.toml:4: manifest 'a': unknown key 'evry'; did you mean 'every'?"),
        ("notes.txt", 2, "notes.txt is neither a component (.wasm) nor a manifest file (.toml)"),
    ];
    for (file, code, expected) in cases {
        let said = desk.deploy(&[file]);
        assert!(said.refused(code).starts_with(expected), "{}", said.err);
    }
    assert!(!desk.path(".trax").exists(), "no database was made for nothing");
}

#[test]
fn a_schema_is_migrated_once_and_its_version_is_told() {
    let desk = Desk::new();
    let missing = desk.trax(&["db", "status"]);
    assert!(missing.refused(3).starts_with("there is no SQLite file '.trax/trax.db'; "));
    assert_eq!(desk.trax(&["runs"]).code, 3);

    let migrated = desk.trax(&["db", "migrate"]);

    assert_eq!((migrated.code, migrated.err.as_str()), (0, ""));
    assert!(
        migrated
            .out
            .starts_with("migrated the SQLite file '.trax/trax.db' from schema version 0 to ")
    );
    assert!(desk.trax(&["db", "migrate"]).out.ends_with(" already\n"));
    assert!(desk.trax(&["db", "status"]).out.ends_with(": up to date\n"));
    assert_eq!(desk.trax(&["db", "status", "--json"]).data()["is_up_to_date"], true);
}

#[test]
fn a_database_that_cannot_be_used_is_one_clear_error() {
    let desk = Desk::new();
    desk.write("text.db", &"no database ".repeat(500));
    desk.write("empty.db", "");
    desk.guest("hello");
    let closed = "postgres://trax:hush@127.0.0.1:1/trax";
    let cases = [
        (
            "sqlite:text.db",
            5,
            "the SQLite file 'text.db' is damaged or is no SQLite database; restore it",
        ),
        (
            "sqlite:empty.db",
            5,
            "the SQLite file 'empty.db' has schema version 0, and this trax needs version",
        ),
        ("sqlite:empty.db?mode=ro", 5, "the SQLite file 'empty.db' has schema version 0"),
        (
            closed,
            5,
            "cannot reach the Postgres database 'trax' at 127.0.0.1:1, as user 'trax'; check that it runs",
        ),
        ("mysql://x", 2, "'mysql' is no store this trax knows; give `sqlite:path/to/file`"),
        (
            "sqlite:gone/a.db",
            3,
            "there is no SQLite file 'gone/a.db'; name another with --database",
        ),
    ];
    for (url, code, expected) in cases {
        let said = desk.trax(&["runs", "--database", url]);
        assert!(said.refused(code).starts_with(expected), "{url}\n{}", said.err);
        assert!(!said.err.contains("hush"), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    let read_only = desk.trax(&["deploy", "hello.wasm", "--database", "sqlite:empty.db?mode=ro"]);
    let expected = "the SQLite file 'empty.db' is read-only; make it writable for this user, or choose another";
    assert_eq!(read_only.refused(5), expected);
}

#[tokio::test]
async fn a_database_of_a_newer_trax_is_refused_and_read_commands_write_nothing() {
    let desk = Desk::new();
    desk.trax(&["db", "migrate"]);
    let db =
        trax::store::open(&desk.database(), &trax::store::OpenOptions::default()).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let newer = "INSERT INTO trax_migration (number, name, applied_at) VALUES (9999, 'later', 0)";
    tx.execute_text(newer).await.unwrap();
    tx.commit().await.unwrap();
    db.close().await;

    for arguments in
        [&["runs"][..], &["trains"], &["dead-letters"], &["db", "migrate"], &["db", "status"]]
    {
        let said = desk.trax(arguments);
        let expected = "the SQLite file '.trax/trax.db' has schema version 9999, and this trax knows versions up to ";
        assert!(said.refused(5).starts_with(expected), "{arguments:?}: {}", said.err);
    }
}

/// A Postgres that is away, has no such database, or has no schema yet.
#[tokio::test]
async fn postgres_is_migrated_and_what_is_missing_is_told() {
    let database = Database::empty("cli_db").await;
    let desk = Desk::on(database.url());

    let before = desk.trax(&["runs"]);
    let status = desk.trax(&["db", "status", "--json"]).data();
    let migrated = desk.trax(&["db", "migrate", "--json"]).data();
    let after = desk.trax(&["runs", "--json"]).data();

    assert!(before.refused(5).contains(" has schema version 0, and this trax needs version "));
    assert_eq!((&status["version"], &status["is_up_to_date"]), (&0.into(), &false.into()));
    assert_eq!(migrated["before"], 0);
    assert_eq!(after["runs"], Value::Array(Vec::new()));
    let gone = database.url().replace("trax_", "gone_");
    let said = desk.trax(&["runs", "--database", &gone]);
    assert!(
        said.refused(5).contains(" refused the connection; check user name, password and database")
    );
    database.remove().await;
}
