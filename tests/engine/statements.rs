//! Query plans of the very statements that the engine executes: each reads the index that is meant for it.
//!
//! sqlx tells its log what it executes; here that is kept while an engine lives through what happens most often, and
//! then each text is explained on a database with some thousand rows of history.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use trax::model::ids::ManifestId;
use trax::operations::triggers::{self, Trigger};
use trax::store::queue::NewEntry;
use trax::store::{Tx, hosts, runs};

use crate::engine::world::World;
use crate::store::plans::HISTORY;

static STATEMENTS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static IS_KEEPING: AtomicBool = AtomicBool::new(false);

/// Keeps the texts of statements.
struct Keeper;

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Text);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text;

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        let text = value.trim();
        let is_query = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"];
        let is_query = is_query.iter().any(|word| text.starts_with(word));
        if field.name() == "db.statement" && is_query && IS_KEEPING.load(Ordering::Relaxed) {
            STATEMENTS.lock().unwrap().insert(text.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// Part of a statement, and the index that it must read.
const EXPECTED: [(&str, &str); 14] = [
    ("w.scheduled_at IS NULL ORDER BY w.group_priority DESC", "ix_work_queue_dispatchable"),
    ("w.scheduled_at <= $4 ORDER BY w.group_priority DESC", "ix_work_queue_scheduled_at"),
    ("SET waits_for_subject = FALSE", "ix_work_queue_subject_queued"),
    ("SET waits_for_subject = FALSE", "ix_metadata_unique_active_subject"),
    ("WHERE m.next_due_at IS NOT NULL", "ix_manifest_next_due_at"),
    ("AS failed_count", "ix_metadata_manifest_failed"),
    ("AS failed_count", "ix_metadata_active_capacity"),
    ("AS failed_count", "ix_work_queue_unique_queued_manifest"),
    ("ORDER BY start_time DESC, id DESC LIMIT 1", "ix_metadata_manifest_state"),
    ("AS is_replay_taken", "ix_work_queue_unique_queued_replay"),
    ("AS is_replay_taken", "ix_work_queue_external_id"),
    ("FROM parked_run p JOIN metadata r", "ix_parked_run_wake_at"),
    ("NOT EXISTS (SELECT 1 FROM host h", "ix_metadata_active"),
    ("INSERT INTO metadata (", "ix_train_unique_active"),
];

/// Tables that grow with every run, and what statements call them.
const LARGE: [&str; 13] = [
    "work_queue",
    "metadata",
    "metadata_payload",
    "dead_letter",
    "decision",
    "checkpoint",
    "junction_run",
    "log",
    "w",
    "r",
    "d",
    "q",
    "x",
];

/// What happens most often: runs that succeed, fail, are retried, ask, stop at checkpoints, wait for their subject, are
/// triggered, handed over and lost.
async fn live(w: &Arc<World>, failing: ManifestId) {
    let mut host = w.host("one").await;
    let tenant = w.store.tenant;
    for subject_key in [None, Some("s"), Some("s"), Some("s")] {
        let new = NewEntry { input: Some("{}"), subject_key, ..NewEntry::new(tenant, "probe") };
        w.store.enqueue(&new).await;
    }
    for _ in 0..6 {
        host.pass().await;
        w.advance(3_600).await;
    }
    for _ in 0..2 {
        triggers::manifest(&w.store.db, tenant, "works", Trigger::default()).await.unwrap();
    }
    // An entry that is in the way of another.
    let new = NewEntry { manifest: Some(failing), ..NewEntry::new(tenant, "probe") };
    for _ in 0..2 {
        w.store.write(async |tx| trax::store::queue::enqueue(tx, &new).await).await;
    }
    host.pass().await;
    w.store.write(async |tx| hosts::bury(tx, Duration::from_secs(30)).await).await;
    w.store.read(async |tx| runs::lost(tx, 10).await).await;
    host.pass().await;
}

/// S1: every statement of the engine reads the indexes that are meant for it, and none reads a large table whole.
async fn statements_read_their_indexes(w: Arc<World>) {
    // Another test of this process may have set it already.
    tracing::subscriber::set_global_default(Keeper).ok();
    w.deploy("probe").await;
    for n in 0..20 {
        w.store.manifest(&format!("m{n}")).await;
    }
    w.manifest("works", "probe", "{}", 3).await;
    let fails = r#"{"acts":{"Act":[{"fail":{"name":"Lost"}}]}}"#;
    let failing = w.manifest("fails", "probe", fails, 1).await;
    IS_KEEPING.store(true, Ordering::Relaxed);
    live(&w, failing).await;
    IS_KEEPING.store(false, Ordering::Relaxed);
    let statements = std::mem::take(&mut *STATEMENTS.lock().unwrap());
    assert!(statements.len() > 30, "{statements:#?}");

    // Undone at the end: this history breaks what must hold.
    let mut tx = w.store.db.begin().await.unwrap();
    let now = if tx.is_postgres() { "now()" } else { "2" };
    for rows in HISTORY {
        tx.execute_text(&rows.replace("{now}", now)).await.unwrap();
    }
    tx.execute_text("ANALYZE").await.unwrap();
    if tx.is_postgres() {
        // Tables of a test are so small that reading them whole would be right.
        let settings = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
            SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
            SET LOCAL plan_cache_mode = force_generic_plan";
        tx.execute_text(settings).await.unwrap();
    }
    let partial = partial_indexes(&mut tx).await;
    let mut wrong = Vec::new();
    let mut unseen: BTreeSet<_> = EXPECTED.iter().collect();
    for (index, statement) in statements.iter().enumerate() {
        let Some(plan) = plan(&mut tx, index, statement).await else {
            unseen.retain(|(part, _)| !squeezed(statement).contains(part));
            continue;
        };
        let text = plan.join(" \n") + " ";
        if let Some(line) = whole(&plan, &partial) {
            wrong.push(format!("{statement}\nreads it whole: {line}\n{text}"));
        }
        for expected in EXPECTED.iter().filter(|(part, _)| squeezed(statement).contains(part)) {
            unseen.remove(expected);
            if !text.contains(&format!("{} ", expected.1)) {
                wrong.push(format!("{statement}\ndoes not read {}:\n{text}", expected.1));
            }
        }
    }
    tx.rollback().await.unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(unseen.is_empty(), "nothing executes {unseen:?}: {statements:#?}");
}

/// With one space for every run of white space.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn partial_indexes(tx: &mut Tx<'_>) -> BTreeSet<String> {
    let sql = if tx.is_postgres() {
        "SELECT CAST(c.relname AS TEXT) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
            WHERE x.indpred IS NOT NULL"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '%WHERE%'"
    };
    tx.text_rows(sql).await.unwrap().into_iter().flatten().flatten().collect()
}

/// How a statement is run whatever its parameters are. `None`: Postgres cannot tell the types of its parameters, which
/// the store states when it executes it; such a statement is looked at on SQLite.
async fn plan(tx: &mut Tx<'_>, index: usize, statement: &str) -> Option<Vec<String>> {
    if !tx.is_postgres() {
        return Some(tx.plan(statement).await.unwrap());
    }
    let count = (1..40).rev().find(|n| statement.contains(&format!("${n}"))).unwrap_or(0);
    let arguments = vec!["NULL"; count].join(", ");
    let arguments = if count == 0 { arguments } else { format!("({arguments})") };
    let mut part = tx.savepoint().await.unwrap();
    let prepared = part.execute_text(&format!("PREPARE s{index} AS {statement}")).await;
    let plan = match prepared {
        Ok(_) => Some(part.plan(&format!("EXECUTE s{index}{arguments}")).await.unwrap()),
        Err(_) => None,
    };
    part.rollback().await.unwrap();
    plan
}

/// The first line of a plan that reads a large table whole: neither a range of an index nor one of few rows.
fn whole(plan: &[String], partial: &BTreeSet<String>) -> Option<String> {
    let is_large = |name: &str| LARGE.contains(&name);
    for (index, line) in plan.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |word: &str| words.iter().position(|it| *it == word).map(|at| words[at + 1]);
        let is_whole = if let Some(table) = after("SCAN") {
            let is_partial = after("INDEX").is_some_and(|index| partial.contains(index));
            is_large(table) && !is_partial
        } else if line.contains("Seq Scan on") {
            after("on").is_some_and(is_large)
        } else if line.contains("Index Scan using") || line.contains("Index Only Scan using") {
            let has_range = plan.get(index + 1).is_some_and(|next| next.contains("Index Cond"));
            let is_partial = after("using").is_some_and(|index| partial.contains(index));
            after("on").is_some_and(is_large) && !has_range && !is_partial
        } else {
            false
        };
        if is_whole {
            return Some(line.clone());
        }
    }
    None
}

engine_cases!(statements_read_their_indexes);
