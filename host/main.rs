//! The `trax` binary: arguments, logging, and over to [`trax::cli`].

use std::env;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime;
use tracing_subscriber::EnvFilter;
use trax::cli::{Cli, exit};
use trax::guest::compiler;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if arguments.get(1).is_some_and(|command| command == compiler::COMMAND) {
        let code = compiler::work(&arguments[2..]);
        return ExitCode::from(u8::try_from(code).unwrap_or(exit::BUG));
    }
    let filter = EnvFilter::try_from_env("TRAX_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    let cli = Cli::parse();
    match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => ExitCode::from(runtime.block_on(cli.run())),
        Err(error) => {
            tracing::error!(%error, "cannot start");
            ExitCode::from(exit::BUG)
        }
    }
}
