//! Whether a host may run what is deployed without recording what deciders answer.

use crate::operations::error::OperationError;
use crate::operations::trains;
use crate::store::{Db, tenants};

/// Refuses a host that does not record decisions while there are trains that ask: their runs could not be replayed, and
/// nobody would know what was decided.
///
/// # Errors
/// [`OperationError::Invalid`] names every such train.
pub async fn refuse_without(db: &Db) -> Result<(), OperationError> {
    let mut tx = db.read().await?;
    let tenants = tenants::list(&mut tx).await?;
    drop(tx);
    let mut asking = Vec::new();
    for tenant in tenants {
        for train in trains::list(db, tenant.id).await? {
            if !train.declared.questions.is_empty() {
                asking.push(train.stored.name);
            }
        }
    }
    if asking.is_empty() {
        return Ok(());
    }
    asking.sort_unstable();
    asking.dedup();
    Err(OperationError::Invalid(format!(
        "this host does not record decisions, and these trains ask deciders: {}; say `recording = true` under \
         [decisions]",
        asking.join(", ")
    )))
}
