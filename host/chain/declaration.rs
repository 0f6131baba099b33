//! A train as it is declared: plain data, exactly as `wit/declaration.wit` has it.
//!
//! Nothing here has been checked; [`super::verify`] turns a declaration into a [`super::Chain`] or names every fault.

use serde::{Deserialize, Serialize};

use crate::model::question::Question;

/// A type of value that a train works with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeShape {
    /// Unique in the train.
    pub name: String,
    /// JSON Schema in normal form.
    pub schema: String,
    /// Whether operators may not see values of this type.
    pub sensitive: bool,
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Junction {
    /// Stands for the same work wherever it appears in the train.
    pub name: String,
    /// Names of the types it takes, in order.
    pub inputs: Vec<String>,
    /// Names of the types it gives, in order.
    pub outputs: Vec<String>,
    /// Keys of the questions it may ask while it runs.
    pub asks: Vec<String>,
}

/// Takes a member of a value in Memory as a value of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extract {
    /// The type it reads.
    pub from: String,
    /// The member's name.
    pub field: String,
    /// The type it gives.
    pub to: String,
}

/// How a routing step asks its own question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// The type of the value the question is about.
    pub state: String,
    /// Other words for the question's instructions, at this step only.
    pub instructions: Option<String>,
    /// The decider that answers, if not the train's.
    pub decider: Option<String>,
    /// Deciders asked the same, recorded and never acted on.
    pub shadows: Vec<String>,
    /// How long the run waits for shadows.
    pub wait_for_shadows_ms: Option<u64>,
}

/// A question that a decide step asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideQuestion {
    /// The question's key.
    pub key: String,
    /// Other words for its instructions, at this step only.
    pub instructions: Option<String>,
}

/// Asks several questions about one state in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decide {
    /// The type of the value the questions are about.
    pub state: String,
    /// What is asked, in order.
    pub questions: Vec<DecideQuestion>,
    /// The decider that answers, if not the train's.
    pub decider: Option<String>,
    /// Deciders asked the same, recorded and never acted on.
    pub shadows: Vec<String>,
    /// How long the run waits for shadows.
    pub wait_for_shadows_ms: Option<u64>,
}

/// The track for one option of a choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct When {
    /// The option's name.
    pub option_name: String,
    /// Index into the train's tracks.
    pub track: u32,
    /// The least confidence to follow it, if not the switch's own.
    pub require_confidence: Option<f64>,
}

/// Routes by a choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// The question's key.
    pub question: String,
    /// Present when the step asks its question itself.
    pub asking: Option<Asking>,
    /// A track per option that has one.
    pub tracks: Vec<When>,
    /// The least confidence to follow a choice.
    pub require_confidence: f64,
    /// Taken when the decision is not followed.
    pub otherwise: Option<u32>,
}

/// Routes by a yes/no question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The question's key.
    pub question: String,
    /// Present when the step asks its question itself.
    pub asking: Option<Asking>,
    /// The track for yes.
    pub yes: u32,
    /// Yes when the probability is at least this.
    pub yes_at_least: f64,
    /// The track for no.
    pub no: u32,
    /// No when the probability is below this.
    pub no_below: f64,
    /// The track between the two.
    pub unsure: Option<u32>,
}

/// The track from one level upwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtLeast {
    /// The level's name.
    pub level: String,
    /// Index into the train's tracks.
    pub track: u32,
}

/// Routes by a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// The question's key.
    pub question: String,
    /// Present when the step asks its question itself.
    pub asking: Option<Asking>,
    /// Tracks from some levels upwards; the lowest level must have one.
    pub tracks: Vec<AtLeast>,
    /// The least confidence to follow a score.
    pub require_confidence: f64,
    /// Taken when the decision is not followed.
    pub otherwise: Option<u32>,
}

/// What the other branches of a parallel block do when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchFailure {
    /// They are cancelled.
    CancelSiblings,
    /// They run to their end.
    WaitForAll,
}

/// Runs tracks beside each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallel {
    /// Indices into the train's tracks, in the order in which they are joined.
    pub branches: Vec<u32>,
    /// What a failure does to the other branches.
    pub on_failure: BranchFailure,
}

/// One step of a chain or track.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Calls a junction.
    Junction(Junction),
    /// Calls a junction whose output may be the run's result early.
    ShortCircuit(Junction),
    /// Takes a member of a value.
    Extract(Extract),
    /// Asks questions.
    Decide(Decide),
    /// Routes by a choice.
    Switch(Switch),
    /// Routes by yes or no.
    Gate(Gate),
    /// Routes by a score.
    Scale(Scale),
    /// Stores the value of this type.
    Checkpoint(String),
    /// Runs branches.
    Parallel(Parallel),
}

/// A named chain that a step can send the run down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// Unique in its step.
    pub name: String,
    /// One sentence for operators.
    pub description: Option<String>,
    /// The chain.
    pub steps: Vec<Step>,
}

/// How much of a guest lives on between two junctions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Every call gets a fresh instance.
    PerJunction,
    /// One instance serves a whole run.
    PerRun,
}

/// A directory that a train asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryWant {
    /// The name the operator grants a directory under.
    pub name: String,
    /// Whether it is to be written to.
    pub writable: bool,
}

/// What a train asks an operator for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// Outbound HTTP, as `https://host` or `https://host:port`.
    pub http: Vec<String>,
    /// Names of configuration values.
    pub config: Vec<String>,
    /// Names of secrets.
    pub secrets: Vec<String>,
    /// Directories.
    pub directories: Vec<DirectoryWant>,
}

/// A train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Train {
    /// Unique in the component.
    pub name: String,
    /// One sentence for operators.
    pub description: String,
    /// The type of the input.
    pub input: String,
    /// The type of the result.
    pub output: String,
    /// The types it works with.
    pub types: Vec<TypeShape>,
    /// The questions it asks.
    pub questions: Vec<Question>,
    /// The arena of tracks that steps name by index.
    pub tracks: Vec<Track>,
    /// The chain itself.
    pub root: Vec<Step>,
    /// Rule deciders that the component serves.
    pub deciders: Vec<String>,
    /// The decider of every question that names none.
    pub default_decider: Option<String>,
    /// What it asks an operator for.
    pub wants: Wants,
    /// A JSON pointer into the input.
    pub subject_key: Option<String>,
    /// How much of the guest lives on between junctions.
    pub isolation: Isolation,
    /// Whether it may only run through the queue.
    pub queue_only: bool,
}
