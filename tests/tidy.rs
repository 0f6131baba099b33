//! The project's text about itself: what reviews would otherwise have to repeat.
//!
//! Each check is a function from a file to its faults ([`checks`], [`rooms`]), proven by snippets
//! that break it. Here they meet the files of the project.

use std::fmt;
use std::fs;
use std::path::Path;

mod checks;
mod rooms;

/// A text file of the project.
struct Source {
    /// The path below the root, with `/` on every platform.
    path: String,
    text: String,
}

impl Source {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }

    fn is_below(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether a tool writes it; such a file is as wide and as long as the tool likes.
    fn is_generated(&self) -> bool {
        self.text.lines().take(5).any(|line| line.contains("@generated"))
    }

    /// The lines with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// What is wrong in a line of a file.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    line: usize,
    problem: String,
}

impl Fault {
    fn new(line: usize, problem: impl fmt::Display) -> Self {
        Self { line, problem: problem.to_string() }
    }
}

/// A check of one file.
type Check = fn(&Source) -> Vec<Fault>;

/// Runs a check over every file of the project and shows all faults at once.
fn hold(check: Check) {
    let mut faults = Vec::new();
    for source in sources() {
        for Fault { line, problem } in check(&source) {
            faults.push(format!("{}:{line}: {problem}", source.path));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// R37: which run is replayed comes out of the database; no face takes it from whoever asks.
#[test]
fn no_face_takes_the_run_to_replay() {
    let takes = |source: &&Source| {
        let is_face = source.path.starts_with("host/cli/")
            || source.path.starts_with("host/api/") && source.path.ends_with("mutation.rs");
        let is_field =
            |line: &str| line.trim_start_matches("pub ").starts_with("replay_decisions_of:");
        is_face && source.text.lines().map(str::trim).any(is_field)
    };
    let found: Vec<String> = sources().iter().filter(takes).map(|it| it.path.clone()).collect();
    assert_eq!(found, [""; 0]);
}

/// A host whose clock is off by any time claims, retries, gives up and cleans as every other: those who decide what is
/// due, who is alive and what is old read the database's clock. A host's own is read for what is told to people.
#[test]
fn the_clock_of_a_host_decides_nothing() {
    let may_read = [
        "host/clock.rs",
        "host/cli/sim.rs",
        "host/deciders/model_client/attempt.rs",
        "host/operations/requeue_jobs.rs",
    ];
    for file in sources().iter().filter(|file| file.is_below("host")) {
        let reads = file.text.contains("unix_micros");
        assert_eq!(reads, may_read.contains(&file.path.as_str()), "{}", file.path);
    }
}

/// Every text file of the project, apart from what `.gitignore` names at the root.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ignored: Vec<String> = fs::read_to_string(root.join(".gitignore"))
        .expect(".gitignore is readable")
        .lines()
        .filter_map(|line| line.strip_prefix('/').map(str::to_owned))
        .chain([".git".to_owned()])
        .collect();
    let mut sources = Vec::new();
    collect(root, "", &ignored, &mut sources);
    assert!(sources.iter().any(|source| source.path == "tests/tidy.rs"), "found no project");
    sources
}

fn collect(folder: &Path, name: &str, ignored: &[String], sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder of the project is readable") {
        let entry = entry.expect("a folder of the project is readable");
        let file = entry.file_name().to_string_lossy().into_owned();
        let path = if name.is_empty() { file.clone() } else { format!("{name}/{file}") };
        let is_output = ["target", "node_modules"].contains(&file.as_str());
        if is_output || ignored.contains(&path) {
            continue;
        }
        if entry.path().is_dir() {
            collect(&entry.path(), &path, ignored, sources);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            sources.push(Source { path, text });
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    hold(checks::opening);
}

#[test]
fn every_room_names_only_rooms_above_it() {
    hold(rooms::directions);
}

#[test]
fn the_map_lists_the_rooms_in_order() {
    hold(rooms::map);
}

#[test]
fn no_function_is_too_long() {
    hold(checks::function_length);
}

#[test]
fn no_line_is_too_wide() {
    hold(checks::width);
}

#[test]
fn nothing_is_left_to_do() {
    hold(checks::leftovers);
}

#[test]
fn only_the_guest_room_names_the_engine_of_components() {
    hold(checks::wasmtime);
}

#[test]
fn only_the_store_holds_sql() {
    hold(checks::sql);
}

#[test]
fn only_the_command_line_prints() {
    hold(checks::printing);
}

#[test]
fn no_test_sleeps() {
    hold(checks::sleeping);
}

#[test]
fn no_file_names_a_machine() {
    hold(checks::machines);
}

#[test]
fn every_link_between_documents_resolves() {
    hold(checks::links);
}
