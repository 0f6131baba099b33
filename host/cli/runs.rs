//! `trax runs`: which runs there are, and all about one.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::list::{Ids, Listing, Page};
use crate::cli::output::{BAD, FAINT, GOOD, NOTABLE, Output, pretty, styled};
use crate::cli::run_picture;
use crate::cli::trace::milliseconds;
use crate::model::ids::RunId;
use crate::model::timestamp::Timestamp;
use crate::model::value::Shown;
use crate::operations::requeue;
use crate::operations::resume;
use crate::operations::runs::{self, Detail, Filter, Listed};
use crate::store::TrainState;
use crate::store::decisions::Decision;
use crate::store::junction_runs::Step;
use crate::store::runs::Run;

/// List runs, newest first; show or cancel them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    action: Option<Action>,
    #[arg(
        long,
        value_name = "STATE",
        value_parser = state,
        help = "Only runs in this state: pending, in_progress, completed, failed or cancelled"
    )]
    state: Option<TrainState>,
    /// Only runs of this train
    #[arg(long, value_name = "NAME")]
    train: Option<String>,
    /// Only runs of this manifest
    #[arg(long, value_name = "ID")]
    manifest: Option<String>,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show all about a run
    Show(Show),
    /// Run an execution's saved input again, from the top; it replays what that execution decided
    Requeue(Requeue),
    /// Run an execution again after its latest checkpoint, or at a step after one
    Resume(Resume),
    /// Ask that runs end as cancelled
    Cancel(Cancel),
}

#[derive(Debug, Args)]
struct Show {
    /// The run's id
    id: i64,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Requeue {
    /// The run's id
    id: i64,
    /// Let it ask its deciders rather than replay
    #[arg(long)]
    ask_afresh: bool,
    #[command(flatten)]
    database: Database,
}

impl Requeue {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let done = requeue::execution(&db, tenant, RunId(self.id), self.ask_afresh).await?;
        output.outcome(&done)
    }
}

#[derive(Debug, Args)]
struct Resume {
    /// The run's id
    id: i64,
    /// The step to start at, as `trax runs show` names it
    #[arg(long, value_name = "NODE")]
    at: Option<String>,
    #[command(flatten)]
    database: Database,
}

impl Resume {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let done = resume::execution(&db, tenant, RunId(self.id), self.at.as_deref()).await?;
        output.outcome(&done)
    }
}

#[derive(Debug, Args)]
struct Cancel {
    #[command(flatten)]
    chosen: Ids,
    #[command(flatten)]
    database: Database,
}

impl Cancel {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let ids: Vec<RunId> = self.chosen.ids.into_iter().map(RunId).collect();
        let done = match ids[..] {
            [id] => runs::cancel(&db, tenant, id).await?,
            _ => runs::cancel_batch(&db, tenant, &ids).await?,
        };
        output.outcome(&done)
    }
}

fn state(text: &str) -> Result<TrainState, String> {
    let found = TrainState::ALL.iter().find(|state| state.as_str() == text);
    found.copied().ok_or_else(|| {
        let known: Vec<_> = TrainState::ALL.iter().map(|state| state.as_str()).collect();
        format!("there is {}", known.join(", "))
    })
}

impl Runs {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::NotFound`], [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            Some(Action::Show(show)) => return show.run(output).await,
            Some(Action::Requeue(requeue)) => return requeue.run(output).await,
            Some(Action::Resume(resume)) => return resume.run(output).await,
            Some(Action::Cancel(cancel)) => return cancel.run(output).await,
            None => {}
        }
        let (db, tenant) = self.database.open_to_read().await?;
        let filter = Filter {
            state: self.state,
            train: self.train,
            manifest: self.manifest,
            before: self.page.after.map(RunId),
        };
        let listed = runs::list(&db, tenant, &filter, self.page.limit).await?;
        let listing = Listing {
            name: "runs",
            nothing: "no run",
            head: ["id", "train", "manifest", "state", "started", "took", "failure"],
        };
        listing.print(output, &listed, |it| data(&it.run, it.manifest.as_deref()), row)
    }
}

fn row(listed: &Listed) -> [String; 7] {
    let run = &listed.run;
    let took = took(run.start_time, run.end_time);
    let state = shown_state(run).to_owned();
    let failure = failure(run).unwrap_or_default().chars().take(100).collect();
    [
        run.id.to_string(),
        run.name.clone(),
        listed.manifest.clone().unwrap_or_default(),
        state,
        run.start_time.to_string(),
        took,
        failure,
    ]
}

fn shown_state(run: &Run) -> &'static str {
    match run.train_state {
        TrainState::InProgress if run.parked_at.is_some() => "parked",
        TrainState::InProgress => "in progress",
        state => state.as_str(),
    }
}

fn failure(run: &Run) -> Option<String> {
    let name = run.failure_exception.as_ref()?;
    let reason = run.failure_reason.as_deref().unwrap_or_default();
    Some(format!("{name}: {reason}").escape_debug().to_string())
}

/// How long something took, if it is over.
pub fn took(start: Timestamp, end: Option<Timestamp>) -> String {
    end.map_or_else(String::new, |end| milliseconds(end.since(start)))
}

fn data(run: &Run, manifest: Option<&str>) -> Value {
    json!({
        "id": run.id.0, "external_id": run.external_id, "train": run.name, "manifest": manifest,
        "state": run.train_state.as_str(), "is_parked": run.parked_at.is_some(),
        "occurrence_id": run.occurrence_id, "subject_key": run.subject_key,
        "started_at": run.start_time.to_string(),
        "ended_at": run.end_time.map(|at| at.to_string()),
        "scheduled_at": run.scheduled_time.map(|at| at.to_string()),
        "cancel_requested": run.cancel_requested, "host": run.host_name,
        "currently_running_junction": run.currently_running_junction,
        "replay_decisions_of": run.replay_decisions_of.map(|run| run.0),
        "resume_from": run.resume_from.map(|run| run.0), "resume_at": run.resume_at,
        "failure": run.failure_exception.as_ref().map(|name| json!({
            "name": name, "class": run.failure_class.as_str(), "junction": run.failure_junction,
            "message": run.failure_reason,
        })),
    })
}

impl Show {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let detail = runs::detail(&db, tenant, RunId(self.id)).await?;
        if output.is_json {
            output.json(&detail_data(&detail))?;
        } else {
            print(&detail, output)?;
        }
        Ok(exit::DONE)
    }
}

fn print(detail: &Detail, output: &mut Output) -> Result<(), CliError> {
    let run = &detail.run;
    let style = match run.train_state {
        TrainState::Completed => GOOD,
        TrainState::Failed => BAD,
        TrainState::Pending | TrainState::InProgress | TrainState::Cancelled => NOTABLE,
    };
    let took = took(run.start_time, run.end_time);
    let state = styled(style, shown_state(run));
    output.line(format!("run {}  {}  {state}  {took}", run.id, run.name))?;
    let mut line = |name: &str, value: Option<String>| match value {
        Some(value) => output.line(format!("  {name:<12} {value}")),
        None => Ok(()),
    };
    line("manifest", detail.manifest.clone())?;
    line("started", Some(run.start_time.to_string()))?;
    line("ended", run.end_time.map(|at| at.to_string()))?;
    line("host", run.host_name.clone())?;
    line("subject", run.subject_key.clone())?;
    line("at", run.currently_running_junction.clone())?;
    line("replays", run.replay_decisions_of.map(|run| format!("run {run}")))?;
    line("resumes", run.resume_from.map(|run| format!("run {run}")))?;
    line("failed in", run.failure_junction.clone())?;
    line("failure", failure(run).map(|text| format!("{text} ({})", run.failure_class.as_str())))?;
    print_value("input", detail.input_type.as_deref(), detail.input.as_ref(), output)?;
    match &detail.picture.chain {
        Some(chain) => run_picture::draw(chain, &detail.picture, &detail.steps, output)?,
        None => print_steps(&detail.steps, output)?,
    }
    if !detail.decisions.is_empty() {
        output.line("\ndecisions")?;
    }
    for (decision, answer) in &detail.decisions {
        print_decision(decision, answer.as_ref(), output)?;
    }
    if !detail.log.is_empty() {
        output.line("\nlog")?;
    }
    for line in &detail.log {
        let level = styled(FAINT, format!("{:<11}", line.level.as_str()));
        output.line(format!("  {level} {}  {}", line.category, line.message.escape_debug()))?;
    }
    print_value("output", detail.output_type.as_deref(), detail.output.as_ref(), output)?;
    run_picture::say_resumable(&detail.picture.resume, output)
}

fn print_value(
    what: &str,
    type_name: Option<&str>,
    value: Option<&Shown>,
    output: &mut Output,
) -> Result<(), CliError> {
    match value {
        None => Ok(()),
        Some(Shown::Plain(text)) => {
            let type_name = type_name.unwrap_or_default();
            output.line(format!("\n{what} {type_name} =\n{}", pretty(text)))
        }
        Some(Shown::Sensitive) => output.line(format!("\n{what} is sensitive and not shown")),
    }
}

fn print_steps(steps: &[Step], output: &mut Output) -> Result<(), CliError> {
    if !steps.is_empty() {
        output.line("\nsteps")?;
    }
    for step in steps {
        let failure = step.failure_exception.as_deref().unwrap_or_default();
        let answer = step.answer.as_deref().unwrap_or_default();
        let text = format!(
            "  {:<9} {:<11} {}  {}  {answer}{failure}",
            step.kind.as_str(),
            step.state.as_str(),
            step.name,
            styled(FAINT, took(step.started_at, step.ended_at)),
        );
        output.line(text.trim_end())?;
    }
    Ok(())
}

fn print_decision(
    decision: &Decision,
    answer: Option<&Shown>,
    output: &mut Output,
) -> Result<(), CliError> {
    let answer = match answer {
        Some(Shown::Plain(text)) => text.as_str(),
        Some(Shown::Sensitive) => "sensitive and not shown",
        None => "no answer",
    };
    let by = match (&decision.decider, decision.replayed) {
        (_, true) => "replayed".to_owned(),
        (Some(decider), false) => decider.clone(),
        (None, false) => String::new(),
    };
    output.line(format!(
        "  {}#{}  {answer}  {}",
        decision.question_key,
        decision.occurrence,
        styled(FAINT, by)
    ))?;
    match &decision.refused {
        Some(refused) => output.line(format!("    refused: {}", refused.escape_debug())),
        None => Ok(()),
    }
}

fn shown(value: Option<&Shown>) -> Value {
    match value {
        None => Value::Null,
        Some(Shown::Plain(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(Shown::Sensitive) => json!({ "_redacted": true }),
    }
}

fn detail_data(detail: &Detail) -> Value {
    let steps = detail.steps.iter().map(|step| {
        json!({
            "position": step.position, "kind": step.kind.as_str(), "name": step.name,
            "node": step.node_id, "branch": step.branch_path, "state": step.state.as_str(),
            "started_at": step.started_at.to_string(),
            "ended_at": step.ended_at.map(|at| at.to_string()),
            "question": step.question_key, "answer": step.answer, "replayed": step.replayed,
            "failure": step.failure_exception,
        })
    });
    let decisions = detail.decisions.iter().map(|(decision, answer)| {
        json!({
            "question": decision.question_key, "occurrence": decision.occurrence,
            "branch": decision.branch_path, "kind": decision.kind,
            "answer": shown(answer.as_ref()), "refused": decision.refused,
            "decider": decision.decider, "replayed": decision.replayed,
            "fingerprint": decision.fingerprint, "state_hash": decision.state_hash,
            "decided_at": decision.decided_at.to_string(),
        })
    });
    let log = detail.log.iter().map(|line| {
        json!({
            "level": line.level.as_str(), "junction": line.category, "message": line.message,
            "logged_at": line.logged_at.to_string(),
        })
    });
    let mut data = data(&detail.run, detail.manifest.as_deref());
    if let Value::Object(members) = &mut data {
        members.insert("input_type".to_owned(), json!(detail.input_type));
        members.insert("input".to_owned(), shown(detail.input.as_ref()));
        members.insert("output_type".to_owned(), json!(detail.output_type));
        members.insert("output".to_owned(), shown(detail.output.as_ref()));
        members.insert("chain".to_owned(), run_picture::data(&detail.picture));
        members.insert("steps".to_owned(), Value::Array(steps.collect()));
        members.insert("decisions".to_owned(), Value::Array(decisions.collect()));
        members.insert("log".to_owned(), Value::Array(log.collect()));
    }
    data
}
