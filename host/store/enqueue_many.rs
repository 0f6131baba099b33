//! Queuing many entries at once: one statement for all that nothing can be in the way of.

use std::collections::HashMap;

use super::db::{Sql, Tx, on};
use super::error::StoreError;
use super::queue::{Enqueued, NewEntry, PRIORITY_MAX, When, enqueue, new_id};
use crate::model::ids::EntryId;

/// The entries come as one JSON text, so that many are one round trip; each database has its own way to read it.
const INSERT: Sql = Sql {
    sqlite: "INSERT INTO work_queue (tenant_id, external_id, train_name, input, input_type_name,
            priority, occurrence_id, confirmed_at, subject_key, created_at)
        SELECT value ->> 'tenant', value ->> 'id', value ->> 'train', value ->> 'input',
            value ->> 'input_type', value ->> 'priority', value ->> 'occurrence',
            CASE WHEN value ->> 'confirmed' THEN $2 END, value ->> 'subject', $2
        FROM json_each($1)
        -- The queues of these are as long as they may be, perhaps: each entry is looked at.
        WHERE value ->> 'tenant' NOT IN (SELECT id FROM tenant WHERE max_queued_jobs IS NOT NULL)
        ORDER BY key
        ON CONFLICT DO NOTHING RETURNING external_id, id",
    postgres: "INSERT INTO work_queue (tenant_id, external_id, train_name, input, input_type_name,
            priority, occurrence_id, confirmed_at, subject_key, created_at)
        SELECT tenant, id, train, input, input_type, priority, occurrence,
            CASE WHEN confirmed THEN $2 END, subject, $2
        FROM json_to_recordset(CAST($1 AS JSON)) AS entry (tenant BIGINT, id TEXT, train TEXT,
            input TEXT, input_type TEXT, priority SMALLINT, occurrence TEXT, confirmed BOOLEAN,
            subject TEXT)
        -- The queues of these are as long as they may be, perhaps: each entry is looked at.
        WHERE tenant NOT IN (SELECT id FROM tenant WHERE max_queued_jobs IS NOT NULL)
        ON CONFLICT DO NOTHING RETURNING external_id, id",
};

/// An entry as the statement reads it.
#[derive(serde::Serialize)]
struct Row<'a> {
    tenant: i64,
    id: &'a str,
    train: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_type: Option<&'a str>,
    priority: i16,
    occurrence: String,
    confirmed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
}

/// Queues entries as [`enqueue`] does each of them, and says what became of each. Those of no manifest that run now and
/// carry no link go in together.
pub async fn enqueue_many(
    tx: &mut Tx<'_>,
    entries: &[NewEntry<'_>],
) -> Result<Vec<Enqueued>, StoreError> {
    let mut ids = Vec::with_capacity(entries.len());
    for entry in entries {
        ids.push(entry.external_id.map_or_else(new_id, |id| Ok(id.to_owned()))?);
    }
    let mut inserted = insert(tx, entries, &ids).await?;
    let mut all = Vec::with_capacity(entries.len());
    for (entry, id) in entries.iter().zip(&ids) {
        // The second of two that share an external id is not the one that was inserted.
        all.push(match inserted.remove(&(entry.tenant.0, id.clone())) {
            Some(entry) => {
                Enqueued::Created { entry, asks_afresh: false, starts_at_the_top: false }
            }
            None => enqueue(tx, &NewEntry { external_id: Some(id), ..entry.clone() }).await?,
        });
    }
    Ok(all)
}

type Inserted = HashMap<(i64, String), EntryId>;

async fn insert(
    tx: &mut Tx<'_>,
    entries: &[NewEntry<'_>],
    ids: &[String],
) -> Result<Inserted, StoreError> {
    let mut rows = Vec::new();
    for (entry, id) in entries.iter().zip(ids).filter(|(entry, _)| is_plain(entry)) {
        rows.push(Row {
            tenant: entry.tenant.0,
            id,
            train: entry.train,
            input: entry.input,
            input_type: entry.input_type,
            priority: entry.priority.clamp(0, PRIORITY_MAX),
            occurrence: entry.occurrence_id.map_or_else(new_id, |id| Ok(id.to_owned()))?,
            confirmed: entry.is_confirmed,
            subject: entry.subject_key,
        });
    }
    let mut inserted = HashMap::with_capacity(rows.len());
    // One statement is of one tenant, so that an external id names one entry.
    for rows in rows.chunk_by(|a, b| a.tenant == b.tenant) {
        let tenant = rows[0].tenant;
        if rows.iter().any(|row| row.confirmed) {
            tx.note_queued();
        }
        let now = tx.now().await?;
        let json = serde_json::to_string(rows)
            .map_err(|error| tx.place.error(sqlx::Error::Encode(error.into())))?;
        let sql = tx.pick(INSERT);
        let new: Vec<(String, EntryId)> =
            on!(tx, |c| sqlx::query_as(sql).bind(json).bind(now).fetch_all(c))?;
        inserted.extend(new.into_iter().map(|(id, entry)| ((tenant, id), entry)));
    }
    Ok(inserted)
}

/// Whether an entry touches nothing but the queue, and can only be refused for its external id.
fn is_plain(entry: &NewEntry<'_>) -> bool {
    let runs_now = matches!(entry.when, When::Now) && entry.scheduled_time.is_none();
    let has_links = entry.replay_decisions_of.is_some()
        || entry.resume_from.is_some()
        || entry.resume_at.is_some()
        || entry.dead_letter.is_some();
    runs_now && !has_links && entry.manifest.is_none() && !entry.is_explicit_trigger
}
