//! The command line: one file per command, and all printing.

pub mod apply;
pub mod bench;
pub mod calibration_plot;
pub mod check;
pub mod csv;
pub mod database;
pub mod db;
pub mod dead_letters;
pub mod decision_report;
pub mod decisions;
pub mod deploy;
pub mod dev;
pub mod error;
pub mod folder;
pub mod groups;
pub mod host_options;
pub mod input;
pub mod list;
pub mod load;
pub mod manifest_set;
pub mod manifests;
pub mod news;
pub mod output;
pub mod queue;
pub mod redeploy;
pub mod run;
pub mod run_picture;
pub mod runs;
pub mod serve;
pub mod settings;
pub mod shell;
pub mod sim;
pub mod table;
pub mod tenants;
pub mod tokens;
pub mod trace;
pub mod trains;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::error::CliError;
use crate::cli::output::Output;

/// Runs durable trains shipped as WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "trax", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Print data for programs instead of text for people
    #[arg(long, global = true)]
    pub json: bool,
    /// Keep compiled code in this folder [default: a folder of the user's cache]
    #[arg(long, global = true, env = "TRAX_CODE_FOLDER", value_name = "FOLDER")]
    pub code_folder: Option<PathBuf>,
}

/// SIGXFSZ, which has this number on Linux and macOS alike.
const FILE_SIZE_EXCEEDED: i32 = 25;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a train once, here, without a database
    Run(run::Run),
    /// Say whether a component would be accepted, and what it declares
    Check(check::Check),
    /// Deploy and run everything in a folder, and print what happens until Ctrl-C
    Dev(dev::Dev),
    /// Run trains and answer operators over HTTP, until told to stop
    Serve(serve::Serve),
    /// Deploy components (.wasm) and state manifests (.toml): all of them, or none if one is wrong
    Deploy(deploy::Deploy),
    /// State manifests (.toml): all of them, or none if one is wrong
    Apply(apply::Apply),
    /// List the trains that new runs use
    Trains(trains::Trains),
    /// List manifests; show, run or cancel them, or switch them on and off
    Manifests(manifests::Manifests),
    /// List groups of manifests; switch them on and off, change, run or cancel them
    Groups(groups::Groups),
    /// Say when manifests would run, be retried and become dead letters, without running anything
    Sim(sim::Sim),
    /// List what is queued, newest first; add to it, or withdraw from it
    Queue(queue::Queue),
    /// List runs, newest first; show or cancel them
    Runs(runs::Runs),
    /// List dead letters, newest first; show, requeue or acknowledge them
    DeadLetters(dead_letters::DeadLetters),
    /// List what deciders answered, newest first; say what it should have been, and how good they are
    Decisions(decisions::Decisions),
    /// List tenants, add one, or change what one may use
    Tenants(tenants::Tenants),
    /// List tokens of the server, make one, or revoke one
    Tokens(tokens::Tokens),
    /// Bring a database's schema up to date, or say where it stands
    Db(db::DbCommand),
    /// Measure how fast a database and this machine are
    Bench(bench::BenchCommand),
    /// Print what a shell needs to complete the commands
    Completions(shell::Completions),
    /// Write a manual page for each command
    Man(shell::Man),
}

impl Cli {
    /// Carries the command out and returns the exit code.
    pub async fn run(self) -> u8 {
        let mut output = Output::new(self.global.json);
        // A file that grows past a limit on its size is an error to report. Watched, the signal no longer kills.
        let _limit = signal(SignalKind::from_raw(FILE_SIZE_EXCEEDED));
        let done = match self.command {
            Command::Run(command) => command.run(&self.global, &mut output).await,
            Command::Check(command) => command.run(&self.global, &mut output).await,
            Command::Dev(command) => command.run(&self.global, &mut output).await,
            Command::Serve(command) => command.run(&self.global, &mut output).await,
            Command::Deploy(command) => command.run(&self.global, &mut output).await,
            Command::Apply(command) => command.run(&mut output).await,
            Command::Trains(command) => command.run(&mut output).await,
            Command::Manifests(command) => command.run(&mut output).await,
            Command::Groups(command) => command.run(&mut output).await,
            Command::Sim(command) => command.run(&mut output).await,
            Command::Queue(command) => command.run(&mut output).await,
            Command::Runs(command) => command.run(&mut output).await,
            Command::DeadLetters(command) => command.run(&mut output).await,
            Command::Decisions(command) => command.run(&mut output).await,
            Command::Tenants(command) => command.run(&mut output).await,
            Command::Tokens(command) => command.run(&mut output).await,
            Command::Db(command) => command.run(&mut output).await,
            Command::Bench(command) => command.run(&self.global, &mut output).await,
            Command::Completions(command) => command.run(&mut output),
            Command::Man(command) => command.run(&mut output),
        };
        match done.and_then(|code| output.flush().map(|()| code)) {
            Ok(code) => code,
            Err(error) => report(&error, &mut output),
        }
    }
}

fn report(error: &CliError, output: &mut Output) -> u8 {
    // A reader that has closed its end, such as `head`, has seen what it wanted.
    if !error.is_broken_pipe() {
        output.error(error);
    }
    error.exit_code()
}

/// Exit codes: the same for every command.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// The run, or the thing asked for, failed.
    pub const FAILED: u8 = 1;
    /// The command line or the input is wrong.
    pub const USAGE: u8 = 2;
    /// There is no such file, train or row.
    pub const NOT_FOUND: u8 = 3;
    /// Refused: the component does not pass, or something is in the way.
    pub const REFUSED: u8 = 4;
    /// The database cannot be used: away, refusing, read-only, damaged, full, or of another version.
    pub const UNAVAILABLE: u8 = 5;
    /// A bug, or a machine that cannot run guests.
    pub const BUG: u8 = 70;
    /// Stopped by Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
}
