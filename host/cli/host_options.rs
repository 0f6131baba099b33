//! Who a host is and what it does, as its operator says.

use clap::{Args, ValueEnum};

use crate::cli::error::CliError;
use crate::engine::config::EngineConfig;
use crate::engine::identity::Stated;

/// Who a host is and what it does.
#[derive(Debug, Args)]
pub struct HostOptions {
    /// What this host does; stated several times, all of it [default: everything]
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<HostRole>,
    /// The name of this host [default: that of the machine]
    #[arg(long, env = "TRAX_HOST__NAME", value_name = "NAME")]
    host_name: Option<String>,
    /// Where this host runs [default: what its variables say, such as kubernetes, or server]
    #[arg(long, env = "TRAX_HOST__ENVIRONMENT", value_name = "NAME")]
    environment: Option<String>,
    /// Which host it is there [default: such as the pod's name]
    #[arg(long, env = "TRAX_HOST__INSTANCE_ID", value_name = "ID")]
    instance_id: Option<String>,
    /// What else its runs say of it; may be stated several times
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

/// What a host can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HostRole {
    /// Queue what is due
    Scheduler,
    /// Take up what is queued, and run it
    Worker,
    /// Answer operators, and nothing else
    Api,
}

impl HostOptions {
    /// States it of a host.
    ///
    /// # Errors
    /// [`CliError::Usage`] names a label that is none.
    pub fn set(&self, config: &mut EngineConfig) -> Result<(), CliError> {
        let does = |role| self.roles.is_empty() || self.roles.contains(&role);
        config.roles.scheduler = does(HostRole::Scheduler);
        config.roles.worker = does(HostRole::Worker);
        let label = |text: &String| {
            let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = parts.ok_or_else(|| {
                CliError::Usage(format!("'{text}' is no label; write --label NAME=VALUE"))
            })?;
            Ok((name.to_owned(), value.to_owned()))
        };
        let labels = self.labels.iter().map(label).collect::<Result<_, CliError>>()?;
        Stated {
            name: self.host_name.clone(),
            environment: self.environment.clone(),
            instance_id: self.instance_id.clone(),
            labels,
        }
        .set(&mut config.host);
        Ok(())
    }
}
