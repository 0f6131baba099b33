//! The commands that operate: what they change, what they say, and what they refuse.

use serde_json::{Value, json};
use trax::store::{self, OpenOptions, dead_letters, manifests};

use crate::cli_store::Desk;
use crate::postgres::Database;

const MANIFESTS: &str = "
[[manifest]]
id = 'greet'
train = 'hello'
every = '1h'
input = { name = 'Ada' }

[[manifest]]
id = 'wave'
train = 'hello'
input = { name = 'Eve' }
";

/// A desk where the manifests are deployed and have so many dead letters.
async fn given_up(desk: &Desk, letters: &[&str]) {
    desk.guest("hello");
    desk.write("manifests.toml", MANIFESTS);
    desk.deploy(&["hello.wasm", "manifests.toml"]).data();
    let db = store::open(&desk.database(), &OpenOptions::default()).await.unwrap();
    let tenant = trax::model::ids::TenantId(1);
    for manifest in letters {
        let mut tx = db.begin().await.unwrap();
        let id = manifests::of_external_id(&mut tx, tenant, manifest).await.unwrap().id;
        dead_letters::add(&mut tx, tenant, id, 0, "Max retries exceeded").await.unwrap();
        tx.commit().await.unwrap();
    }
    db.close().await;
}

fn ids(list: &Value) -> Vec<i64> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_i64().unwrap()).collect()
}

async fn dead_letters_are_dealt_with(desk: &Desk) {
    given_up(desk, &["greet", "wave", "wave"]).await;
    let listed = desk.trax(&["dead-letters", "list", "--limit", "2", "--json"]).data();
    assert_eq!(ids(&listed["dead_letters"]), [3, 2]);
    let next = desk.trax(&["dead-letters", "list", "--after", "2", "--json"]).data();
    assert_eq!(ids(&next["dead_letters"]), [1]);
    let of_one = desk.trax(&["dead-letters", "--manifest", "greet", "--json"]).data();
    assert_eq!(ids(&of_one["dead_letters"]), [1]);
    let shown = desk.trax(&["dead-letters", "show", "1"]);
    assert!(shown.out.contains("Max retries exceeded"), "{}", shown.out);
    assert_eq!(desk.trax(&["dead-letters", "show", "9"]).refused(3), "dead letter 9 not found");

    let nothing = desk.trax(&["dead-letters", "requeue"]);
    assert_eq!(nothing.code, 2, "{}", nothing.err);
    let dry = desk.trax(&["dead-letters", "requeue", "--all", "--dry-run"]);
    let expected = "3 dead letter(s) requeued; 1 folded into another dead letter's entry for the same manifest.";
    assert_eq!(dry.out, format!("nothing was changed; it would be: {expected}\n"), "{}", dry.err);
    let dry = desk.trax(&["dead-letters", "acknowledge", "--manifest", "wave", "--dry-run"]);
    assert_eq!(dry.out, "nothing was changed; it would be: 2 dead letter(s) acknowledged\n");

    let done = desk.trax(&["dead-letters", "requeue", "1", "--json"]).data();
    let entry = done["id"].as_i64().unwrap();
    assert_eq!((&done["success"], &done["count"]), (&json!(true), &json!(1)));
    assert_eq!(done["message"], "Dead letter requeued");
    let again = desk.trax(&["dead-letters", "requeue", "1"]);
    assert_eq!(again.refused(4), "Dead letter not found or already resolved");
    let all = desk.trax(&["dead-letters", "requeue", "--all", "--json"]).data();
    assert_eq!(all["count"], 2);
    let none = desk.trax(&["dead-letters", "acknowledge", "--all", "--note", "seen"]);
    assert_eq!(none.out, "0 dead letter(s) acknowledged\n");
    let long = desk.trax(&["dead-letters", "acknowledge", "1", "--note", &"x".repeat(1_001)]);
    let expected = "The note is 1001 characters; it may be at most 1000 characters.";
    assert_eq!(long.refused(4), expected);

    let queued = desk.trax(&["queue", "list", "--json"]).data();
    assert_eq!(ids(&queued["entries"]).len(), 2);
    assert_eq!(queued["entries"][1]["dead_letter"], 1);
    let cancelled = desk.trax(&["queue", "cancel", &entry.to_string()]);
    assert_eq!(
        cancelled.out,
        format!("Work queue entry {entry} cancelled.\n"),
        "{}",
        cancelled.err
    );
    let again = desk.trax(&["queue", "cancel", &entry.to_string()]);
    assert_eq!(again.refused(4), format!("Cannot cancel entry {entry} with status 'cancelled'."));
    assert_eq!(desk.trax(&["queue", "cancel", "99"]).refused(3), "Work queue entry 99 not found.");
    let rest = desk.trax(&["queue", "cancel", "1", "2", "3", "3", "--json"]).data();
    assert_eq!(rest["message"], "1 of 3 work queue entry(s) cancelled.");
    assert_eq!(desk.trax(&["queue"]).out, "nothing is queued\n");
}

#[tokio::test]
async fn dead_letters_are_dealt_with_on_sqlite() {
    dead_letters_are_dealt_with(&Desk::new()).await;
}

#[tokio::test]
async fn dead_letters_are_dealt_with_on_postgres() {
    let database = Database::migrated("cli_dead_letters").await;
    let desk = Desk::on(database.url());
    dead_letters_are_dealt_with(&desk).await;
    drop(desk);
    database.remove().await;
}

/// A run of a train by its name; an input that does not fit it is refused, and nothing is queued.
async fn a_train_is_queued_by_name(desk: &Desk) {
    given_up(desk, &[]).await;
    let refused = [
        (
            3,
            &["helo"][..],
            "Unknown train: helo. Use operations.getTrains to list registered trains.",
        ),
        (4, &[""], "TrainName is required."),
        (4, &["hello", "--input", "{"], "Invalid InputJson: "),
        (4, &["hello", "--input", "{}"], "The train input failed validation. "),
    ];
    for (code, arguments, expected) in refused {
        let said = desk.trax(&[&["queue", "add"], arguments].concat());
        assert!(said.refused(code).starts_with(expected), "{}", said.err);
    }
    assert_eq!(desk.trax(&["queue"]).out, "nothing is queued\n");

    let input = r#"{ "name" : "Ada" }"#;
    let add =
        ["queue", "add", "hello", "--input", input, "--priority", "99", "--delay", "5m", "--json"];
    let done = desk.trax(&add).data();
    assert_eq!((&done["success"], &done["count"]), (&json!(true), &json!(1)));
    assert_eq!(done["message"], format!("Work queue entry {} created.", done["id"]));
    let queued = desk.trax(&["queue", "--json"]).data();
    let entry = &queued["entries"][0];
    assert_eq!((&entry["priority"], &entry["manifest"]), (&json!(31), &Value::Null));
    assert_eq!(entry["external_id"].as_str().unwrap().len(), 32);
    assert!(entry["scheduled_at"].is_string());
    let db = store::open(&desk.database(), &OpenOptions::default()).await.unwrap();
    let mut tx = db.read().await.unwrap();
    let stored = tx.text_rows("SELECT input, input_type_name FROM work_queue").await.unwrap();
    assert_eq!(stored[0], [r#"{"name":"Ada"}"#, "Person"].map(|text| Some(text.to_owned())));
    drop(tx);
    db.close().await;
}

/// P1, P3, P4: a run of a train by its name; an input that does not fit it is refused, and nothing is queued.
#[tokio::test]
async fn a_train_is_queued_by_name_on_sqlite() {
    a_train_is_queued_by_name(&Desk::new()).await;
}

/// P1, P3, P4: a run of a train by its name; an input that does not fit it is refused, and nothing is queued.
#[tokio::test]
async fn a_train_is_queued_by_name_on_postgres() {
    let database = Database::migrated("cli_queue_add").await;
    let desk = Desk::on(database.url());
    a_train_is_queued_by_name(&desk).await;
    drop(desk);
    database.remove().await;
}

/// M33, O3: manifests are switched together or not at all, and only what changes is counted.
#[tokio::test]
async fn manifests_are_listed_and_switched() {
    let desk = Desk::new();
    given_up(&desk, &["wave"]).await;

    let listed = desk.trax(&["manifests", "--limit", "1", "--json"]).data();
    assert_eq!(listed["manifests"][0]["id"], "greet");
    let next = desk.trax(&["manifests", "list", "--after", "greet", "--json"]).data();
    assert_eq!(next["manifests"][0]["id"], "wave");
    assert_eq!(next["manifests"].as_array().unwrap().len(), 1);
    let unknown = desk.trax(&["manifests", "disable", "greet", "gret"]);
    assert_eq!(unknown.refused(3), "Manifest 'gret' not found.");
    let off = desk.trax(&["manifests", "disable", "greet", "wave", "greet"]);
    assert_eq!(off.out, "2 of 2 manifest(s) disabled.\n", "{}", off.err);
    let shown = desk.trax(&["manifests", "show", "greet", "--json"]).data();
    assert_eq!((&shown["enabled"], &shown["next_due_at"]), (&json!(false), &Value::Null));
    assert_eq!(shown["input"], json!({ "name": "Ada" }));
    let on = desk.trax(&["manifests", "enable", "greet", "--json"]).data();
    assert_eq!((&on["count"], &on["message"]), (&json!(1), &json!("1 of 1 manifest(s) enabled.")));
    let again = desk.trax(&["manifests", "enable", "greet"]);
    assert_eq!(again.out, "0 of 1 manifest(s) enabled.\n");
    assert!(desk.trax(&["manifests", "show", "greet", "--json"]).data()["next_due_at"].is_string());
    let text = desk.trax(&["manifests", "show", "wave"]).out;
    assert!(text.contains("awaits somebody") && text.contains("disabled"), "{text}");

    assert_eq!(
        desk.trax(&["runs", "cancel", "7"]).refused(4),
        "Execution 7 is not cancellable (missing or already terminal)."
    );
    let several = desk.trax(&["runs", "cancel", "7", "8"]);
    assert_eq!(several.out, "Cancellation requested for 0 of 2 execution(s).\n");
    let none = desk.trax(&["manifests", "cancel", "greet"]);
    assert_eq!(none.out, "Cancellation requested for 0 execution(s).\n");
    assert_eq!(
        desk.trax(&["manifests", "cancel", "gret"]).refused(3),
        "Manifest 'gret' not found."
    );
}

/// Manifests and groups are run now, and what is queued already runs as the trigger.
async fn manifests_and_groups_are_triggered(desk: &Desk) {
    given_up(desk, &[]).await;

    let now = desk.trax(&["manifests", "trigger", "wave", "--json"]).data();
    let entry = now["id"].as_i64().unwrap();
    assert_eq!(
        now["message"],
        format!("Manifest 'wave' triggered: queued a new run (work queue entry {entry}), due now.")
    );
    let later = desk.trax(&["manifests", "trigger", "greet", "--delay", "1h"]);
    assert!(later.out.contains("), due at "), "{}{}", later.out, later.err);
    let unknown = desk.trax(&["manifests", "trigger", "gret"]);
    assert_eq!(unknown.refused(3), "Manifest 'gret' not found.");

    let groups = desk.trax(&["groups", "--limit", "1", "--json"]).data();
    assert_eq!(groups["groups"][0]["name"], "greet");
    let next = desk.trax(&["groups", "list", "--after", "greet", "--json"]).data();
    assert_eq!(next["groups"][0]["name"], "wave");
    let both = desk.trax(&["groups", "trigger", "wave", "greet"]);
    let expected = "0 queued, 2 already queued (that entry now runs as the trigger) across 2 of 2 manifest group(s).\n";
    assert_eq!(both.out, expected, "{}", both.err);
    let unknown = desk.trax(&["groups", "disable", "greet", "gret"]);
    assert_eq!(unknown.refused(3), "Manifest group 'gret' not found.");
    let off = desk.trax(&["groups", "disable", "greet"]);
    assert_eq!(off.out, "1 of 1 manifest group(s) disabled.\n", "{}", off.err);
    let on = desk.trax(&["groups", "enable", "greet", "wave", "--json"]).data();
    assert_eq!(on["message"], "1 of 2 manifest group(s) enabled.");
}

/// M34, M36, M37: manifests and groups are run now, and what is queued already runs as the trigger.
#[tokio::test]
async fn manifests_and_groups_are_triggered_on_sqlite() {
    manifests_and_groups_are_triggered(&Desk::new()).await;
}

/// M34, M36, M37: manifests and groups are run now, and what is queued already runs as the trigger.
#[tokio::test]
async fn manifests_and_groups_are_triggered_on_postgres() {
    let database = Database::migrated("cli_trigger").await;
    let desk = Desk::on(database.url());
    manifests_and_groups_are_triggered(&desk).await;
    drop(desk);
    database.remove().await;
}
