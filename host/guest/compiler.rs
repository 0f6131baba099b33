//! Compiles components in a child process that can be killed: compiling untrusted code is work that an attacker can
//! make arbitrarily long and large.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use wasmtime::Engine;

use crate::clock::Clock;
use crate::guest::engine;
use crate::model::limits::COMPONENT_BYTES_MAX;

/// The hidden command under which the binary is its own compile child.
pub const COMMAND: &str = "compile-worker";

/// The most bytes of compiled code. Compiled code is about three times the size of its wasm.
const CODE_BYTES_MAX: u64 = 16 * COMPONENT_BYTES_MAX as u64;

/// The most bytes of a child's complaint that are kept.
const COMPLAINT_BYTES_MAX: usize = 4 * 1024;

/// What compiling one component may use.
#[derive(Debug, Clone)]
pub struct CompileLimits {
    /// Processor time, in whole seconds.
    pub cpu: Duration,
    /// Time, waiting included.
    pub wall: Duration,
    /// Address space, in bytes.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(90),
            wall: Duration::from_mins(3),
            memory_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

/// Why a component could not be compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The child could not be started or talked to.
    #[error("cannot run the compile child {program}: {source}")]
    Child {
        /// The program that is the child.
        program: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It took too much, also at the lowest optimisation.
    #[error(
        "compiling took more than {:?} of processor time, {:?} in all or {} bytes of memory, also \
         without optimisation; make the component's functions smaller",
        .0.cpu, .0.wall, .0.memory_bytes
    )]
    TooMuch(CompileLimits),
    /// The component cannot be compiled.
    #[error("the component cannot be compiled: {0}")]
    Refused(String),
}

/// Starts compile children.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// The `trax` binary.
    pub program: PathBuf,
    /// What one child may use.
    pub limits: CompileLimits,
}

enum Attempt {
    Compiled(Vec<u8>),
    TookTooMuch,
    Refused(String),
}

impl Compiler {
    /// Compiles a component, optimised; where that takes too much, once more without optimisation.
    ///
    /// # Errors
    /// [`CompileError`] says why not.
    pub async fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
        for optimise in [true, false] {
            let attempt = self.attempt(wasm, optimise).await;
            let attempt = attempt
                .map_err(|source| CompileError::Child { program: self.program.clone(), source })?;
            match attempt {
                Attempt::Compiled(code) => return Ok(code),
                Attempt::Refused(reason) => return Err(CompileError::Refused(reason)),
                Attempt::TookTooMuch => {
                    tracing::warn!(optimise, "compiling a component took too much");
                }
            }
        }
        Err(CompileError::TooMuch(self.limits.clone()))
    }

    async fn attempt(&self, wasm: &[u8], optimise: bool) -> std::io::Result<Attempt> {
        let mut child = Command::new(&self.program)
            .arg(COMMAND)
            .arg(self.limits.cpu.as_secs().max(1).to_string())
            .arg(self.limits.memory_bytes.to_string())
            .arg(if optimise { "optimise" } else { "plain" })
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let talk = async {
            let mut code = Vec::new();
            let mut complaint = Vec::new();
            let give = async {
                if let Some(mut stdin) = stdin {
                    // A child that died early closes its end; its exit status says more.
                    let _ = stdin.write_all(wasm).await;
                }
            };
            let take = async {
                match stdout {
                    Some(stdout) => stdout.take(CODE_BYTES_MAX).read_to_end(&mut code).await,
                    None => Ok(0),
                }
            };
            let hear = async {
                match stderr {
                    Some(stderr) => {
                        stderr.take(COMPLAINT_BYTES_MAX as u64).read_to_end(&mut complaint).await
                    }
                    None => Ok(0),
                }
            };
            let ((), took, heard) = tokio::join!(give, take, hear);
            took?;
            heard?;
            let status = child.wait().await?;
            Ok::<_, std::io::Error>((status, code, complaint))
        };
        let Ok(talked) = Clock.timeout(self.limits.wall, talk).await else {
            return Ok(Attempt::TookTooMuch);
        };
        let (status, code, complaint) = talked?;
        Ok(match status.code() {
            Some(0) => {
                if !complaint.is_empty() {
                    tracing::warn!("{}", String::from_utf8_lossy(&complaint).trim());
                }
                Attempt::Compiled(code)
            }
            Some(REFUSED) => {
                Attempt::Refused(String::from_utf8_lossy(&complaint).trim().to_owned())
            }
            // Killed by a limit: by signal for time, by an abort for memory.
            _ => Attempt::TookTooMuch,
        })
    }
}

/// The exit code of a child that says why the component cannot be compiled.
const REFUSED: i32 = 3;

/// The compile child: wasm on standard input, compiled code on standard output, a complaint on standard error.
/// Returns its exit code. To be called before anything else starts a thread.
pub fn work(arguments: &[String]) -> i32 {
    match compile(arguments) {
        Ok(()) => 0,
        Err(complaint) => {
            let _ = std::io::stderr().write_all(complaint.as_bytes());
            REFUSED
        }
    }
}

fn compile(arguments: &[String]) -> Result<(), String> {
    let [cpu, memory, mode] = arguments else {
        return Err("the compile child is started by the host, not by hand".to_owned());
    };
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("'{text}': {e}"));
    confine(number(cpu)?, number(memory)?)?;
    let mut wasm = Vec::new();
    std::io::stdin()
        .take(COMPONENT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut wasm)
        .map_err(|error| format!("cannot read the component: {error}"))?;
    let mut config = engine::config(mode == "optimise");
    config.parallel_compilation(false);
    let engine = Engine::new(&config).map_err(|error| format!("{error:#}"))?;
    let code = engine.precompile_component(&wasm).map_err(|error| format!("{error:#}"))?;
    std::io::stdout()
        .write_all(&code)
        .map_err(|error| format!("cannot hand over the code: {error}"))
}

/// Limits this process for the rest of its life, and takes the network from it where the platform allows that.
fn confine(cpu_seconds: u64, memory_bytes: u64) -> Result<(), String> {
    let limit = |resource, value| {
        setrlimit(resource, value, value)
            .map_err(|error| format!("cannot limit the compile child: {error}"))
    };
    limit(Resource::RLIMIT_CPU, cpu_seconds)?;
    limit(Resource::RLIMIT_AS, memory_bytes)?;
    limit(Resource::RLIMIT_CORE, 0)?;
    limit(Resource::RLIMIT_FSIZE, 0)?;
    // Without privileges a network of its own needs a user of its own; some platforms give neither.
    let cut = unshare(CloneFlags::CLONE_NEWNET)
        .or_else(|_| unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET));
    if let Err(error) = cut {
        let note = format!("this platform does not cut the compile child off the network: {error}");
        let _ = std::io::stderr().write_all(note.as_bytes());
    }
    Ok(())
}
