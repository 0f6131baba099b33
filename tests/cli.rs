//! The binary as a person meets it: exit code, standard output and standard error.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::guest::hand_written;
use crate::world::{TRAX, guest_path};

/// What the binary said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn trax(arguments: &[&str]) -> Said {
    trax_with(arguments, b"")
}

fn trax_with(arguments: &[&str], stdin: &[u8]) -> Said {
    let mut child = Command::new(TRAX)
        .args(arguments)
        .env("TRAX_CODE_FOLDER", Path::new(env!("CARGO_TARGET_TMPDIR")).join("code"))
        .env_remove("TRAX_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(guest: &str, train: &str, more: &[&str]) -> Said {
    let path = guest_path(guest);
    let mut arguments = vec!["run", path.to_str().unwrap(), train];
    arguments.extend(more);
    trax(&arguments)
}

const TICKET: &str = "@guests/examples/support-triage/ticket.json";

#[test]
fn a_run_prints_its_path_and_its_output() {
    let said = run("support-triage", "support-triage", &["--input", TICKET]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for line in [
        "  junction    ParseTicket#0 ",
        "  decision    Team: Billing, confidence 0.95 ",
        "by support-rules\n",
        "  track       Switch<Team>#0 takes Billing\n",
        "  checkpoint  Checkpoint<Routed>#0\n",
        "completed in ",
        "\nResolution =\n{\n",
        "  \"queue\": \"billing\",\n",
    ] {
        assert!(said.out.contains(line), "{line:?} in:\n{}", said.out);
    }
    assert!(!said.out.contains('\u{1b}'), "colour in a pipe");
}

#[test]
fn json_gives_the_same_as_data() {
    let said = run("support-triage", "support-triage", &["--input", TICKET, "--json"]);
    let data: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(said.code, 0);
    assert_eq!(data["state"], "completed");
    assert_eq!(data["output"]["queue"], "billing");
    let kinds: Vec<_> = data["path"].as_array().unwrap().iter().map(|e| &e["kind"]).collect();
    assert_eq!(kinds, ["junction", "decision", "track", "junction", "checkpoint", "junction"]);
    assert_eq!(data["path"][2]["track"], "Billing");
}

#[test]
fn a_failed_run_says_where_and_why_and_exits_1() {
    let said = run("flaky", "flaky", &["--input", r#"{"failures":2}"#]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let line = "Deliver: UpstreamUnavailable (transient): Upstream answered 503";
    assert!(said.out.contains(line), "{}", said.out);
    assert!(said.out.contains("warn  Deliver#0  attempt 1 of 2 that fail"), "{}", said.out);

    let third = run("flaky", "flaky", &["--input", r#"{"failures":2}"#, "--attempt", "3"]);
    assert_eq!(third.code, 0);
    let data = run("flaky", "flaky", &["--input", r#"{"failures":2}"#, "--json"]);
    let data: Value = serde_json::from_str(&data.out).unwrap();
    assert_eq!(data["failure"]["class"], "transient");
}

#[test]
fn answers_can_come_from_a_script() {
    let answers = r#"{"Team":{"choice":"Sales","confidence":0.1}}"#;
    let more = ["--input", TICKET, "--answers", answers];
    let said = run("support-triage", "support-triage", &more);
    assert!(said.out.contains("takes Sales"), "{}", said.out);

    let wrong = run("support-triage", "support-triage", &["--input", TICKET, "--answers", "[1]"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.starts_with("error: --answers: the answers cannot be read"), "{}", wrong.err);
}

#[test]
fn input_that_does_not_fit_says_what_where_and_what_to_do() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(300_000));
    let cases = [
        ("", "not JSON: the text ends in the middle of a value at line 1, column 1"),
        (
            "{\"name\":\"A\"",
            "not JSON: the text ends in the middle of a value at line 1, column 12",
        ),
        (r#"{"name":"A","name":"B"}"#, "the member 'name' stands twice in one object"),
        (r#"{"name":"A\u0000"}"#, "text holds NUL (U+0000), which cannot be stored"),
        (deep.as_str(), "nested deeper than 64 levels at line 1, column 65"),
        (large.as_str(), "has 300011 bytes; an input may have 262144"),
        (r#"{"name":1}"#, "/name"),
        ("{}", "name"),
        (r#"{"name":"A","extra":1}"#, "extra"),
    ];
    for (input, part) in cases {
        let said = run_on_stdin("hello", "hello", input);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{part}");
        assert!(said.err.starts_with("error: --input: "), "{}", said.err);
        assert!(said.err.contains(part), "{part:?} in {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

fn run_on_stdin(guest: &str, train: &str, input: &str) -> Said {
    let path = guest_path(guest);
    trax_with(&["run", path.to_str().unwrap(), train, "--input", "-"], input.as_bytes())
}

/// Q30: the number that a guest gets and gives is the one that was written.
#[test]
fn integers_beyond_2_to_the_53_are_kept_exactly() {
    let input = r#"{"number":9007199254740993}"#;
    let said = run_on_stdin("probe", "probe-noop", input);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("9007199254740993"), "{}", said.out);
    let path = guest_path("probe");
    let json = ["run", path.to_str().unwrap(), "probe-noop", "--json", "--input", input];
    assert!(trax(&json).out.contains("9007199254740993"));
}

#[test]
fn what_is_not_there_exits_3_and_says_what_there_is() {
    let file = trax(&["run", "gone.wasm", "hello", "--input", "{}"]);
    assert_eq!(file.code, 3);
    assert!(file.err.starts_with("error: cannot read gone.wasm: "), "{}", file.err);

    let train = run("hello", "goodbye", &["--input", "{}"]);
    assert_eq!(train.code, 3);
    assert!(train.err.contains("has no train 'goodbye'; it has hello"), "{}", train.err);

    let input = run("hello", "hello", &["--input", "@gone.json"]);
    assert_eq!(input.code, 3);
    assert!(input.err.starts_with("error: cannot read gone.json: "), "{}", input.err);
}

#[test]
fn files_that_are_no_trains_are_refused_with_4() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let said = trax(&["check", path.to_str().unwrap()]);
        assert_eq!((said.code, said.out.as_str()), (4, ""), "{name}");
        said.err
    };
    let text = refused("text.wasm", b"hello");
    assert!(text.contains("text.wasm is refused:\nthe file is not WebAssembly"), "{text}");
    let module = refused("module.wasm", b"\0asm\x01\0\0\0");
    assert!(module.contains("a core WebAssembly module, not a component"), "{module}");
    let loops = refused("loops.wasm", &hand_written::component("", "(loop br 0) unreachable"));
    assert!(loops.contains("OwnTimeLimit: computed for more than 2s"), "{loops}");
    let nameless = "(i32.store (i32.const 64) (i32.const 1024))
        (i32.store (i32.const 68) (i32.const 1)) (i32.const 64)";
    let nameless = refused("nameless.wasm", &hand_written::component("", nameless));
    assert!(nameless.lines().count() > 2, "{nameless}");
}

#[test]
fn check_says_what_a_component_declares() {
    let path = guest_path("support-triage");
    let said = trax(&["check", path.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for part in [
        "accepted  component ",
        "support-triage  RawTicket -> Resolution",
        "DECIDE        Decide<ChoiceDecision<Team>>#0",
        "SWITCH        Switch<Team>#0",
        "CHECKPOINT    Checkpoint<Routed>#0",
        "RESOLVE       Resolve#0",
    ] {
        assert!(said.out.contains(part), "{part:?} in:\n{}", said.out);
    }
    let data = trax(&["check", path.to_str().unwrap(), "--json"]);
    let data: Value = serde_json::from_str(&data.out).unwrap();
    assert_eq!(data["trains"][0]["name"], "support-triage");
    assert_eq!(data["trains"][0]["chain_hash"].as_str().unwrap().len(), 64);
}

#[test]
fn the_command_line_itself_is_checked() {
    for arguments in
        [&["run"][..], &["fly"], &["check"], &["run", "a", "b", "--input", "{}", "--attempt", "0"]]
    {
        let said = trax(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}");
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    assert_eq!(trax(&["--version"]).code, 0);
    assert!(trax(&["--help"]).out.contains("Run a train once, here, without a database"));
}

#[test]
fn shells_and_man_know_every_command() {
    let help = trax(&["--help"]).out;
    let commands = help.split_once("Commands:\n").unwrap().1.split("\n\n").next().unwrap();
    // What a command does may go on in a line that is indented further.
    let names = commands.lines().filter(|line| !line.starts_with("   "));
    let commands: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"dead-letters"), "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let said = trax(&["completions", shell]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(commands.iter().all(|command| said.out.contains(command)), "{shell}");
    }

    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(trax(&["man", pages.to_str().unwrap()]).code, 0);
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(pages.join(format!("trax-{command}.1")).exists(), "{command}");
    }
    let said = trax(&["man", "/proc/man1"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("cannot write /proc/man1"), "{}", said.err);
}
