//! `trax tokens`: who may use the server, and what for.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::list::{Listing, Page};
use crate::cli::output::Output;
use crate::model::access::Role;
use crate::model::ids::TokenId;
use crate::operations::{duration, tenants, tokens};
use crate::store::tokens::ApiToken;

/// List tokens of the server, make one, or revoke one
#[derive(Debug, Args)]
pub struct Tokens {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List tokens, newest first
    List(List),
    /// Make a token; it is shown this once
    Create(Create),
    /// Revoke a token: the next request that bears it is refused
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    whose: Whose,
}

#[derive(Debug, Args)]
struct Create {
    /// Its name, for whoever lists or revokes it
    name: String,
    /// What its bearer may do: viewer, operator, author or admin
    #[arg(long, value_parser = role)]
    role: Role,
    /// How long it is accepted, such as 90d [default: until it is revoked]
    #[arg(long, value_parser = lifetime)]
    expires_in: Option<Duration>,
    #[command(flatten)]
    whose: Whose,
}

#[derive(Debug, Args)]
struct Revoke {
    /// Its name
    name: String,
    #[command(flatten)]
    whose: Whose,
}

/// Whose tokens
#[derive(Debug, Args)]
struct Whose {
    /// The tenant
    #[arg(long, default_value = "default", value_name = "NAME")]
    tenant: String,
    #[command(flatten)]
    database: Database,
}

fn role(text: &str) -> Result<Role, String> {
    Role::of_name(text).ok_or_else(|| "it is viewer, operator, author or admin".to_owned())
}

fn lifetime(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .filter(|it| !it.is_zero())
        .ok_or_else(|| "it is a length of time such as 12h or 90d".to_owned())
}

impl Tokens {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::NotFound`] when there is no such tenant or token, [`CliError::Operation`], [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            Action::List(list) => list.run(output).await,
            Action::Create(create) => create.run(output).await,
            Action::Revoke(revoke) => revoke.run(output).await,
        }
    }
}

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, _) = self.whose.database.open_to_read().await?;
        let tenant = tenants::id_of(&db, &self.whose.tenant).await?;
        let Page { limit, after } = self.page;
        let listed = tokens::list(&db, tenant, after.map(TokenId), limit).await?;
        let listing = Listing {
            name: "tokens",
            nothing: "no token",
            head: ["id", "name", "role", "since", "expires", "last used", "revoked"],
        };
        let text = |at: Option<_>| {
            at.map_or_else(
                || "-".to_owned(),
                |at: crate::model::timestamp::Timestamp| at.to_string(),
            )
        };
        listing.print(output, &listed, data, |token| {
            [
                token.id.to_string(),
                token.name.clone(),
                token.role.to_string(),
                token.created_at.to_string(),
                text(token.expires_at),
                text(token.last_used_at),
                text(token.revoked_at),
            ]
        })
    }
}

impl Create {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, _) = self.whose.database.open_to_write().await?;
        let tenant = tenants::id_of(&db, &self.whose.tenant).await?;
        let (id, token) =
            tokens::create(&db, tenant, &self.name, self.role, self.expires_in).await?;
        if output.is_json {
            output.json(&json!({
                "id": id.0, "name": self.name, "role": self.role.as_str(), "token": token.reveal(),
            }))?;
            return Ok(exit::DONE);
        }
        output.line(token.reveal())?;
        Ok(exit::DONE)
    }
}

impl Revoke {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        self.whose.database.refuse_missing()?;
        let (db, _) = self.whose.database.open_to_write().await?;
        let tenant = tenants::id_of(&db, &self.whose.tenant).await?;
        output.outcome(&tokens::revoke(&db, tenant, &self.name).await?)
    }
}

fn data(token: &ApiToken) -> serde_json::Value {
    json!({
        "id": token.id.0, "name": token.name, "role": token.role.as_str(),
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "revoked_at": token.revoked_at.map(|at| at.to_string()),
        "last_used_at": token.last_used_at.map(|at| at.to_string()),
    })
}
