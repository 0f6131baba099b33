//! How statements are written: once for both databases, and what several of them share.

use crate::model::ids::Claim;
use crate::store::error::StoreError;

/// Evaluates a query on the concrete connection of a [`Tx`], and names the place in its error.
macro_rules! on {
    ($tx:expr, |$connection:ident| $query:expr) => {{
        let tx: &mut $crate::store::db::Tx<'_> = $tx;
        let result = match &mut tx.connection {
            $crate::store::db::Connection::Sqlite(transaction) => {
                let $connection = &mut **transaction;
                $query.await
            }
            $crate::store::db::Connection::Postgres(transaction) => {
                let $connection = &mut **transaction;
                $query.await
            }
        };
        result.map_err(|source| tx.place.error(source))
    }};
}
pub(in crate::store) use on;

/// Executes a statement on the concrete connection of a [`Tx`], and gives the number of rows it changed.
macro_rules! execute {
    ($tx:expr, $query:expr) => {
        $crate::store::db::on!($tx, |connection| async {
            $query.execute(connection).await.map(|done| done.rows_affected())
        })
    };
}
pub(in crate::store) use execute;

/// A statement whose text differs between the databases.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Sql {
    pub(in crate::store) sqlite: &'static str,
    pub(in crate::store) postgres: &'static str,
}

/// A statement that inserts for a run, from the claim `$1`, `$2`: nothing when that claim was lost. Postgres holds the
/// run's row until the transaction ends, so that nobody claims the run in between; SQLite has one writer.
macro_rules! fenced {
    ($insert:literal) => {
        fenced!($insert, "")
    };
    ($insert:literal, $conflict:literal) => {
        $crate::store::db::Sql {
            sqlite: concat!(fenced!(@text $insert), $conflict),
            postgres: concat!(fenced!(@text $insert), " FOR SHARE ", $conflict),
        }
    };
    (@text $insert:literal) => {
        concat!(
            $insert,
            " FROM metadata WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress'
                AND parked_at IS NULL "
        )
    };
}
pub(in crate::store) use fenced;

/// A statement about the entries or runs whose ids `$1` lists as a JSON array.
macro_rules! of_ids {
    ($before:literal, $after:literal) => {
        $crate::store::db::Sql {
            sqlite: concat!($before, " IN (SELECT value FROM json_each($1)) ", $after),
            postgres: concat!(
                $before,
                " IN (SELECT CAST(value AS BIGINT)
                    FROM json_array_elements_text(CAST($1 AS JSON))) ",
                $after
            ),
        }
    };
}
pub(in crate::store) use of_ids;

/// Ids as the JSON array that [`of_ids`] takes.
pub(in crate::store) fn ids(ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    format!("[{}]", ids.join(","))
}

/// Fails when a write under a claim changed nothing: the claim was lost.
pub(in crate::store) fn held(claim: Claim, rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::LostClaim(claim.run)) } else { Ok(()) }
}
