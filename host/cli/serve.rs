//! `trax serve`: a host that runs trains and answers operators, until it is told to stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::auth::Anonymous;
use crate::api::{Api, server};
use crate::cli::database::Database;
use crate::cli::deploy::Checkout;
use crate::cli::dev::{interrupts, ready, set};
use crate::cli::error::CliError;
use crate::cli::host_options::HostOptions;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::settings::Settings;
use crate::cli::{Global, exit, load};
use crate::engine::config::EngineConfig;
use crate::engine::supervisor::Engine;
use crate::model::access::Role;
use crate::model::ids::TenantId;
use crate::operations::requeue_jobs::RequeueJobs;
use crate::store::Db;

/// Run trains and answer operators over HTTP, until told to stop
#[derive(Debug, Args)]
#[command(
    long_about = "Run what is due and queued in a database, and answer operators over HTTP: GraphQL at /graphql, \
        health at /livez and /readyz. Ctrl-C lets runs reach their next boundary, hands them to other hosts, and \
        ends. A second Ctrl-C ends at once.\n\n\
        Requests bear a token of `trax tokens create`. An address beyond this machine is served only behind a proxy \
        that ends TLS."
)]
pub struct Serve {
    /// The address to answer on
    #[arg(
        long,
        default_value = "127.0.0.1:8080",
        env = "TRAX_SERVER__LISTEN",
        value_name = "IP:PORT"
    )]
    listen: SocketAddr,
    /// A proxy in front ends TLS and says in X-Forwarded-For who asks
    #[arg(long, env = "TRAX_SERVER__BEHIND_PROXY")]
    behind_proxy: bool,
    /// Ask for no token, and let everybody on this machine do everything
    #[arg(long, conflicts_with = "behind_proxy")]
    no_auth: bool,
    /// Manifest files to state at the start; their [scheduler] holds for this host
    #[arg(long, value_name = "FILE")]
    manifests: Vec<PathBuf>,
    #[command(flatten)]
    host: HostOptions,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    database: Database,
}

impl Serve {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError`] when nothing was started.
    pub async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        self.refuse_unsafe()?;
        let mut interrupts = interrupts()?;
        let guests = load::guests(global)?;
        let deciders = Arc::new(self.settings.deciders(Path::new(""))?);
        let checkout = Checkout::read(&self.manifests, &guests).await?;
        let listener = self.listen().await?;
        let (db, tenant) = self.database.open_to_write().await?;
        checkout.store_patiently(&db, tenant).await?;
        let mut config = EngineConfig::of_this_machine()?;
        self.host.set(&mut config)?;
        config.deciders = deciders;
        for file in &checkout.manifests {
            set(&mut config, file);
        }
        ready(&mut config, &db).await?;
        let engine = Arc::new(Engine::start(config, db.clone(), guests));
        let stop = CancellationToken::new();
        let jobs = RequeueJobs::new(db.clone(), stop.clone());
        let address = listener.local_addr()?;
        let serving = tokio::spawn(server::serve(
            listener,
            self.api(&db, tenant, &engine, jobs.clone()),
            stop.clone(),
        ));
        say_where(address, &db, output)?;
        interrupts.recv().await;
        let ended = tokio::select! {
            () = end(&engine, &jobs, &stop) => exit::DONE,
            _ = interrupts.recv() => exit::INTERRUPTED,
        };
        if ended == exit::DONE {
            // Whoever keeps a connection open does not keep the process.
            serving.abort();
            db.close().await;
        }
        Ok(ended)
    }

    /// Beyond this machine everything that is said needs TLS, and whoever says it a token.
    fn refuse_unsafe(&self) -> Result<(), CliError> {
        if self.listen.ip().is_loopback() || self.behind_proxy {
            return Ok(());
        }
        let address = self.listen;
        Err(CliError::Usage(if self.no_auth {
            format!(
                "{address} can be reached from other machines; leave --no-auth out, or listen on 127.0.0.1"
            )
        } else {
            format!(
                "{address} can be reached from other machines, and tokens would cross the network in the clear; put a \
                 proxy in front that ends TLS and say --behind-proxy, or listen on 127.0.0.1"
            )
        }))
    }

    async fn listen(&self) -> Result<TcpListener, CliError> {
        let bound = TcpListener::bind(self.listen).await;
        bound.map_err(|source| CliError::Listen { address: self.listen, source })
    }

    fn api(&self, db: &Db, tenant: TenantId, engine: &Arc<Engine>, jobs: RequeueJobs) -> Api {
        let anonymous = self.no_auth.then_some(Anonymous { tenant, role: Role::Admin });
        Api::new(db.clone(), jobs, Some(Arc::clone(engine)), anonymous, self.behind_proxy)
    }
}

fn say_where(address: SocketAddr, db: &Db, output: &mut Output) -> Result<(), CliError> {
    let url = format!("http://{address}");
    if output.is_json {
        output.json_line(&json!({ "event": "serving", "url": url }))?;
    } else {
        let place = db.place();
        output.line(styled(FAINT, format!("serving {url} on {place}; Ctrl-C ends")))?;
    }
    output.flush()
}

/// Takes up nothing new, and lets what has begun reach its next boundary.
async fn end(engine: &Engine, jobs: &RequeueJobs, stop: &CancellationToken) {
    stop.cancel();
    engine.drain().await;
    jobs.idle().await;
}
