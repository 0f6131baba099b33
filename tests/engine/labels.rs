//! What decisions should have been is said by people, and told in lists.

use std::sync::Arc;

use serde_json::json;
use trax::model::ids::DecisionId;
use trax::operations::decisions::{self, Listed};
use trax::store::labels::Filter;

use crate::engine::replay::{LEFT, RIGHT};
use crate::engine::tickets::trax;
use crate::engine::world::World;

/// A decision of each of two trains, the second one's by somebody else.
async fn decided(w: &World) {
    w.deploy("probe").await;
    let mut host = w.answering("one", LEFT).await;
    w.manifest("nightly", "probe-replays", "{}", 0).await;
    host.pass().await;
    let mut other = w.host("two").await;
    w.manifest("daily", "probe-decides", "{}", 0).await;
    other.pass().await;
    assert_eq!(
        w.decided().await,
        ["1 Lane answers", "2 Level probe-decider", "2 Ready probe-decider"]
    );
}

async fn listed(w: &World, filter: Filter<'_>, limit: u32) -> Vec<i64> {
    let listed = decisions::list(&w.store.db, w.store.tenant, filter, limit).await.unwrap();
    listed.iter().map(|it| it.decision.id.0).collect()
}

async fn label(w: &World, id: i64, correct: &str, by: &str) -> (bool, String) {
    let labelled =
        decisions::label(&w.store.db, w.store.tenant, DecisionId(id), correct, by).await.unwrap();
    (labelled.is_done, labelled.message)
}

async fn detail(w: &World, id: i64) -> Listed {
    decisions::detail(&w.store.db, w.store.tenant, DecisionId(id)).await.unwrap()
}

async fn decisions_are_listed_in_pages_and_by_what_they_are(w: Arc<World>) {
    decided(&w).await;
    let all = Filter::default();
    assert_eq!(listed(&w, all, 10).await, [3, 2, 1]);
    assert_eq!(listed(&w, all, 2).await, [3, 2]);
    let before = |id| Filter { before: Some(DecisionId(id)), ..all };
    assert_eq!(listed(&w, before(2), 2).await, [1]);
    assert_eq!(listed(&w, Filter { question: Some("Ready"), ..all }, 9).await, [3]);
    assert_eq!(listed(&w, Filter { train: Some("probe-replays"), ..all }, 9).await, [1]);
    assert_eq!(listed(&w, Filter { decider: Some("probe-decider"), ..all }, 9).await, [3, 2]);
    assert!(listed(&w, Filter { decider: Some("nobody"), ..all }, 9).await.is_empty());

    label(&w, 2, "Middle", "ada").await;
    assert_eq!(listed(&w, Filter { is_unlabelled: true, ..all }, 9).await, [3, 1]);
}

async fn a_label_is_one_of_the_answers_and_can_be_corrected(w: Arc<World>) {
    decided(&w).await;
    assert_eq!(label(&w, 1, "Right", "ada").await, (true, "Decision 1 labelled.".to_owned()));
    let first = detail(&w, 1).await.decision;
    assert_eq!(
        (first.correct.as_deref(), first.labelled_by.as_deref()),
        (Some("Right"), Some("ada"))
    );
    assert_eq!(first.answer.as_deref(), Some(r#"{"choice":"Left","confidence":0.9}"#));

    assert!(label(&w, 1, "Left", " eve ").await.0);
    let second = detail(&w, 1).await.decision;
    assert_eq!(
        (second.correct.as_deref(), second.labelled_by.as_deref()),
        (Some("Left"), Some("eve"))
    );
    // A level by its number, and yes in its own word.
    assert!(label(&w, 2, "2", "ada").await.0);
    assert!(label(&w, 3, "True", "ada").await.0);
    let kept = "SELECT correct FROM decision_label ORDER BY decision_id";
    assert_eq!(w.store.rows(kept).await, ["Left", "High", "yes"]);

    let none = "The label is none of the question's answers: it can be Left, Right, Nowhere.";
    assert_eq!(label(&w, 1, "Up", "ada").await, (false, none.to_owned()));
    assert_eq!(label(&w, 9, "yes", "ada").await, (false, "Decision 9 not found.".to_owned()));
    let nobody = "Say who labels the decision, in 1 to 100 characters.";
    assert_eq!(label(&w, 3, "no", "  ").await, (false, nobody.to_owned()));
    assert_eq!(w.store.rows(kept).await, ["Left", "High", "yes"]);
}

async fn labels_change_no_run_and_go_with_it(w: Arc<World>) {
    decided(&w).await;
    let rows = "SELECT answer, decider, kind FROM decision ORDER BY id";
    let before = w.store.rows(rows).await;
    label(&w, 1, "Right", "ada").await;
    assert_eq!(w.store.rows(rows).await, before);

    let mut host = w.answering("right", RIGHT).await;
    w.advance(3_600).await;
    host.pass().await;
    // What is decided next has no label of its own.
    assert!(detail(&w, 4).await.decision.correct.is_none());
    w.store.sql("DELETE FROM decision WHERE id = 1").await.unwrap();
    assert!(w.store.rows("SELECT correct FROM decision_label").await.is_empty());
}

/// The same on the command line, where what is asked to change is in the audit.
async fn the_command_line_lists_shows_and_labels(w: Arc<World>) {
    decided(&w).await;
    let listed = trax(&w, &["--question", "Ready", "--json"]).data();
    let ready = &listed["decisions"][0];
    assert_eq!((&ready["id"], &ready["train"]), (&json!(3), &json!("probe-decides")));
    assert_eq!(ready["answer"], json!({ "probability": 1 }));
    assert!(listed["decisions"].as_array().unwrap().len() == 1 && ready.get("state").is_none());

    let wrong = trax(&w, &["label", "3", "perhaps", "--by", "ada"]);
    let expected = "The label is none of the question's answers: it can be yes or no.";
    assert_eq!(wrong.refused(4), expected);
    assert_eq!(trax(&w, &["label", "9", "no", "--by", "ada"]).refused(3), "Decision 9 not found.");
    let done = trax(&w, &["label", "3", "no", "--by", "ada"]);
    assert_eq!(done.out, "Decision 3 labelled.\n", "{}", done.err);
    let audited = "SELECT who, action, target, outcome FROM audit ORDER BY id";
    let rows =
        ["ada labelDecision 3 refused", "ada labelDecision 9 refused", "ada labelDecision 3 done"];
    assert_eq!(w.store.rows(audited).await, rows);

    let shown = trax(&w, &["show", "3"]);
    assert!(shown.out.contains("Is it ready?"), "{}", shown.out);
    assert!(shown.out.contains("no, says ada"), "{}", shown.out);
    assert_eq!(trax(&w, &["show", "9"]).refused(3), "decision 9 not found");
    let csv = trax(&w, &["list", "--unlabelled", "--limit", "1", "--csv"]).out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("id,run,train,question,"), "{csv}");
    assert!(
        lines[1]
            .starts_with(r#"2,2,probe-decides,Level,0,score,"{""confidence"":1,""score"":1}","#),
        "{csv}"
    );
    let page = trax(&w, &["list", "--after", "2", "--json"]).data();
    assert_eq!(page["decisions"].as_array().unwrap().len(), 1);
}

/// What a train declares sensitive is told to nobody: neither answers, nor what shadows said, nor labels.
async fn sensitive_decisions_are_withheld(w: Arc<World>) {
    decided(&w).await;
    label(&w, 1, "Right", "ada").await;
    let shadows =
        r#"[{"decider":"judge","answer":{"choice":"Right"},"agreed":false,"error":null}]"#;
    w.store.sql(&format!("UPDATE decision SET shadows = '{shadows}' WHERE id = 1")).await.unwrap();
    assert!(trax(&w, &["show", "1", "--json"]).out.contains("0.9"));
    let declare = r#"UPDATE train SET declaration = REPLACE(declaration, '"sensitive":false', '"sensitive":true')"#;
    w.store.sql(declare).await.unwrap();

    let shown = trax(&w, &["show", "1", "--json"]).data();
    let redacted = json!({ "_redacted": true });
    assert_eq!([&shown["answer"], &shown["correct"], &shown["routes"]], [&redacted; 3]);
    assert_eq!(shown["shadows"][0]["answer"], redacted);
    for arguments in [&["show", "1"][..], &["list"], &["list", "--csv"]] {
        let said = trax(&w, arguments).out;
        assert!(said.contains("(withheld)"), "{said}");
        assert!(!said.contains("0.9"), "{said}");
        assert!(!said.contains(r#""choice""#), "{said}");
    }
}

engine_cases!(
    sensitive_decisions_are_withheld,
    the_command_line_lists_shows_and_labels,
    decisions_are_listed_in_pages_and_by_what_they_are,
    a_label_is_one_of_the_answers_and_can_be_corrected,
    labels_change_no_run_and_go_with_it,
);
