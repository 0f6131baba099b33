//! Claiming: in order, within limits, once.

use std::collections::BTreeSet;
use std::time::Duration;

use trax::model::failure::Failure;
use trax::model::ids::{ClaimToken, EntryId};
use trax::store::claim::{ClaimRequest, DropReason, claim, tenants_with_work};
use trax::store::components::{NewTrain, NewVersion, activate, add_version};
use trax::store::groups::{self, GroupStatement};
use trax::store::manifests::{Setting, set_enabled, set_replay_decisions_on_retry};
use trax::store::queue::{NewEntry, Triggered, trigger};
use trax::store::runs::{active, complete, fail};
use trax::store::{runs, tenants};

use super::world::{World, group_named, request};

async fn claimed(w: &World, limit: usize) -> Vec<EntryId> {
    let host = super::world::host("one");
    w.claim(&host, limit).await.into_iter().map(|run| run.entry).collect()
}

/// J5: groups by priority, then entries by priority, then the oldest first.
async fn entries_go_by_group_priority_then_their_own_then_age(w: World) {
    let low = w.manifest_in("low", "a").await;
    let high = w.manifest_in("high", "b").await;
    let entry_of = async |manifest, priority| {
        let new = NewEntry { manifest, priority, ..NewEntry::new(w.tenant, "train") };
        w.enqueue(&new).await
    };
    let plain = entry_of(None, 0).await;
    let urgent = entry_of(None, 9).await;
    let of_low = entry_of(Some(low), 31).await;
    let of_high = entry_of(Some(high), 0).await;
    let younger = entry_of(None, 9).await;
    // The group's priority reaches what is queued already.
    let stated = GroupStatement { priority: Some(5), ..group_named(w.tenant, "high") };
    w.write(async |tx| groups::upsert(tx, &stated).await).await;

    assert_eq!(claimed(&w, 2).await, [of_high, of_low]);
    assert_eq!(claimed(&w, 10).await, [urgent, younger, plain]);
}

/// J6: with a global limit of five, A (at most 3) and B (at most 3) with four entries each get three and two.
async fn groups_keep_their_limits_and_the_rest_is_for_others(w: World) {
    for (group, priority) in [("a", 20), ("b", 10)] {
        let stated = GroupStatement {
            max_active_jobs: Setting::Set(3),
            priority: Some(priority),
            ..group_named(w.tenant, group)
        };
        w.write(async |tx| groups::upsert(tx, &stated).await).await;
        for n in 0..4 {
            let manifest = w.manifest_in(group, &format!("{group}{n}")).await;
            w.entry(Some(manifest)).await;
        }
    }

    assert_eq!(claimed(&w, 5).await.len(), 5);
    let groups = "SELECT g.name, CAST(COUNT(*) AS TEXT) FROM metadata r JOIN manifest m ON m.id = r.manifest_id
        JOIN manifest_group g ON g.id = m.manifest_group_id GROUP BY g.name ORDER BY g.name";
    assert_eq!(w.rows(groups).await, ["a 3", "b 2"]);
    // A is full; the last place of B is all that is left.
    assert_eq!(claimed(&w, 5).await.len(), 1);
    let counts = w.read(async |tx| active(tx, &[]).await).await;
    assert_eq!(counts.iter().map(|(_, _, count)| *count).collect::<Vec<_>>(), [3, 3]);
}

async fn a_full_group_does_not_hide_what_waits_behind_it(w: World) {
    let stated = GroupStatement {
        max_active_jobs: Setting::Set(1),
        priority: Some(9),
        ..group_named(w.tenant, "full")
    };
    w.write(async |tx| groups::upsert(tx, &stated).await).await;
    // More than a round looks at.
    for n in 0..120 {
        let manifest = w.manifest_in("full", &format!("m{n}")).await;
        w.entry(Some(manifest)).await;
    }
    let behind = w.entry(None).await;

    let taken = claimed(&w, 5).await;

    assert_eq!(taken.len(), 2);
    assert_eq!(taken[1], behind);
}

/// J3, M33: what is disabled is held; a trigger runs in spite of its manifest, and nothing in spite of its group.
async fn what_is_disabled_is_held(w: World) {
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let entry = w.entry(Some(manifest)).await;
    w.write(async |tx| set_enabled(tx, w.tenant, manifest, false).await).await;
    assert!(w.claim(&host, 1).await.is_empty());

    let new = NewEntry::new(w.tenant, "train");
    let pulled = w.write(async |tx| trigger(tx, manifest, Duration::ZERO, false, &new).await).await;
    assert!(matches!(pulled, Triggered::Joined { .. }));
    let switch = async |is_enabled| {
        let stated =
            GroupStatement { is_enabled: Some(is_enabled), ..group_named(w.tenant, "nightly") };
        w.write(async |tx| groups::upsert(tx, &stated).await).await;
    };
    switch(false).await;
    assert!(w.claim(&host, 1).await.is_empty());
    switch(true).await;
    assert_eq!(claimed(&w, 1).await, [entry]);
}

/// J8, J18: a subject has one run at a time, and the next one once that has ended.
async fn a_subject_has_one_run_at_a_time(w: World) {
    let host = w.host("one").await;
    let new = NewEntry { subject_key: Some("customer 7"), ..NewEntry::new(w.tenant, "train") };
    let first = w.enqueue(&new).await;
    let second = w.enqueue(&new).await;
    let other = w.enqueue(&NewEntry { subject_key: Some("customer 8"), ..new.clone() }).await;

    let runs = w.claim(&host, 10).await;
    assert_eq!(runs.iter().map(|run| run.entry).collect::<Vec<_>>(), [first, other]);
    assert!(claimed(&w, 10).await.is_empty());
    let twice = w.sql("INSERT INTO metadata (tenant_id, external_id, name, start_time, occurrence_id, subject_key)
        SELECT tenant_id, external_id, name, start_time, occurrence_id, subject_key FROM metadata");
    assert!(twice.await.is_err());

    w.write(async |tx| complete(tx, runs[0].claim(), "{}").await).await;
    assert_eq!(claimed(&w, 10).await, [second]);
}

/// J8: many claim at once, and every entry becomes one run.
async fn hosts_that_claim_together_share_the_queue(w: World) {
    for _ in 0..40 {
        w.entry(None).await;
    }
    let pull = |name: &'static str| {
        let (db, tenant) = (w.db.clone(), w.tenant);
        tokio::spawn(async move {
            let host = super::world::host(name);
            let mut runs = Vec::new();
            loop {
                let mut tx = db.begin().await.unwrap();
                let more = claim(&mut tx, &request(tenant, &host, 3)).await.unwrap();
                tx.commit().await.unwrap();
                if more.runs.is_empty() {
                    return runs;
                }
                runs.extend(more.runs);
            }
        })
    };

    let (a, b, c) = tokio::join!(pull("a"), pull("b"), pull("c"));

    let runs = [a.unwrap(), b.unwrap(), c.unwrap()].concat();
    assert_eq!(runs.len(), 40);
    assert_eq!(runs.iter().map(|run| run.entry).collect::<BTreeSet<_>>().len(), 40);
    assert_eq!(w.rows("SELECT CAST(COUNT(*) AS TEXT) FROM metadata").await, ["40"]);
}

/// J9: the run carries what the entry says, the entry names its run, and so does the dead letter it retries.
async fn a_run_carries_what_its_entry_says(w: World) {
    let now = w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let dead_letter = w
        .write(async |tx| trax::store::dead_letters::add(tx, w.tenant, manifest, 4, "why").await)
        .await;
    let trains =
        [NewTrain { name: "sorts".into(), declaration: "{}".into(), chain_hash: "h".into() }];
    let new = NewVersion { tenant: w.tenant, component: "c", wasm: b"w", trains: &trains };
    let version = w
        .write(async |tx| {
            let version = add_version(tx, &new).await?.id;
            activate(tx, w.tenant, version).await?;
            Ok(version)
        })
        .await;
    let new = NewEntry {
        manifest: Some(manifest),
        input: Some("{\"a\":1}"),
        input_type: Some("Input"),
        scheduled_time: Some(now),
        occurrence_id: Some("o1"),
        dead_letter: Some(dead_letter),
        resume_at: Some("Pay#0"),
        ..NewEntry::new(w.tenant, "sorts")
    };
    let entry = w.enqueue(&new).await;

    let run = w.claim(&host, 1).await.remove(0);

    assert_eq!(
        (run.entry, run.claim_token, run.manifest_id),
        (entry, ClaimToken(1), Some(manifest))
    );
    assert_eq!(
        (run.input.as_deref(), run.input_type_name.as_deref()),
        (Some("{\"a\":1}"), Some("Input"))
    );
    assert_eq!((run.occurrence_id.as_str(), run.component_version_id), ("o1", Some(version)));
    let stored = w.read(async |tx| runs::detail(tx, w.tenant, run.run).await).await;
    assert_eq!((stored.scheduled_time, stored.resume_at.as_deref()), (Some(now), Some("Pay#0")));
    assert_eq!((stored.external_id, stored.host_name), (run.external_id, Some("one".to_owned())));
    let links = "SELECT w.status, CAST(w.metadata_id AS TEXT), CAST(d.retry_metadata_id AS TEXT)
        FROM work_queue w JOIN dead_letter d ON d.id = w.dead_letter_id";
    assert_eq!(w.rows(links).await, [format!("dispatched {0} {0}", run.run)]);
}

async fn runs_for_other_workers_are_pending(w: World) {
    let host = w.host("one").await;
    w.entry(None).await;
    let request = ClaimRequest { starts: false, ..request(w.tenant, &host, 5) };
    let claimed = w.write(async |tx| claim(tx, &request).await).await;

    let run = claimed.runs[0].claim();

    assert_eq!(run.token, ClaimToken(0));
    assert_eq!(w.rows("SELECT train_state, host_name FROM metadata").await, ["pending -"]);
    let early = w.try_write(async |tx| complete(tx, run, "{}").await).await;
    assert!(early.is_err());
}

/// R48, R77: a link is dropped at the claim when the answers were replayed before, or the manifest opted out since.
async fn a_link_that_may_no_longer_be_followed_is_dropped(w: World) {
    let host = w.host("one").await;
    let source = w.run(&host).await;
    w.write(async |tx| fail(tx, source, None, &Failure::transient("E", "e")).await).await;
    let linked =
        NewEntry { replay_decisions_of: Some(source.run), ..NewEntry::new(w.tenant, "train") };
    w.enqueue(&linked).await;
    let first = w.claim(&host, 1).await.remove(0);
    assert_eq!(first.replay_decisions_of, Some(source.run));

    let again = w.enqueue(&linked).await;
    let claimed = w.write(async |tx| claim(tx, &request(w.tenant, &host, 1)).await).await;
    assert_eq!(claimed.runs[0].replay_decisions_of, None);
    assert_eq!(
        (claimed.dropped[0].entry, claimed.dropped[0].reason),
        (again, DropReason::AlreadyReplayed)
    );

    // The first replay is abandoned: it leaves the answers unspent. Now the manifest's own opt-out is all.
    w.write(async |tx| runs::abandon_replay(tx, first.claim()).await).await;
    let manifest = w.manifest("nightly").await;
    w.write(async |tx| set_replay_decisions_on_retry(tx, w.tenant, manifest, false).await).await;
    w.enqueue(&NewEntry { manifest: Some(manifest), ..linked.clone() }).await;
    let claimed = w.write(async |tx| claim(tx, &request(w.tenant, &host, 1)).await).await;
    assert_eq!(claimed.dropped[0].reason, DropReason::OptedOut);

    w.enqueue(&linked).await;
    assert_eq!(w.claim(&host, 1).await[0].replay_decisions_of, Some(source.run));
}

async fn a_claim_takes_one_tenants_entries(w: World) {
    let host = w.host("one").await;
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    w.declare(other, &["train"]).await;
    let waiting = async || -> Vec<_> {
        let waiting = w.read(async |tx| tenants_with_work(tx).await).await;
        waiting.into_keys().collect()
    };
    assert_eq!(waiting().await, []);
    w.entry(None).await;
    let theirs = w.enqueue(&NewEntry::new(other, "train")).await;

    assert_eq!(waiting().await, [w.tenant, other]);
    let claimed = w.write(async |tx| claim(tx, &request(other, &host, 5)).await).await;

    assert_eq!(claimed.runs.iter().map(|run| run.entry).collect::<Vec<_>>(), [theirs]);
    assert_eq!(waiting().await, [w.tenant]);
}

on_both!(
    entries_go_by_group_priority_then_their_own_then_age,
    groups_keep_their_limits_and_the_rest_is_for_others,
    a_full_group_does_not_hide_what_waits_behind_it,
    what_is_disabled_is_held,
    a_subject_has_one_run_at_a_time,
    hosts_that_claim_together_share_the_queue,
    a_run_carries_what_its_entry_says,
    runs_for_other_workers_are_pending,
    a_link_that_may_no_longer_be_followed_is_dropped,
    a_claim_takes_one_tenants_entries,
);
