//! `trax run`: runs a train once, inline: no database, no queue, no retry, no replay.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::Value as Data;
use serde_json::value::RawValue;
use tokio::signal;
use tokio_util::sync::CancellationToken;

use crate::chain::Chain;
use crate::chain::next::End;
use crate::cli::error::CliError;
use crate::cli::output::{BAD, FAINT, GOOD, NOTABLE, Output, pretty, styled};
use crate::cli::settings::Settings;
use crate::cli::trace::{Trace, milliseconds};
use crate::cli::{Global, exit, input, load};
use crate::clock::{self, Clock};
use crate::decide::state_hash::StateHasher;
use crate::deciders::rules::RuleDecider;
use crate::deciders::scripted::ScriptedDecider;
use crate::deciders::{Decider, Deciders};
use crate::engine::job_runner::JobRunner;
use crate::guest::component::Component;
use crate::guest::context::RunInfo;
use crate::guest::run_log::{LogLevel, LogLine, RunLog};
use crate::model::failure::Failure;
use crate::model::json::Json;
use crate::model::limits::Limits;
use crate::model::value::Value;
use crate::operations::component_file;

/// Run a train once, here, without a database
#[derive(Debug, Args)]
pub struct Run {
    /// The component's .wasm file
    file: PathBuf,
    /// The train's name
    train: String,
    /// The input: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    input: String,
    /// Answer every question from this script instead of asking the train's deciders
    #[arg(long, value_name = "JSON|@FILE")]
    answers: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// Tell the guest that this is the n-th attempt
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
}

/// What is shown of a run.
struct Report {
    chain: Arc<Chain>,
    component: Arc<Component>,
    trace: Arc<Trace>,
    log: Arc<RunLog>,
    end: End,
    took: std::time::Duration,
}

impl Run {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError`] when there is no run; a run that fails is not an error.
    pub async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        let component = load::component(&self.file, global).await?;
        let chain = Arc::new(self.chain(&component)?);
        let limits = Limits::default();
        let input = admitted(&chain, &input::read(&self.input)?, &limits)?;
        let report = self.report(component, chain, limits, input).await?;
        if output.is_json {
            output.json(&report.data())?;
        } else {
            report.print(output)?;
        }
        Ok(match report.end {
            End::Completed(_) | End::BranchCompleted => exit::DONE,
            End::Failed(_) => exit::FAILED,
            End::Cancelled => exit::INTERRUPTED,
        })
    }

    fn chain(&self, component: &Component) -> Result<Chain, CliError> {
        let trains = component.trains();
        let Some(train) = trains.iter().find(|train| train.name == self.train) else {
            let names: Vec<_> = trains.iter().map(|t| t.name.escape_debug().to_string()).collect();
            return Err(CliError::NotFound(format!(
                "{} has no train '{}'; it has {}",
                self.file.display(),
                self.train,
                names.join(", ")
            )));
        };
        component_file::chain(train).map_err(|faults| CliError::Refused {
            path: self.file.clone(),
            reasons: faults.join("\n"),
        })
    }

    async fn report(
        &self,
        component: Arc<Component>,
        chain: Arc<Chain>,
        limits: Limits,
        input: Value,
    ) -> Result<Report, CliError> {
        let trace = Arc::new(Trace::default());
        let log = Arc::new(RunLog::new(&limits));
        let cancel = CancellationToken::new();
        tokio::spawn(cancel_on_interrupt(cancel.clone()));
        let started = Clock.instant();
        let runner = JobRunner {
            deciders: Arc::new(self.deciders(&chain, &component, &limits)?),
            run: self.run_info(&component)?,
            chain: Arc::clone(&chain),
            component: Arc::clone(&component),
            journal: Arc::clone(&trace) as _,
            limits,
            log: Arc::clone(&log),
            cancel,
            hasher: StateHasher::unkeyed(),
        };
        let end = runner.run(input).await?;
        let took = Clock.instant().duration_since(started);
        Ok(Report { chain, component, trace, log, end, took })
    }

    fn deciders(
        &self,
        chain: &Chain,
        component: &Arc<Component>,
        limits: &Limits,
    ) -> Result<Deciders, CliError> {
        let train = chain.train();
        let mut deciders = Deciders::new(train.default_decider.clone());
        for name in &train.deciders {
            let rules = RuleDecider::new(Arc::clone(component), name.clone(), limits.clone());
            deciders.add(name.clone(), Decider::Rules(rules));
        }
        deciders.add_host(&self.settings.deciders(Path::new(""))?);
        if let Some(answers) = &self.answers {
            let script = ScriptedDecider::from_json(&input::read(answers)?);
            let script = script.map_err(|error| CliError::Usage(format!("--answers: {error}")))?;
            deciders.add_in_place_of_all("answers", Decider::Scripted(script));
        }
        Ok(deciders)
    }

    fn run_info(&self, component: &Component) -> Result<RunInfo, CliError> {
        let id = || clock::random::<16>().map(hex::encode);
        Ok(RunInfo {
            tenant: "default".to_owned(),
            train: self.train.clone(),
            run_id: id()?,
            occurrence_id: id()?,
            component: component.digest().to_owned(),
            attempt: self.attempt,
            ..RunInfo::default()
        })
    }
}

/// The input as the train takes it.
fn admitted(chain: &Chain, text: &str, limits: &Limits) -> Result<Value, CliError> {
    let usage = |problem: String| CliError::Usage(format!("--input: {problem}"));
    let json = Json::parse(text).map_err(|error| usage(format!("not JSON: {error}")))?;
    let bytes = json.to_string().len();
    if bytes > limits.input_bytes {
        let limit = limits.input_bytes;
        return Err(usage(format!("has {bytes} bytes; an input may have {limit}")));
    }
    let type_name = &chain.train().input;
    chain.types().admit_json(type_name, &json).map_err(|fault| usage(fault.to_string()))
}

async fn cancel_on_interrupt(cancel: CancellationToken) {
    if signal::ctrl_c().await.is_ok() {
        cancel.cancel();
    }
}

impl Report {
    fn print(&self, output: &mut Output) -> Result<(), CliError> {
        let name = &self.chain.train().name;
        let component = styled(FAINT, format!("component {}", &self.component.digest()[..12]));
        output.line(format!("{name}  {component}"))?;
        self.trace.print(&self.chain, output)?;
        let took = milliseconds(self.took);
        match &self.end {
            End::Completed(value) => {
                output.line(format!("{} in {took}", styled(GOOD, "completed")))?;
                output.line(format!("\n{} =\n{}", value.type_name, pretty(&value.json)))?;
            }
            End::BranchCompleted => {}
            End::Failed(failed) => {
                let failure = &failed.failure;
                let what = format!(
                    "{} in {took}: {}: {} ({}): {}",
                    styled(BAD, "failed"),
                    failed.junction,
                    failure.name,
                    failure.class,
                    failure.message
                );
                output.line(what)?;
                if let Some(detail) = &failure.detail {
                    output.line(styled(FAINT, detail))?;
                }
            }
            End::Cancelled => {
                output.line(format!("{} after {took}", styled(NOTABLE, "cancelled")))?;
            }
        }
        self.print_log(output)
    }

    fn print_log(&self, output: &mut Output) -> Result<(), CliError> {
        let lines = self.log.lines();
        if !lines.is_empty() {
            output.line("\nlog")?;
        }
        for line in lines {
            let level = match line.level {
                LogLevel::Error => styled(BAD, "error"),
                LogLevel::Warn => styled(NOTABLE, "warn "),
                LogLevel::Info | LogLevel::Debug | LogLevel::Trace => {
                    styled(FAINT, format!("{:<5}", line.level.as_str()))
                }
            };
            output.line(format!("  {level} {}  {}", line.node, line.message))?;
        }
        Ok(())
    }

    fn data(&self) -> RunData<'_> {
        let (state, value, failure) = match &self.end {
            End::Completed(value) => ("completed", Some(value), None),
            End::BranchCompleted => ("completed", None, None),
            End::Failed(failed) => ("failed", None, Some(failed)),
            End::Cancelled => ("cancelled", None, None),
        };
        RunData {
            train: &self.chain.train().name,
            component: self.component.digest(),
            chain_hash: self.chain.hash(),
            state,
            output: value.and_then(|value| serde_json::from_str(&value.json).ok()),
            failure: failure.map(|it| FailureData { junction: &it.junction, failure: &it.failure }),
            path: self.trace.to_json(&self.chain),
            log: self.log.lines(),
            took_us: u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// A run as data. The output is given to the letter, also where its numbers are larger than programs usually read.
#[derive(Serialize)]
struct RunData<'a> {
    train: &'a str,
    component: &'a str,
    chain_hash: &'a str,
    state: &'a str,
    output: Option<&'a RawValue>,
    failure: Option<FailureData<'a>>,
    path: Vec<Data>,
    log: Vec<LogLine>,
    took_us: u64,
}

#[derive(Serialize)]
struct FailureData<'a> {
    junction: &'a str,
    #[serde(flatten)]
    failure: &'a Failure,
}
