//! What must hold of a database at every moment between two transactions, whatever happened before.
//!
//! Every test of the engine, of the commands and of real processes ends by looking at this. [`broken`] names what does
//! not hold; the cases below break each invariant once, and see that it is named.

use std::time::Duration;

use trax::engine::due;
use trax::model::ids::{ManifestId, TenantId};
use trax::model::timestamp::Timestamp;
use trax::store::{Db, OpenOptions, Tx, manifests, open};

use crate::store::world::World;

/// Each names what must not be, and finds it: a query of one text.
///
/// Whatever is not at its end has something that moves it: a run its host, which is alive or given up by the reaper; a
/// parked run its time or a person; an entry the dispatcher; a manifest the index of what is due.
const NEVER: [(&str, &str); 16] = [
    (
        "a run in progress that nobody owns and that is not parked",
        "SELECT CAST(id AS TEXT) FROM metadata WHERE train_state = 'in_progress' AND parked_at IS NULL
         AND host_incarnation IS NULL",
    ),
    (
        "a pending run that no host holds",
        "SELECT CAST(id AS TEXT) FROM metadata WHERE train_state = 'pending' AND host_incarnation IS NULL",
    ),
    (
        "a parked run without what it needs, or the reverse",
        "SELECT CAST(r.id AS TEXT) FROM metadata r LEFT JOIN parked_run p ON p.metadata_id = r.id
         WHERE (r.parked_at IS NULL) <> (p.metadata_id IS NULL)",
    ),
    (
        "a parked run that nothing wakes",
        "SELECT CAST(metadata_id AS TEXT) FROM parked_run WHERE wake_at IS NULL AND reason <> 'person'",
    ),
    (
        "two queued entries of one manifest",
        "SELECT CAST(manifest_id AS TEXT) FROM work_queue WHERE status = 'queued' AND manifest_id IS NOT NULL
         GROUP BY manifest_id HAVING COUNT(*) > 1",
    ),
    (
        "a queued entry that has a run, or a tenant that is not there",
        "SELECT CAST(w.id AS TEXT) FROM work_queue w WHERE w.status = 'queued' AND (w.metadata_id IS NOT NULL
         OR NOT EXISTS (SELECT 1 FROM tenant t WHERE t.id = w.tenant_id))",
    ),
    (
        "a dispatched entry without a run of its own",
        "SELECT CAST(w.id AS TEXT) FROM work_queue w WHERE w.status = 'dispatched' AND (w.metadata_id IS NULL
         OR 1 < (SELECT COUNT(*) FROM work_queue x WHERE x.metadata_id = w.metadata_id))",
    ),
    (
        "an entry with two runs at once, or with one while it is queued",
        "SELECT CAST(w.id AS TEXT) FROM work_queue w WHERE (SELECT COUNT(*) FROM metadata r
            WHERE r.tenant_id = w.tenant_id AND r.external_id = w.external_id
            AND r.train_state IN ('pending', 'in_progress')) > CASE WHEN w.status = 'dispatched' THEN 1 ELSE 0 END",
    ),
    (
        "two active runs of one manifest that nobody asked for",
        "SELECT CAST(r.manifest_id AS TEXT) FROM metadata r JOIN work_queue w ON w.metadata_id = r.id
         WHERE r.train_state IN ('pending', 'in_progress') AND r.manifest_id IS NOT NULL
         AND NOT w.is_explicit_trigger GROUP BY r.manifest_id HAVING COUNT(*) > 1",
    ),
    (
        "two runs of one subject at once",
        "SELECT CAST(a.id AS TEXT) FROM metadata a JOIN metadata b ON b.tenant_id = a.tenant_id
         AND b.subject_key = a.subject_key AND b.id > a.id
         WHERE (a.end_time IS NULL OR a.end_time > b.start_time) AND (b.end_time IS NULL OR b.end_time > a.start_time)",
    ),
    (
        "two dead letters of one manifest that await somebody",
        "SELECT CAST(manifest_id AS TEXT) FROM dead_letter WHERE status = 'awaiting_intervention'
         GROUP BY manifest_id HAVING COUNT(*) > 1",
    ),
    (
        "a requeued dead letter that is linked to no entry",
        "SELECT CAST(d.id AS TEXT) FROM dead_letter d WHERE d.status = 'retried'
         AND NOT EXISTS (SELECT 1 FROM work_queue w WHERE w.id = d.work_queue_id AND w.tenant_id = d.tenant_id)",
    ),
    (
        "a dead letter that several entries stand for, or one while it awaits somebody or was acknowledged",
        "SELECT CAST(d.id AS TEXT) FROM dead_letter d WHERE (SELECT COUNT(*) FROM work_queue w
            WHERE w.dead_letter_id = d.id) > CASE WHEN d.status = 'retried' THEN 1 ELSE 0 END",
    ),
    (
        "a dead letter that counts other failures than its manifest had",
        "SELECT CAST(d.id AS TEXT) FROM dead_letter d JOIN manifest m ON m.id = d.manifest_id
         WHERE d.retry_count_at_dead_letter <> (SELECT COUNT(*) FROM metadata r
            WHERE r.manifest_id = d.manifest_id AND r.train_state = 'failed'
            AND COALESCE(r.failure_exception, '') <> 'DispatchRequeued'
            AND r.end_time <= d.dead_lettered_at
            AND r.start_time >= :window_start
            AND NOT EXISTS (SELECT 1 FROM dead_letter e WHERE e.manifest_id = d.manifest_id AND e.id < d.id
                AND e.resolved_at >= r.start_time))",
    ),
    (
        "a manifest that is due although something blocks it",
        "SELECT m.external_id FROM manifest m WHERE m.next_due_at IS NOT NULL AND (NOT m.is_enabled
         OR EXISTS (SELECT 1 FROM work_queue w WHERE w.manifest_id = m.id AND w.status = 'queued')
         OR EXISTS (SELECT 1 FROM metadata r WHERE r.manifest_id = m.id AND r.train_state IN ('pending', 'in_progress'))
         OR EXISTS (SELECT 1 FROM dead_letter d WHERE d.manifest_id = m.id AND d.status = 'awaiting_intervention'))",
    ),
    (
        "a question whose answer was recorded twice",
        "SELECT CAST(metadata_id AS TEXT) FROM decision
         GROUP BY metadata_id, branch_path, question_key, occurrence, asked_by HAVING COUNT(*) > 1",
    ),
];

const LATE: &str = "a manifest that is due earlier than its index says";
const EARLY: &str = "a manifest that its index calls due before it is";

/// How long failures count where a manifest does not say.
const WINDOW: Duration = Duration::from_hours(24);

/// Panics with what does not hold.
pub(crate) async fn hold(db: &Db) {
    let mut tx = db.begin().await.unwrap();
    let broken = broken(&mut tx).await;
    tx.rollback().await.unwrap();
    assert!(broken.is_empty(), "the database holds what it never may:\n{}", broken.join("\n"));
}

/// The same for the database at a URL, from where nothing can wait. What is no database, or has another schema, holds.
pub(crate) fn hold_at(url: &str) {
    let look = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = OpenOptions { is_migrating: false, ..OpenOptions::default() };
            if let Ok(db) = open(url, &options).await {
                hold(&db).await;
                db.close().await;
            }
        });
    };
    let looked = std::thread::scope(|scope| scope.spawn(look).join());
    if let Err(panic) = looked {
        std::panic::resume_unwind(panic);
    }
}

/// A statement with `:at`, some instant, and `:window_start`, since when failures counted for a dead letter, as the
/// database writes instants: SQLite as microseconds, Postgres as a type of its own.
fn dialect(tx: &Tx<'_>, sql: &str) -> String {
    let seconds = "COALESCE(m.failure_window_seconds, 86400)";
    let (at, seconds) = if tx.is_postgres() {
        ("TO_TIMESTAMP(0)", format!("{seconds} * INTERVAL '1 second'"))
    } else {
        ("0", format!("{seconds} * 1000000"))
    };
    sql.replace(":at", at).replace(":window_start", &format!("d.dead_lettered_at - {seconds}"))
}

/// What does not hold, with the rows.
pub(crate) async fn broken(tx: &mut Tx<'_>) -> Vec<String> {
    let mut broken = Vec::new();
    for (never, sql) in NEVER {
        let found: Vec<_> = tx
            .text_rows(&dialect(tx, sql))
            .await
            .unwrap()
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        if !found.is_empty() {
            broken.push(format!("{never}: {}", found.join(", ")));
        }
    }
    broken.extend(other_than_due(tx).await);
    broken
}

/// Manifests whose index differs from what the rules say. An index in the past is no fault: the manager looks, and
/// corrects it. A disabled group holds its manifests back, whatever the index says.
async fn other_than_due(tx: &mut Tx<'_>) -> Vec<String> {
    let sql = "SELECT CAST(m.tenant_id AS TEXT), CAST(m.id AS TEXT) FROM manifest m
        JOIN manifest_group g ON g.id = m.manifest_group_id WHERE g.is_enabled ORDER BY m.id";
    let mut broken = Vec::new();
    let now = tx.now().await.unwrap();
    for row in tx.text_rows(sql).await.unwrap() {
        let ids: Vec<i64> = row.into_iter().flatten().map(|id| id.parse().unwrap()).collect();
        let (tenant, manifest) = (TenantId(ids[0]), ManifestId(ids[1]));
        let mut part = tx.savepoint().await.unwrap();
        // Hosts may be at work: what blocks it and its index change together, for whoever has it to himself.
        let stored = manifests::locked(&mut part, tenant, manifest).await.unwrap();
        let ruled = due::settle(&mut part, tenant, manifest, WINDOW).await.unwrap();
        part.rollback().await.unwrap();
        let (name, stored) = (stored.external_id, stored.next_due_at);
        let is_past = stored.is_some_and(|due| due <= now);
        let is_late = ruled.is_some_and(|ruled| stored.is_none_or(|stored| stored > ruled));
        if is_late && !is_past {
            broken.push(format!("{LATE}: {name}, {stored:?} for {ruled:?}"));
        } else if !is_past && stored != ruled {
            broken.push(format!("{EARLY}: {name}, {stored:?} for {ruled:?}"));
        }
    }
    broken
}

/// How each invariant is broken, in the order of [`NEVER`].
const BREAKS: [&str; 16] = [
    "UPDATE metadata SET host_incarnation = NULL",
    "UPDATE metadata SET train_state = 'pending', host_incarnation = NULL",
    "UPDATE metadata SET parked_at = :at, host_incarnation = NULL",
    "UPDATE metadata SET parked_at = :at, host_incarnation = NULL;
     INSERT INTO parked_run (metadata_id, reason, parked_at) SELECT id, 'capacity', :at FROM metadata",
    "DROP INDEX ix_work_queue_unique_queued_manifest;
     UPDATE work_queue SET status = 'queued', dispatched_at = NULL, metadata_id = NULL;
     UPDATE work_queue SET manifest_id = (SELECT MIN(id) FROM manifest)",
    "UPDATE work_queue SET tenant_id = 77 WHERE status = 'queued'",
    "UPDATE work_queue SET metadata_id = NULL WHERE status = 'dispatched'",
    "UPDATE work_queue SET status = 'queued', dispatched_at = NULL, metadata_id = NULL",
    "UPDATE metadata SET manifest_id = (SELECT MIN(id) FROM manifest)",
    "DROP INDEX ix_metadata_unique_active_subject; UPDATE metadata SET subject_key = 'one'",
    "UPDATE dead_letter SET status = 'awaiting_intervention', resolved_at = NULL, work_queue_id = NULL",
    "UPDATE dead_letter SET status = 'retried', resolved_at = :at, work_queue_id = 777",
    "UPDATE work_queue SET dead_letter_id = (SELECT MIN(id) FROM dead_letter)",
    "UPDATE dead_letter SET retry_count_at_dead_letter = 1",
    "UPDATE manifest SET next_due_at = :at",
    "DROP INDEX uq_decision_run_branch_question;
     INSERT INTO decision (metadata_id, question_key, occurrence, fingerprint, kind, question, answer, decided_at)
     SELECT r.id, 'Lane', 0, 'f', 'choice', '{}', '{}', :at FROM metadata r, manifest m",
];

/// Three manifests with runs in progress, a queued entry and two settled dead letters between them.
async fn furnish(w: &World) {
    let host = w.host("one").await;
    for name in ["a", "b"] {
        let manifest = w.manifest(name).await;
        w.entry(Some(manifest)).await;
    }
    assert_eq!(w.claim(&host, 2).await.len(), 2);
    let third = w.manifest("c").await;
    w.entry(Some(third)).await;
    let letter = "INSERT INTO dead_letter (tenant_id, manifest_id, dead_lettered_at, status, resolved_at, reason,
        retry_count_at_dead_letter) SELECT 1, MIN(m.id), :at, 'acknowledged', :at, 'r', 0 FROM manifest m";
    w.write(async |tx| tx.execute_text(&dialect(tx, &format!("{letter}; {letter}"))).await).await;
}

/// Breaks each invariant in a transaction that is undone, and sees it named.
async fn what_is_broken_is_named(w: World) {
    furnish(&w).await;
    hold(&w.db).await;
    for ((never, _), sql) in NEVER.iter().zip(BREAKS) {
        let mut tx = w.db.begin().await.unwrap();
        let sql = dialect(&tx, sql);
        tx.execute_text(&sql).await.unwrap();
        let broken = broken(&mut tx).await;
        tx.rollback().await.unwrap();
        assert!(broken.iter().any(|line| line.starts_with(never)), "{never}: {broken:?}");
    }
    hold(&w.db).await;
}

/// A manifest that nothing blocks and that is due never, too late or too early.
async fn an_index_that_is_not_as_the_rules_say_is_named(w: World) {
    let manifest = w.manifest("a").await;
    let now = w.advance(Duration::ZERO).await;
    let (past, later) = (Timestamp::from_micros(5), now.saturating_add(Duration::from_hours(1)));
    w.sql("UPDATE manifest SET interval_seconds = 60").await.unwrap();
    let cases = [
        ("interval", None, Some(LATE)),
        ("interval", Some(later), Some(LATE)),
        ("interval", past, None),
        ("on_demand", Some(later), Some(EARLY)),
        ("on_demand", None, None),
    ];
    for (schedule, index, named) in cases {
        let mut tx = w.db.begin().await.unwrap();
        let sql = format!("UPDATE manifest SET schedule_type = '{schedule}'");
        tx.execute_text(&sql).await.unwrap();
        manifests::set_due(&mut tx, manifest, index).await.unwrap();
        let broken = broken(&mut tx).await;
        tx.rollback().await.unwrap();
        let found = broken.first().map(|line| line.starts_with(named.unwrap_or("nothing")));
        assert_eq!(found, named.map(|_| true), "{schedule} {index:?}: {broken:?}");
    }
}

on_both!(what_is_broken_is_named, an_index_that_is_not_as_the_rules_say_is_named);
