//! The run's log: `info!("sent {count} letters")`, and the same for trace, debug, warn and error.

use std::fmt::Arguments;

pub use crate::bindings::trax::train::log::Level;

/// Adds a line to the run's log; where there is no host, to standard error.
pub fn write(level: Level, message: Arguments<'_>) {
    #[cfg(target_family = "wasm")]
    crate::bindings::trax::train::log::write(level, &message.to_string());
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{level:?}: {message}");
}

/// Adds a line to the run's log at level trace.
#[macro_export]
macro_rules! trace {
    ($($words:tt)+) => { $crate::log::write($crate::log::Level::Trace, ::std::format_args!($($words)+)) };
}

/// Adds a line to the run's log at level debug.
#[macro_export]
macro_rules! debug {
    ($($words:tt)+) => { $crate::log::write($crate::log::Level::Debug, ::std::format_args!($($words)+)) };
}

/// Adds a line to the run's log at level info.
#[macro_export]
macro_rules! info {
    ($($words:tt)+) => { $crate::log::write($crate::log::Level::Info, ::std::format_args!($($words)+)) };
}

/// Adds a line to the run's log at level warn.
#[macro_export]
macro_rules! warn {
    ($($words:tt)+) => { $crate::log::write($crate::log::Level::Warn, ::std::format_args!($($words)+)) };
}

/// Adds a line to the run's log at level error.
#[macro_export]
macro_rules! error {
    ($($words:tt)+) => { $crate::log::write($crate::log::Level::Error, ::std::format_args!($($words)+)) };
}
