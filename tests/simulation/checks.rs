//! What must hold after each step of a life, beside the invariants of every database.

use trax::store::Tx;

use crate::invariants;
use crate::simulation::site::{MAX_ACTIVE, Site};

/// Limits, each with a query that finds what exceeds it.
const LIMITS: [(&str, &str); 2] = [
    (
        "a group has more active runs than it may",
        "SELECT g.name FROM manifest_group g JOIN manifest m ON m.manifest_group_id = g.id
            JOIN metadata r ON r.manifest_id = m.id
        WHERE r.train_state IN ('pending', 'in_progress') AND r.parked_at IS NULL
            AND g.max_active_jobs IS NOT NULL
        GROUP BY g.id, g.name, g.max_active_jobs HAVING COUNT(*) > g.max_active_jobs",
    ),
    (
        "a tenant has more active runs than it may",
        "SELECT t.name FROM tenant t JOIN metadata r ON r.tenant_id = t.id
        WHERE r.train_state IN ('pending', 'in_progress') AND r.parked_at IS NULL
            AND t.max_active_jobs IS NOT NULL
        GROUP BY t.id, t.name, t.max_active_jobs HAVING COUNT(*) > t.max_active_jobs",
    ),
];

/// What ended stays as it is: its state and its claim.
const ENDED: &str = "SELECT CAST(id AS TEXT), train_state || ' under claim ' || CAST(claim_token AS TEXT) FROM metadata
    WHERE train_state NOT IN ('pending', 'in_progress')";
const ACTIVE: &str =
    "SELECT CAST(id AS TEXT) FROM metadata WHERE train_state IN ('pending', 'in_progress')
    AND parked_at IS NULL";
const ENTRIES: &str = "SELECT external_id FROM work_queue";
const UNFINISHED: &str = "SELECT 'run ' || CAST(id AS TEXT) || ' ' || train_state FROM metadata
        WHERE train_state IN ('pending', 'in_progress')
    UNION ALL SELECT 'entry ' || CAST(id AS TEXT) FROM work_queue WHERE status = 'queued'";

impl Site {
    /// Looks at the store as it is now.
    pub(super) async fn check(&mut self) -> Result<(), String> {
        let mut tx = self.world.store.db.begin().await.unwrap();
        let mut broken = invariants::broken(&mut tx).await;
        for (limit, sql) in LIMITS {
            let over = column(&mut tx, sql).await;
            if !over.is_empty() {
                broken.push(format!("{limit}: {}", over.join(", ")));
            }
        }
        let active = column(&mut tx, ACTIVE).await;
        if active.len() > MAX_ACTIVE {
            broken.push(format!("more runs are active than may be: {}", active.join(", ")));
        }
        let entries = column(&mut tx, ENTRIES).await;
        broken.extend(
            self.seen_entries
                .iter()
                .filter(|seen| !entries.contains(*seen))
                .map(|lost| format!("an entry is gone: {lost}")),
        );
        self.seen_entries = entries;
        for row in tx.text_rows(ENDED).await.unwrap() {
            let mut row = row.into_iter().flatten();
            let (Some(run), Some(end)) = (row.next(), row.next()) else { continue };
            let before = self.ended.entry(run.clone()).or_insert_with(|| end.clone());
            if *before != end {
                broken.push(format!("run {run} was {before}, and is {end}"));
            }
        }
        tx.rollback().await.unwrap();
        if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
    }

    /// What has not come to its end.
    pub(super) async fn unfinished(&self) -> Vec<String> {
        self.world.store.rows(UNFINISHED).await
    }
}

async fn column(tx: &mut Tx<'_>, sql: &str) -> Vec<String> {
    tx.text_rows(sql).await.unwrap().into_iter().flatten().flatten().collect()
}
