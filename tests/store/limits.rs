//! What holds entries back: limits that no two hosts overrun together, and subjects.

use std::time::Duration;

use trax::model::ids::{EntryId, TenantId};
use trax::store::capacity::{Capacity, CapacityLimits};
use trax::store::claim::{ClaimedRun, claim, claim_within};
use trax::store::groups::{self, GroupStatement};
use trax::store::manifests::{Setting, set_enabled};
use trax::store::queue::{NewEntry, When, cancel, detail};
use trax::store::runs::{self, complete, request_cancel};
use trax::store::tenants::{self, TenantStatement};

use super::world::{World, group_named, host, request};

const ACTIVE: &str =
    "SELECT CAST(COUNT(*) AS TEXT) FROM metadata WHERE train_state = 'in_progress'";

/// Three hosts claim at once, again and again, until there is nothing more for any of them.
async fn everybody_claims(w: &World, max_active_jobs: Option<usize>) {
    let pull = |name: &'static str| {
        let (db, tenant) = (w.db.clone(), w.tenant);
        tokio::spawn(async move {
            let host = host(name);
            loop {
                let mut tx = db.begin().await.unwrap();
                let limits = CapacityLimits { max_active_jobs, ..CapacityLimits::default() };
                let mut capacity = Capacity::count(&mut tx, limits).await.unwrap();
                let request = request(tenant, &host, 2);
                let claimed = claim_within(&mut tx, &request, &mut capacity).await.unwrap();
                tx.commit().await.unwrap();
                if claimed.runs.is_empty() {
                    return;
                }
            }
        })
    };
    let (a, b, c) = tokio::join!(pull("a"), pull("b"), pull("c"));
    for pulled in [a, b, c] {
        pulled.unwrap();
    }
}

/// J7: the limit of all hosts together is hard: hosts that claim at once do not overrun it.
async fn hosts_together_keep_the_limit_of_all(w: World) {
    for _ in 0..30 {
        w.entry(None).await;
    }
    everybody_claims(&w, Some(7)).await;
    assert_eq!(w.rows(ACTIVE).await, ["7"]);
}

/// J7: a group's limit is hard.
async fn hosts_together_keep_the_limit_of_a_group(w: World) {
    let stated =
        GroupStatement { max_active_jobs: Setting::Set(5), ..group_named(w.tenant, "group") };
    w.write(async |tx| groups::upsert(tx, &stated).await).await;
    for n in 0..20 {
        let manifest = w.manifest_in("group", &format!("m{n}")).await;
        w.entry(Some(manifest)).await;
    }
    everybody_claims(&w, None).await;
    assert_eq!(w.rows(ACTIVE).await, ["5"]);
}

/// J7: a tenant's limit is hard, and holds nobody else back.
async fn hosts_together_keep_the_limit_of_a_tenant(w: World) {
    let acme = w.write(async |tx| tenants::add(tx, "acme").await).await;
    w.declare(acme, &["train"]).await;
    let stated = TenantStatement {
        weight: None,
        max_active_jobs: Setting::Set(3),
        max_queued_jobs: Setting::Keep,
    };
    w.write(async |tx| tenants::set(tx, w.tenant, stated).await).await;
    for _ in 0..20 {
        w.entry(None).await;
    }
    w.enqueue(&NewEntry::new(acme, "train")).await;
    everybody_claims(&w, None).await;
    assert_eq!(w.rows(ACTIVE).await, ["3"]);

    let other = w.write(async |tx| claim(tx, &request(acme, &host("d"), 2)).await).await;
    assert_eq!(other.runs.len(), 1);
}

/// J7, J8: a subject has one run however many hosts look for one.
async fn hosts_together_keep_a_subject_to_one_run(w: World) {
    let new = NewEntry { subject_key: Some("s"), ..NewEntry::new(w.tenant, "train") };
    for _ in 0..10 {
        w.enqueue(&new).await;
    }
    everybody_claims(&w, None).await;
    assert_eq!(w.rows(ACTIVE).await, ["1"]);
}

/// J4: a pass takes so many of one group, counted after what is held; what has no group is never left out.
async fn a_pass_takes_so_many_of_one_group(w: World) {
    for n in 0..6 {
        let manifest = w.manifest_in("big", &format!("big{n}")).await;
        w.entry(Some(manifest)).await;
        if n < 2 {
            w.write(async |tx| set_enabled(tx, w.tenant, manifest, false).await).await;
        }
    }
    let small = w.manifest_in("small", "small").await;
    w.entry(Some(small)).await;
    for _ in 0..5 {
        w.entry(None).await;
    }
    let host = w.host("one").await;
    let pass = async |group_limit| {
        w.write(async |tx| {
            let limits = CapacityLimits { group_limit, ..CapacityLimits::default() };
            let mut capacity = Capacity::count(tx, limits).await?;
            claim_within(tx, &request(w.tenant, &host, 100), &mut capacity).await
        })
        .await
    };

    let first = pass(Some(3)).await.runs;
    let of_big = |run: &&ClaimedRun| run.manifest_id.is_some_and(|id| id != small);
    assert_eq!((first.len(), first.iter().filter(of_big).count()), (9, 3));
    assert_eq!(pass(None).await.runs.len(), 1);
}

/// J6: a run counts until it ends; those of excluded trains and parked ones fill no place.
async fn what_is_excluded_fills_no_place(w: World) {
    w.declare(w.tenant, &["train", "light"]).await;
    let host = w.host("one").await;
    for train in ["light", "light", "train", "train"] {
        w.enqueue(&NewEntry::new(w.tenant, train)).await;
    }
    let running = w.claim(&host, 4).await;
    let room = async |excluded: &[String]| {
        w.write(async |tx| {
            let limits = CapacityLimits { max_active_jobs: Some(5), group_limit: None, excluded };
            Ok(Capacity::count(tx, limits).await?.room(w.tenant))
        })
        .await
    };

    assert_eq!(room(&[]).await, 1);
    assert_eq!(room(&["light".to_owned()]).await, 3);
    assert_eq!(room(&["light".to_owned(), "train".to_owned()]).await, 5);
    w.write(async |tx| complete(tx, running[3].claim(), "{}").await).await;
    assert_eq!(room(&["light".to_owned()]).await, 4);
}

/// J3: queued, confirmed, due, with a free subject, not held by manifest or group: all of that, or it stays.
async fn what_may_not_go_yet_stays(w: World) {
    w.advance(Duration::ZERO).await;
    let host = w.host("one").await;
    let new = NewEntry::new(w.tenant, "train");
    let minute = Duration::from_mins(1);
    let withdrawn = w.enqueue(&new).await;
    w.write(async |tx| cancel(tx, w.tenant, withdrawn).await).await;
    w.enqueue(&NewEntry { is_confirmed: false, ..new.clone() }).await;
    w.enqueue(&NewEntry { is_confirmed: false, when: When::After(minute), ..new.clone() }).await;
    let later = w.enqueue(&NewEntry { when: When::After(minute), ..new.clone() }).await;
    let busy = NewEntry { subject_key: Some("busy"), ..new.clone() };
    let runs = w.enqueue(&busy).await;
    assert_eq!(w.claim(&host, 1).await[0].entry, runs);
    w.enqueue(&busy).await;
    let disabled = w.manifest("disabled").await;
    w.entry(Some(disabled)).await;
    w.write(async |tx| set_enabled(tx, w.tenant, disabled, false).await).await;
    let stated = GroupStatement { is_enabled: Some(false), ..group_named(w.tenant, "held") };
    w.write(async |tx| groups::upsert(tx, &stated).await).await;
    let held = w.manifest_in("held", "held").await;
    let held = NewEntry { manifest: Some(held), is_explicit_trigger: true, ..new.clone() };
    w.enqueue(&held).await;

    assert_eq!(w.claim(&host, 10).await.len(), 0);
    w.advance(minute).await;
    let due: Vec<EntryId> = w.claim(&host, 10).await.iter().map(|run| run.entry).collect();
    assert_eq!(due, [later]);
}

/// J18: any end of the run frees its subject; keys are compared as they are, across trains, within a tenant.
async fn a_subject_is_free_once_its_run_has_ended(w: World) {
    w.declare(w.tenant, &["train", "other"]).await;
    let acme = w.write(async |tx| tenants::add(tx, "acme").await).await;
    w.declare(acme, &["train"]).await;
    let host = w.host("one").await;
    let of = |train, key| NewEntry { subject_key: Some(key), ..NewEntry::new(w.tenant, train) };
    for new in [of("train", "a"), of("other", "a"), of("train", "A"), of("train", "a")] {
        w.enqueue(&new).await;
    }
    w.enqueue(&NewEntry { tenant: acme, ..of("train", "a") }).await;

    let first = w.claim(&host, 10).await;
    assert_eq!(first.len(), 2);
    let theirs = w.write(async |tx| claim(tx, &request(acme, &host, 10)).await).await;
    assert_eq!(theirs.runs.len(), 1);

    w.write(async |tx| runs::cancel(tx, first[0].claim()).await).await;
    let second = w.claim(&host, 10).await;
    assert_eq!((second.len(), second[0].train_name.as_str()), (1, "other"));
    let failure = trax::model::failure::Failure::transient("E", "e");
    w.write(async |tx| runs::fail(tx, second[0].claim(), None, &failure).await).await;
    assert_eq!(w.claim(&host, 10).await.len(), 1);
}

const WAITING: &str = "SELECT CAST(COUNT(*) AS TEXT) FROM work_queue WHERE status = 'queued'
    AND waits_for_subject";

/// J8, J18: what waits for its subject is looked at once, and comes back in the order of dispatch, one at a time.
async fn what_waits_for_its_subject_is_looked_at_once(w: World) {
    let host = w.host("one").await;
    let entry = async |subject_key, priority| {
        let new = NewEntry { subject_key, priority, ..NewEntry::new(w.tenant, "train") };
        w.enqueue(&new).await
    };
    let mut waiting = Vec::new();
    for _ in 0..250 {
        waiting.push(entry(Some("s"), 9).await);
    }
    let behind = entry(None, 0).await;

    let first = w.claim(&host, 3).await;
    let taken: Vec<EntryId> = first.iter().map(|run| run.entry).collect();
    assert_eq!(taken, [waiting[0], behind]);
    assert_eq!(w.rows(WAITING).await, ["249"]);

    let urgent = entry(Some("s"), 31).await;
    assert_eq!(w.claim(&host, 3).await.len(), 0);
    w.write(async |tx| cancel(tx, w.tenant, waiting[1]).await).await;
    let mut running = first.into_iter().next().unwrap();
    for expected in [urgent, waiting[2], waiting[3]] {
        w.write(async |tx| complete(tx, running.claim(), "{}").await).await;
        running = w.claim(&host, 3).await.remove(0);
        assert_eq!(running.entry, expected);
    }
    // Cancelled while it runs, and while nothing runs it: the next one comes all the same.
    w.write(async |tx| request_cancel(tx, w.tenant, running.run).await).await;
    w.write(async |tx| runs::cancel(tx, running.claim()).await).await;
    assert_eq!(w.claim(&host, 3).await[0].entry, waiting[4]);
    assert_eq!(w.rows(WAITING).await, ["245"]);
}

async fn a_claim_that_is_cut_short_says_so(w: World) {
    let tenant = TenantId(1);
    let host = w.host("one").await;
    let sql = "INSERT INTO work_queue (tenant_id, external_id, train_name, occurrence_id, subject_key, priority)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
        SELECT 1, CAST(10000000 + i AS TEXT) || '0123456789abcdef01234567', 'train', 'o', 's', 5 FROM n";
    w.sql(sql).await.unwrap();
    let behind = w.entry(None).await;
    let pass = async || w.write(async |tx| claim(tx, &request(tenant, &host, 4)).await).await;

    let first = pass().await;
    assert_eq!((first.runs.len(), first.has_more), (1, true));
    let second = pass().await;
    assert_eq!(second.runs.iter().map(|run| run.entry).collect::<Vec<_>>(), [behind]);
    assert!(!second.has_more);
    let stored = w.read(async |tx| detail(tx, tenant, behind).await).await;
    assert_eq!(stored.dispatch_attempts, 0);
}

on_both!(
    hosts_together_keep_the_limit_of_all,
    hosts_together_keep_the_limit_of_a_group,
    hosts_together_keep_the_limit_of_a_tenant,
    hosts_together_keep_a_subject_to_one_run,
    a_pass_takes_so_many_of_one_group,
    what_is_excluded_fills_no_place,
    what_may_not_go_yet_stays,
    a_subject_is_free_once_its_run_has_ended,
    what_waits_for_its_subject_is_looked_at_once,
    a_claim_that_is_cut_short_says_so,
);
