//! Manifests that their owner no longer states, and what goes with them.

use std::collections::BTreeSet;

use trax::operations::prune::prune;
use trax::store::manifests;
use trax::store::orphans::{Deleted, delete, of_owner};

use super::world::{World, group_named, statement};

async fn owned(w: &World, name: &str, owner: Option<&'static str>) -> trax::model::ids::ManifestId {
    w.write(async |tx| {
        let group = trax::store::groups::upsert(tx, &group_named(w.tenant, name)).await?;
        let stated =
            trax::store::manifests::Statement { owner, ..statement(w.tenant, name, group) };
        manifests::upsert(tx, &stated).await
    })
    .await
}

async fn names(w: &World) -> Vec<String> {
    w.rows("SELECT external_id FROM manifest ORDER BY id").await
}

/// W24: what its owner does not declare goes, with its runs, entries, dead letters and empty group; all else stays.
async fn only_the_owners_undeclared_manifests_are_deleted(w: World) {
    for (name, owner) in [
        ("declared", Some("app")),
        ("gone", Some("app")),
        ("another's", Some("other")),
        ("nobody's", None),
    ] {
        owned(&w, name, owner).await;
    }
    let gone = w.read(async |tx| of_owner(tx, w.tenant, "app").await).await[1].0;
    let host = w.host("one").await;
    w.entry(Some(gone)).await;
    let run = w.claim(&host, 1).await.remove(0).claim();
    w.write(async |tx| trax::store::runs::complete(tx, run, "{}").await).await;
    let letter = w
        .write(async |tx| trax::store::dead_letters::add(tx, w.tenant, gone, 1, "reason").await)
        .await;
    w.sql(&format!("UPDATE dead_letter SET retry_metadata_id = {} WHERE id = {letter}", run.run))
        .await
        .unwrap();
    w.entry(Some(gone)).await;
    let child = w.run(&host).await;
    w.sql(&format!("UPDATE metadata SET parent_id = {} WHERE id = {}", run.run, child.run))
        .await
        .unwrap();

    let nothing = prune(&w.db, w.tenant, "app", &BTreeSet::new()).await.unwrap();
    assert!(nothing.deleted.is_empty(), "who declares nothing removes nothing");
    let pruned = prune(&w.db, w.tenant, "app", &BTreeSet::from(["declared"])).await.unwrap();

    assert_eq!(pruned.deleted, ["gone"]);
    assert_eq!(names(&w).await, ["declared", "another's", "nobody's"]);
    for table in ["work_queue", "dead_letter"] {
        assert!(
            w.rows(&format!("SELECT CAST(id AS TEXT) FROM {table}")).await.is_empty(),
            "{table}"
        );
    }
    let runs = w.rows("SELECT CAST(id AS TEXT), CAST(parent_id AS TEXT) FROM metadata").await;
    assert_eq!(runs, [format!("{} -", child.run)]);
    assert!(!w.rows("SELECT name FROM manifest_group").await.contains(&"gone".to_owned()));
}

/// W24: a manifest with a run in progress stays as it is until that has ended; many runs go a page at a time.
async fn a_busy_manifest_stays(w: World) {
    let manifest = owned(&w, "busy", Some("app")).await;
    owned(&w, "declared", Some("app")).await;
    let host = w.host("one").await;
    w.entry(Some(manifest)).await;
    let run = w.claim(&host, 1).await.remove(0).claim();

    let declared = BTreeSet::from(["declared"]);
    let pruned = prune(&w.db, w.tenant, "app", &declared).await.unwrap();
    assert_eq!((pruned.deleted.len(), pruned.busy), (0, vec!["busy".to_owned()]));
    w.write(async |tx| trax::store::runs::complete(tx, run, "{}").await).await;
    w.entry(Some(manifest)).await;
    let run = w.claim(&host, 1).await.remove(0).claim();
    w.write(async |tx| trax::store::runs::complete(tx, run, "{}").await).await;

    let first = w.write(async |tx| delete(tx, w.tenant, manifest, 1).await).await;
    assert_eq!((first, names(&w).await.len()), (Deleted::Partly, 2));
    let pruned = prune(&w.db, w.tenant, "app", &declared).await.unwrap();
    assert_eq!((pruned.deleted, pruned.busy.len()), (vec!["busy".to_owned()], 0));
    assert_eq!(names(&w).await, ["declared"]);
}

on_both!(only_the_owners_undeclared_manifests_are_deleted, a_busy_manifest_stays);
