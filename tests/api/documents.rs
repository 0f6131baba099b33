//! Documents: every action and every list, in the same words as the operations.

use std::sync::Arc;

use serde_json::{Value, json};
use trax::model::access::Role;
use trax::operations::access::Action;
use trax::store::Faults;
use trax::store::dead_letters;

use super::world::{Served, caller};
use crate::engine::world::World;

const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;

/// What each action is asked with, and what the operation says to it, on the store that [`stage`] makes.
const TABLE: &[(Action, &str, &str)] = &[
    (
        Action::QueueTrain,
        r#"workQueue { queueTrain(trainName: "missing") { success message } }"#,
        "Unknown train: missing. Use operations.getTrains to list registered trains.",
    ),
    (
        Action::CancelWorkQueueEntry,
        "workQueue { cancelWorkQueueEntry(id: 99) { success message } }",
        "Work queue entry 99 not found.",
    ),
    (
        Action::CancelWorkQueueEntries,
        "workQueue { cancelWorkQueueEntries(ids: [99]) { success message } }",
        "0 of 1 work queue entry(s) cancelled.",
    ),
    (
        Action::TriggerManifest,
        r#"triggerManifest(externalId: "missing") { success message }"#,
        "Manifest 'missing' not found.",
    ),
    (
        Action::TriggerManifestDelayed,
        r#"triggerManifestDelayed(externalId: "missing", delay: "PT5M") { success message }"#,
        "Manifest 'missing' not found.",
    ),
    (
        Action::EnableManifest,
        r#"enableManifest(externalId: "nightly") { success message }"#,
        "0 of 1 manifest(s) enabled.",
    ),
    (
        Action::DisableManifest,
        r#"disableManifest(externalId: "nightly") { success message }"#,
        "1 of 1 manifest(s) disabled.",
    ),
    (
        Action::CancelManifest,
        r#"cancelManifest(externalId: "nightly") { success message }"#,
        "Cancellation requested for 0 execution(s).",
    ),
    (
        Action::SetManifestsEnabled,
        r#"setManifestsEnabled(externalIds: ["nightly"], enabled: true) { success message }"#,
        "1 of 1 manifest(s) enabled.",
    ),
    (
        Action::SetManifestsReplayDecisionsOnRetry,
        r#"setManifestsReplayDecisionsOnRetry(externalIds: ["nightly"], replay: true) { success message }"#,
        "0 of 1 manifest(s) set to replay decisions on retry.",
    ),
    (
        Action::RequeueExecution,
        "requeueExecution(id: 99) { success message }",
        "Execution 99 not found.",
    ),
    (
        Action::ResumeExecution,
        "resumeExecution(id: 99) { success message }",
        "Execution 99 not found.",
    ),
    (
        Action::TriggerGroup,
        r#"manifestGroups { triggerGroup(name: "empty") { success message } }"#,
        "Manifest group 'empty' not found.",
    ),
    (
        Action::SetManifestGroupsEnabled,
        r#"manifestGroups { setManifestGroupsEnabled(names: ["nightly"], enabled: true) { success message } }"#,
        "0 of 1 manifest group(s) enabled.",
    ),
    (
        Action::CancelExecution,
        "cancelExecution(id: 99) { success message }",
        "Execution 99 is not cancellable (missing or already terminal).",
    ),
    (
        Action::CancelExecutions,
        "cancelExecutions(ids: [98, 99]) { success message }",
        "Cancellation requested for 0 of 2 execution(s).",
    ),
    (
        Action::RequeueDeadLetter,
        "deadLetters { requeueDeadLetter(id: 99) { success message } }",
        "Dead letter not found or already resolved",
    ),
    (
        Action::RequeueDeadLetters,
        "deadLetters { requeueDeadLetters(ids: []) { message } }",
        "No ids were given.",
    ),
    (
        Action::RequeueAllDeadLetters,
        "deadLetters { requeueAllDeadLetters { message } }",
        "Requeueing 1 dead letter(s) awaiting intervention.",
    ),
    (
        Action::AcknowledgeDeadLetter,
        "deadLetters { acknowledgeDeadLetter(id: 99) { success message } }",
        "Dead letter not found or already resolved",
    ),
    (
        Action::AcknowledgeDeadLetters,
        "deadLetters { acknowledgeDeadLetters(ids: [99]) { message } }",
        "0 dead letter(s) acknowledged",
    ),
    (
        Action::LabelDecision,
        r#"labelDecision(id: 99, correct: "yes") { success message }"#,
        "Decision 99 not found.",
    ),
    (
        Action::AcknowledgeAllDeadLetters,
        "deadLetters { acknowledgeAllDeadLetters { message } }",
        "0 dead letter(s) acknowledged",
    ),
];

/// Actions that no document asks for.
const NOT_IN_DOCUMENTS: [Action; 2] = [Action::CreateToken, Action::RevokeToken];

/// A manifest that gave up, in a group of its name.
async fn stage(w: &World) {
    let manifest = w.manifest("nightly", "probe", FAILS, 0).await;
    let tenant = w.store.tenant;
    w.store.write(async |tx| dead_letters::add(tx, tenant, manifest, 0, "reason").await).await;
    w.settle_due(manifest).await;
}

/// The message of an answer, wherever in it that is.
fn message(answer: &Value) -> Option<&str> {
    match answer {
        Value::Object(fields) => match fields.get("message") {
            Some(Value::String(text)) => Some(text),
            _ => fields.values().find_map(message),
        },
        _ => None,
    }
}

/// O1, O2, R107: every action of the table answers what its operation says, and is in the audit with it.
async fn every_action_answers_what_its_operation_says(w: Arc<World>) {
    stage(&w).await;
    let served = Served::over(&w.store.db);
    let operator = caller(w.store.tenant, Role::Operator);
    for action in Action::ALL {
        let is_known = TABLE.iter().any(|(known, ..)| known == action);
        assert!(is_known || NOT_IN_DOCUMENTS.contains(action), "{action:?} is not in the table");
    }
    for (action, field, expected) in TABLE {
        let answer =
            served.ask(&operator, &format!("mutation {{ operations {{ {field} }} }}")).await;
        served.jobs.idle().await;
        assert_eq!(message(&answer), Some(*expected), "{action:?}");
        let last = "SELECT action, who, origin, message FROM audit ORDER BY id DESC LIMIT 1";
        let audited = format!("{} operator 192.0.2.1 {expected}", action.as_str());
        assert_eq!(w.store.rows(last).await, [audited], "{action:?}");
    }
}

/// O12, P2: whoever may not is told only that, before anything is read, and the audit has it.
async fn whoever_may_not_is_told_only_that(w: Arc<World>) {
    stage(&w).await;
    let served = Served::over(&w.store.db);
    let viewer = caller(w.store.tenant, Role::Viewer);
    // An input that nobody can read is no matter either.
    let unreadable = r#"workQueue { queueTrain(trainName: "probe", inputJson: "{") { message } }"#;
    let fields = TABLE.iter().map(|(action, field, _)| (*action, *field));
    for (action, field) in fields.chain([(Action::QueueTrain, unreadable)]) {
        let document = format!("mutation {{ operations {{ {field} }} }}");
        let refused = served.refused(&viewer, &document).await;
        assert_eq!(
            refused,
            ("Not authorized.".to_owned(), "TRAX_AUTHORIZATION".to_owned()),
            "{action:?}"
        );
    }
    let audited = w.store.rows("SELECT DISTINCT outcome, who FROM audit").await;
    assert_eq!(audited, ["forbidden viewer"]);
    assert_eq!(w.store.rows("SELECT status FROM dead_letter").await, ["awaiting_intervention"]);
}

/// R110, R111, R122: a document starts the job, and another one reads how far it is.
async fn a_document_starts_the_job_and_another_reads_it(w: Arc<World>) {
    stage(&w).await;
    let served = Served::over(&w.store.db);
    let operator = caller(w.store.tenant, Role::Operator);
    let fields =
        "id status awaitingAtStart startedAt finishedAt count processed message started askAfresh";

    let start = format!(
        "mutation {{ operations {{ deadLetters {{ requeueAllDeadLetters {{ {fields} }} }} }} }}"
    );
    let job = served.ask(&operator, &start).await["deadLetters"]["requeueAllDeadLetters"].take();

    assert_eq!(job["status"], "RUNNING");
    assert_eq!(
        (&job["awaitingAtStart"], &job["processed"], &job["started"]),
        (&json!(1), &json!(0), &json!(true))
    );
    served.jobs.idle().await;
    let id = job["id"].as_str().unwrap();
    let read = format!(
        "{{ operations {{ deadLetters {{ requeueAllJob(id: \"{id}\") {{ {fields} }} }} }} }}"
    );
    let ended = served.ask(&operator, &read).await["deadLetters"]["requeueAllJob"].take();
    assert_eq!(
        (&ended["status"], &ended["count"], &ended["processed"]),
        (&json!("SUCCEEDED"), &json!(1), &json!(1))
    );
    assert_eq!(ended["message"], "1 dead letter(s) requeued.");
    assert!(ended["finishedAt"].is_string());
    let unknown = read.replace(id, &uuid::Uuid::nil().to_string());
    assert_eq!(served.ask(&operator, &unknown).await["deadLetters"]["requeueAllJob"], Value::Null);
    let other = caller(trax::model::ids::TenantId(99), Role::Admin);
    assert_eq!(served.ask(&other, &read).await["deadLetters"]["requeueAllJob"], Value::Null);
}

/// O7: lists page by key, newest first; the cursor of the last page is null.
async fn lists_page_by_key(w: Arc<World>) {
    for name in ["a", "b", "c"] {
        let manifest = w.manifest(name, "probe", FAILS, 0).await;
        let tenant = w.store.tenant;
        w.store.write(async |tx| dead_letters::add(tx, tenant, manifest, 0, "reason").await).await;
        w.settle_due(manifest).await;
    }
    let served = Served::over(&w.store.db);
    let viewer = caller(w.store.tenant, Role::Viewer);
    let mut seen = Vec::new();
    let mut after = "null".to_owned();
    loop {
        let document = format!(
            "{{ operations {{ deadLetters {{ deadLetters(take: 2, afterId: {after}) {{
                items {{ manifest status }} nextCursor }} }} }} }}"
        );
        let page = served.ask(&viewer, &document).await["deadLetters"]["deadLetters"].take();
        for item in page["items"].as_array().unwrap() {
            seen.push(item["manifest"].as_str().unwrap().to_owned());
        }
        match &page["nextCursor"] {
            Value::Null => break,
            cursor => after = cursor.to_string(),
        }
    }
    assert_eq!(seen, ["c", "b", "a"]);
    let all = "{ operations { executions { items { id } nextCursor } manifests { externalId group }
        manifestGroups { groups { name } } workQueue { workQueues(status: \"queued\") { items { id } } } version } }";
    let all = served.ask(&viewer, all).await;
    assert_eq!(all["manifests"][1], json!({ "externalId": "b", "group": "b" }));
    assert_eq!(all["executions"]["items"], json!([]));
    let (problem, code) = served
        .refused(
            &viewer,
            "{ operations { workQueue { workQueues(status: \"lost\") { nextCursor } } } }",
        )
        .await;
    assert_eq!(problem, "status cannot be 'lost'; it is one of queued, dispatched, cancelled");
    assert_eq!(code, "TRAX_INVALID_ARGUMENT");
}

/// O2: what the server does wrong is masked; the id leads to the log.
async fn what_the_server_does_wrong_is_masked(w: Arc<World>) {
    let faults = Faults::none();
    let served = Served::over(&w.faulty(&faults).await);
    faults.set_away(true);
    let viewer = caller(w.store.tenant, Role::Operator);

    for document in [
        "{ operations { executions { nextCursor } } }",
        "mutation { operations { deadLetters { requeueAllDeadLetters { id } } } }",
        "mutation { operations { cancelExecution(id: 1) { message } } }",
    ] {
        let response = served.response(&viewer, document).await;
        let error = serde_json::to_value(&response.errors[0]).unwrap();
        assert_eq!(error["message"], "Unexpected Execution Error", "{document}");
        assert_eq!(error["extensions"]["id"].as_str().map(str::len), Some(16));
    }
}

/// A document that asks for too much is refused before anything is read.
async fn a_document_that_asks_for_too_much_is_refused(w: Arc<World>) {
    let served = Served::over(&w.store.db);
    let viewer = caller(w.store.tenant, Role::Viewer);
    let many: Vec<String> =
        (0..200).map(|i| format!("a{i}: executions(take: 500) {{ items {{ id }} }}")).collect();
    let many = many.join(" ");
    let deep = format!("{{ operations {}", "{ deadLetters ".repeat(100));
    for document in [format!("{{ operations {{ {many} }} }}"), format!("{deep}{}", "}".repeat(101))]
    {
        let response = served.response(&viewer, &document).await;
        assert_eq!(response.errors.len(), 1);
        assert_eq!(response.data, async_graphql::Value::Null);
    }
}

engine_cases!(
    every_action_answers_what_its_operation_says,
    whoever_may_not_is_told_only_that,
    a_document_starts_the_job_and_another_reads_it,
    lists_page_by_key,
    what_the_server_does_wrong_is_masked,
    a_document_that_asks_for_too_much_is_refused,
);

#[test]
fn the_schema_is_what_clients_were_given() {
    insta::assert_snapshot!(trax::api::graphql::sdl());
}
