//! A task made of steps: each is announced, and the last lines say how each ended.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps of one task, in the order they ran.
pub(crate) struct Steps {
    task: &'static str,
    ended: Vec<Ended>,
}

struct Ended {
    step: &'static str,
    error: Option<anyhow::Error>,
    took: Duration,
}

impl Steps {
    /// No step yet.
    pub(crate) fn of(task: &'static str) -> Self {
        Self { task, ended: Vec::new() }
    }

    /// Runs one step. A failure is kept for the end, so that one run shows every fault.
    pub(crate) fn run(&mut self, step: &'static str, action: impl FnOnce() -> Result<()>) -> bool {
        eprintln!("\n== {}: {step}", self.task);
        let start = now();
        let error = action().err();
        let succeeded = error.is_none();
        self.ended.push(Ended { step, error, took: start.elapsed() });
        succeeded
    }

    /// Prints how every step ended; the last line says pass or fail.
    pub(crate) fn finish(self) -> ExitCode {
        let succeeded = self.ended.iter().all(|ended| ended.error.is_none());
        print!("\n{}", self.summary());
        if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn summary(&self) -> String {
        use std::fmt::Write;

        let mut text = String::new();
        let mut failed = Vec::new();
        for Ended { step, error, took } in &self.ended {
            let seconds = took.as_secs_f32();
            // Writing to a string cannot fail.
            let _ = match error {
                None => writeln!(text, "  ok      {step} ({seconds:.1} s)"),
                Some(error) => writeln!(text, "  FAILED  {step} ({seconds:.1} s): {error:#}"),
            };
            failed.extend(error.is_some().then_some(*step));
        }
        let _ = match failed.as_slice() {
            [] => writeln!(text, "xtask {}: PASSED", self.task),
            _ => writeln!(text, "xtask {}: FAILED ({})", self.task, failed.join(", ")),
        };
        text
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a step took; no test looks at it")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(step: &'static str, error: Option<&'static str>) -> Ended {
        Ended { step, error: error.map(anyhow::Error::msg), took: Duration::from_millis(1250) }
    }

    #[test]
    fn the_last_line_says_passed() {
        let steps = Steps { task: "check", ended: vec![ended("format", None)] };

        assert_eq!(steps.summary(), "  ok      format (1.2 s)\nxtask check: PASSED\n");
    }

    #[test]
    fn the_last_line_says_failed_and_names_the_steps() {
        let steps = Steps {
            task: "check",
            ended: vec![ended("a", Some("no")), ended("b", None), ended("c", Some("nor this"))],
        };

        assert_eq!(
            steps.summary(),
            "  FAILED  a (1.2 s): no\n  ok      b (1.2 s)\n  FAILED  c (1.2 s): nor this\n\
             xtask check: FAILED (a, c)\n"
        );
    }
}
