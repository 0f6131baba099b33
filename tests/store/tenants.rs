//! Tenants: what they may use, and that nothing of one is seen or changed on behalf of another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;

use trax::decide::report::Costs;
use trax::engine::due::settle;
use trax::model::access::Role;
use trax::model::ids::{
    DeadLetterId, DecisionId, EntryId, GroupId, ManifestId, RunId, TenantId, VersionId,
};
use trax::model::timestamp::Timestamp;
use trax::operations::dead_letters::Scope;
use trax::operations::decisions::Reported;
use trax::operations::enqueue::Asked;
use trax::operations::patches::{GroupPatch, ManifestPatch};
use trax::operations::triggers::{self, Trigger};
use trax::operations::{self, error::OperationError};
use trax::store::manifests::Setting;
use trax::store::queue::When;
use trax::store::resolve::Which;
use trax::store::runs::RunFilter;
use trax::store::tenants::TenantStatement;
use trax::store::{
    StoreError, audit, checkpoints, components, dead_letters, decisions, due, groups,
    junction_runs, labels, lines, logs, manifests, orphans, queue, resolve, runs, statistics,
    tenants, tokens,
};

use super::world::World;

const UNCHANGED: TenantStatement = TenantStatement {
    weight: None,
    max_active_jobs: Setting::Keep,
    max_queued_jobs: Setting::Keep,
};

async fn a_tenant_has_a_weight_and_limits(w: World) {
    let acme = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let read = async || w.read(async |tx| tenants::detail(tx, acme).await).await;
    let shown = |it: &tenants::Tenant| (it.weight, it.max_active_jobs, it.max_queued_jobs);
    assert_eq!(shown(&read().await), (1, None, None));

    let stated = TenantStatement {
        weight: Some(7),
        max_active_jobs: Setting::Set(0),
        max_queued_jobs: Setting::Set(9),
    };
    w.write(async |tx| tenants::set(tx, acme, stated).await).await;
    w.write(async |tx| tenants::set(tx, acme, UNCHANGED).await).await;
    assert_eq!(shown(&read().await), (7, Some(0), Some(9)));
    let cleared = TenantStatement { max_active_jobs: Setting::Clear, ..UNCHANGED };
    w.write(async |tx| tenants::set(tx, acme, cleared).await).await;
    assert_eq!(shown(&read().await), (7, None, Some(9)));

    for wrong in [
        TenantStatement { weight: Some(0), ..UNCHANGED },
        TenantStatement { max_active_jobs: Setting::Set(-1), ..UNCHANGED },
        TenantStatement { max_queued_jobs: Setting::Set(-1), ..UNCHANGED },
    ] {
        assert!(w.try_write(async |tx| tenants::set(tx, acme, wrong).await).await.is_err());
    }
    let nobody = w.try_write(async |tx| tenants::set(tx, TenantId(77), UNCHANGED).await).await;
    assert_eq!(nobody.unwrap_err().to_string(), "tenant 77 not found");
}

async fn a_tenants_queue_is_as_long_as_it_may_be(w: World) {
    let host = w.host("one").await;
    let stated = TenantStatement { max_queued_jobs: Setting::Set(2), ..UNCHANGED };
    w.write(async |tx| tenants::set(tx, w.tenant, stated).await).await;
    let later = queue::NewEntry {
        when: queue::When::After(Duration::from_mins(1)),
        ..queue::NewEntry::new(w.tenant, "train")
    };
    w.enqueue(&later).await;
    w.entry(None).await;

    let refused = w.try_write(async |tx| queue::enqueue(tx, &later).await).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the tenant has 2 queued jobs, which is its limit, so nothing was queued; wait, or raise the limit with \
         `trax tenants set`"
    );
    w.claim(&host, 1).await;
    w.entry(None).await;
    let raised = TenantStatement { max_queued_jobs: Setting::Clear, ..UNCHANGED };
    w.write(async |tx| tenants::set(tx, w.tenant, raised).await).await;
    w.entry(None).await;
}

/// Two tenants with the same names of everything.
async fn names_are_unique_within_a_tenant_only(w: World) {
    let acme = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let id = queue::new_id().unwrap();
    for tenant in [w.tenant, acme] {
        w.declare(tenant, &["train", "other"]).await;
        w.write(async |tx| {
            let group = groups::upsert(tx, &super::world::group_named(tenant, "group")).await?;
            manifests::upsert(tx, &super::world::statement(tenant, "nightly", group)).await
        })
        .await;
        let new = queue::NewEntry {
            external_id: Some(&id),
            subject_key: Some("subject"),
            ..queue::NewEntry::new(tenant, "train")
        };
        w.enqueue(&new).await;
    }
    let twice = "SELECT COUNT(*) FROM manifest UNION ALL SELECT COUNT(*) FROM manifest_group
        UNION ALL SELECT COUNT(*) FROM work_queue";
    let twice = twice.replace("COUNT(*)", "CAST(COUNT(*) AS TEXT)");
    assert_eq!(w.rows(&twice).await, ["2", "2", "2"]);
}

/// One of everything of the tenant `default`, by id.
struct Things {
    version: VersionId,
    group: GroupId,
    manifest: ManifestId,
    entry: EntryId,
    staged: EntryId,
    run: RunId,
    dead_letter: DeadLetterId,
    content_hash: String,
    decision: DecisionId,
}

async fn things(w: &World) -> Things {
    w.advance(Duration::ZERO).await;
    w.declare(w.tenant, &["train", "second"]).await;
    let host = w.host("one").await;
    let manifest = w.manifest("nightly").await;
    let running = w.entry(Some(manifest)).await;
    let run = w.claim(&host, 1).await.remove(0);
    assert_eq!(run.entry, running);
    let entry = w.entry(Some(manifest)).await;
    let new = queue::NewEntry { is_confirmed: false, ..queue::NewEntry::new(w.tenant, "train") };
    let staged = w.enqueue(&new).await;
    let dead_letter =
        w.write(async |tx| dead_letters::add(tx, w.tenant, manifest, 4, "why").await).await;
    let step = super::records::step(0);
    w.write(async |tx| junction_runs::write(tx, run.claim(), &[step]).await).await;
    let decided = super::records::decision("Refund");
    let decision = w.write(async |tx| decisions::record(tx, run.claim(), &decided).await).await;
    let record = audit::NewRecord {
        tenant: w.tenant,
        who: "ci",
        origin: "here",
        action: "triggerManifest",
        target: "nightly",
        outcome: "done",
        message: "queued",
    };
    w.write(async |tx| {
        tokens::add(tx, w.tenant, "ci", Role::Viewer, &"0".repeat(64), None).await?;
        audit::add(tx, &record).await
    })
    .await;
    let version = components_of(w).await;
    let stored = w.read(async |tx| manifests::detail(tx, w.tenant, manifest).await).await;
    Things {
        version: version.id,
        content_hash: version.content_hash,
        group: stored.manifest_group_id,
        manifest,
        entry,
        staged,
        run: run.run,
        dead_letter,
        decision,
    }
}

async fn components_of(w: &World) -> components::Version {
    w.read(async |tx| components::versions(tx, w.tenant, "world").await).await.remove(0)
}

/// How nothing looks.
const NOTHING: [&str; 10] = [
    "[]",
    "{}",
    "0",
    "false",
    "None",
    "()",
    "Requeued { resolved: 0, folded: 0, skipped: 0, ask_afresh: 0 }",
    "Pruned { deleted: [], busy: [] }",
    "Load { queue_depth: 0, in_progress: 0, failed_lately: 0, dead_letters: 0 }",
    "Health { status: \"Healthy\", description: \"no dead letter awaits intervention, and few runs fail\", load: Load \
     { queue_depth: 0, in_progress: 0, failed_lately: 0, dead_letters: 0 } }",
];

/// What a function gave to a tenant that has nothing: it must be nothing.
fn nothing<T: Debug>(name: &str, given: Result<T, StoreError>) {
    let shown = match given {
        Err(StoreError::NotFound { .. }) => return,
        Err(error) => error.to_string(),
        Ok(value) => format!("{value:?}"),
    };
    let is_nothing = NOTHING.contains(&shown.as_str());
    let is_refused = shown.starts_with("Outcome { is_done: false, ")
        || shown.starts_with("Outcome { is_done: true, id: None, count: Some(0), ");
    assert!(is_nothing || is_refused, "{name} gave {shown}");
}

fn not_found<T: Debug>(name: &str, given: Result<T, OperationError>) {
    match given {
        Err(OperationError::NotFound(_)) => {}
        Err(OperationError::Store(error)) => nothing(name, Err::<(), _>(error)),
        Err(other) => panic!("{name}: {other}"),
        Ok(value) => nothing(name, Ok(value)),
    }
}

/// Calls functions of the store for a tenant that has nothing, with what another one has.
macro_rules! for_a_stranger {
    ($w:expr, $covered:ident: $($module:ident :: $function:ident ( $($argument:expr),* );)*) => {$(
        let given = $w.try_write(async |tx| $module::$function(tx, $($argument),*).await).await;
        let name = concat!(stringify!($module), "::", stringify!($function));
        nothing(name, given);
        $covered.insert(name);
    )*};
}

/// What the store says of one tenant's things: all their columns.
async fn everything(w: &World) -> Vec<String> {
    let mut all = Vec::new();
    for table in [
        "component_version",
        "train",
        "manifest_group",
        "manifest",
        "work_queue",
        "metadata",
        "dead_letter",
    ] {
        let sql = if w.db.is_postgres() {
            format!(
                "SELECT CAST(t AS TEXT) FROM {table} t WHERE tenant_id = {} ORDER BY id",
                w.tenant
            )
        } else {
            sqlite_rows(w, table).await
        };
        all.extend(w.rows(&sql).await);
    }
    assert!(all.len() > 8, "{all:?}");
    all
}

async fn sqlite_rows(w: &World, table: &str) -> String {
    let columns =
        w.rows(&format!("SELECT name FROM pragma_table_info('{table}')")).await.join(", ");
    format!("SELECT json_array({columns}) FROM {table} WHERE tenant_id = {} ORDER BY id", w.tenant)
}

/// Every function that takes a tenant gives a stranger nothing, and changes nothing of anybody else.
async fn a_stranger_sees_and_changes_nothing(w: World) {
    let it = things(&w).await;
    let acme = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let before = everything(&w).await;
    let mut covered = BTreeSet::new();
    for_a_stranger!(w, covered:
        components::activate(acme, it.version);
        components::roll_back(acme, "world");
        components::versions(acme, "world");
        components::wasm(acme, &it.content_hash);
        components::active_train(acme, "train");
        components::train_of_version(acme, it.version, "train");
        components::active_trains(acme, "", 10);
        groups::list(acme);
        statistics::load(acme, Timestamp::MIN);
        manifests::of_external_id(acme, "nightly");
        manifests::named_by(acme, Some("nightly"));
        manifests::of_group(acme, it.group);
        manifests::detail(acme, it.manifest);
        manifests::locked(acme, it.manifest);
        manifests::list(acme, ManifestId(0), 10);
        due::group_dependencies(acme);
        due::of_group(acme, it.group, ManifestId(0), 10);
        manifests::set_enabled(acme, it.manifest, false);
        manifests::set_replay_decisions_on_retry(acme, it.manifest, false);
        queue::confirm(acme, it.staged);
        queue::cancel(acme, it.entry);
        queue::detail(acme, it.entry);
        queue::list(acme, None, None, 10);
        queue::depth(acme, 10);
        runs::request_cancel(acme, it.run);
        runs::detail(acme, it.run);
        runs::payload(acme, it.run);
        lines::resumed(acme, it.run);
        lines::state(acme, it.run, "Checkpoint<State>#0");
        runs::list(acme, RunFilter::default(), 10);
        decisions::of_run(acme, it.run, DecisionId(0), 10);
        decisions::line(acme, it.run);
        labels::list(acme, labels::Filter::default(), 10);
        labels::detail(acme, it.decision);
        labels::set(acme, it.decision, "yes", "eve");
        checkpoints::nodes_of_run(acme, it.run);
        junction_runs::of_run(acme, it.run);
        logs::of_run(acme, it.run, 0, 10);
        dead_letters::detail(acme, it.dead_letter);
        dead_letters::list(acme, None, None, 10);
        dead_letters::count_awaiting(acme);
        dead_letters::resolve_as_retried(acme, it.dead_letter, it.entry);
        dead_letters::acknowledge(acme, it.dead_letter, "seen");
        dead_letters::list_of_manifest(acme, it.manifest, None, None, 10);
        resolve::awaiting_manifests(acme, ManifestId(0), 10);
        resolve::preview(acme, Which::Of(&[it.manifest]));
        resolve::count(acme, Which::With(&[it.dead_letter]));
        resolve::hold(acme, Which::Of(&[it.manifest]));
        resolve::requeue(acme, Which::Of(&[it.manifest]), &BTreeMap::new());
        resolve::acknowledge(acme, Which::With(&[it.dead_letter]), None);
        resolve::acknowledge_page(acme, DeadLetterId(0), DeadLetterId(i64::MAX), None, 10);
        resolve::cancel_entries(acme, &[it.entry]);
        resolve::newest(acme);
        resolve::free(acme, BTreeSet::from([it.manifest]));
        orphans::of_owner(acme, "app");
        orphans::delete(acme, it.manifest, 10);
        audit::list(acme, None, 10);
        tokens::list(acme, None, 10);
        tokens::revoke(acme, "ci");
    );
    settles_nothing(&w, acme, it.manifest).await;
    assert_eq!(everything(&w).await, before);
    assert_eq!(uncovered("host/store", &covered), UNLIKE_OTHERS_OF_THE_STORE);
}

async fn settles_nothing(w: &World, stranger: TenantId, manifest: ManifestId) {
    let hour = Duration::from_hours(1);
    let settled = w.db.write(async |tx| settle(tx, stranger, manifest, hour).await).await;
    assert!(settled.is_err(), "{settled:?}");
}

/// Functions of the store that take a tenant and that a stranger cannot be kept from.
const UNLIKE_OTHERS_OF_THE_STORE: [&str; 5] = [
    // Takes a manifest that its caller has read with the tenant.
    "dead_letters::add",
    // Of the tenant itself.
    "tenants::detail",
    "tenants::name_of",
    "tenants::set",
    // Makes something of the tenant's own.
    "tokens::add",
];

/// Calls operations for a tenant that has nothing, with what another one has.
macro_rules! asked_by_a_stranger {
    ($w:expr, $covered:ident: $($module:ident :: $function:ident ( $($argument:expr),* );)*) => {$(
        let given = operations::$module::$function(&$w.db, $($argument),*).await;
        let name = concat!(stringify!($module), "::", stringify!($function));
        not_found(name, given.map_err(OperationError::from));
        $covered.insert(name);
    )*};
}

/// A report on everything.
const REPORTED: Reported<'_> = Reported {
    question: None,
    train: None,
    decider: None,
    last: 10,
    costs: Costs { wrong: 1.0, handed_on: 1.0 },
};

/// The same of what operators do.
async fn an_operator_of_another_tenant_sees_and_changes_nothing(w: World) {
    let it = things(&w).await;
    let acme = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let before = everything(&w).await;
    let mut covered = BTreeSet::new();
    asked_by_a_stranger!(w, covered:
        dead_letters::list(acme, &operations::dead_letters::Filter::default(), 10);
        dead_letters::detail(acme, it.dead_letter);
        dead_letters::requeue(acme, it.dead_letter, false);
        dead_letters::requeue_batch(acme, &[it.dead_letter], false);
        dead_letters::requeue_all(acme, Scope::Manifest(it.manifest), false, |_| ControlFlow::Continue(()));
        dead_letters::preview_all(acme, Scope::All);
        dead_letters::preview_batch(acme, &[it.dead_letter]);
        dead_letters::count(acme, Scope::Manifest(it.manifest));
        dead_letters::count_batch(acme, &[it.dead_letter]);
        dead_letters::acknowledge(acme, it.dead_letter, None);
        dead_letters::acknowledge_batch(acme, &[it.dead_letter], None);
        dead_letters::acknowledge_all(acme, Scope::Manifest(it.manifest), None);
        decisions::list(acme, labels::Filter::default(), 10);
        decisions::detail(acme, it.decision);
        decisions::label(acme, it.decision, "yes", "eve");
        decisions::report(acme, REPORTED);
        enqueue::enqueue(acme, &Asked { train: "train", input: None, priority: 0, when: When::Now });
        enqueue::enqueue_all(acme, &Asked { train: "train", input: None, priority: 0, when: When::Now }, &["{}"]);
        groups::list(acme, None, 10);
        groups::cancel(acme, &["nightly".to_owned()]);
        patches::manifest(acme, "nightly", &ManifestPatch::default());
        patches::group(acme, "nightly", GroupPatch::default());
        health::health(acme);
        groups::set_enabled(acme, &["nightly".to_owned()], false);
        groups::trigger(acme, &["nightly".to_owned()]);
        manifests::id_of(acme, "nightly");
        manifests::list(acme, None, 10);
        manifests::detail(acme, "nightly");
        manifests::set_enabled(acme, &["nightly".to_owned()], false);
        manifests::set_replay_decisions_on_retry(acme, &["nightly".to_owned()], false);
        manifests::cancel(acme, "nightly");
        next_runs::next(acme, "nightly", 10);
        prune::prune(acme, "app", &BTreeSet::from(["declared"]));
        queue::list(acme, None, None, 10);
        queue::cancel(acme, it.entry);
        queue::cancel_batch(acme, &[it.entry]);
        requeue::execution(acme, it.run, false);
        resume::execution(acme, it.run, None);
        runs::cancel(acme, it.run);
        runs::cancel_batch(acme, &[it.run]);
        deploy::roll_back(acme, "world");
        runs::list(acme, &operations::runs::Filter::default(), 10);
        runs::detail(acme, it.run);
        tokens::list(acme, None, 10);
        tokens::revoke(acme, "ci");
        trains::list(acme);
        triggers::manifest(acme, "nightly", Trigger::default());
        triggers::group(acme, it.group);
    );
    let named = operations::runs::Filter {
        manifest: Some("nightly".to_owned()),
        ..operations::runs::Filter::default()
    };
    nothing("runs::list", operations::runs::list(&w.db, acme, &named, 10).await);

    assert_eq!(everything(&w).await, before);
    let given = operations::sim::of_database(&w.db, acme).await.map(|(plans, _)| plans);
    not_found("sim::of_database", given);
    covered.insert("sim::of_database");
    assert_eq!(uncovered("host/operations", &covered), UNLIKE_OTHER_OPERATIONS);
    let triggered = triggers::manifest(&w.db, w.tenant, "nightly", Trigger::default()).await;
    assert_eq!(triggered.unwrap().work_queue_id, it.entry);
}

/// Operations that make something of the tenant's own, or are parts of others.
const UNLIKE_OTHER_OPERATIONS: [&str; 4] =
    ["apply::apply", "deploy::deploy", "tokens::create", "trains::names"];

/// Those functions of a room that take a tenant and were not called for a stranger.
fn uncovered(room: &str, covered: &BTreeSet<&str>) -> Vec<String> {
    taking_a_tenant(room).into_iter().filter(|name| !covered.contains(&**name)).collect()
}

/// The public functions of a room that take a tenant, as `module::function`; a folder is a module.
fn taking_a_tenant(room: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in fs::read_dir(room).unwrap() {
        let path = file.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap();
        let texts = match fs::read_dir(&path) {
            Ok(files) => files.map(|file| fs::read_to_string(file.unwrap().path())).collect(),
            Err(_) => vec![fs::read_to_string(&path)],
        };
        let text: Vec<String> = texts.into_iter().map(Result::unwrap).collect();
        for function in text.join("\n").split("\npub async fn ").skip(1) {
            let (name, rest) = function.split_once(['(', '<']).unwrap();
            let parameters = rest.split_once(") ->").map_or(rest, |(parameters, _)| parameters);
            if parameters.contains("tenant: TenantId") {
                found.insert(format!("{module}::{name}"));
            }
        }
    }
    found
}

on_both!(
    a_tenant_has_a_weight_and_limits,
    a_tenants_queue_is_as_long_as_it_may_be,
    names_are_unique_within_a_tenant_only,
    a_stranger_sees_and_changes_nothing,
    an_operator_of_another_tenant_sees_and_changes_nothing,
);
