//! What a file may state, and how faults are told.

use std::path::Path;
use std::time::Duration;

use crate::deciders::host::HostDeciders;
use crate::operations::deciders_file::read;

fn write(folder: &Path, text: &str) -> Result<HostDeciders, String> {
    let path = folder.join("trax.toml");
    std::fs::write(&path, text).unwrap();
    read(&path).map_err(|error| error.to_string().replace(&format!("{}:", path.display()), ""))
}

#[test]
fn deciders_are_read_with_their_keys_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "hunter2\n").unwrap();
    std::fs::write(folder.path().join("answers.json"), "{}").unwrap();
    let text = r#"
        [deciders.judge]
        kind = "system-one"
        endpoint = "http://127.0.0.1:9/answers"
        preset = "nimble"
        api_key_file = "key"
        attempt_timeout = "5s"
        [deciders.chat]
        kind = "openai"
        endpoint = "http://localhost:9/v1/chat/completions"
        model = "chat-4-0613"
        log_probabilities = false
        [deciders.careful]
        kind = "cascade"
        first = "quick"
        then = "chat"
        escalate_below = 1
        [deciders.quick]
        kind = "cascade"
        first = "canned"
        then = "judge"
        escalate_below = 0.7
        unsure_above = 0.1
        [deciders.canned]
        kind = "scripted"
        file = "answers.json"
        [decisions]
        default = "judge"
        questions = { "Queue.Lane" = "careful" }
        shadows = { Team = ["chat", "triage"] }
        wait_for_shadows = "2s"
    "#;
    let host = write(folder.path(), text).unwrap();
    let names: Vec<_> =
        host.by_name.iter().map(|(name, decider)| format!("{name} {decider:?}")).collect();
    assert_eq!(
        names,
        ["canned scripted", "careful cascade", "chat openai", "judge system-one", "quick cascade"]
    );
    assert_eq!(host.default.as_deref(), Some("judge"));
    assert_eq!(host.by_question["Queue.Lane"], "careful");
    assert_eq!(host.shadows["Team"], ["chat", "triage"]);
    assert_eq!(host.wait_for_shadows, Some(Duration::from_secs(2)));
    assert!(!format!("{host:?}").contains("hunter2"));
}

#[test]
fn every_fault_names_its_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"[deciders.judge]
kind = "system-one"
endpoint = "http://models.example.com/"
model = "judge-2"
max_atempts = 3
[deciders.other]
kind = "oracle"
[deciders.chat]
kind = "openai"
endpoint = "https://models.example.com/"
model = "chat"
api_key_env = "TRAX_NO_SUCH_VARIABLE"
[deciders.a]
kind = "cascade"
first = "b"
then = "nobody"
escalate_below = 2
[deciders.c]
kind = "cascade"
first = "c"
then = "c"
escalate_below = 0.5
[decisions]
default = "jugde"
wait_for_shadows = "11m"
[decisions.shadows]
Team = "chat"
Mood = ["chat", "chat"]
"#;
    let faults = write(folder.path(), text).unwrap_err();
    let expected = [
        "1: decider 'judge': endpoint: it must be HTTPS",
        "5: decider 'judge': unknown key 'max_atempts'; did you mean 'max_attempts'?",
        "7: decider 'other': kind: unknown value 'oracle'",
        "12: decider 'chat': api_key_env: the environment variable is not set",
        "17: decider 'a': escalate_below: expected a number from 0 to 1",
        "20: decider 'c': first: the cascades ask each other in a circle",
        "21: decider 'c': then: the cascades ask each other in a circle",
        "24: [decisions]: default: unknown decider 'jugde'; there is none",
        "25: [decisions]: wait_for_shadows: '11m' is not from 0",
        "27: [decisions.shadows]: Team: expected a list of deciders' names in quotes",
        "28: [decisions.shadows]: Mood: it names 'chat' twice",
    ];
    let lines: Vec<_> = faults.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{faults}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
}
