//! Branches: what they see, how they are joined, and what their failures do.

use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::declaration::{BranchFailure, Step};
use crate::chain::next::{End, Fork, Next, RunFailure};
use crate::chain::testing::world::World;
use crate::chain::testing::{Draft, about, checkpoint, decide, gate, junction, parallel, yes_no};
use crate::chain::walk::Walk;
use crate::model::failure::{Failure, FailureClass};
use crate::model::value::Value;

/// Three branches, each with a junction and an output of its own, joined by one junction.
fn three() -> Chain {
    let mut draft = Draft::new().types(&["A", "B", "C"]);
    let branches = ["A", "B", "C"].map(|name| {
        draft.track(
            &name.to_lowercase(),
            vec![junction(&format!("Make{name}"), &["Order"], &[name])],
        )
    });
    draft.root(vec![parallel(&branches), junction("Join", &["C", "A", "B"], &["Receipt"])]).chain()
}

fn fork(chain: Chain) -> (Walk, Fork) {
    let mut walk = Walk::start(Arc::new(chain), Value::new("Order", "\"order\""));
    match walk.next() {
        Next::Fork(fork) => (walk, fork),
        other => panic!("{other:?}"),
    }
}

fn play_all(world: &mut World, fork: Fork) -> Vec<Walk> {
    let played = fork.branches.into_iter().map(|(_, mut branch)| {
        world.play(&mut branch);
        branch
    });
    played.collect()
}

fn end(walk: &mut Walk) -> End {
    match walk.next() {
        Next::Done(end) => end,
        other => panic!("{other:?}"),
    }
}

fn failing(names: &[(&str, FailureClass)]) -> World {
    let mut world = World::default();
    for (name, class) in names {
        let failure = Failure::new(*class, "Down", format!("{name} is down"));
        world.failing.insert((*name).to_string(), failure);
    }
    world
}

/// C20: every branch runs, in whatever order, and what each put is there after the join.
#[test]
fn branches_are_joined() {
    let mut world = World::default();
    world.run(three());
    assert_eq!(
        world.log,
        [
            "Parallel#0 fork",
            "Parallel#0/a/MakeA#0 call \"order\"",
            "branch completed",
            "Parallel#0/b/MakeB#0 call \"order\"",
            "branch completed",
            "Parallel#0/c/MakeC#0 call \"order\"",
            "branch completed",
            "Join#0 call \"MakeC\" \"MakeA\" \"MakeB\"",
            "completed \"Join\"",
        ]
    );
}

/// C20: branches run beside each other: what one does is not seen by another that started before.
#[test]
fn branches_may_run_in_any_order() {
    let (mut walk, fork) = fork(three());
    let names: Vec<String> = fork.branches.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(fork.on_failure, BranchFailure::CancelSiblings);
    let mut branches: Vec<Walk> = fork.branches.into_iter().map(|(_, branch)| branch).collect();
    let mut world = World::default();
    for branch in branches.iter_mut().rev() {
        assert_eq!(world.play(branch), End::BranchCompleted);
    }
    walk.joined(branches);
    assert!(matches!(world.play(&mut walk), End::Completed(_)));
}

/// C20: a parallel step whose branches all completed may be a chain's last before its end, nested ones included.
#[test]
fn parallel_steps_nest() {
    let mut draft = Draft::new().types(&["A"]).question(yes_no("Fraud"));
    let inner = draft.track("inner", vec![junction("MakeA", &[], &["A"]), checkpoint("A")]);
    let yes = draft.track("Yes", vec![parallel(&[inner])]);
    let no = draft.track("No", vec![junction("OtherA", &[], &["A"])]);
    let gated: Step = gate("Fraud", Some(about("Order")), yes, no, None);
    let outer = draft.track("outer", vec![gated, junction("Sell", &["A"], &["Receipt"])]);
    let mut world = World::default();
    let end = world.run(draft.root(vec![parallel(&[outer])]).chain());
    assert_eq!(end, End::Completed(Value::new("Receipt", "\"Sell\"")));
    let inner = "Parallel#0/outer/Gate<Fraud>#0/Yes/Parallel#0/inner";
    assert!(
        world.log.contains(&format!("{inner}/Checkpoint<A>#0 store \"MakeA\" [\"Yes\"]")),
        "{:?}",
        world.log
    );
    assert!(world.log.contains(&"Parallel#0/outer/Sell#0 call \"MakeA\"".to_string()));
}

/// C22: a branch counts askings on from the fork, each for itself, and the run counts on from where it forked.
#[test]
fn branches_count_askings_on_from_the_fork() {
    let asks = || decide("Order", &["Fraud"]);
    let mut draft = Draft::new().question(yes_no("Fraud"));
    let left = draft.track("left", vec![asks(), asks()]);
    let right = draft.track("right", vec![asks()]);
    let sell = junction("Sell", &[], &["Receipt"]);
    let mut world = World::default();
    world.run(draft.root(vec![asks(), parallel(&[left, right]), asks(), sell]).chain());
    let asked: Vec<&str> = world
        .log
        .iter()
        .filter_map(|line| line.split_once("Fraud:"))
        .map(|(_, number)| number)
        .collect();
    assert_eq!(asked, ["0", "1", "2", "1", "1"]);
}

/// C21: the failures of branches make one of the worst class, transient to permanent, the first in declared order.
#[test]
fn failures_of_branches_combine() {
    use FailureClass::{Conflict, Permanent, Transient, Unclassified};
    for (failures, junction, class, others) in [
        (vec![("MakeB", Transient)], "MakeB", Transient, 0),
        (vec![("MakeA", Transient), ("MakeB", Conflict)], "MakeB", Conflict, 1),
        (vec![("MakeA", Unclassified), ("MakeB", Conflict)], "MakeA", Unclassified, 1),
        (vec![("MakeB", Unclassified), ("MakeC", Permanent)], "MakeC", Permanent, 1),
        (
            vec![("MakeA", Conflict), ("MakeB", Conflict), ("MakeC", Transient)],
            "MakeA",
            Conflict,
            2,
        ),
    ] {
        let mut world = failing(&failures);
        let End::Failed(RunFailure { node, junction: named, failure }) = world.run(three()) else {
            panic!("{failures:?}")
        };
        assert_eq!((named.as_str(), failure.class), (junction, class), "{failures:?}");
        assert_eq!(failure.message, format!("{junction} is down"));
        assert_eq!(failure.detail.map_or(0, |detail| detail.lines().count()), others);
        assert!(node.is_some());
        assert!(!world.log.iter().any(|line| line.starts_with("Join")));
    }
}

/// C21: a branch cancelled because a sibling failed is no failure of its own.
#[test]
fn a_branch_cancelled_by_a_sibling_is_no_failure() {
    let (mut walk, fork) = fork(three());
    let mut branches: Vec<Walk> = fork.branches.into_iter().map(|(_, branch)| branch).collect();
    branches[0].cancel();
    let mut world = failing(&[("MakeB", FailureClass::Transient)]);
    for branch in &mut branches {
        world.play(branch);
    }
    walk.joined(branches);
    let End::Failed(failure) = end(&mut walk) else { panic!("did not fail") };
    assert_eq!((failure.junction.as_str(), failure.failure.detail), ("MakeB", None));
}

/// C6, C21: a run cancelled while its branches run ends as cancelled, never as failed.
#[test]
fn a_run_cancelled_in_a_fork_is_cancelled() {
    for names in [vec![], vec![("MakeB", FailureClass::Permanent)]] {
        let (mut walk, fork) = fork(three());
        walk.cancel();
        let branches = play_all(&mut failing(&names), fork);
        walk.joined(branches);
        assert_eq!(end(&mut walk), End::Cancelled, "{names:?}");
    }
    let (mut walk, mut fork) = fork(three());
    for (_, branch) in &mut fork.branches {
        branch.cancel();
    }
    let branches = play_all(&mut World::default(), fork);
    walk.joined(branches);
    assert_eq!(end(&mut walk), End::Cancelled);
}

type Breach = &'static dyn Fn(&mut Vec<Walk>);

/// C20: only the branches that left can come back, all of them, in order and at their end.
#[test]
fn other_branches_than_those_that_left_end_the_walk() {
    let breaches: [Breach; 4] = [
        &|branches| drop(branches.pop()),
        &|branches| branches.swap(0, 1),
        &|branches| branches.clear(),
        &|branches| {
            let (_, other) = fork(three());
            branches[0] = other.branches.into_iter().next().unwrap().1;
        },
    ];
    for (position, breach) in breaches.into_iter().enumerate() {
        let (mut walk, fork) = fork(three());
        let mut branches = play_all(&mut World::default(), fork);
        breach(&mut branches);
        walk.joined(branches);
        let End::Failed(failure) = end(&mut walk) else { panic!("breach {position} went on") };
        assert_eq!(failure.failure.name, "HostFault", "breach {position}");
    }
}
