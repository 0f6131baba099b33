//! `trax:train/log`: lines for the run's log.

use crate::guest::bindings::trax::train::log::{Host, Level};
use crate::guest::run_log::LogLevel;
use crate::guest::state::State;

impl Host for State {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Trace => LogLevel::Trace,
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        self.call.log.write(level, &self.call.visit.node_id, &message);
        Ok(())
    }
}
