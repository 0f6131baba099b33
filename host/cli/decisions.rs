//! `trax decisions`: what deciders answered, and what they should have.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::csv;
use crate::cli::database::Database;
use crate::cli::decision_report::Report;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::list::{Listing, Page};
use crate::cli::output::{FAINT, Output, styled};
use crate::model::access::Role;
use crate::model::ids::DecisionId;
use crate::operations::access::{Action as Asked, Caller, act};
use crate::operations::decisions::{self, Listed};
use crate::store::labels::Filter;

/// List what deciders answered, newest first; say what it should have been, and how good they are
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Decisions {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List decisions, newest first
    List(List),
    /// Show one: its question, its answer, and what shadows said
    Show(Show),
    /// Say how good deciders are, by what people said their answers should have been
    Report(Report),
    /// Say what a decision should have been, in place of what was said before
    Label(Label),
}

#[derive(Debug, Args)]
struct List {
    /// Only those of this question
    #[arg(long, value_name = "KEY")]
    question: Option<String>,
    /// Only those of runs of this train
    #[arg(long, value_name = "TRAIN")]
    train: Option<String>,
    /// Only those of this decider
    #[arg(long, value_name = "NAME")]
    decider: Option<String>,
    /// Only those of which nobody has said what they should have been
    #[arg(long)]
    unlabelled: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Show {
    /// The decision's id
    id: i64,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Args)]
struct Label {
    /// The decision's id
    id: i64,
    /// What it should have been: the name of an option or a level, yes or no
    correct: String,
    /// Who says so
    #[arg(long, value_name = "NAME")]
    by: String,
    #[command(flatten)]
    database: Database,
}

impl Decisions {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Conflict`] when it is refused, [`CliError::Store`].
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        match self.action {
            None => self.list.run(output).await,
            Some(Action::List(list)) => list.run(output).await,
            Some(Action::Show(show)) => show.run(output).await,
            Some(Action::Report(report)) => report.run(output).await,
            Some(Action::Label(label)) => label.run(output).await,
        }
    }
}

/// The columns of the list as comma-separated values.
const COLUMNS: [&str; 12] = [
    "id",
    "run",
    "train",
    "question",
    "occurrence",
    "kind",
    "answer",
    "refused",
    "decider",
    "decided_at",
    "correct",
    "labelled_by",
];

impl List {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let filter = Filter {
            question: self.question.as_deref(),
            train: self.train.as_deref(),
            decider: self.decider.as_deref(),
            is_unlabelled: self.unlabelled,
            before: self.page.after.map(DecisionId),
        };
        let listed = decisions::list(&db, tenant, filter, self.page.limit).await?;
        if self.csv {
            output.line(csv::line(&COLUMNS))?;
            for it in &listed {
                output.line(csv::line(&cells(it)))?;
            }
            return Ok(exit::DONE);
        }
        let listing = Listing {
            name: "decisions",
            nothing: "no decision",
            head: ["id", "run", "train", "question", "answer", "by", "shadows", "correct"],
        };
        listing.print(output, &listed, data, |it| {
            [
                it.decision.id.to_string(),
                it.decision.run.to_string(),
                it.decision.train.clone(),
                it.decision.question_key.clone(),
                answer(it),
                by(it),
                agreement(it),
                withheld(it, it.decision.correct.as_deref()).unwrap_or_default(),
            ]
        })
    }
}

impl Show {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let found = decisions::detail(&db, tenant, DecisionId(self.id)).await?;
        if output.is_json {
            output.json(&data(&found))?;
            return Ok(exit::DONE);
        }
        let decision = &found.decision;
        let asked: Value = serde_json::from_str(&decision.question).unwrap_or_default();
        let mut line = |name: &str, text: &dyn std::fmt::Display| {
            output.line(format!("{} {text}", styled(FAINT, format!("{name:<12}"))))
        };
        line("decision", &decision.id)?;
        line("run", &format!("{} of {}", decision.run, decision.train))?;
        line("question", &format!("{}#{}", decision.question_key, decision.occurrence))?;
        line("asked", &asked["instructions"].as_str().unwrap_or_default().escape_debug())?;
        line("answer", &answer(&found))?;
        line("by", &by(&found))?;
        if let Some(model) = &decision.model {
            line("model", &model.escape_debug())?;
        }
        line("at", &decision.decided_at)?;
        for shadow in shadows(&found) {
            line("shadow", &said(&shadow))?;
        }
        if let Some(routes) = withheld(&found, decision.routes.as_deref()) {
            line("tracks", &routes)?;
        }
        if let Some(correct) = withheld(&found, decision.correct.as_deref()) {
            let by = decision.labelled_by.as_deref().unwrap_or_default();
            line("correct", &format!("{correct}, says {}", by.escape_debug()))?;
        }
        Ok(exit::DONE)
    }
}

impl Label {
    async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_write().await?;
        let caller = Caller {
            tenant,
            name: self.by.clone(),
            role: Role::Operator,
            origin: "command line".to_owned(),
        };
        let work = decisions::label(&db, tenant, DecisionId(self.id), &self.correct, &self.by);
        let done = act(&db, &caller, Asked::LabelDecision, &self.id.to_string(), work).await?;
        output.outcome(&done)
    }
}

/// What is shown of something that a sensitive question's answer can be read from.
fn withheld(listed: &Listed, text: Option<&str>) -> Option<String> {
    text.map(|text| if listed.is_sensitive { "(withheld)".to_owned() } else { text.to_owned() })
}

fn answer(listed: &Listed) -> String {
    let decision = &listed.decision;
    match (&decision.refused, withheld(listed, decision.answer.as_deref())) {
        (Some(refused), _) => format!("refused: {}", refused.escape_debug()),
        (None, answer) => answer.unwrap_or_default(),
    }
}

fn by(listed: &Listed) -> String {
    let decision = &listed.decision;
    let replayed = || "replayed".to_owned();
    decision.decider.clone().filter(|_| !decision.replayed).unwrap_or_else(replayed)
}

/// What shadows said. Of a sensitive question only who agreed.
fn shadows(listed: &Listed) -> Vec<Value> {
    let recorded = listed.decision.shadows.as_deref().unwrap_or("[]");
    let mut shadows: Vec<Value> = serde_json::from_str(recorded).unwrap_or_default();
    for shadow in shadows.iter_mut().filter(|_| listed.is_sensitive) {
        shadow["answer"] = json!({ "_redacted": true });
    }
    shadows
}

fn said(shadow: &Value) -> String {
    let name = shadow["decider"].as_str().unwrap_or_default();
    let how = match (&shadow["error"], &shadow["agreed"]) {
        (Value::String(error), _) => format!("has no answer that fits: {}", error.escape_debug()),
        (_, Value::Bool(true)) => format!("agreed: {}", shadow["answer"]),
        _ => format!("differed: {}", shadow["answer"]),
    };
    format!("{name} {how}")
}

/// How many of the shadows agreed, as in `1 of 2 agreed`.
fn agreement(listed: &Listed) -> String {
    let shadows = shadows(listed);
    let agreed = shadows.iter().filter(|shadow| shadow["agreed"] == json!(true)).count();
    match shadows.len() {
        0 => String::new(),
        all => format!("{agreed} of {all} agreed"),
    }
}

fn cells(listed: &Listed) -> [String; 12] {
    let decision = &listed.decision;
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    [
        decision.id.to_string(),
        decision.run.to_string(),
        decision.train.clone(),
        decision.question_key.clone(),
        decision.occurrence.to_string(),
        decision.kind.clone(),
        withheld(listed, decision.answer.as_deref()).unwrap_or_default(),
        text(decision.refused.as_deref()),
        by(listed),
        decision.decided_at.to_string(),
        withheld(listed, decision.correct.as_deref()).unwrap_or_default(),
        text(decision.labelled_by.as_deref()),
    ]
}

fn data(listed: &Listed) -> Value {
    let decision = &listed.decision;
    let hidden = |text: Option<&str>| match text {
        Some(_) if listed.is_sensitive => json!({ "_redacted": true }),
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        None => Value::Null,
    };
    let correct = match &decision.correct {
        Some(_) if listed.is_sensitive => json!({ "_redacted": true }),
        correct => json!(correct),
    };
    json!({
        "id": decision.id.0, "run": decision.run.0, "train": decision.train,
        "question": decision.question_key, "occurrence": decision.occurrence,
        "branch": decision.branch_path, "asked_by": decision.asked_by, "kind": decision.kind,
        "asked": serde_json::from_str::<Value>(&decision.question).unwrap_or_default(),
        "answer": hidden(decision.answer.as_deref()), "refused": decision.refused,
        "model": decision.model, "decider": decision.decider, "replayed": decision.replayed,
        "shadows": shadows(listed), "routes": hidden(decision.routes.as_deref()),
        "decided_at": decision.decided_at.to_string(), "correct": correct,
        "labelled_by": decision.labelled_by,
        "labelled_at": decision.labelled_at.map(|at| at.to_string()),
    })
}
