//! The log of one run: what its guests write, under limits.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::model::limits::Limits;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For tracing single steps.
    Trace,
    /// For finding faults.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Something went wrong.
    Error,
}

impl LogLevel {
    /// The name in rows and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// The node that was running.
    pub node: String,
    /// The text; control characters other than newline and tab are escaped.
    pub message: String,
}

#[derive(Debug, Default)]
struct Written {
    lines: Vec<LogLine>,
    bytes: usize,
    dropped_lines: u64,
    dropped_bytes: u64,
}

/// The log of one run. Past its limits lines are dropped and counted, and the last line says so.
#[derive(Debug)]
pub struct RunLog {
    bytes_max: usize,
    lines_max: usize,
    line_bytes_max: usize,
    state: Mutex<Written>,
}

impl RunLog {
    /// An empty log under these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            bytes_max: limits.log_bytes,
            lines_max: limits.log_lines,
            line_bytes_max: limits.log_line_bytes,
            state: Mutex::default(),
        }
    }

    /// Adds a line, cut at the longest line's length.
    pub fn write(&self, level: LogLevel, node: &str, message: &str) {
        let mut log = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.bytes_max.saturating_sub(log.bytes).min(self.line_bytes_max);
        if log.lines.len() >= self.lines_max || room == 0 {
            log.dropped_lines += 1;
            log.dropped_bytes += message.len() as u64;
            return;
        }
        let kept = &message[..message.floor_char_boundary(room)];
        log.dropped_bytes += (message.len() - kept.len()) as u64;
        log.bytes += kept.len();
        let message = escape_controls(kept);
        log.lines.push(LogLine { level, node: node.to_owned(), message });
    }

    /// Bytes that may still be written.
    pub fn bytes_left(&self) -> usize {
        let log = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.bytes_max.saturating_sub(log.bytes)
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The lines so far, with a last one that says what was dropped, if anything was.
    pub fn lines(&self) -> Vec<LogLine> {
        let log = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = log.lines.clone();
        if log.dropped_bytes > 0 || log.dropped_lines > 0 {
            all.push(LogLine {
                level: LogLevel::Warn,
                node: String::new(),
                message: format!(
                    "log truncated: {} line(s) and {} byte(s) dropped",
                    log.dropped_lines, log.dropped_bytes
                ),
            });
        }
        all
    }
}

/// Text that cannot move a terminal's cursor, and that Postgres can store.
pub fn escape_controls(text: &str) -> String {
    let is_harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(is_harmless) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if is_harmless(c) { c.to_string() } else { c.escape_default().to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(log_bytes: usize, log_lines: usize, log_line_bytes: usize) -> RunLog {
        RunLog::new(&Limits { log_bytes, log_lines, log_line_bytes, ..Limits::default() })
    }

    fn messages(log: &RunLog) -> Vec<String> {
        log.lines().into_iter().map(|line| line.message).collect()
    }

    #[test]
    fn lines_past_the_limits_are_dropped_and_counted() {
        let by_lines = log(100, 2, 100);
        let by_bytes = log(5, 10, 100);
        let by_length = log(100, 10, 3);
        for log in [&by_lines, &by_bytes, &by_length] {
            log.write(LogLevel::Info, "A#0", "four");
            log.write(LogLevel::Info, "A#0", "f\u{e9}");
            log.write(LogLevel::Info, "A#0", "x");
        }

        let dropped =
            |lines, bytes| format!("log truncated: {lines} line(s) and {bytes} byte(s) dropped");
        assert_eq!(messages(&by_lines), ["four", "f\u{e9}", &dropped(1, 1)]);
        assert_eq!(messages(&by_bytes), ["four", "f", &dropped(1, 3)]);
        assert_eq!(messages(&by_length), ["fou", "f\u{e9}", "x", &dropped(0, 1)]);
    }

    #[test]
    fn control_characters_are_escaped() {
        let log = log(100, 10, 100);
        log.write(LogLevel::Warn, "A#0", "a\0\x1b[2Jb\nc\td");
        assert_eq!(messages(&log), ["a\\u{0}\\u{1b}[2Jb\nc\td"]);
    }
}
