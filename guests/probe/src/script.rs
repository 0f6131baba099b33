//! The input: what each junction does.

use std::collections::BTreeMap;

use trax_sdk::Value;

/// The input of a train.
#[derive(Value)]
pub(crate) struct Script {
    /// What each junction does, by its name.
    pub(crate) acts: Option<BTreeMap<String, Vec<Step>>>,
    /// What the decider does before it answers.
    pub(crate) decider: Option<Vec<Step>>,
    /// What it answers.
    pub(crate) answers: Option<Vec<ScriptedAnswer>>,
}

/// One thing that a junction does. In JSON `"count"` or `{"note":"hello"}`.
#[derive(Value)]
#[value(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Notes this text.
    Note(String),
    /// Ends the junction when the attempt is greater than this: the steps after it are for the first attempts.
    OnlyUpToAttempt(u32),
    /// Ends the junction when the visit is greater than this.
    OnlyUpToVisit(u32),

    /// Returns a failure.
    Fail(Fail),
    /// Executes `unreachable`.
    Trap,
    /// Panics with this message.
    Panic(String),

    /// Never ends.
    LoopForever,
    /// Ends once the run has been asked to stop.
    LoopUntilCancelled,
    /// Computes until this much of its own time is used, in milliseconds.
    SpinMs(u64),
    /// Computes this many rounds, without a call to the host.
    Compute(u64),
    /// Takes this many bytes of memory, writes to them, and keeps them.
    Allocate(u64),
    /// Calls itself until the stack ends.
    Recurse,

    /// Writes to the log.
    Log(Log),
    /// Says how far it has come.
    Progress(Progress),

    /// Notes what the host says about the run.
    Info,
    /// Notes the idempotency key.
    IdempotencyKey,
    /// Notes whether the run has been asked to stop.
    Cancelled,
    /// Notes the limits that are left.
    Budget,
    /// Notes whether a limit is nearly used up.
    Warned,
    /// Counts in a static, and notes the count: 1 in a fresh instance.
    Count,

    /// Notes a configuration value.
    Config(String),
    /// Notes the placeholder of a secret.
    Secret(String),
    /// Notes a secret itself.
    Reveal(String),
    /// Takes a secret this often, and keeps the handles.
    HoldSecrets(Hold),
    /// Notes the text of a file.
    ReadFile(FilePath),
    /// Writes a file.
    WriteFile(FileText),
    /// Notes the names in a directory.
    ListFiles(FilePath),
    /// Removes a file.
    RemoveFile(FilePath),
    /// Opens a directory this often, and keeps the handles.
    HoldDirectories(Hold),

    /// Asks questions by their keys, and notes the answers.
    Ask(Asking),

    /// Gives exactly these outputs, whatever the junction declares, and ends it.
    Return(Vec<RawValue>),
    /// Gives a result with a note of this many bytes, and ends it.
    GiantOutput(u64),
}

/// A failure.
#[derive(Value)]
pub(crate) struct Fail {
    /// `unclassified` when absent.
    pub(crate) class: Option<Class>,
    /// `ProbeFailed` when absent.
    pub(crate) name: Option<String>,
    /// `the script says so` when absent.
    pub(crate) message: Option<String>,
    pub(crate) detail: Option<String>,
}

/// A failure's class.
#[derive(Value)]
#[value(rename_all = "snake_case")]
pub(crate) enum Class {
    Unclassified,
    Transient,
    Conflict,
    Permanent,
}

/// Lines for the log.
#[derive(Value)]
pub(crate) struct Log {
    /// `info` when absent.
    pub(crate) level: Option<LogLevel>,
    /// `line` when absent.
    pub(crate) message: Option<String>,
    /// How often; 1 when absent.
    pub(crate) lines: Option<u32>,
    /// Fills each line up to this many bytes.
    pub(crate) bytes: Option<u64>,
}

/// A level of the log.
#[derive(Value)]
#[value(rename_all = "snake_case")]
pub(crate) enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// How far it has come.
#[derive(Value)]
pub(crate) struct Progress {
    pub(crate) fraction: Option<f64>,
    pub(crate) message: String,
}

/// What to take, and how often.
#[derive(Value)]
pub(crate) struct Hold {
    pub(crate) name: String,
    pub(crate) count: u32,
}

/// A file or directory.
#[derive(Value)]
pub(crate) struct FilePath {
    /// The name that the directory is granted under.
    pub(crate) directory: String,
    pub(crate) path: String,
}

/// What to write where.
#[derive(Value)]
pub(crate) struct FileText {
    /// The name that the directory is granted under.
    pub(crate) directory: String,
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What to ask.
#[derive(Value)]
pub(crate) struct Asking {
    /// Declared or not.
    pub(crate) keys: Vec<String>,
    /// What it is about; empty when absent.
    pub(crate) text: Option<String>,
}

/// An output as it crosses to the host.
#[derive(Value)]
pub(crate) struct RawValue {
    pub(crate) type_name: String,
    pub(crate) json: String,
}

/// An answer, fit or not.
#[derive(Value)]
pub(crate) struct ScriptedAnswer {
    pub(crate) key: String,
    pub(crate) choice: Option<String>,
    pub(crate) score: Option<f64>,
    pub(crate) probability: Option<f64>,
    pub(crate) confidence: Option<f64>,
    pub(crate) model: Option<String>,
}
