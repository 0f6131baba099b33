//! What holds for every chain: verification agrees with an oracle that tries every path, walks follow the graph's
//! numbering, ids stay put, and nothing panics.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use crate::chain::declaration::{Extract, Step, Train};
use crate::chain::faults::FaultKind;
use crate::chain::next::End;
use crate::chain::testing::tape::{Tape, draft};
use crate::chain::testing::world::{World, chosen, scored, yes};
use crate::chain::testing::{checkpoint, junction};
use crate::chain::verify::verify;
use crate::model::failure::Failure;

type Held = BTreeSet<String>;

/// Every Memory that a run may have after these steps, given those it may have before; none if some run lacks a value.
fn tried(train: &Train, steps: &[Step], before: BTreeSet<Held>) -> Option<BTreeSet<Held>> {
    let mut held = before;
    for step in steps {
        let mut after = BTreeSet::new();
        for memory in held {
            after.extend(tried_step(train, step, memory)?);
        }
        held = after;
    }
    Some(held)
}

fn tried_step(train: &Train, step: &Step, mut memory: Held) -> Option<BTreeSet<Held>> {
    let track = |index: u32, memory: Held| {
        tried(train, &train.tracks[index as usize].steps, BTreeSet::from([memory]))
    };
    if let Some(asked) = step.asked() {
        memory.get(asked.state)?;
        for asked in &asked.questions {
            let question = train.questions.iter().find(|question| question.key == asked.key)?;
            memory.insert(question.decision_type());
        }
    }
    match step {
        Step::Junction(work) => {
            work.inputs.iter().all(|input| memory.contains(input)).then_some(())?;
            memory.extend(work.outputs.iter().cloned());
        }
        Step::ShortCircuit(work) => {
            work.inputs.iter().all(|input| memory.contains(input)).then_some(())?;
            let mut succeeded = memory.clone();
            succeeded.extend(work.outputs.iter().cloned());
            return Some(BTreeSet::from([memory, succeeded]));
        }
        Step::Extract(Extract { from, to, .. }) => {
            memory.get(from)?;
            memory.insert(to.clone());
        }
        Step::Checkpoint(state) => {
            memory.get(state)?;
        }
        Step::Parallel(parallel) => {
            let mut joined = BTreeSet::from([memory.clone()]);
            for &branch in &parallel.branches {
                let ends = track(branch, memory.clone())?;
                let merge = |into: &Held, end: &Held| {
                    into.iter()
                        .chain(end.iter().filter(|name| !name.contains('<')))
                        .cloned()
                        .collect()
                };
                joined = joined
                    .iter()
                    .flat_map(|into| ends.iter().map(move |end| merge(into, end)))
                    .collect();
            }
            return Some(joined);
        }
        Step::Decide(_) => {}
        Step::Switch(_) | Step::Gate(_) | Step::Scale(_) => {
            let routing = step.routing()?;
            memory.get(&routing.decision_type())?;
            memory.insert(format!("TrackTaken<{}>", routing.question()));
            let mut after = BTreeSet::new();
            for used in step.tracks() {
                after.extend(track(used.track, memory.clone())?);
            }
            return Some(after);
        }
    }
    Some(BTreeSet::from([memory]))
}

/// The ids that a run meets which takes these tracks, numbered while it goes.
fn numbered(
    train: &Train,
    steps: &[Step],
    prefix: &str,
    taken: &mut dyn Iterator<Item = String>,
) -> Vec<String> {
    let mut ids = Vec::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut number = |key: String| {
        let count = counts.entry(key.clone()).or_default();
        *count += 1;
        format!("{prefix}{key}#{}", *count - 1)
    };
    for step in steps {
        if let Some(asked) = step.asked() {
            let decision = |key: &str| {
                train.questions.iter().find(|question| question.key == key).unwrap().decision_type()
            };
            let decisions: Vec<String> =
                asked.questions.iter().map(|asked| decision(asked.key)).collect();
            ids.push(number(format!("Decide<{}>", decisions.join(", "))));
        }
        let track = |index: u32| &train.tracks[index as usize];
        match step {
            Step::Junction(work) | Step::ShortCircuit(work) => ids.push(number(work.name.clone())),
            Step::Extract(_) | Step::Decide(_) => {}
            Step::Checkpoint(state) => ids.push(number(format!("Checkpoint<{state}>"))),
            Step::Parallel(parallel) => {
                let id = number("Parallel".to_string());
                ids.push(id.clone());
                for &branch in &parallel.branches {
                    let inside = format!("{id}/{}/", track(branch).name);
                    ids.extend(numbered(train, &track(branch).steps, &inside, taken));
                }
            }
            Step::Switch(_) | Step::Gate(_) | Step::Scale(_) => {
                let id = number(step.routing().unwrap().key());
                ids.push(id.clone());
                let name = taken.next().unwrap();
                let tracks = step.tracks();
                let used = tracks.iter().find(|used| track(used.track).name == name).unwrap();
                ids.extend(numbered(
                    train,
                    &track(used.track).steps,
                    &format!("{id}/{name}/"),
                    taken,
                ));
            }
        }
    }
    ids
}

/// A world whose answers and short circuits come from the tape.
fn world(tape: &mut Tape<'_>) -> World {
    let mut world = World::default();
    for _ in 0..8 {
        let (team, sure) = (["Billing", "Tech"][tape.number(2)], tape.number(2) == 0);
        world.answers.entry("Team".to_string()).or_default().push(chosen(team, 1.0));
        let probability = if sure { 0.9 } else { 0.1 };
        world.answers.entry("Fraud".to_string()).or_default().push(yes(probability));
        world.answers.entry("Urgency".to_string()).or_default().push(scored(probability, 1.0));
    }
    for number in 0..20 {
        if tape.number(2) == 0 {
            let failure = Failure::transient("Down", "it is down");
            world.failing.insert(format!("Short{number}"), failure);
        }
    }
    world
}

/// Arbitrary values in the places of a well-formed declaration.
fn spoil(train: &mut Train, tape: &mut Tape<'_>) {
    let names = ["", "Order", "Nowhere", "a/b", "TrackTaken<Team>", "Fraud", "Resolve", "\0"];
    let count = train.tracks.len() + 3;
    let name = |tape: &mut Tape<'_>| names[tape.number(names.len())].to_string();
    let index = |tape: &mut Tape<'_>| u32::try_from(tape.number(count)).unwrap_or(u32::MAX);
    let bars = [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.5, 1.0];
    let scopes = train.tracks.iter_mut().map(|track| &mut track.steps).chain([&mut train.root]);
    for step in scopes.flatten() {
        if tape.number(4) > 0 {
            continue;
        }
        match step {
            Step::Junction(work) | Step::ShortCircuit(work) => match tape.number(3) {
                0 => work.name = name(tape),
                1 => work.outputs = vec![name(tape), name(tape)],
                _ => work.asks = vec![name(tape)],
            },
            Step::Extract(extract) => extract.to = name(tape),
            Step::Decide(decide) => decide.questions.clear(),
            Step::Switch(switch) => match tape.number(3) {
                0 => switch.otherwise = Some(index(tape)),
                1 => switch.question = name(tape),
                _ => switch.require_confidence = bars[tape.number(bars.len())],
            },
            Step::Gate(gate) => match tape.number(3) {
                0 => (gate.yes, gate.no) = (index(tape), index(tape)),
                1 => gate.question = "Team".to_string(),
                _ => gate.no_below = bars[tape.number(bars.len())],
            },
            Step::Scale(scale) => match tape.number(2) {
                0 => scale.tracks.clear(),
                _ => scale.tracks[0].track = index(tape),
            },
            Step::Checkpoint(state) => *state = name(tape),
            Step::Parallel(parallel) => {
                parallel.branches = vec![index(tape), index(tape), u32::MAX];
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// C9, C11: a chain is accepted exactly when every run, whatever it decides, finds its values.
    #[test]
    fn verification_agrees_with_every_path(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let train = draft(&mut Tape::new(&bytes)).train;
        let start = BTreeSet::from([Held::from(["Order".to_string()])]);
        let ends = tried(&train, &train.root, start);
        let is_fine = ends.is_some_and(|ends| ends.iter().all(|memory| memory.contains("Receipt")));
        match verify(train) {
            Ok(_) => prop_assert!(is_fine),
            Err(faults) if faults.iter().all(|fault| fault.kind == FaultKind::Missing) => {
                prop_assert!(!is_fine, "{faults:?}");
            }
            Err(_) => {}
        }
    }

    /// C9, C16: an accepted chain is walked to its end, and every node the run meets has the graph's id.
    #[test]
    fn walks_end_and_number_as_the_graph_does(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        luck in prop::collection::vec(any::<u8>(), 0..44),
    ) {
        let train = draft(&mut Tape::new(&bytes)).train;
        if let Ok(chain) = verify(train.clone()) {
            let ids: Vec<String> = chain.nodes().iter().map(|node| node.id.clone()).collect();
            let mut world = world(&mut Tape::new(&luck));
            let end = world.run(chain);
            prop_assert!(matches!(end, End::Completed(_)), "{end:?}");

            let met: Vec<String> = world.nodes.iter().map(|node| ids[node.index()].clone()).collect();
            let taken = |line: &String| {
                let (_, track) = line.split_once(" take ")?;
                Some(track.split(" because ").next()?.to_string())
            };
            let mut taken = world.log.iter().filter_map(taken);
            prop_assert_eq!(met, numbered(&train, &train.root, "", &mut taken));
            prop_assert!(world.nodes.is_sorted(), "nodes come in declared order");
        }
    }

    /// C16: a step inserted anywhere moves no other id.
    #[test]
    fn an_inserted_step_moves_no_other_id(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        place in any::<prop::sample::Index>(),
        position in any::<prop::sample::Index>(),
        is_junction in any::<bool>(),
    ) {
        let train = draft(&mut Tape::new(&bytes)).train;
        if let Ok(before) = verify(train.clone()) {
            let mut changed = train;
            let count = changed.tracks.len();
            let steps = match place.index(count + 1) {
                track if track < count => &mut changed.tracks[track].steps,
                _ => &mut changed.root,
            };
            let at = position.index(steps.len() + 1);
            let step = if is_junction { junction("Unrelated", &[], &[]) } else { checkpoint("Order") };
            let is_unrelated = is_junction || !before.nodes().iter().any(|node| node.id.contains("Checkpoint<Order>"));
            steps.insert(at, step);
            if let Ok(after) = verify(changed) {
                let others: Vec<&str> = after
                    .nodes()
                    .iter()
                    .map(|node| node.id.as_str())
                    .filter(|id| !id.contains("Unrelated#") && (is_junction || !id.contains("Checkpoint<Order>")))
                    .collect();
                let old: Vec<&str> = before.nodes().iter().map(|node| node.id.as_str()).collect();
                prop_assert!(!is_unrelated || others == old, "{others:?} and {old:?}");
            }
        }
    }

    /// C8: whatever a declaration says, verification answers; what it accepts can be walked.
    #[test]
    fn no_declaration_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut tape = Tape::new(&bytes);
        let mut train = draft(&mut tape).train;
        spoil(&mut train, &mut tape);
        match verify(train) {
            Ok(chain) => {
                let end = World::default().run(chain);
                let is_end = match &end {
                    End::Completed(_) => true,
                    End::Failed(failure) => failure.failure.name == "NoTrack",
                    End::BranchCompleted | End::Cancelled => false,
                };
                prop_assert!(is_end, "{end:?}");
            }
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }

    /// C5, C20: whatever accepted chain, a run leaves nothing of itself behind: the same run gives the same log.
    #[test]
    fn a_run_is_determined_by_what_it_is_told(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        luck in prop::collection::vec(any::<u8>(), 0..44),
    ) {
        let train = draft(&mut Tape::new(&bytes)).train;
        if let (Ok(first), Ok(second)) = (verify(train.clone()), verify(train)) {
            let mut worlds = [world(&mut Tape::new(&luck)), world(&mut Tape::new(&luck))];
            worlds[0].run(first);
            worlds[1].run(second);
            prop_assert_eq!(&worlds[0].log, &worlds[1].log);
        }
    }

    /// Wherever a run stops and goes on from a snapshot, it does what it would have done, each step once.
    #[test]
    fn a_run_that_stops_and_goes_on_is_the_same_run(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        luck in prop::collection::vec(any::<u8>(), 0..44),
        stops in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let train = draft(&mut Tape::new(&bytes)).train;
        if let (Ok(first), Ok(second)) = (verify(train.clone()), verify(train)) {
            let mut worlds = [world(&mut Tape::new(&luck)), world(&mut Tape::new(&luck))];
            worlds[1].stops = stops;
            let ends = [worlds[0].run(first), worlds[1].run(second)];
            prop_assert_eq!(&ends[0], &ends[1]);
            prop_assert_eq!(&worlds[0].log, &worlds[1].log);
        }
    }
}
