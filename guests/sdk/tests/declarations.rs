//! Trains: what they declare, and that the host's calls find their functions.

use trax_sdk::prelude::*;
use trax_sdk::questions::{AnswerKind, DecisionRequest, QuestionKind};
use trax_sdk::types::FailureClass;
use trax_sdk::wit::{BranchFailure, Isolation, Step};
use trax_sdk::{TrainFunction, types, wit};

#[derive(Value)]
struct Letter {
    text: String,
}

#[derive(Value)]
struct Sender {
    name: String,
}

#[derive(Value)]
struct Filed {
    folder: String,
}

#[derive(Choice)]
#[asks("Which folder?", key = "folder", sensitive)]
enum Folder {
    #[describe("Things to pay.")]
    Bills,
    Other,
}

#[derive(Score)]
#[asks("How urgent is it?")]
enum Urgency {
    Low,
    High,
}

#[derive(YesNo)]
#[asks("Is it junk?", yes = "Nobody asked for it.")]
struct Junk;

fn filing(train: NewTrain) -> Train {
    train
        .named::<Letter, Filed>("filing", "Files letters.")
        .rules("by-hand", |rules| rules.rule(folder_of).rule(urgency_of))
        .default_decider("by-hand")
        .subject_key("/text")
        .isolated_per_run()
        .queue_only()
        .wants(|wants| {
            wants.http("https://a.example").config("c").secret("s").writable_directory("d")
        })
        .chain(|chain| {
            chain
                .junction("Read", read)
                .short_circuit("Known", known)
                .extract::<Letter, Sender>("sender")
                .decide::<Letter>(|letter| {
                    letter
                        .question::<Urgency>()
                        .question_in_words::<Junk>("Junk, is it?")
                        .shadow("model")
                        .wait_for_shadows(std::time::Duration::from_millis(20))
                })
                .switch::<Folder>(|folder| {
                    folder
                        .asking_in_words::<Letter>("Where to?")
                        .decided_by("model")
                        .require_confidence(0.5)
                        .when_confident(Folder::Bills, 0.75, |track| track.junction("File", file))
                        .otherwise("Desk", |track| {
                            track.gate::<Junk>(|junk| {
                                junk.yes_at_least(0.9, |track| track)
                                    .no_below(0.1, |track| track)
                                    .unsure(|track| track)
                            })
                        })
                        .described("Somebody looks at it.")
                })
                .checkpoint::<Filed>()
                .scale::<Urgency>(|urgency| urgency.at_least(Urgency::Low, |track| track))
                .parallel(|branches| {
                    branches.branch("left", |branch| branch.junction("Read", read)).wait_for_all()
                })
                .junction("Refine", refine)
        })
}

fn read(letter: Letter) -> (Letter, Sender) {
    (letter, Sender { name: "Ada".to_owned() })
}

fn known(_: Sender) -> Result<Filed, std::num::ParseIntError> {
    Ok(Filed { folder: "x".parse::<u8>()?.to_string() })
}

fn file(folder: ChoiceDecision<Folder>, taken: TrackTaken<Folder>) -> Filed {
    Filed { folder: format!("{} at {}", taken.track, folder.confidence) }
}

fn refine(
    filed: Filed,
    urgency: ScoreDecision<Urgency>,
    junk: YesNoDecision<Junk>,
    _: Ask<(Folder, Junk), Sender>,
) -> Result<Filed, Failure> {
    if junk.probability > 0.5 {
        return Err(Failure::conflict("Junk", "it is junk").detail("thrown away"));
    }
    let level = match urgency.level() {
        Urgency::Low => "low",
        Urgency::High => "high",
    };
    Ok(Filed { folder: format!("{} {level}", filed.folder) })
}

fn folder_of(letter: &Letter) -> Result<ChoiceDecision<Folder>, Failure> {
    if letter.text.is_empty() {
        return Err(Failure::permanent("Empty", "there is nothing to read"));
    }
    Ok(ChoiceDecision::new(Folder::Bills, 0.8))
}

fn urgency_of(_: &Letter) -> ScoreDecision<Urgency> {
    ScoreDecision::certain(&Urgency::High)
}

fn other(train: NewTrain) -> Train {
    train
        .named::<Letter, Sender>("other", "Reads.")
        .chain(|chain| chain.junction("Read", |_: Letter| Sender { name: "other".to_owned() }))
}

const TRAINS: &[TrainFunction] = &[filing, other];

fn declared() -> wit::Train {
    trax_sdk::declare(TRAINS).swap_remove(0)
}

fn value(type_name: &str, json: &str) -> types::Value {
    types::Value { type_name: type_name.to_owned(), json: json.to_owned() }
}

fn run(
    train: &str,
    junction: &str,
    inputs: &[(&str, &str)],
) -> Result<Vec<String>, types::Failure> {
    let inputs = inputs.iter().map(|(name, json)| value(name, json)).collect();
    let outputs = trax_sdk::run_junction(TRAINS, train.to_owned(), junction.to_owned(), inputs)?;
    Ok(outputs.into_iter().map(|output| format!("{} {}", output.type_name, output.json)).collect())
}

#[test]
fn the_head_is_declared_as_it_is_written() {
    let train = declared();

    assert_eq!((train.name.as_str(), train.description.as_str()), ("filing", "Files letters."));
    assert_eq!((train.input.as_str(), train.output.as_str()), ("Letter", "Filed"));
    assert_eq!(train.deciders, ["by-hand"]);
    assert_eq!(train.default_decider.as_deref(), Some("by-hand"));
    assert_eq!(train.subject_key.as_deref(), Some("/text"));
    assert!(matches!(train.isolation, Isolation::PerRun) && train.queue_only);
    assert_eq!(train.wants.http, ["https://a.example"]);
    assert!(train.wants.directories.iter().all(|want| want.name == "d" && want.writable));
    let types: Vec<_> = train.types.iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(types, ["Letter", "Filed", "Sender"]);
}

/// Q2, Q3: words come from the type, and so does the key unless one is given.
#[test]
fn questions_are_declared_once_with_their_words() {
    let questions = declared().questions;

    let keys: Vec<_> = questions.iter().map(|question| question.key.as_str()).collect();
    assert_eq!(keys, ["Urgency", "Junk", "folder"]);
    assert!(questions[2].sensitive && !questions[0].sensitive);
    let QuestionKind::Choice(options) = &questions[2].kind else { panic!("it is a choice") };
    let options: Vec<_> =
        options.iter().map(|o| (o.name.as_str(), o.description.as_deref())).collect();
    assert_eq!(options, [("Bills", Some("Things to pay.")), ("Other", None)]);
    let QuestionKind::YesNo(meanings) = &questions[1].kind else { panic!("it is yes or no") };
    assert_eq!(
        (meanings.yes.as_deref(), meanings.no.as_deref()),
        (Some("Nobody asked for it."), None)
    );
}

#[test]
fn signatures_are_the_declarations_of_junctions() {
    let train = declared();

    let Step::Junction(read) = &train.root[0] else { panic!("it is a junction") };
    assert_eq!(
        (read.name.as_str(), &read.inputs[..], &read.outputs[..]),
        ("Read", &["Letter".to_owned()][..], &["Letter".to_owned(), "Sender".to_owned()][..])
    );
    let Step::Junction(refine) = &train.root[8] else { panic!("it is a junction") };
    assert_eq!(refine.inputs, ["Filed", "ScoreDecision<Urgency>", "YesNoDecision<Junk>"]);
    assert_eq!(refine.asks, ["folder", "Junk"]);
    let file = &train.tracks[0];
    let Step::Junction(file) = &file.steps[0] else { panic!("it is a junction") };
    assert_eq!(file.inputs, ["ChoiceDecision<folder>", "TrackTaken<folder>"]);
}

#[test]
fn every_step_is_declared_as_it_is_written() {
    let train = declared();

    assert!(matches!(&train.root[1], Step::ShortCircuit(junction) if junction.name == "Known"));
    assert!(
        matches!(&train.root[2], Step::Extract(e) if e.from == "Letter" && e.field == "sender")
    );
    let Step::Decide(decide) = &train.root[3] else { panic!("it asks") };
    assert_eq!(decide.questions[1].instructions.as_deref(), Some("Junk, is it?"));
    assert_eq!(
        (decide.shadows.as_slice(), decide.wait_for_shadows_ms),
        (&["model".to_owned()][..], Some(20))
    );
    let Step::Switch(switch) = &train.root[4] else { panic!("it switches") };
    let asking = switch.asking.as_ref().expect("it asks");
    assert_eq!((asking.state.as_str(), asking.decider.as_deref()), ("Letter", Some("model")));
    assert_eq!(asking.instructions.as_deref(), Some("Where to?"));
    assert_eq!(switch.tracks[0].require_confidence, Some(0.75));
    let otherwise = &train.tracks[switch.otherwise.expect("it has one") as usize];
    assert_eq!(otherwise.name, "Desk");
    assert_eq!(otherwise.description.as_deref(), Some("Somebody looks at it."));
    let Step::Gate(gate) = &otherwise.steps[0] else { panic!("it is a gate") };
    assert!(gate.asking.is_none());
    let names = [gate.yes, gate.no, gate.unsure.expect("it has one")];
    let names = names.map(|track| train.tracks[track as usize].name.as_str());
    assert_eq!(names, ["Yes", "No", "Unsure"]);
    assert!(matches!(&train.root[5], Step::Checkpoint(state) if state == "Filed"));
    assert!(matches!(&train.root[6], Step::Scale(scale) if scale.tracks[0].level == "Low"));
    let Step::Parallel(parallel) = &train.root[7] else { panic!("it is parallel") };
    assert!(matches!(parallel.on_failure, BranchFailure::WaitForAll));
    assert_eq!(train.tracks[parallel.branches[0] as usize].name, "left");
}

#[test]
fn declaring_twice_says_the_same() {
    assert_eq!(format!("{:?}", declared()), format!("{:?}", declared()));
}

#[test]
fn a_call_finds_its_function_and_crosses_as_json() {
    assert_eq!(
        run("filing", "Read", &[("Letter", r#"{"text":"a"}"#)]).expect("it works"),
        [r#"Letter {"text":"a"}"#, r#"Sender {"name":"Ada"}"#]
    );
    assert_eq!(
        run("other", "Read", &[("Letter", r#"{"text":"a"}"#)]).expect("it works"),
        [r#"Sender {"name":"other"}"#]
    );
    let decision = r#"{"choice":"Bills","confidence":0.9,"probabilities":{"Bills":0.9}}"#;
    let taken = r#"{"fallbackReason":null,"track":"Bills"}"#;
    let inputs = [("ChoiceDecision<folder>", decision), ("TrackTaken<folder>", taken)];
    assert_eq!(
        run("filing", "File", &inputs).expect("it works"),
        [r#"Filed {"folder":"Bills at 0.9"}"#]
    );
    let urgency = r#"{"confidence":1,"probabilities":[0.5,0.5],"score":0.5}"#;
    let inputs = |junk| {
        [
            ("Filed", r#"{"folder":"f"}"#),
            ("ScoreDecision<Urgency>", urgency),
            ("YesNoDecision<Junk>", junk),
        ]
    };
    let refined = run("filing", "Refine", &inputs(r#"{"probability":0.1}"#)).expect("it works");
    assert_eq!(refined, [r#"Filed {"folder":"f high"}"#]);
    let failure = run("filing", "Refine", &inputs(r#"{"probability":1}"#)).expect_err("it is junk");
    assert!(matches!(failure.class, FailureClass::Conflict));
    assert_eq!(failure.detail.as_deref(), Some("thrown away"));
}

#[test]
fn what_cannot_be_called_is_a_failure() {
    for (train, junction, inputs, name) in [
        ("filing", "Nope", &[][..], "NoSuchJunction"),
        ("nope", "Read", &[][..], "NoSuchJunction"),
        ("filing", "Read", &[][..], "MissingInput"),
        ("filing", "Read", &[("Letter", "{}")][..], "UnreadableValue"),
        ("filing", "Known", &[("Sender", r#"{"name":"x"}"#)][..], "ParseIntError"),
    ] {
        let failure = run(train, junction, inputs).expect_err(name);
        assert_eq!(failure.name, name);
    }
}

#[test]
fn rules_answer_what_they_know() {
    let asked = |text: &str| {
        let request = DecisionRequest {
            train: "filing".to_owned(),
            decider: "by-hand".to_owned(),
            state: value("Letter", text),
            questions: declared().questions,
        };
        trax_sdk::decide(TRAINS, request)
    };

    let answers = asked(r#"{"text":"pay"}"#).expect("they answer");

    let keys: Vec<_> = answers.iter().map(|answer| answer.key.as_str()).collect();
    assert_eq!(keys, ["folder", "Urgency"]);
    assert!(matches!(&answers[0].kind, AnswerKind::Choice(kind) if kind.choice == "Bills"));
    assert!(matches!(&answers[1].kind, AnswerKind::Score(kind) if kind.score.to_string() == "1"));
    assert_eq!(asked(r#"{"text":""}"#).expect_err("it is empty").name, "Empty");
}

/// Q8: a score is the nearest level, halves up.
#[test]
fn a_score_is_the_nearest_level_with_halves_up() {
    for (score, level) in
        [(-1.0, "Low"), (0.49, "Low"), (0.5, "High"), (7.0, "High"), (f64::NAN, "Low")]
    {
        let found = match ScoreDecision::<Urgency>::new(score, 1.0).level() {
            Urgency::Low => "Low",
            Urgency::High => "High",
        };
        assert_eq!(found, level, "{score}");
    }
}

#[test]
fn two_functions_under_one_name_are_refused() {
    fn twice(train: NewTrain) -> Train {
        train.named::<Letter, Letter>("twice", "").chain(|chain| {
            chain
                .junction("Read", |letter: Letter| letter)
                .junction("Read", |letter: Letter| letter)
        })
    }

    let panic =
        std::panic::catch_unwind(|| trax_sdk::declare(&[twice])).expect_err("it is refused");

    let message = panic.downcast_ref::<String>().expect("it has a message");
    assert!(
        message.starts_with("the junction 'Read' of train 'twice' stands for two functions"),
        "{message}"
    );
}
