//! Runs that end together: a fixed number of statements, however many there are.

use super::db::{Sql, Tx, execute, ids, of_ids, on};
use super::error::StoreError;
use crate::model::ids::{Claim, RunId};

/// A run that has completed, and its output as canonical JSON.
pub type Completed<'a> = (Claim, &'a str);

/// A statement about the runs of `$1`, a JSON array of objects. Each database has its own way to read one.
macro_rules! of_runs {
    ($before:literal, $after:literal) => {
        Sql {
            sqlite: concat!(
                $before,
                " (SELECT CAST(value ->> 'run' AS INTEGER) AS run,
                CAST(value ->> 'token' AS INTEGER) AS token, value ->> 'output' AS output
                FROM json_each($1)) AS e ",
                $after
            ),
            postgres: concat!(
                $before,
                " (SELECT CAST(value ->> 'run' AS BIGINT) AS run,
                CAST(value ->> 'token' AS BIGINT) AS token, value ->> 'output' AS output
                FROM json_array_elements(CAST($1 AS JSON)) AS s) AS e ",
                $after
            ),
        }
    };
}

/// Ends runs as completed. False: a claim was lost, and what is written has to be undone.
pub async fn complete_all(
    tx: &mut Tx<'_>,
    completed: &[Completed<'_>],
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let row = |(claim, output): &Completed<'_>| {
        let Claim { run, token } = claim;
        serde_json::json!({ "run": run.0, "token": token.0, "output": output })
    };
    let rows = serde_json::Value::Array(completed.iter().map(row).collect()).to_string();
    let sql = tx.pick(of_runs!(
        "UPDATE metadata SET train_state = 'completed', end_time = $2,
            currently_running_junction = NULL FROM",
        "WHERE metadata.id = e.run AND claim_token = e.token AND train_state = 'in_progress'
            AND parked_at IS NULL RETURNING metadata.id"
    ));
    let ended: Vec<RunId> =
        on!(tx, |c| sqlx::query_scalar(sql).bind(&rows).bind(now).fetch_all(c))?;
    if ended.len() != completed.len() {
        return Ok(false);
    }
    let sql = tx.pick(of_runs!(
        "INSERT INTO metadata_payload (metadata_id, output) SELECT e.run, e.output FROM",
        "WHERE TRUE ON CONFLICT (metadata_id) DO UPDATE SET output = excluded.output"
    ));
    execute!(tx, sqlx::query(sql).bind(&rows))?;
    let runs = ids(ended.iter().map(|run| run.0));
    let sql = tx.pick(of_ids!("DELETE FROM checkpoint WHERE metadata_id", ""));
    execute!(tx, sqlx::query(sql).bind(&runs))?;
    Ok(true)
}
