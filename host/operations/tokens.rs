//! Tokens of the API: made, listed, revoked, and recognised.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::clock;
use crate::model::access::{Role, Token};
use crate::model::ids::{TenantId, TokenId};
use crate::model::name;
use crate::operations::access::Caller;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::store::tokens::{self, ApiToken};
use crate::store::{Db, StoreError, Tx};

/// A use is noted at most this often: requests are many, and the minute is enough for whoever looks.
const USE_NOTED_EVERY: Duration = Duration::from_mins(1);

/// Makes a token. It is shown once: what the store keeps does not give it back.
///
/// # Errors
/// [`OperationError::Invalid`] for a name that cannot be, [`StoreError::Conflict`] for one that is taken.
pub async fn create(
    db: &Db,
    tenant: TenantId,
    called: &str,
    role: Role,
    lifetime: Option<Duration>,
) -> Result<(TokenId, Token), OperationError> {
    if !name::is_identifier(called) {
        let problem =
            format!("'{called}' is no name of a token: use letters, digits, '-', '_' and '.'");
        return Err(OperationError::Invalid(problem));
    }
    let token = Token::of_random(clock::random().map_err(StoreError::Random)?);
    let hash = hash(&token);
    let id = db
        .write(async |tx| {
            let now = tx.now().await?;
            let expires = lifetime.map(|lifetime| now.saturating_add(lifetime));
            tokens::add(tx, tenant, called, role, &hash, expires).await
        })
        .await?;
    Ok((id, token))
}

/// A tenant's tokens, newest first.
///
/// # Errors
/// Those of the store.
pub async fn list(
    db: &Db,
    tenant: TenantId,
    before: Option<TokenId>,
    limit: u32,
) -> Result<Vec<ApiToken>, StoreError> {
    let mut tx = db.read().await?;
    tokens::list(&mut tx, tenant, before, limit).await
}

/// Revokes a token: the next request that bears it is refused.
///
/// # Errors
/// Those of the store.
pub async fn revoke(db: &Db, tenant: TenantId, called: &str) -> Result<Outcome, StoreError> {
    let was_there = db.write(async |tx| tokens::revoke(tx, tenant, called).await).await?;
    Ok(if was_there {
        Outcome::done(format!("Token '{called}' revoked."))
    } else {
        Outcome::missing(format!("Token '{called}' not found."))
    })
}

/// Who bears a token, if it is accepted now. The look-up is by the token's hash, so how long it takes says nothing
/// about any token that exists.
///
/// # Errors
/// Those of the store.
pub async fn bearer(db: &Db, presented: &str, origin: &str) -> Result<Option<Caller>, StoreError> {
    let Some(token) = Token::parse(presented) else { return Ok(None) };
    let mut tx = db.read().await?;
    let Some(found) = tokens::accepted(&mut tx, &hash(&token)).await? else { return Ok(None) };
    if is_use_to_be_noted(&mut tx, &found).await? {
        drop(tx);
        db.write(async |tx| tokens::used(tx, found.id).await).await?;
    }
    let (tenant, name, role) = (found.tenant_id, found.name, found.role);
    Ok(Some(Caller { tenant, name, role, origin: origin.to_owned() }))
}

async fn is_use_to_be_noted(tx: &mut Tx<'_>, token: &ApiToken) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    Ok(token.last_used_at.is_none_or(|at| now.since(at) >= USE_NOTED_EVERY))
}

fn hash(token: &Token) -> String {
    hex::encode(Sha256::digest(token.reveal()))
}
