//! `trax tenants`: whom a database serves, and how much of it each may use.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::list::Listing;
use crate::cli::output::{GOOD, Output, styled};
use crate::operations::tenants::{self, Stated};
use crate::store::manifests::Setting;
use crate::store::tenants::Tenant;

/// List tenants, add one, or change what one may use
#[derive(Debug, Args)]
pub struct Tenants {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List tenants
    List(List),
    /// Add a tenant
    Add(Change),
    /// Change what a tenant may use; what is not stated stays as it is
    Set(Change),
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Change {
    /// The tenant's name
    name: String,
    /// Its share of what hosts can do, beside that of others who wait [default of a new one: 1]
    #[arg(long, value_name = "N")]
    weight: Option<i32>,
    /// How many of its runs may be active, a number or none [default of a new one: none]
    #[arg(long, value_name = "N", value_parser = limit)]
    max_active_jobs: Option<Limit>,
    /// How many of its entries may be queued, a number or none [default of a new one: none]
    #[arg(long, value_name = "N", value_parser = limit)]
    max_queued_jobs: Option<Limit>,
    #[command(flatten)]
    database: Database,
}

/// A limit, or that there is none.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<i32>);

fn limit(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.map(|number| Limit(Some(number))).ok_or_else(|| "it is a number or none".to_owned())
}

fn setting(limit: Option<Limit>) -> Setting<i32> {
    match limit {
        None => Setting::Keep,
        Some(Limit(None)) => Setting::Clear,
        Some(Limit(Some(max))) => Setting::Set(max),
    }
}

impl Tenants {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Operation`], [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            Action::List(list) => {
                let (db, _) = list.database.open_to_read().await?;
                print(&tenants::list(&db).await?, output)
            }
            Action::Add(change) => {
                let (db, _) = change.database.open_to_write().await?;
                let added = tenants::add(&db, &change.name, change.stated()).await?;
                said(&added, "added", output)
            }
            Action::Set(change) => {
                change.database.refuse_missing()?;
                let (db, _) = change.database.open_to_write().await?;
                let changed = tenants::set(&db, &change.name, change.stated()).await?;
                said(&changed, "changed", output)
            }
        }
    }
}

impl Change {
    fn stated(&self) -> Stated {
        Stated {
            weight: self.weight,
            max_active_jobs: setting(self.max_active_jobs),
            max_queued_jobs: setting(self.max_queued_jobs),
        }
    }
}

fn said(tenant: &Tenant, what: &str, output: &mut Output) -> Result<u8, CliError> {
    if output.is_json {
        output.json(&data(tenant))?;
        return Ok(exit::DONE);
    }
    output.line(format!(
        "{} tenant {}: weight {}; active jobs at most: {}; queued jobs at most: {}",
        styled(GOOD, what),
        tenant.name,
        tenant.weight,
        shown(tenant.max_active_jobs),
        shown(tenant.max_queued_jobs),
    ))?;
    Ok(exit::DONE)
}

fn print(tenants: &[Tenant], output: &mut Output) -> Result<u8, CliError> {
    let listing = Listing {
        name: "tenants",
        nothing: "no tenant",
        head: ["tenant", "weight", "active jobs", "queued jobs", "since"],
    };
    listing.print(output, tenants, data, |tenant| {
        [
            tenant.name.clone(),
            tenant.weight.to_string(),
            shown(tenant.max_active_jobs),
            shown(tenant.max_queued_jobs),
            tenant.created_at.to_string(),
        ]
    })
}

fn shown(limit: Option<i32>) -> String {
    limit.map_or_else(|| "any".to_owned(), |max| max.to_string())
}

fn data(tenant: &Tenant) -> serde_json::Value {
    json!({
        "name": tenant.name, "weight": tenant.weight,
        "max_active_jobs": tenant.max_active_jobs, "max_queued_jobs": tenant.max_queued_jobs,
        "created_at": tenant.created_at.to_string(),
    })
}
