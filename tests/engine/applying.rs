//! Stating manifests: parents and dependents, groups that wait for each other, and what is stated again.

use std::sync::Arc;

use trax::operations::error::OperationError;
use trax::operations::{apply, manifest_file, next_runs};

use crate::engine::world::{World, at};

impl World {
    /// States what a manifest file says, all of it or nothing.
    async fn apply(&self, text: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.toml");
        std::fs::write(&path, text).unwrap();
        let file = manifest_file::read(&path).unwrap();
        let mut tx = self.store.db.begin().await.unwrap();
        match apply::apply(&mut tx, self.store.tenant, &file).await {
            Ok(_) => {
                tx.commit().await.unwrap();
                Ok(())
            }
            Err(OperationError::Stated(text)) => {
                Err(text.replace(&format!("{}", path.display()), "m.toml"))
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Each manifest and the one it depends on.
    async fn parents(&self) -> Vec<String> {
        let sql = "SELECT c.external_id, p.external_id FROM manifest c
            LEFT JOIN manifest p ON p.id = c.depends_on_manifest_id ORDER BY c.external_id";
        self.store.rows(sql).await
    }
}

/// R72, R73: whether retries replay is written where it is stated, and else kept; a new manifest's do.
async fn replay_on_retry_is_written_where_it_is_stated(w: Arc<World>) {
    w.deploy("probe").await;
    let stored = async || {
        let sql =
            "SELECT CASE WHEN replay_decisions_on_retry THEN 'on' ELSE 'off' END FROM manifest";
        w.store.rows(sql).await.remove(0)
    };
    let plain = probe("a", "every = \"1m\"");
    let on = probe("a", "every = \"1m\"\nreplay_decisions_on_retry = true");
    let off = probe("a", "every = \"1m\"\nreplay_decisions_on_retry = false");
    w.apply(&plain).await.unwrap();
    assert_eq!(stored().await, "on");
    w.store.sql("UPDATE manifest SET replay_decisions_on_retry = FALSE").await.unwrap();
    for (file, expected) in
        [(&plain, "off"), (&on, "on"), (&plain, "on"), (&off, "off"), (&plain, "off")]
    {
        w.apply(file).await.unwrap();
        assert_eq!(stored().await, expected, "{file}");
    }
}

/// A manifest of the train `probe` in words.
fn probe(id: &str, more: &str) -> String {
    format!("[[manifest]]\nid = \"{id}\"\ntrain = \"probe\"\n{more}\n")
}

/// M32: a dependent names a parent that is stated in its file, wherever, or before it; another one is refused.
async fn a_parent_is_stated_with_its_dependents_or_before(w: Arc<World>) {
    w.deploy("probe").await;
    let file = probe("a", "after = \"b\"") + &probe("b", "every = \"1m\"");
    w.apply(&file).await.unwrap();
    w.apply(&probe("c", "after = \"a\"")).await.unwrap();
    assert_eq!(w.parents().await, ["a b", "b -", "c a"]);

    let refused = w.apply(&(probe("d", "every = \"1m\"") + &probe("e", "after = \"x\""))).await;
    assert_eq!(
        refused.unwrap_err(),
        "m.toml:8: manifest 'e': after: Parent manifest with ExternalId 'x' not found. Ensure the parent manifest is \
         scheduled before its dependents."
    );
    assert_eq!(w.parents().await.len(), 3);
}

/// M30: groups that wait for each other are refused, over all files, and nothing of the file is kept.
async fn groups_that_wait_for_each_other_are_refused(w: Arc<World>) {
    w.deploy("probe").await;
    let file = probe("a1", "every = \"1m\"\ngroup = \"a\"")
        + &probe("b1", "after = \"a1\"\ngroup = \"b\"")
        + &probe("a2", "after = \"a1\"\ngroup = \"a\"");
    w.apply(&file).await.unwrap();

    let refused = w.apply(&probe("a3", "after = \"b1\"\ngroup = \"a\"")).await.unwrap_err();
    assert_eq!(
        refused,
        "Circular dependency detected among manifest groups: [a, b]. Manifest groups must form a directed acyclic graph \
         (DAG)."
    );
    let circle =
        probe("x", "after = \"y\"\ngroup = \"g\"") + &probe("y", "after = \"x\"\ngroup = \"g\"");
    let refused = w.apply(&circle).await.unwrap_err();
    assert!(refused.starts_with("m.toml:4: manifest 'x': after: waits for itself"), "{refused}");
    assert_eq!(w.parents().await, ["a1 -", "a2 a1", "b1 a1"]);
}

/// M14, M27: a one-off after a delay counts from when it was last stated, until it has run.
async fn a_delay_counts_from_the_last_statement(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let file = probe("once", "once = \"10m\"");
    let due = "SELECT CAST(COUNT(*) AS TEXT) FROM manifest WHERE scheduled_at = next_due_at";
    w.apply(&file).await.unwrap();
    w.advance(300).await;
    w.apply(&file).await.unwrap();
    assert_eq!(w.store.rows(due).await, ["1"]);
    w.advance(599).await;
    host.pass().await;
    assert_eq!(w.states().await, "");
    w.advance(1).await;
    host.pass().await;
    assert_eq!(w.states().await, "completed");

    w.apply(&file).await.unwrap();
    w.advance(3_600).await;
    host.pass().await;
    assert_eq!(w.states().await, "completed");
}

/// M13, M18: what comes next is told in the manifest's zone, without what it leaves out.
async fn the_next_occurrences_are_told(w: Arc<World>) {
    w.deploy("probe").await;
    // The first of January 2026 is a Thursday.
    let more = "cron = \"0 7 * * *\"\ntime_zone = \"Europe/Berlin\"\nexclude = [{ days = [\"fri\", \"sun\"] }]";
    w.apply(&probe("daily", more)).await.unwrap();

    let next = next_runs::next(&w.store.db, w.store.tenant, "daily", 3).await.unwrap();

    assert_eq!(next.occurrences[0], at(6 * 3_600));
    let shown: Vec<String> = next.occurrences.iter().map(|at| next.zone.shown(*at)).collect();
    // Friday's is made up for when the day is over.
    assert_eq!(
        shown,
        ["2026-01-01T07:00:00+01:00", "2026-01-03T00:00:00+01:00", "2026-01-03T07:00:00+01:00"]
    );
    assert_eq!(next.note, None);
}

engine_cases!(
    replay_on_retry_is_written_where_it_is_stated,
    a_parent_is_stated_with_its_dependents_or_before,
    groups_that_wait_for_each_other_are_refused,
    a_delay_counts_from_the_last_statement,
    the_next_occurrences_are_told,
);
