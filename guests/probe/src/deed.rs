//! Plays a script's steps.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use trax_sdk::bindings::trax::train::decisions;
use trax_sdk::log::Level;
use trax_sdk::questions::AnswerKind;
use trax_sdk::{
    Failure, FailureClass, Outputs as _, budget, config, files, log, run, secrets, types,
};

use crate::Topic;
use crate::report::{Notes as _, Played, Report};
use crate::script::{
    Asking, Class, Fail, FilePath, FileText, Hold, Log, LogLevel, RawValue, Script, Step,
};

/// How many fresh instances see as 1.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// What a step does to its junction.
enum Next {
    GoOn,
    End,
    Give(Vec<types::Value>),
}

/// Plays the part of the script that belongs to this junction.
pub(crate) fn play(
    script: Script,
    junction: &str,
    mut notes: Vec<String>,
) -> Result<Played, Failure> {
    let steps = script.acts.and_then(|mut acts| acts.remove(junction)).unwrap_or_default();
    let raw = do_steps(steps, &mut notes)?;
    Ok(raw.map_or(Played::Notes(notes), Played::Raw))
}

/// Does steps until one ends them; gives the outputs that one of them says.
pub(crate) fn do_steps(
    steps: Vec<Step>,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<types::Value>>, Failure> {
    for step in steps {
        match do_step(step, notes)? {
            Next::GoOn => {}
            Next::End => return Ok(None),
            Next::Give(values) => return Ok(Some(values)),
        }
    }
    Ok(None)
}

fn do_step(step: Step, notes: &mut Vec<String>) -> Result<Next, Failure> {
    match step {
        Step::Note(text) => notes.push(text),
        Step::OnlyUpToAttempt(last) if run::info().attempt > last => return Ok(Next::End),
        Step::OnlyUpToVisit(last) if run::info().visit > last => return Ok(Next::End),
        Step::OnlyUpToAttempt(_) | Step::OnlyUpToVisit(_) => {}
        Step::Fail(fail) => return Err(failure(fail)),
        Step::Panic(message) => panic!("{message}"),
        Step::Return(values) => {
            return Ok(Next::Give(values.into_iter().map(raw_value).collect()));
        }
        Step::GiantOutput(bytes) => {
            return Ok(Next::Give(Report::of(vec!["x".repeat(size(bytes))]).give()?));
        }
        Step::Log(lines) => write_log(lines),
        Step::Progress(progress) => run::progress(progress.fraction, &progress.message),
        Step::Ask(asking) => notes.push(ask(asking)?),
        Step::Count => {
            notes.push(format!("count: {}", COUNT.fetch_add(1, Ordering::Relaxed) + 1));
        }
        Step::Info => notes.push(info()),
        Step::IdempotencyKey => notes.push(format!("idempotency key: {}", run::idempotency_key())),
        Step::Cancelled => notes.push(format!("cancelled: {}", run::cancelled())),
        Step::Warned => notes.push(format!("warned: {}", budget::warned())),
        Step::Budget => notes.push(format!("budget: {:?}", budget::remaining())),
        Step::Trap
        | Step::LoopForever
        | Step::LoopUntilCancelled
        | Step::SpinMs(_)
        | Step::Compute(_)
        | Step::Allocate(_)
        | Step::Recurse => exhaust(step),
        Step::Config(_)
        | Step::Secret(_)
        | Step::Reveal(_)
        | Step::HoldSecrets(_)
        | Step::ReadFile(_)
        | Step::WriteFile(_)
        | Step::ListFiles(_)
        | Step::RemoveFile(_)
        | Step::HoldDirectories(_) => {
            notes.push(access(step).unwrap_or_else(|error| error.to_string()));
        }
    }
    Ok(Next::GoOn)
}

/// Uses up what a junction has.
fn exhaust(step: Step) {
    match step {
        Step::Trap => trap(),
        Step::LoopForever => loop {
            black_box(());
        },
        Step::LoopUntilCancelled => while !run::cancelled() {},
        Step::SpinMs(milliseconds) => {
            let end = budget::remaining().own_time_us.saturating_sub(milliseconds * 1_000);
            while budget::remaining().own_time_us > end {}
        }
        Step::Compute(rounds) => {
            let mut sum = 0_u64;
            for round in 0..rounds {
                sum = black_box(sum.wrapping_add(round));
            }
        }
        // Leaked, so that the memory stays taken.
        Step::Allocate(bytes) => {
            black_box(vec![1_u8; size(bytes)].leak());
        }
        Step::Recurse => {
            black_box(recurse(0));
        }
        _ => {}
    }
}

fn trap() {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort();
}

#[expect(unconditional_recursion, reason = "ends with the stack")]
fn recurse(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    recurse(depth + 1) + room[0]
}

/// A size that memory can have here.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Does what needs a grant, and says what came of it.
fn access(step: Step) -> Result<String, trax_sdk::access::AccessError> {
    Ok(match step {
        Step::Config(name) => format!("config {name}: {}", config::get(&name)?),
        Step::Secret(name) => format!("secret {name}: {}", secrets::get(&name)?.placeholder()),
        Step::Reveal(name) => format!("revealed {name}: {}", secrets::get(&name)?.reveal()?),
        Step::HoldSecrets(Hold { name, count }) => {
            for _ in 0..count {
                std::mem::forget(secrets::get(&name)?);
            }
            format!("holds {count} secrets")
        }
        Step::ReadFile(FilePath { directory, path }) => {
            let bytes = files::open(&directory)?.read(&path)?;
            format!("read {path}: {}", String::from_utf8_lossy(&bytes))
        }
        Step::WriteFile(FileText { directory, path, text }) => {
            files::open(&directory)?.write(&path, text.as_bytes())?;
            format!("wrote {path}")
        }
        Step::ListFiles(FilePath { directory, path }) => {
            let entries = files::open(&directory)?.entries(&path)?;
            let names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
            format!("list {path}: {}", names.join(", "))
        }
        Step::RemoveFile(FilePath { directory, path }) => {
            files::open(&directory)?.remove(&path)?;
            format!("removed {path}")
        }
        Step::HoldDirectories(Hold { name, count }) => {
            for _ in 0..count {
                std::mem::forget(files::open(&name)?);
            }
            format!("holds {count} directories")
        }
        _ => String::new(),
    })
}

fn failure(fail: Fail) -> Failure {
    let class = match fail.class {
        None | Some(Class::Unclassified) => FailureClass::Unclassified,
        Some(Class::Transient) => FailureClass::Transient,
        Some(Class::Conflict) => FailureClass::Conflict,
        Some(Class::Permanent) => FailureClass::Permanent,
    };
    Failure {
        class,
        name: fail.name.unwrap_or_else(|| "ProbeFailed".to_owned()),
        message: fail.message.unwrap_or_else(|| "the script says so".to_owned()),
        detail: fail.detail,
    }
}

fn raw_value(value: RawValue) -> types::Value {
    types::Value { type_name: value.type_name, json: value.json }
}

fn write_log(lines: Log) {
    let level = match lines.level {
        Some(LogLevel::Trace) => Level::Trace,
        Some(LogLevel::Debug) => Level::Debug,
        None | Some(LogLevel::Info) => Level::Info,
        Some(LogLevel::Warn) => Level::Warn,
        Some(LogLevel::Error) => Level::Error,
    };
    let mut message = lines.message.unwrap_or_else(|| "line".to_owned());
    let missing = size(lines.bytes.unwrap_or_default()).saturating_sub(message.len());
    message.push_str(&"x".repeat(missing));
    for _ in 0..lines.lines.unwrap_or(1) {
        log::write(level, format_args!("{message}"));
    }
}

/// Facts that a script's author can predict, and those that tests compare, as `name=value`.
fn info() -> String {
    let info = run::info();
    format!(
        "info: tenant={} train={} run={} occurrence={} component={} attempt={} node={} visit={} \
         manifest={} scheduled={}",
        info.tenant,
        info.train,
        info.run_id,
        info.occurrence_id,
        info.component,
        info.attempt,
        info.node_id,
        info.visit,
        info.manifest.unwrap_or_default(),
        info.scheduled_at.map(|at| at.to_string()).unwrap_or_default(),
    )
}

/// Asks without the SDK's checks, so that undeclared questions reach the host.
fn ask(asking: Asking) -> Result<String, Failure> {
    let topic = Topic { text: asking.text.unwrap_or_default() };
    let state = topic.give()?.remove(0);
    let answers = decisions::decide(&state, &asking.keys).map_err(|failure| Failure {
        class: failure.class,
        name: failure.name,
        message: failure.message,
        detail: failure.detail,
    })?;
    let answers = answers.into_iter().map(|answer| match answer.kind {
        AnswerKind::Choice(kind) => format!("{}={} ({})", answer.key, kind.choice, kind.confidence),
        AnswerKind::Score(kind) => format!("{}={} ({})", answer.key, kind.score, kind.confidence),
        AnswerKind::YesNo(probability) => format!("{}={probability}", answer.key),
    });
    Ok(format!("answers: {}", answers.collect::<Vec<_>>().join(", ")))
}
