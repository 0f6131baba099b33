//! Resolving many dead letters at once, in statements over a page of them: what is requeued folds into one entry per
//! manifest, and what is acknowledged frees its manifest.

use std::collections::{BTreeMap, BTreeSet};

use super::db::{Sql, Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::{DeadLetterId, EntryId, ManifestId, RunId, TenantId};
use crate::model::source::TakeOver;

/// Which of a tenant's awaiting dead letters a statement is about.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// Those of these manifests.
    Of(&'a [ManifestId]),
    /// Those with these ids.
    With(&'a [DeadLetterId]),
}

impl Which<'_> {
    /// The ids as a JSON array.
    fn ids(self) -> String {
        match self {
            Self::Of(manifests) => json_array(manifests.iter().map(|id| id.0)),
            Self::With(dead_letters) => json_array(dead_letters.iter().map(|id| id.0)),
        }
    }

    /// The statement for the column that the ids are of.
    fn pick(self, tx: &Tx<'_>, statement: Statement) -> &'static str {
        tx.pick(match self {
            Self::Of(_) => statement.of_manifests,
            Self::With(_) => statement.with_ids,
        })
    }
}

/// What requeueing comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requeued {
    /// How many dead letters are resolved.
    pub resolved: i64,
    /// How many of them have no entry of their own: a newer one of their manifest carries it.
    pub folded: i64,
    /// How many stay, because their manifest has a queued entry.
    pub skipped: i64,
    /// How many entries ask afresh because the decisions that they would replay are replayed already.
    pub ask_afresh: i64,
}

row!(Requeued { resolved, folded, skipped, ask_afresh });

/// A text for either way to say which dead letters, `d`: `$1` is the tenant, and `$2` the ids.
#[derive(Clone, Copy)]
struct Statement {
    of_manifests: Sql,
    with_ids: Sql,
}

/// The databases differ in how a JSON array is a table, and in what is random.
macro_rules! ids {
    (sqlite) => {
        "(SELECT value FROM json_each($2))"
    };
    (postgres) => {
        "(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($2 AS JSON)))"
    };
}
macro_rules! random {
    (sqlite) => {
        "LOWER(HEX(RANDOMBLOB(16)))"
    };
    (postgres) => {
        "REPLACE(CAST(GEN_RANDOM_UUID() AS TEXT), '-', '')"
    };
}
macro_rules! statement {
    ($text:ident) => {
        Statement {
            of_manifests: Sql {
                sqlite: $text!("d.manifest_id", sqlite),
                postgres: $text!("d.manifest_id", postgres),
            },
            with_ids: Sql { sqlite: $text!("d.id", sqlite), postgres: $text!("d.id", postgres) },
        }
    };
}

/// What each manifest's entry takes over, as a table of the JSON that [`links`] gives.
macro_rules! taken {
    (sqlite) => {
        "(SELECT JSON_EXTRACT(value, '$[0]') AS manifest, JSON_EXTRACT(value, '$[1]') AS replay,
            JSON_EXTRACT(value, '$[2]') AS resume FROM JSON_EACH($4))"
    };
    (postgres) => {
        "(SELECT CAST(value->>0 AS BIGINT) AS manifest, CAST(value->>1 AS BIGINT) AS replay,
            CAST(value->>2 AS BIGINT) AS resume FROM JSON_ARRAY_ELEMENTS(CAST($4 AS JSON)))"
    };
}

/// One entry for each manifest that has none queued, carried by the newest dead letter. It repeats the occurrence that
/// failed, and takes over from that run what no other queued entry takes over.
macro_rules! enqueue {
    ($column:literal, $database:ident) => {
        concat!(
            "INSERT INTO work_queue
                (tenant_id, external_id, train_name, input, input_type_name, manifest_id, priority,
                group_priority, scheduled_time, occurrence_id, dead_letter_id, confirmed_at,
                is_explicit_trigger, created_at, replay_decisions_of, resume_from)
            SELECT m.tenant_id, ",
            random!($database),
            ", m.name, m.properties, m.property_type, m.id, m.priority, g.priority,
                r.scheduled_time, COALESCE(r.occurrence_id, ",
            random!($database),
            "), a.newest, $3, TRUE, $3,
                CASE WHEN NOT EXISTS (SELECT 1 FROM work_queue q
                    WHERE q.replay_decisions_of = t.replay AND q.status = 'queued')
                    THEN t.replay END,
                CASE WHEN NOT EXISTS (SELECT 1 FROM work_queue q
                    WHERE q.resume_from = t.resume AND q.status = 'queued') THEN t.resume END
            FROM (SELECT d.manifest_id, MAX(d.id) AS newest FROM dead_letter d
                WHERE d.tenant_id = $1 AND d.status = 'awaiting_intervention' AND ",
            $column,
            " IN ",
            ids!($database),
            " GROUP BY d.manifest_id) a
                JOIN manifest m ON m.id = a.manifest_id
                JOIN manifest_group g ON g.id = m.manifest_group_id
                LEFT JOIN ",
            taken!($database),
            " t ON t.manifest = m.id
                LEFT JOIN metadata r ON r.train_state = 'failed' AND r.id =
                    (SELECT l.id FROM metadata l WHERE l.manifest_id = m.id
                        AND l.train_state IN ('completed', 'failed', 'cancelled')
                        AND COALESCE(l.failure_exception, '') <> 'DispatchRequeued'
                    ORDER BY l.start_time DESC, l.id DESC LIMIT 1)
            WHERE NOT EXISTS (SELECT 1 FROM work_queue w
                WHERE w.manifest_id = a.manifest_id AND w.status = 'queued')
            -- In one order everywhere, so that two of these never wait for each other.
            ORDER BY a.manifest_id
            ON CONFLICT DO NOTHING RETURNING id, manifest_id, replay_decisions_of"
        )
    };
}
const ENQUEUE: Statement = statement!(enqueue);

/// The manifests, held as everybody does who queues an entry. Only Postgres needs that: SQLite has one writer.
macro_rules! hold {
    (@lock sqlite) => {
        ""
    };
    (@lock postgres) => {
        " FOR NO KEY UPDATE"
    };
    ($column:literal, $database:ident) => {
        concat!(
            "SELECT m.id FROM manifest m WHERE m.id IN (SELECT d.manifest_id FROM dead_letter d
                WHERE d.tenant_id = $1 AND d.status = 'awaiting_intervention' AND ",
            $column,
            " IN ",
            ids!($database),
            ") ORDER BY m.id",
            hold!(@lock $database)
        )
    };
}
const HOLD: Statement = statement!(hold);

/// Every dead letter of such a manifest, resolved as requeued in the entry among the new ones, from `$4` to `$5`.
macro_rules! fold {
    ($column:literal, $database:ident) => {
        concat!(
            "UPDATE dead_letter AS d SET status = 'retried', resolved_at = $3, work_queue_id = w.id,
                resolution_note = CASE WHEN d.id = w.dead_letter_id
                    THEN 'Re-queued (WorkQueue ' || w.id || ')'
                    ELSE 'Re-queued with dead letter ' || w.dead_letter_id || ' (WorkQueue ' || w.id
                        || ')' END
            FROM work_queue w
            WHERE w.manifest_id = d.manifest_id AND w.status = 'queued' AND w.id BETWEEN $4 AND $5
                AND w.dead_letter_id >= d.id
                AND d.tenant_id = $1 AND d.status = 'awaiting_intervention' AND ",
            $column,
            " IN ",
            ids!($database)
        )
    };
}
const FOLD: Statement = statement!(fold);

/// What requeueing would come to, of what still awaits somebody.
macro_rules! preview {
    ($column:literal, $database:ident) => {
        concat!(
            "SELECT COALESCE(SUM(CASE WHEN f.is_queued THEN 0 ELSE f.letters END), 0) AS resolved,
                COALESCE(SUM(CASE WHEN f.is_queued THEN 0 ELSE f.letters - 1 END), 0) AS folded,
                COALESCE(SUM(CASE WHEN f.is_queued THEN f.letters ELSE 0 END), 0) AS skipped,
                COALESCE(SUM(0), 0) AS ask_afresh
            FROM (SELECT CAST(COUNT(*) AS INTEGER) AS letters,
                    EXISTS (SELECT 1 FROM work_queue w
                        WHERE w.manifest_id = d.manifest_id AND w.status = 'queued') AS is_queued
                FROM dead_letter d
                WHERE d.tenant_id = $1 AND d.status = 'awaiting_intervention' AND ",
            $column,
            " IN ",
            ids!($database),
            " GROUP BY d.manifest_id) f"
        )
    };
}
const PREVIEW: Statement = statement!(preview);

/// Each dead letter, resolved as acknowledged.
macro_rules! acknowledge {
    ($column:literal, $database:ident) => {
        concat!(
            "UPDATE dead_letter AS d SET status = 'acknowledged', resolved_at = $3,
                resolution_note = $4
            WHERE d.tenant_id = $1 AND d.status = 'awaiting_intervention' AND ",
            $column,
            " IN ",
            ids!($database),
            " RETURNING manifest_id"
        )
    };
}
const ACKNOWLEDGE: Statement = statement!(acknowledge);

/// The first manifests after `after` that have dead letters which await somebody, by id.
pub async fn awaiting_manifests(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    after: ManifestId,
    limit: u32,
) -> Result<Vec<ManifestId>, StoreError> {
    let sql = "SELECT DISTINCT manifest_id FROM dead_letter
        WHERE tenant_id = $1 AND status = 'awaiting_intervention' AND manifest_id > $2
        ORDER BY manifest_id LIMIT $3";
    on!(tx, |c| sqlx::query_scalar(sql)
        .bind(tenant)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// What [`requeue`] would come to now.
pub async fn preview(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    which: Which<'_>,
) -> Result<Requeued, StoreError> {
    let (sql, ids) = (which.pick(tx, PREVIEW), which.ids());
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(&ids).fetch_one(c))
}

/// How many of them there are.
pub async fn count(tx: &mut Tx<'_>, tenant: TenantId, which: Which<'_>) -> Result<i64, StoreError> {
    let all = preview(tx, tenant, which).await?;
    Ok(all.resolved + all.skipped)
}

/// The manifests of these dead letters, by id. Nobody else queues an entry of them before the transaction ends.
pub async fn hold(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    which: Which<'_>,
) -> Result<Vec<ManifestId>, StoreError> {
    let (sql, ids) = (which.pick(tx, HOLD), which.ids());
    on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(&ids).fetch_all(c))
}

/// How often entries are inserted with links while others take the same ones: after that, without.
const LINKED_TRIES: usize = 2;

/// Requeues dead letters whose manifests are held: those of one manifest fold into one entry, which the newest of them
/// carries and which takes over what is given for the manifest, and those of a manifest that has a queued entry stay as
/// they are. Others that come meanwhile stay too. A link that another queued entry takes first is left out.
pub async fn requeue(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    which: Which<'_>,
    taken: &BTreeMap<ManifestId, TakeOver>,
) -> Result<Requeued, StoreError> {
    let now = tx.now().await?;
    let ids = which.ids();
    let links = links(taken);
    let sql = which.pick(tx, ENQUEUE);
    let mut entries: Vec<EntryId> = Vec::new();
    let mut ask_afresh = 0;
    // An insert that loses a link to another is no error, and inserts nothing: what is left is inserted in the next.
    for links in std::iter::repeat_n(&*links, LINKED_TRIES).chain(["[]"]) {
        let inserted: Vec<(EntryId, ManifestId, Option<RunId>)> = on!(tx, |c| sqlx::query_as(sql)
            .bind(tenant)
            .bind(&ids)
            .bind(now)
            .bind(links)
            .fetch_all(c))?;
        for (entry, manifest, replayed) in inserted {
            entries.push(entry);
            let asked = taken.get(&manifest).copied().unwrap_or_default();
            let has_lost = asked.replay_decisions_of.is_some() && replayed.is_none();
            ask_afresh += i64::from(has_lost || asked.is_spent);
        }
    }
    let mut resolved = 0;
    if let (Some(first), Some(last)) = (entries.iter().min(), entries.iter().max()) {
        let sql = which.pick(tx, FOLD);
        resolved = execute!(
            tx,
            sqlx::query(sql).bind(tenant).bind(&ids).bind(now).bind(first).bind(last)
        )?;
    }
    // What still awaits somebody has a queued entry in its way: there was one, or one came first.
    let left = preview(tx, tenant, which).await?;
    let resolved = i64::try_from(resolved).unwrap_or(i64::MAX);
    let entries = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let folded = resolved.saturating_sub(entries);
    Ok(Requeued { resolved, folded, skipped: left.skipped, ask_afresh })
}

/// What entries take over, as JSON: per manifest its id, the run it replays and the run it resumes.
fn links(taken: &BTreeMap<ManifestId, TakeOver>) -> String {
    let id = |run: Option<RunId>| run.map_or_else(|| "null".to_owned(), |run| run.to_string());
    let links: Vec<String> = taken
        .iter()
        .map(|(manifest, it)| {
            format!("[{manifest},{},{}]", id(it.replay_decisions_of), id(it.resume_from))
        })
        .collect();
    format!("[{}]", links.join(","))
}

/// Acknowledges dead letters, and says how many that were. Their manifests are due again as soon as the rules say.
pub async fn acknowledge(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    which: Which<'_>,
    note: Option<&str>,
) -> Result<u64, StoreError> {
    let now = tx.now().await?;
    let (sql, ids) = (which.pick(tx, ACKNOWLEDGE), which.ids());
    let of: Vec<ManifestId> = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(tenant)
        .bind(&ids)
        .bind(now)
        .bind(note)
        .fetch_all(c))?;
    free(tx, tenant, of.iter().copied().collect()).await?;
    Ok(u64::try_from(of.len()).unwrap_or(u64::MAX))
}

/// A page of acknowledging all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// How many dead letters were acknowledged.
    pub count: u64,
    /// The last of them.
    pub last: DeadLetterId,
}

/// Acknowledges the first awaiting dead letters with ids after one and up to another; nothing when there are no more.
pub async fn acknowledge_page(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    after: DeadLetterId,
    up_to: DeadLetterId,
    note: Option<&str>,
    limit: u32,
) -> Result<Option<Acknowledged>, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE dead_letter SET status = 'acknowledged', resolved_at = $4,
            resolution_note = $5
        WHERE id IN (SELECT id FROM dead_letter WHERE tenant_id = $1
            AND status = 'awaiting_intervention' AND id > $2 AND id <= $3 ORDER BY id LIMIT $6)
            AND status = 'awaiting_intervention' RETURNING id, manifest_id";
    let rows: Vec<(DeadLetterId, ManifestId)> = on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(after)
        .bind(up_to)
        .bind(now)
        .bind(note)
        .bind(i64::from(limit))
        .fetch_all(c))?;
    free(tx, tenant, rows.iter().map(|(_, manifest)| *manifest).collect()).await?;
    let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    Ok(rows.iter().map(|(id, _)| *id).max().map(|last| Acknowledged { count, last }))
}

/// Withdraws entries that are queued, and says how many that were. Their manifests are due again as soon as the rules
/// say.
pub async fn cancel_entries(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    entries: &[EntryId],
) -> Result<u64, StoreError> {
    macro_rules! cancel {
        ($database:ident) => {
            concat!(
                "UPDATE work_queue SET status = 'cancelled'
                WHERE tenant_id = $1 AND status = 'queued' AND id IN ",
                ids!($database),
                " RETURNING manifest_id"
            )
        };
    }
    let sql = tx.pick(Sql { sqlite: cancel!(sqlite), postgres: cancel!(postgres) });
    let ids = json_array(entries.iter().map(|id| id.0));
    let of: Vec<Option<ManifestId>> =
        on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(&ids).fetch_all(c))?;
    free(tx, tenant, of.iter().copied().flatten().collect()).await?;
    Ok(u64::try_from(of.len()).unwrap_or(u64::MAX))
}

/// The newest dead letter of a tenant.
pub async fn newest(tx: &mut Tx<'_>, tenant: TenantId) -> Result<Option<DeadLetterId>, StoreError> {
    let sql = "SELECT MAX(id) FROM dead_letter WHERE tenant_id = $1";
    on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).fetch_one(c))
}

/// Makes the manager look at manifests that nothing blocks any more; it then finds when each is due.
pub async fn free(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifests: BTreeSet<ManifestId>,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let manifests: Vec<ManifestId> = manifests.into_iter().collect();
    let ids = json_array(manifests.iter().map(|id| id.0));
    // Whoever ends a run holds its manifest while it looks at what blocks that. A statement of its own, so that the
    // next one sees what was written meanwhile.
    super::manifests::hold_all(tx, &manifests).await?;
    macro_rules! free {
        ($database:ident) => {
            concat!(
                "UPDATE manifest AS m SET next_due_at = $3
                WHERE m.tenant_id = $1 AND m.is_enabled AND m.next_due_at IS NULL
                    AND m.schedule_type NOT IN ('none', 'on_demand', 'dormant_dependent')
                    AND NOT EXISTS (SELECT 1 FROM dead_letter d WHERE d.manifest_id = m.id
                        AND d.tenant_id = $1 AND d.status = 'awaiting_intervention')
                    AND NOT EXISTS (SELECT 1 FROM work_queue w WHERE w.manifest_id = m.id
                        AND w.status = 'queued')
                    AND NOT EXISTS (SELECT 1 FROM metadata r WHERE r.manifest_id = m.id
                        AND r.train_state IN ('pending', 'in_progress'))
                    AND m.id IN ",
                ids!($database)
            )
        };
    }
    let sql = tx.pick(Sql { sqlite: free!(sqlite), postgres: free!(postgres) });
    execute!(tx, sqlx::query(sql).bind(tenant).bind(&ids).bind(now))?;
    Ok(())
}

fn json_array(ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    format!("[{}]", ids.join(","))
}
