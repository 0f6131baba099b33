//! Whatever a junction does is one recorded outcome, and the next run is green.

use std::time::Duration;

use trax::chain::next::End;
use trax::engine::journal::Event;
use trax::model::failure::FailureClass;
use trax::model::limits::Limits;

use crate::world::{TestEnd, TestRun};

/// The probe's train with one junction, which does these steps.
async fn probe(steps: &str) -> TestRun {
    TestRun::new("probe", "probe", format!(r#"{{"acts":{{"Act":{steps}}}}}"#)).await
}

async fn notes(run: TestRun) -> String {
    run.run().await.output().to_owned()
}

fn tight(limits: &mut Limits) {
    limits.own_time = Duration::from_millis(100);
    limits.memory_bytes = 16 * 1024 * 1024;
    limits.output_bytes = 64 * 1024;
}

fn assert_failed(end: &TestEnd, name: &str, class: FailureClass, part: &str) {
    let failure = end.failure();
    assert_eq!(failure.name, name, "{}", failure.message);
    assert_eq!(failure.class, class, "{name}");
    assert!(failure.message.contains(part), "{}", failure.message);
}

/// C7: what failed is recorded with name, class and message, whatever way the guest failed.
#[tokio::test]
async fn every_way_to_fail_has_its_own_outcome() {
    use FailureClass::{Conflict, Permanent, Transient, Unclassified};
    let cases = [
        (
            r#"[{"fail":{"class":"conflict","name":"Lost","message":"no route"}}]"#,
            "Lost",
            Conflict,
            "no route",
        ),
        (r#"[{"fail":{"name":"HttpTimeout"}}]"#, "HttpTimeout", Transient, "the script says so"),
        (r#"["trap"]"#, "Trap", Unclassified, "wasm `unreachable` instruction executed"),
        (r#"[{"panic":"all is lost"}]"#, "Panic", Unclassified, "all is lost"),
        (r#"["loop_forever"]"#, "OwnTimeLimit", Unclassified, "computed for more than 100ms"),
        (r#"[{"allocate":33554432}]"#, "MemoryLimit", Unclassified, "the limit is 16777216"),
        (r#"["recurse"]"#, "StackOverflow", Unclassified, "the stack overflowed"),
        (r#"[{"giant_output":1000000}]"#, "OutputLimit", Unclassified, "more than 65536 bytes"),
        (r#"[{"return":[]}]"#, "BadOutput", Permanent, "returned []"),
        (r#"[{"return":[{"type_name":"Report","json":"{"}]}]"#, "BadOutput", Permanent, "'Act#0'"),
        (
            r#"[{"return":[{"type_name":"Report","json":"{\"notes\":[1]}"}]}]"#,
            "BadOutput",
            Permanent,
            "/notes/0",
        ),
        (r#"[{"return":[{"type_name":"Gone","json":"{}"}]}]"#, "BadOutput", Permanent, "Gone"),
        (
            r#"[{"return":[{"type_name":"ChoiceDecision<Lane>","json":"{\"choice\":\"Left\",\"confidence\":1}"}]}]"#,
            "BadOutput",
            Permanent,
            "ChoiceDecision<Lane>",
        ),
        (r#"[{"ask":{"keys":["Gone"]}}]"#, "UndeclaredQuestion", Permanent, "'Gone'"),
    ];
    for (steps, name, class, part) in cases {
        let end = probe(steps).await.limited(tight).run().await;
        assert_failed(&end, name, class, part);

        let next = probe(r#"[{"note":"green"}]"#).await.limited(tight).run().await;
        assert_eq!(next.output(), r#"{"notes":["green"]}"#, "after {steps}");
    }
}

#[tokio::test]
async fn fuel_is_a_limit_of_its_own() {
    let run = probe("[\"loop_forever\"]").await.limited(|limits| limits.fuel = 1_000_000);
    let end = run.run().await;
    let class = FailureClass::Unclassified;
    assert_failed(&end, "FuelLimit", class, "used more than 1000000 units of fuel");
}

#[tokio::test]
async fn a_trap_names_the_functions_it_came_from() {
    let end = probe("[\"trap\"]").await.run().await;
    let detail = end.failure().detail.clone().unwrap();
    assert!(detail.contains("wasm backtrace") && detail.contains("probe"), "{detail}");
}

#[tokio::test]
async fn a_flood_of_log_lines_is_cut_and_counted() {
    let flood = r#"[{"log":{"lines":5000,"bytes":100}},{"log":{"bytes":100000}},{"note":"done"}]"#;
    let end = probe(flood).await.run().await;

    assert_eq!(end.output(), r#"{"notes":["done"]}"#);
    let lines = end.log.lines();
    assert_eq!(lines.len(), 1_001);
    assert_eq!(lines[1_000].message, "log truncated: 4001 line(s) and 500000 byte(s) dropped");
    assert_eq!(lines[0].node, "Act#0");
}

/// R13: a run that is asked to stop is cancelled, not failed, also inside a guest's loop.
#[tokio::test]
async fn a_cancelled_run_ends_inside_a_loop() {
    for steps in ["[\"loop_forever\"]", "[{\"log\":{}},\"loop_forever\"]"] {
        let run = probe(steps).await;
        run.cancel.cancel();
        assert_eq!(run.run().await.end, End::Cancelled);
    }
    let run = probe("[\"loop_forever\"]").await;
    let cancel = run.cancel.clone();
    let log = tokio::spawn(run.run());
    tokio::task::yield_now().await;
    cancel.cancel();
    assert_eq!(log.await.unwrap().end, End::Cancelled);
}

#[tokio::test]
async fn a_guest_sees_the_run_it_is_called_in() {
    let mut run = probe(r#"["info","idempotency_key","cancelled","warned"]"#).await;
    run.info.attempt = 3;
    let seen = notes(run).await;
    for part in ["run-1", "occurrence-1", "Act#0", "cancelled: false", "warned: false"] {
        assert!(seen.contains(part), "{part} in {seen}");
    }
}

#[tokio::test]
async fn an_idempotency_key_is_the_same_for_the_same_work_only() {
    let key = async |occurrence: &str, attempt, note: &str| {
        let mut run = probe(&format!(r#"[{{"note":"{note}"}},"idempotency_key"]"#)).await;
        occurrence.clone_into(&mut run.info.occurrence_id);
        run.info.attempt = attempt;
        run.info.run_id = format!("run-{attempt}");
        let notes = notes(run).await;
        notes[notes.find("idempotency key").unwrap()..].to_owned()
    };
    let first = key("a", 1, "x").await;
    assert_eq!(key("a", 2, "x").await, first);
    assert_ne!(key("b", 1, "x").await, first);
    assert_ne!(key("a", 1, "y").await, first);
}

#[tokio::test]
async fn a_guest_is_warned_before_its_limit() {
    let steps = r#"["warned",{"spin_ms":170},"warned"]"#;
    let own_time = |limits: &mut Limits| limits.own_time = Duration::from_millis(200);
    let seen = notes(probe(steps).await.limited(own_time)).await;
    assert_eq!(seen, r#"{"notes":["warned: false","warned: true"]}"#);
}

#[tokio::test]
async fn nothing_is_granted() {
    let steps = r#"[{"config":"region"},{"secret":"key"},{"reveal":"key"},
        {"read_file":{"directory":"d","path":"f"}},{"write_file":{"directory":"d","path":"f","text":""}},
        {"list_files":{"directory":"d","path":""}},{"remove_file":{"directory":"d","path":"f"}},
        {"hold_secrets":{"name":"key","count":10}},{"hold_directories":{"name":"d","count":10}}]"#;
    let seen = notes(probe(steps).await).await;
    assert_eq!(seen.matches("granted").count(), 9, "{seen}");
}

#[tokio::test]
async fn an_instance_lives_for_one_call_or_for_one_run() {
    let script = r#"{"acts":{"Act1":["count"],"Act2":["count"],"Act3":["count"]}}"#;
    let fresh = TestRun::new("probe", "probe-chain", script).await.run().await;
    assert_eq!(fresh.output(), r#"{"notes":["count: 1","count: 1","count: 1"]}"#);

    for _ in 0..2 {
        let script = r#"{"acts":{"Act1":["count"],"Act2":["count"]}}"#;
        let shared = TestRun::new("probe", "probe-per-run", script).await.run().await;
        assert_eq!(shared.output(), r#"{"notes":["count: 1","count: 2"]}"#);
    }
}

#[tokio::test]
async fn a_receipt_says_what_a_junction_used() {
    let end = probe(r#"[{"spin_ms":20},{"allocate":1000000}]"#).await.run().await;
    let receipts: Vec<_> = end
        .trace
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::JunctionEnded { receipt, .. } => Some(receipt),
            _ => None,
        })
        .collect();
    let [receipt] = receipts[..] else { panic!("one junction: {receipts:?}") };
    assert!(receipt.own_time >= Duration::from_millis(20), "{receipt:?}");
    assert!(receipt.wall_time >= receipt.own_time, "{receipt:?}");
    assert!(receipt.fuel > 1_000 && receipt.memory_bytes > 1_000_000, "{receipt:?}");
}

/// While guests loop, honest ones go on: every loop ends at its own limit, whoever shares the threads with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loops_do_not_hold_up_honest_guests() {
    let own_time = |limits: &mut Limits| limits.own_time = Duration::from_millis(300);
    let mut loops = Vec::new();
    for _ in 0..4 {
        loops.push(tokio::spawn(probe("[\"loop_forever\"]").await.limited(own_time).run()));
    }
    let mut honest = 0;
    while loops.iter().any(|task| !task.is_finished()) {
        TestRun::new("hello", "hello", r#"{"name":"Ada"}"#).await.run().await.output();
        honest += 1;
    }
    assert!(honest > 0);
    for task in loops {
        let end = task.await.unwrap();
        assert_eq!(end.failure().name, "OwnTimeLimit");
    }
}

#[tokio::test]
async fn a_junction_asks_what_it_declares_and_its_answers_are_recorded() {
    let steps =
        r#"[{"ask":{"keys":["Lane","Ready"],"text":"a"}},{"ask":{"keys":["Lane"],"text":"b"}}]"#;
    let script = r#"{"Lane":[{"choice":"Right","confidence":0.6},{"choice":"Left"}],"Ready":{"probability":0.25}}"#;
    let end = probe(steps).await.answered(script).run().await;

    assert!(end.output().contains("Right"), "{}", end.output());
    let asked: Vec<_> = end
        .trace
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Decided(it) => Some((it.node, it.question.key, it.occurrence, it.refused)),
            _ => None,
        })
        .collect();
    let row = |key: &str, occurrence| ("Act#0".to_owned(), key.to_owned(), occurrence, None);
    assert_eq!(asked, [row("Lane", 0), row("Ready", 0), row("Lane", 1)]);
}
