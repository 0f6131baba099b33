//! Whole runs: the walk, the deciders and the guest together.

use trax::chain::next::End;
use trax::engine::journal::Event;
use trax::model::failure::FailureClass;

use crate::world::{TestEnd, TestRun};

/// The path as an operator would see it: one word per kind of event, and where.
fn path(end: &TestEnd) -> Vec<String> {
    let line = |event: Event| match event {
        Event::JunctionStarted { .. } => None,
        Event::JunctionEnded { node, failure, .. } => {
            Some(format!("{}{node}", if failure.is_some() { "failed " } else { "" }))
        }
        Event::Decided(it) => Some(match it.refused {
            Some(reason) => format!("refused {}: {reason}", it.question.key),
            None => {
                format!("decided {} by {}", it.question.key, it.decider.unwrap_or_default())
            }
        }),
        Event::Routed { track, fallback_reason, .. } => {
            let fell_back = fallback_reason.is_some();
            Some(format!("track {track}{}", if fell_back { " (fallback)" } else { "" }))
        }
        Event::Checkpoint { node, .. } => Some(node),
        Event::Shadowed(it) => Some(format!("shadows of {}", it.key)),
    };
    end.trace.events().into_iter().filter_map(line).collect()
}

async fn routes(answers: &str) -> TestEnd {
    let script = format!(r#"{{"answers":{answers}}}"#);
    TestRun::new("probe", "probe-routes", script).await.run().await
}

/// R68, R104, R105: without a database there is no queue: a run is made at once, and is neither retried nor replayed.
#[tokio::test]
async fn an_inline_run_asks_every_time() {
    let failing = r#"{"acts":{"Act":[{"fail":{"name":"Lost"}}]}}"#;
    for _ in 0..2 {
        let end = TestRun::new("probe", "probe-routes", failing).await.run().await;
        assert_eq!(end.failure().name, "Lost");
        let asked =
            path(&end).iter().filter(|line| line.starts_with("decided Lane by probe")).count();
        assert_eq!(asked, 1, "{:?}", path(&end));
    }
}

#[tokio::test]
async fn support_triage_follows_its_rules_and_falls_back_to_a_person() {
    let ticket = std::fs::read_to_string("guests/examples/support-triage/ticket.json").unwrap();
    let clear = TestRun::new("support-triage", "support-triage", ticket).await.run().await;
    assert_eq!(
        path(&clear),
        [
            "ParseTicket#0",
            "decided Team by support-rules",
            "track Billing",
            "Switch<Team>#0/Billing/AnswerBilling#0",
            "Checkpoint<Routed>#0",
            "CloseTicket#0",
        ]
    );
    assert!(clear.output().contains(r#""queue":"billing""#));

    let unclear = std::fs::read_to_string("guests/examples/support-triage/unclear-ticket.json");
    let unclear = TestRun::new("support-triage", "support-triage", unclear.unwrap()).await;
    let unclear = unclear.run().await;
    assert!(path(&unclear).contains(&"track Human (fallback)".to_owned()), "{:?}", path(&unclear));
    assert!(unclear.output().contains(r#""queue":"people""#));
}

/// Q6: a choice is followed when it has a track and enough confidence; otherwise the run takes the other track.
#[tokio::test]
async fn a_switch_follows_its_bars() {
    for (answers, track) in [
        (r#"[{"key":"Lane","choice":"Right","confidence":0.5}]"#, "track Right"),
        (r#"[{"key":"Lane","choice":"Right","confidence":0.49}]"#, "track Otherwise (fallback)"),
    ] {
        let path = path(&routes(answers).await);
        assert!(path.iter().any(|line| line == track), "{answers}: {path:?}");
    }
}

/// Q13: every answer that does not fit is recorded, and the run fails as one that may go better the next time.
#[tokio::test]
async fn answers_that_do_not_fit_fail_the_run_and_are_recorded() {
    for answers in [
        "[]",
        r#"[{"key":"Lane","choice":"Elsewhere","confidence":1}]"#,
        r#"[{"key":"Lane","choice":"Left","confidence":1.5}]"#,
        r#"[{"key":"Lane","score":1}]"#,
    ] {
        let end = routes(answers).await;
        assert_eq!(end.failure().class, FailureClass::Transient, "{answers}");
        assert_eq!(end.failure().name, "UnfitAnswer", "{answers}");
        assert!(path(&end)[0].starts_with("refused Lane: "), "{:?}", path(&end));
    }
}

/// Q14: a decider that fails gives its own error and class; no track is taken instead.
#[tokio::test]
async fn a_decider_that_fails_fails_the_run() {
    let script = r#"{"decider":[{"fail":{"class":"conflict","name":"Busy","message":"later"}}]}"#;
    let end = TestRun::new("probe", "probe-routes", script).await.run().await;
    assert_eq!(end.failure().name, "Busy");
    assert_eq!(end.failure().class, FailureClass::Conflict);
    assert_eq!(path(&end), [""; 0]);

    let trap = TestRun::new("probe", "probe-routes", r#"{"decider":["trap"]}"#).await.run().await;
    assert_eq!(trap.failure().name, "Trap");
}

/// Q18: a decider of rules has one for each type of state and question, and answers what it has rules for.
#[tokio::test]
async fn score_leads_decides_gates_and_scales() {
    let lead = std::fs::read_to_string("guests/examples/score-leads/lead.json").unwrap();
    let end = TestRun::new("score-leads", "score-leads", lead).await.run().await;
    let path = path(&end);
    let mut decided: Vec<_> = path.iter().filter(|line| line.starts_with("decided ")).collect();
    decided.sort();
    assert_eq!(decided, ["decided Interest by lead-rules", "decided IsSpam by lead-rules"]);
    assert_eq!(path.iter().filter(|line| line.starts_with("track ")).count(), 2, "{path:?}");
    end.output();
}

/// C5: branches work on a copy of Memory each, and what they put is joined in declared order.
#[tokio::test]
async fn branches_are_joined() {
    let script = r#"{"acts":{"ActLeft":[{"note":"l"}],"ActRight":[{"note":"r"}]}}"#;
    let end = TestRun::new("probe", "probe-parallel", script).await.run().await;
    assert_eq!(end.output(), r#"{"notes":["l","r"]}"#);

    let failing = r#"{"acts":{"ActLeft":[{"fail":{}}],"ActRight":[{"note":"r"}]}}"#;
    let end = TestRun::new("probe", "probe-parallel", failing).await.run().await;
    assert_eq!(path(&end), ["failed Parallel#0/left/ActLeft#0"]);
    assert_eq!(end.failure().name, "ProbeFailed");
}

/// C4: a short circuit that succeeds gives the result, and later steps still run; one that fails changes nothing.
#[tokio::test]
async fn a_short_circuit_gives_the_result_or_carries_on() {
    let script = |shortcut: &str| {
        format!(r#"{{"acts":{{"Shortcut":[{shortcut}],"Act":[{{"note":"late"}}]}}}}"#)
    };
    let early = script(r#"{"note":"early"}"#);
    let taken = TestRun::new("probe", "probe-short", early).await.run().await;
    assert_eq!(taken.output(), r#"{"notes":["early"]}"#);
    assert_eq!(path(&taken), ["Shortcut#0", "Act#0"]);

    for failing in [r#"{"fail":{}}"#, r#""trap""#] {
        let end = TestRun::new("probe", "probe-short", script(failing)).await.run().await;
        assert_eq!(end.output(), r#"{"notes":["late"]}"#);
    }
}

/// C6: a run that was asked to stop before it began calls nothing.
#[tokio::test]
async fn a_cancelled_run_calls_nothing() {
    let run = TestRun::new("probe", "probe-chain", "{}").await;
    run.cancel.cancel();
    let end = run.run().await;
    assert_eq!(end.end, End::Cancelled);
    assert_eq!(path(&end), [""; 0]);
}

#[tokio::test]
async fn a_component_made_with_the_sdk_is_at_most_150_kb() {
    for name in ["hello", "support-triage", "score-leads", "flaky"] {
        let bytes = crate::world::guest(name).len();
        assert!(bytes <= 150_000, "{name} has {bytes} bytes");
    }
}
