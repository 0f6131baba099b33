//! How checkpoints are kept: when they are durable, what stands in them, and what runs again after them.

use std::sync::Arc;
use std::time::Duration;

use trax::chain::picture::{Line, picture};
use trax::model::ids::RunId;
use trax::operations::run_picture::Resumable;
use trax::operations::runs;
use trax::store::Faults;

use crate::engine::resumes::{ANSWERS, fails_in, host, ran, retried};
use crate::engine::world::World;

const STORED: &str = "SELECT node_id FROM checkpoint ORDER BY node_id";

/// K4: a checkpoint has a commit of its own, and what comes after it begins when that is durable, not before.
async fn a_checkpoint_is_durable_before_the_next_step(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let set = |config: &mut trax::engine::config::EngineConfig| {
        config.step_delay = Duration::from_hours(1);
        config.answers = Some(ANSWERS.to_owned());
    };
    let mut one = w.host_on("one", w.faulty(&faults).await, set).await;
    let input = r#"{"acts":{"Act":[{"note":"after"},"loop_until_cancelled",{"fail":{}}]}}"#;
    w.manifest("nightly", "probe-routes", input, 0).await;
    one.manage().await;
    // The claim and the decision come first.
    faults.go_away_after(faults.commits() + 2);
    one.dispatch().await;
    faults.refused(2).await;
    assert!(w.store.rows(STORED).await.is_empty());
    let began = "SELECT name FROM junction_run WHERE name = 'Act'";
    assert!(w.store.rows(began).await.is_empty());

    faults.set_away(false);
    while w.store.rows(STORED).await != ["Checkpoint<Routed>#0"] {
        tokio::task::yield_now().await;
    }
    assert_eq!(w.states().await, "in_progress");
    assert!(
        w.store
            .rows("SELECT output FROM metadata_payload WHERE output IS NOT NULL")
            .await
            .is_empty()
    );
    one.cancel_all(&w).await;
    assert_eq!(w.store.rows(STORED).await, ["Checkpoint<Routed>#0"]);
}

/// K7c: every checkpoint of a run carries the hash of the one chain it was deployed with, also those of branches that
/// write at the same time.
async fn checkpoints_carry_the_hash_of_their_chain(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    w.manifest("nightly", "probe-resumes", &fails_in("Act", 1), 5).await;
    one.pass().await;
    assert_eq!(w.states().await, "failed");

    let branches = "SELECT c.branch_path FROM checkpoint c WHERE c.branch_path IS NOT NULL ORDER BY c.branch_path";
    assert_eq!(w.store.rows(branches).await, ["Parallel#0/left"]);
    let hashes = "SELECT DISTINCT c.chain_hash FROM checkpoint c";
    let deployed = "SELECT DISTINCT chain_hash FROM train WHERE name = 'probe-resumes'";
    let hashes = w.store.rows(hashes).await;
    assert_eq!(hashes.len(), 1);
    assert_eq!(hashes, w.store.rows(deployed).await);
}

/// K10: what comes after the point runs again on every resume, what comes before it does not.
async fn steps_after_the_point_run_again_on_every_resume(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    w.manifest("nightly", "probe-routes", &fails_in("Act", 3), 5).await;
    one.pass().await;
    for _ in 0..3 {
        retried(&w, &mut one).await;
    }

    assert_eq!(w.states().await, "failed failed failed completed");
    assert_eq!(
        ran(&w).await,
        ["1 Act#0", "1 Switch<Lane>#0/Left/GoLeft#0", "2 Act#0", "3 Act#0", "4 Act#0"]
    );
}

/// How the steps of a run stand, and what there is to resume.
async fn pictured(w: &World, run: i64) -> (Vec<String>, Resumable) {
    let detail = runs::detail(&w.store.db, w.store.tenant, RunId(run)).await.unwrap();
    let chain = detail.picture.chain.unwrap();
    let line = |line: &Line<'_>| match line {
        Line::Node { node, state, is_stored, .. } => {
            let stored = if *is_stored { " stored" } else { "" };
            Some(format!("{} {}{stored}", node.name, state.as_str()))
        }
        Line::Track { .. } | Line::Withheld { .. } => None,
    };
    let lines = picture(&chain, &detail.picture.known).iter().filter_map(line).collect();
    (lines, detail.picture.resume)
}

/// What ran, what did not, where a checkpoint is and where a resume would start, or why it cannot.
async fn a_run_is_drawn_on_its_chain(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    w.manifest("nightly", "probe-routes", &fails_in("Act", 1), 5).await;
    one.pass().await;
    let checkpoint = "Checkpoint<Routed>#0".to_owned();
    let (lines, resume) = pictured(&w, 1).await;
    assert_eq!(resume, Resumable::After(checkpoint));
    for line in [
        "Decide<ChoiceDecision<Lane>> COMPLETED",
        "Switch<Lane> COMPLETED",
        "GoLeft COMPLETED",
        "GoRight SKIPPED",
        "Checkpoint<Routed> COMPLETED stored",
        "Act FAILED",
        "Resolve NOT_REACHED",
    ] {
        assert!(lines.iter().any(|it| it == line), "{line}: {lines:#?}");
    }

    w.store.sql("UPDATE checkpoint SET chain_hash = 'another'").await.unwrap();
    let (_, Resumable::Refused(why)) = pictured(&w, 1).await else { panic!("it may resume") };
    assert!(why.contains("chain"), "{why}");
    let hash = "UPDATE checkpoint SET chain_hash = (SELECT chain_hash FROM train WHERE name = 'probe-routes')";
    w.store.sql(hash).await.unwrap();

    retried(&w, &mut one).await;
    let (lines, resume) = pictured(&w, 2).await;
    assert_eq!(resume, Resumable::NotNeeded);
    for line in ["Decide<ChoiceDecision<Lane>> RESTORED", "Act COMPLETED", "Resolve COMPLETED"] {
        assert!(lines.iter().any(|it| it == line), "{line}: {lines:#?}");
    }
}

engine_cases!(
    a_run_is_drawn_on_its_chain,
    a_checkpoint_is_durable_before_the_next_step,
    checkpoints_carry_the_hash_of_their_chain,
    steps_after_the_point_run_again_on_every_resume,
);
