//! One host process: `trax dev`, as a person starts it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli_store::Desk;

/// How long a process may say nothing before the test gives up.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// A `trax dev` that runs, told to print JSON. It is killed when the test is done with it.
pub(crate) struct HostProcess {
    child: Child,
    lines: Receiver<Value>,
    said: Vec<String>,
}

impl HostProcess {
    /// Starts it on the desk's folder.
    pub(crate) fn start(desk: &Desk) -> Self {
        Self::start_with(desk, &[])
    }

    /// Starts it with more arguments.
    pub(crate) fn start_with(desk: &Desk, arguments: &[&str]) -> Self {
        Self::start_command(desk, "dev", arguments)
    }

    /// Starts a command that prints lines of JSON while it runs.
    pub(crate) fn start_command(desk: &Desk, command: &str, arguments: &[&str]) -> Self {
        let mut command = desk.command(&[command, "--json"]);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // A process that is killed may leave half a line.
            for line in out.lines().map_while(Result::ok) {
                let Ok(value) = serde_json::from_str(&line) else { return };
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, said: Vec::new() }
    }

    /// The next line, if there is one in this time.
    pub(crate) fn line_within(&mut self, patience: Duration) -> Option<Value> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                self.said.push(line.to_string());
                Some(line)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.child.wait().unwrap();
                panic!("the host ended by itself: {ended}; it said:\n{}", self.said.join("\n"))
            }
        }
    }

    /// Reads lines up to the first that matches, and gives it.
    pub(crate) fn wait_for(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.line_within(SILENCE_MAX) {
                Some(line) if matches(&line) => return line,
                Some(_) => {}
                None => panic!("the host does not say {what}; it said:\n{}", self.said.join("\n")),
            }
        }
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends Ctrl-C until it has ended, and gives the exit code. Two at once would be one.
    pub(crate) fn interrupted_again_and_again(mut self) -> Option<i32> {
        loop {
            self.signal(Signal::INT);
            self.line_or_end(Duration::from_millis(20));
            if let Some(ended) = self.child.try_wait().unwrap() {
                return ended.code();
            }
        }
    }

    /// Waits for a line or the end, this long at most.
    fn line_or_end(&mut self, patience: Duration) {
        self.lines.recv_timeout(patience).ok();
    }

    /// Waits until it has ended by itself, and gives the exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
