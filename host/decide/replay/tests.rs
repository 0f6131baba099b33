//! Which runs a replay goes back to, which of their answers it takes, and which it gives again.

use super::*;
use crate::model::answer::AnswerKind;
use crate::model::question::{Criterion, QuestionKind};

const HOUR: Duration = Duration::from_hours(1);
const KEY: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

fn at(hours: i64) -> Timestamp {
    Timestamp::from_micros(hours * 3_600 * 1_000_000).unwrap()
}

/// A run that recorded its decisions and replays another, or none.
fn link(run: i64, replays: Option<i64>) -> Link {
    Link {
        run: RunId(run),
        train: "triage".to_owned(),
        replay_decisions_of: replays.map(RunId),
        replay_abandoned: false,
        decisions_recorded: true,
    }
}

fn line_of(run: &Link, known: &[Link]) -> Result<Vec<i64>, String> {
    let known = known.iter().map(|link| (link.run, link.clone())).collect();
    let ids = |line: Vec<RunId>| line.iter().map(|run| run.0).collect();
    line(run, &known).map(ids).map_err(|broken| broken.to_string())
}

/// D12, D15, D16: the line goes back through runs that replay each other, and ends at one that asked.
#[test]
fn a_line_goes_back_to_the_run_that_asked() {
    assert_eq!(line_of(&link(3, None), &[]), Ok(vec![]));
    assert_eq!(line_of(&link(3, Some(1)), &[link(1, None)]), Ok(vec![1]));
    assert_eq!(line_of(&link(3, Some(2)), &[link(2, Some(1)), link(1, None)]), Ok(vec![2, 1]));
    let abandoned = Link { replay_abandoned: true, ..link(2, Some(1)) };
    assert_eq!(line_of(&link(3, Some(2)), std::slice::from_ref(&abandoned)), Ok(vec![2]));
    assert_eq!(line_of(&abandoned, &[]), Ok(vec![]));
    // One that never started recorded nothing, and leads on.
    let unstarted = Link { decisions_recorded: false, ..link(2, Some(1)) };
    assert_eq!(line_of(&link(3, Some(2)), &[unstarted, link(1, None)]), Ok(vec![2, 1]));
}

/// D12, D17: what breaks a line, word for word.
#[test]
fn a_line_that_is_broken_says_where() {
    let run = link(3, Some(2));
    let silent = Link { decisions_recorded: false, ..link(2, None) };
    let abandoned = Link { replay_abandoned: true, decisions_recorded: false, ..link(2, Some(1)) };
    let other = Link { train: "score".to_owned(), ..link(2, None) };
    let not_recorded =
        "run 2 ran without recording its decisions, so what it decided cannot be known";
    let cases = [
        (vec![], "no run 2 exists"),
        (vec![link(2, Some(1))], "run 1, whose decisions run 2 replays, no longer exists"),
        (vec![link(2, Some(3))], "the runs it replays lead back to run 3"),
        (vec![link(2, Some(1)), link(1, Some(2))], "the runs it replays lead back to run 2"),
        (vec![link(2, Some(2))], "the runs it replays lead back to run 2"),
        (vec![other], "run 2 is a run of train 'score', not of this train"),
        (vec![silent], not_recorded),
        (vec![abandoned], not_recorded),
    ];
    for (known, reason) in cases {
        assert_eq!(line_of(&run, &known), Err(reason.to_owned()));
    }
}

/// D12, D17: 32 runs back are followed, and not one more.
#[test]
fn a_line_has_at_most_32_runs() {
    let known = |last: i64| -> Vec<Link> {
        (1..=last).map(|run| link(run, (run < last).then_some(run + 1))).collect()
    };
    assert_eq!(line_of(&link(99, Some(1)), &known(32)).unwrap().len(), 32);
    let too_long = "the runs it replays go back more than 32 runs".to_owned();
    assert_eq!(line_of(&link(99, Some(1)), &known(33)), Err(too_long));
}

fn key(question: &str) -> Key {
    (String::new(), question.to_owned(), String::new(), 0)
}

fn row(run: i64, question: &str, probability: &str, hours: i64) -> Recorded {
    Recorded {
        run: RunId(run),
        key: key(question),
        kind: "yes_no".to_owned(),
        answer: format!("{{\"probability\":{probability}}}"),
        model: Some("m".to_owned()),
        fingerprint: "f".to_owned(),
        state_hash: Some("s1:a".to_owned()),
        is_replayed: false,
        decided_at: at(hours),
    }
}

fn replayed(row: Recorded) -> Recorded {
    Recorded { is_replayed: true, ..row }
}

fn replay(line: &[i64], rows: Vec<Recorded>) -> Replay {
    let line: Vec<RunId> = line.iter().copied().map(RunId).collect();
    Replay::of(&line, rows, at(100), Some(24 * HOUR))
}

fn probability(replay: &Replay, question: &str) -> Option<f64> {
    match replay.find(&key(question))?.answer.kind {
        AnswerKind::YesNo { probability } => Some(probability),
        _ => None,
    }
}

/// D12: for each asking the nearest run counts; what it never reached comes from the run behind it.
#[test]
fn the_nearest_answer_counts() {
    let rows = vec![row(1, "A", "0.1", 99), row(1, "B", "0.2", 99), row(2, "A", "0.3", 99)];
    let replay = replay(&[2, 1], rows);
    assert_eq!((probability(&replay, "A"), probability(&replay, "B")), (Some(0.3), Some(0.2)));
    assert_eq!(replay.len(), 2);
    assert_eq!(replay.find(&key("A")).unwrap().answer.model.as_deref(), Some("m"));
    let other = [
        ("b".to_owned(), "A".to_owned(), String::new(), 0),
        (String::new(), "A".to_owned(), "Pay#0".to_owned(), 0),
        (String::new(), "A".to_owned(), String::new(), 1),
    ];
    assert!(other.iter().all(|key| replay.find(key).is_none()));
}

/// D13, D14, R66: an answer is as old as the row that a decider answered, and is replayed while younger than the limit.
#[test]
fn an_answer_is_as_old_as_the_decider_gave_it() {
    let cases = [
        (vec![row(1, "A", "0.1", 77)], true),
        (vec![row(1, "A", "0.1", 76)], false),
        (vec![replayed(row(2, "A", "0.1", 99)), row(1, "A", "0.1", 77)], true),
        (vec![replayed(row(2, "A", "0.1", 99)), row(1, "A", "0.1", 76)], false),
        (vec![replayed(row(2, "A", "0.1", 99))], false),
        (vec![row(2, "A", "0.1", 99), row(1, "A", "0.1", 1)], true),
    ];
    for (rows, is_taken) in cases {
        let replay = replay(&[2, 1], rows.clone());
        assert_eq!(replay.find(&key("A")).is_some(), is_taken, "{rows:?}");
        assert_eq!(replay.left_out.len(), usize::from(!is_taken), "{rows:?}");
    }
    let unbounded = Replay::of(&[RunId(1)], vec![row(1, "A", "0.1", 1)], at(1_000_000), None);
    assert_eq!(unbounded.len(), 1);
    let second = Duration::from_secs(1);
    let short = |now| Replay::of(&[RunId(1)], vec![row(1, "A", "0.1", 1)], now, Some(second));
    assert_eq!(short(at(1)).len(), 1);
    assert_eq!(short(at(1).saturating_add(second)).len(), 0);
}

/// D17: what is no answer is named, and the others are replayed.
#[test]
fn an_answer_that_cannot_be_read_is_named() {
    let bad = Recorded { answer: "{\"choice\":7}".to_owned(), ..row(1, "A", "0", 99) };
    let replay = replay(&[1], vec![bad, row(1, "B", "0.2", 99)]);
    assert_eq!(probability(&replay, "B"), Some(0.2));
    assert_eq!(
        replay.unreadable,
        ["the answer run 1 recorded to 'A' cannot be read: it is no answer to a yes_no question"]
    );
    assert!(!replay.is_empty());
}

fn question(options: &[&str]) -> Question {
    let criterion = |name: &&str| Criterion { name: (*name).to_owned(), description: None };
    Question {
        key: "Team".to_owned(),
        instructions: "?".to_owned(),
        kind: QuestionKind::Choice(options.iter().map(criterion).collect()),
        sensitive: false,
    }
}

fn earlier(state_hash: Option<&str>) -> Earlier {
    let kind =
        AnswerKind::Choice { choice: "Secret".to_owned(), confidence: 1.0, probabilities: vec![] };
    Earlier {
        answer: Answer { key: "Team".to_owned(), kind, model: None },
        fingerprint: "f".to_owned(),
        state_hash: state_hash.map(str::to_owned),
    }
}

/// Q23, R64, R65: each check has its reason, and none quotes the answer.
#[test]
fn an_answer_that_is_not_given_again_says_why() {
    let fits = question(&["Secret", "Sales"]);
    let yes_no = Question { kind: QuestionKind::YesNo { yes: None, no: None }, ..fits.clone() };
    let (plain, keyed) = (StateHasher::unkeyed(), StateHasher::keyed(KEY).unwrap());
    let unresolved = StateHasher::unresolved();
    let [s_a, s_b, k_a, k_b] = ["s1:a", "s1:b", "k1:a", "k1:b"].map(Some);
    let cases = [
        (&fits, "f", &plain, s_a, s_a, None),
        (&fits, "f", &keyed, k_a, k_a, None),
        (&fits, "g", &plain, s_a, s_a, Some("was given to a question that was asked otherwise")),
        (&question(&["Sales"]), "f", &plain, s_a, s_a, Some("no longer fits")),
        (&yes_no, "f", &plain, s_a, s_a, Some("no longer fits")),
        (&fits, "f", &plain, s_a, s_b, Some("was given about a different state")),
        (&fits, "f", &plain, None, s_b, Some("recorded without a hash of the state")),
        (&fits, "f", &plain, s_a, None, Some("the state cannot be hashed")),
        (&fits, "f", &unresolved, s_a, None, Some("the state hash key could not be resolved")),
        (
            &fits,
            "f",
            &plain,
            k_a,
            s_a,
            Some("was recorded under a state hash key and this run hashes the state without one"),
        ),
        (
            &fits,
            "f",
            &keyed,
            s_a,
            k_a,
            Some("was recorded without a state hash key and this run hashes the state under one"),
        ),
        (&fits, "f", &keyed, k_a, k_b, Some("or the state hash key has changed since")),
    ];
    for (question, fingerprint, hasher, before, now, reason) in cases {
        let checked = earlier(before).check(question, fingerprint, hasher, now);
        match (&checked, reason) {
            (Ok(()), None) => {}
            (Err(text), Some(reason)) => {
                assert!(text.contains(reason), "{text}");
                assert!(!text.contains("Secret"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}
