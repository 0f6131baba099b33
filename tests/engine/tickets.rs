//! The labelled tickets of the example `support-triage`: rules are acted on, a model is a shadow, and a report says how
//! good both are.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trax::deciders::Decider;
use trax::deciders::host::HostDeciders;
use trax::deciders::scripted::ScriptedDecider;
use trax::model::ids::{DecisionId, RunId};
use trax::operations::enqueue::{self, Asked};
use trax::operations::{decisions, requeue};
use trax::store::queue::When;

use crate::cli_store::Said;
use crate::engine::replay::retry;
use crate::engine::world::{TestHost, World};
use crate::world::TRAX;

const TRAIN: &str = "support-triage";

/// The tickets: the team that each is for, and the input.
fn tickets() -> Vec<(String, String)> {
    let text = std::fs::read_to_string("guests/examples/support-triage/tickets.jsonl").unwrap();
    let ticket = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["team"].as_str().unwrap().to_owned(), line["ticket"].to_string())
    };
    text.lines().map(ticket).collect()
}

/// A model that is sure of what is right, and less sure of every fifth answer, which is wrong.
fn model(tickets: &[(String, String)]) -> Decider {
    let answer = |(index, (team, _)): (usize, &(String, String))| {
        let wrong = if team == "Sales" { "Billing" } else { "Sales" };
        match index % 5 {
            0 => json!({ "choice": wrong, "confidence": 0.6 }),
            _ => json!({ "choice": team, "confidence": 0.9 }),
        }
    };
    let answers: Vec<Value> = tickets.iter().enumerate().map(answer).collect();
    let script = json!({ "Team": answers }).to_string();
    Decider::Scripted(ScriptedDecider::from_json(&script).unwrap())
}

/// A host that runs one ticket after the other, so that the model's answers come in the order of the tickets.
async fn host(w: &World, tickets: &[(String, String)]) -> TestHost {
    let mut deciders = HostDeciders::default();
    deciders.by_name.insert("model".to_owned(), Arc::new(model(tickets)));
    deciders.shadows.insert("Team".to_owned(), vec!["model".to_owned()]);
    deciders.wait_for_shadows = Some(Duration::from_mins(10));
    w.host_with("one", |config| {
        config.worker_count = 1;
        config.deciders = Arc::new(deciders);
    })
    .await
}

/// What a command says of the database.
pub(crate) fn trax(w: &World, arguments: &[&str]) -> Said {
    let mut command = Command::new(TRAX);
    command.arg("decisions").args(arguments).env("TRAX_DATABASE", &w.store.url);
    Said::by(&mut command)
}

/// How often each decider was asked, as the report counts it.
fn asked(w: &World) -> Vec<String> {
    let report = trax(w, &["report", "--json"]).data();
    let line = |line: &Value| format!("{} {}", line["decider"].as_str().unwrap(), line["answers"]);
    report["report"].as_array().unwrap().iter().map(line).collect()
}

async fn a_report_names_the_best_bar_of_each_decider(w: Arc<World>) {
    w.deploy(TRAIN).await;
    let tickets = tickets();
    assert_eq!(tickets.len(), 200);
    let mut host = host(&w, &tickets).await;
    let inputs: Vec<&str> = tickets.iter().map(|(_, input)| &**input).collect();
    let asked_for = Asked { train: TRAIN, input: None, priority: 0, when: When::Now };
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let mistaken = [inputs[0], r#"{"from":"ada@example.com"}"#];
    let refused = enqueue::enqueue_all(db, tenant, &asked_for, &mistaken).await.unwrap();
    assert!(!refused.is_done && refused.message.starts_with("Input 2: "), "{refused:?}");
    assert!(refused.message.ends_with("; nothing was queued."), "{refused:?}");
    assert!(w.store.rows("SELECT train_name FROM work_queue").await.is_empty());
    let queued = enqueue::enqueue_all(db, tenant, &asked_for, &inputs).await.unwrap();
    assert_eq!(queued.message, "200 work queue entry(s) created.");
    while host.dispatch().await > 0 {
        host.workers.idle().await;
    }
    assert_eq!(w.store.rows("SELECT DISTINCT train_state FROM metadata").await, ["completed"]);
    for (id, (team, _)) in (1..).zip(&tickets) {
        let labelled = decisions::label(db, tenant, DecisionId(id), team, "ada").await.unwrap();
        assert!(labelled.is_done, "{labelled:?}");
    }

    let csv = trax(&w, &["report", "--csv"]);
    assert_eq!(csv.code, 0, "{}", csv.err);
    let lines: Vec<&str> = csv.out.lines().collect();
    let start = |line: &str| line.split(',').take(14).collect::<Vec<_>>().join(",");
    assert_eq!(
        lines.iter().map(|line| start(line)).collect::<Vec<_>>(),
        [
            "train,question,decider,is_shadow,answers,unfit,labelled,accuracy,agreement,calibration_error,best_bar,\
             best_bar_cost,best_bar_followed,best_bar_wrong",
            "support-triage,Team,support-rules,false,200,0,200,0.7150,,0.1373,0.6000,147.0000,148,19",
            "support-triage,Team,model,true,200,0,200,0.8000,0.4300,0.2000,0.9000,40.0000,160,0",
        ]
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calibration.svg");
    let told = trax(&w, &["report", "--svg", file.to_str().unwrap()]);
    assert!(
        told.out.contains("best bar     0.9 follows 80.0 %, 100.0 % of them right, and costs 40")
    );
    assert!(
        told.out.contains("best bar     0.6 follows 74.0 %, 87.2 % of them right, and costs 147")
    );
    let svg = std::fs::read_to_string(&file).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 2);
    // Where a mistake costs little, everything is followed.
    let bold = trax(&w, &["report", "--wrong-costs", "0.1", "--decider", "model", "--json"]).data();
    assert_eq!(bold["report"][0]["best_bar"]["bar"], 0.6);
    assert_eq!(bold["report"].as_array().unwrap().len(), 1);
}

/// R35, R91, R47: a retry after a failing close asks nobody again; its answers are used up, and the next run asks.
async fn closing_again_asks_nobody_again(w: Arc<World>) {
    w.deploy(TRAIN).await;
    let mut host = host(&w, &[("Billing".to_owned(), String::new())]).await;
    let undeliverable =
        r#"{"body":"A refund\n\nof the payment, please.","from":"ada@mail.invalid"}"#;
    w.manifest("inbox", TRAIN, undeliverable, 9).await;
    host.pass().await;
    assert_eq!(asked(&w), ["support-rules 1", "model 1"]);
    retry(&w, &mut host).await;
    assert_eq!(w.states().await, "failed failed");
    assert_eq!(asked(&w), ["support-rules 1", "model 1"]);
    let links = "SELECT CAST(resume_from AS TEXT), CAST(replay_decisions_of AS TEXT) FROM metadata ORDER BY id";
    assert_eq!(w.store.rows(links).await, ["- -", "1 1"]);

    // From the top, where the question is: the answers of the first run are spoken for by the retry.
    again(&w, &mut host, 1).await;
    assert_eq!(w.decided().await, ["1 Team support-rules", "3 Team support-rules"]);
    assert_eq!(asked(&w), ["support-rules 2", "model 2"]);
    // Those of the third are not.
    again(&w, &mut host, 3).await;
    assert_eq!(w.decided().await[2..], ["4 Team replayed"]);
    assert_eq!(asked(&w), ["support-rules 2", "model 2"]);
}

/// Runs a run again from the top.
async fn again(w: &World, host: &mut TestHost, run: i64) {
    let requeued = requeue::execution(&w.store.db, w.store.tenant, RunId(run), false).await;
    assert!(requeued.as_ref().unwrap().is_done, "{requeued:?}");
    host.dispatch().await;
    host.workers.idle().await;
}

engine_cases!(a_report_names_the_best_bar_of_each_decider, closing_again_asks_nobody_again,);
