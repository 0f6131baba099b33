//! A host that crashes after any of its commits: whatever it left, the retry does what is left to do, and no more.

use std::collections::BTreeSet;
use std::sync::Arc;

use trax::chain::Chain;
use trax::engine::config::EngineConfig;
use trax::model::ids::RunId;
use trax::operations::runs;
use trax::store::Faults;

use crate::engine::resumes::{ANSWERS, host};
use crate::engine::world::World;

/// What a run that nothing interrupts does.
struct Whole {
    commits: u64,
    output: Vec<String>,
    ran: BTreeSet<String>,
    decided: usize,
}

/// What a manifest's runs did: their ids, the nodes that each ran and the checkpoints it stored, and how often the
/// deciders were asked.
struct Did {
    ids: Vec<i64>,
    ran: Vec<BTreeSet<String>>,
    stored: Vec<Vec<String>>,
    output: Vec<String>,
    asked: usize,
}

async fn did(w: &World, manifest: &str) -> Did {
    let of = |columns: &str, join: &str| {
        format!(
            "SELECT {columns} FROM metadata r JOIN manifest m ON m.id = r.manifest_id {join}
             WHERE m.external_id = '{manifest}' ORDER BY r.id"
        )
    };
    let ids = w.store.rows(&of("CAST(r.id AS TEXT)", "")).await;
    let ids: Vec<i64> = ids.iter().map(|id| id.parse().unwrap()).collect();
    let (mut ran, mut stored) = (Vec::new(), Vec::new());
    for id in &ids {
        let steps = format!(
            "SELECT node_id FROM junction_run WHERE metadata_id = {id} AND kind = 'junction'"
        );
        ran.push(w.store.rows(&steps).await.into_iter().collect());
        let kept = format!("SELECT node_id FROM checkpoint WHERE metadata_id = {id} ORDER BY id");
        stored.push(w.store.rows(&kept).await);
    }
    let output =
        of("p.output", "JOIN metadata_payload p ON p.metadata_id = r.id AND p.output IS NOT NULL");
    let asked = of("d.question_key", "JOIN decision d ON d.metadata_id = r.id AND NOT d.replayed");
    Did {
        output: w.store.rows(&output).await,
        asked: w.store.rows(&asked).await.len(),
        ids,
        ran,
        stored,
    }
}

/// Runs it once without a fault, and counts.
async fn whole(w: &World, train: &str) -> Whole {
    let faults = Faults::none();
    let set = |config: &mut EngineConfig| config.answers = Some(ANSWERS.to_owned());
    let mut one = w.host_on("whole", w.faulty(&faults).await, set).await;
    w.manifest("whole", train, "{}", 3).await;
    one.manage().await;
    let before = faults.commits();
    one.dispatch().await;
    one.workers.idle().await;
    switch_off(w, "whole").await;
    let done = did(w, "whole").await;
    Whole {
        commits: faults.commits() - before,
        output: done.output,
        ran: done.ran[0].clone(),
        decided: done.asked,
    }
}

async fn switch_off(w: &World, manifest: &str) {
    let off = format!(
        "UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL WHERE external_id = '{manifest}'"
    );
    w.store.sql(&off).await.unwrap();
}

/// No step before a checkpoint that the first run stored ran again; in a branch, none of that branch.
fn nothing_runs_twice(chain: &Chain, stored: &[String], again: &BTreeSet<String>, what: &str) {
    let place = |id: &str| chain.find(id).unwrap().index();
    for checkpoint in stored {
        let (at, branch) = (place(checkpoint), &chain.nodes()[place(checkpoint)].branch);
        let twice = again.iter().filter(|id| {
            let node = &chain.nodes()[place(id)];
            place(id) < at && (branch.is_none() || node.branch == *branch)
        });
        assert_eq!(twice.collect::<Vec<_>>(), [] as [&String; 0], "{what}: before {checkpoint}");
    }
}

/// A train whose host crashes after each of its commits in turn.
async fn crashed_everywhere(w: &World, train: &str) {
    w.deploy("probe").await;
    let whole = whole(w, train).await;
    assert!(whole.commits > 3, "{train} has {} commits", whole.commits);
    let mut second = host(w, "second", ANSWERS).await;
    let (mut resumed, mut replayed) = (0, 0);
    for commits in 1..=whole.commits {
        let (what, manifest) = (format!("{train} after {commits}"), format!("m{commits}"));
        w.manifest(&manifest, train, "{}", 3).await;
        assert!(second.beat().await);
        second.manage().await;
        // One more enters the host. The commit it crashes at is durable, and not answered.
        let faults = Faults::crash_after(commits + 1);
        let set = |config: &mut EngineConfig| config.answers = Some(ANSWERS.to_owned());
        let mut first = w.host_on(&format!("h{commits}"), w.faulty(&faults).await, set).await;
        first.try_dispatch().await.ok();
        first.workers.idle().await;

        // The host is lost, what it ran is retried; what it never claimed is run.
        for seconds in [31, 0, 300, 0] {
            w.advance(seconds).await;
            assert!(second.beat().await);
            second.reap().await;
            second.manage().await;
            second.dispatch().await;
            second.workers.idle().await;
        }
        switch_off(w, &manifest).await;

        let did = did(w, &manifest).await;
        assert!((1..=2).contains(&did.ids.len()), "{what}: runs {:?}", did.ids);
        assert_eq!(did.output, whole.output, "{what}");
        let all: BTreeSet<String> = did.ran.iter().flatten().cloned().collect();
        assert_eq!(all, whole.ran, "{what}");
        assert_eq!(did.asked, whole.decided, "{what}");
        if let [before, again] = &did.ran[..] {
            let last = RunId(did.ids[1]);
            let detail = runs::detail(&w.store.db, w.store.tenant, last).await.unwrap();
            let stored = &did.stored[0];
            assert_eq!(detail.run.resume_from.is_some(), !stored.is_empty(), "{what}");
            nothing_runs_twice(&detail.picture.chain.unwrap(), stored, again, &what);
            resumed += usize::from(!stored.is_empty());
            replayed += usize::from(!before.is_empty() && detail.run.replay_decisions_of.is_some());
        }
    }
    assert!(resumed > 0 && replayed > 0, "{train}: {resumed} resumed, {replayed} replayed");
}

/// R90, K1, D2: a routed run with a checkpoint.
async fn a_routed_run_survives_a_crash_anywhere(w: Arc<World>) {
    crashed_everywhere(&w, "probe-routes").await;
}

/// K18, C20, D2: branches with checkpoints of their own.
async fn a_run_with_branches_survives_a_crash_anywhere(w: Arc<World>) {
    crashed_everywhere(&w, "probe-resumes").await;
}

engine_cases!(
    a_routed_run_survives_a_crash_anywhere,
    a_run_with_branches_survives_a_crash_anywhere,
);
