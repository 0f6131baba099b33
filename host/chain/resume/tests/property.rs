//! What holds for every chain: where the check allows a point, a run from it is the rest of the run from the top; where
//! it refuses because of a value, some run from it is not.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::chain::Chain;
use crate::chain::node::{NodeIndex, NodeKind};
use crate::chain::resume::lineage::{self, Attempt};
use crate::chain::resume::places::Places;
use crate::chain::resume::tests::making::train;
use crate::chain::resume::tests::player::{Event, Luck, Trace, from_point, from_the_top};
use crate::chain::resume::{Code, Point, Stored, check, point};
use crate::chain::testing::tape::Tape;
use crate::chain::verify::verify;
use crate::model::ids::RunId;

/// The most nodes whose luck is tried in every way.
const TRIED_MAX: usize = 6;

#[derive(Debug, Default)]
struct Seen {
    chains: u32,
    allowed: u32,
    of_branches: u32,
    again: u32,
    missing: u32,
    stale: u32,
    elsewhere: u32,
    untried: u32,
}

fn numbered(position: usize) -> NodeIndex {
    NodeIndex(u32::try_from(position).unwrap())
}

/// The nodes that luck is about.
fn lucky(chain: &Chain) -> Vec<NodeIndex> {
    let is_lucky = |kind: NodeKind| matches!(kind, NodeKind::Decide | NodeKind::ShortCircuit);
    let nodes = chain.nodes().iter().enumerate().filter(|(_, node)| is_lucky(node.kind));
    nodes.map(|(position, _)| numbered(position)).collect()
}

fn luck(nodes: &[NodeIndex], bit: impl Fn(usize) -> bool) -> Luck {
    let of_node = nodes.iter().enumerate().map(|(position, node)| (*node, bit(position)));
    Luck { of_node: of_node.collect() }
}

/// Whether a run from the point is the rest of the run from the top.
fn is_the_rest(chain: &Arc<Chain>, luck: &Luck, point: &Point, full: &Trace) -> bool {
    let resumed = from_point(chain, luck, point, &[full]);
    resumed.end == full.end && resumed.events == full.after(chain, point)
}

/// Whether some run that stored what the point restores differs from a run from it. None: there are too many to try.
fn some_run_differs(chain: &Arc<Chain>, point: &Point) -> Option<bool> {
    let nodes = lucky(chain);
    (nodes.len() <= TRIED_MAX).then(|| {
        (0..1_u32 << nodes.len()).any(|bits| {
            let luck = luck(&nodes, |position| bits >> position & 1 == 1);
            let full = from_the_top(chain, &luck);
            let has_stored = point.checkpoints().all(|node| full.state_at(node).is_some());
            has_stored && !is_the_rest(chain, &luck, point, &full)
        })
    })
}

/// A node to resume at, mostly one after a checkpoint; or none, which is after the latest.
fn at(chain: &Chain, stored: &[Stored], lot: &mut Tape<'_>) -> Option<String> {
    let first = stored.iter().filter_map(|row| chain.find(&row.node_id)).min();
    let is_likely = |position: &usize| {
        let node = &chain.nodes()[*position];
        let is_step = !matches!(node.kind, NodeKind::Extract | NodeKind::Resolve);
        first < Some(numbered(*position)) && node.branch.is_none() && is_step
    };
    let all: Vec<usize> = (0..chain.nodes().len()).collect();
    let likely: Vec<usize> = all.iter().copied().filter(is_likely).collect();
    let of = if likely.is_empty() || lot.number(16) == 0 { all } else { likely };
    let position = of[lot.number(of.len())];
    (lot.number(4) > 0).then(|| chain.node(numbered(position)).id.clone())
}

/// A second failure after a resume: the run after that resumes from where both got to.
fn resumes_again(
    chain: &Arc<Chain>,
    luck: &Luck,
    full: &Trace,
    (point, at, stored): (&Point, Option<String>, Vec<Stored>),
    count: usize,
) -> Result<bool, TestCaseError> {
    let second = from_point(chain, luck, point, &[full]);
    let attempts = [
        Attempt { run: RunId(2), resume_at: at, checkpoints: second.rows(chain, count, 2) },
        Attempt { run: RunId(1), resume_at: None, checkpoints: stored },
    ];
    let Ok(again) = check(chain, &lineage::stored(chain, attempts), None) else { return Ok(false) };
    let third = from_point(chain, luck, &again, &[&second, full]);
    prop_assert_eq!(&third.end, &full.end);
    let mut expected = full.after(chain, &again);
    let mut events = third.events;
    // What a point named between two checkpoints skipped is in no record of later ones.
    expected.iter_mut().chain(&mut events).for_each(|event: &mut Event| event.tracks.clear());
    prop_assert_eq!(events, expected);
    Ok(true)
}

fn try_chain(bytes: &[u8], lot: &[u8], seen: &RefCell<Seen>) -> Result<(), TestCaseError> {
    let Ok(chain) = verify(train(&mut Tape::new(bytes))) else { return Ok(()) };
    let chain = Arc::new(chain);
    let mut lot = Tape::new(lot);
    let nodes = lucky(&chain);
    let bits: Vec<bool> = nodes.iter().map(|_| lot.number(2) == 0).collect();
    let luck = luck(&nodes, |position| bits[position]);
    let full = from_the_top(&chain, &luck);
    if full.stored.is_empty() {
        return Ok(());
    }
    seen.borrow_mut().chains += 1;
    let places = Places::of(&chain);
    for _ in 0..16 {
        let fewer = lot.number(3) * lot.number(full.stored.len() + 1);
        let count = full.stored.len().saturating_sub(fewer);
        let stored = full.rows(&chain, count, 1);
        let at = at(&chain, &stored, &mut lot);
        match check(&chain, &stored, at.as_deref()) {
            Ok(point) => {
                let resumed = from_point(&chain, &luck, &point, &[&full]);
                prop_assert_eq!(&resumed.end, &full.end, "{:?}", &point);
                prop_assert_eq!(&resumed.events, &full.after(&chain, &point), "{:?}", &point);
                let again = lot.number(4);
                let first = (&point, at, stored);
                let is_again = resumes_again(&chain, &luck, &full, first, again)?;
                let mut seen = seen.borrow_mut();
                seen.allowed += 1;
                seen.of_branches += u32::from(!point.branches.is_empty());
                seen.again += u32::from(is_again);
            }
            Err(refusal) if matches!(refusal.code, Code::MissingInput | Code::StaleValue) => {
                let rows = stored.iter().filter_map(|row| Some((chain.find(&row.node_id)?, row)));
                let rows = rows.collect();
                let point = point::find(&chain, &places, &rows, at.as_deref());
                let point = point.map_err(|refusal| TestCaseError::fail(refusal.message))?;
                let differs = some_run_differs(&chain, &point);
                prop_assert!(differs != Some(false), "{refusal}: {point:?}");
                let mut seen = seen.borrow_mut();
                match (differs, refusal.code) {
                    (None, _) => seen.untried += 1,
                    (_, Code::MissingInput) => seen.missing += 1,
                    (..) => seen.stale += 1,
                }
            }
            Err(_) => seen.borrow_mut().elsewhere += 1,
        }
    }
    Ok(())
}

/// R94, K14, K16: a run from an allowed point is the rest of the run from the top; from a refused one it is not.
#[test]
fn a_run_from_a_point_is_the_rest_of_the_run_from_the_top() {
    let seen = RefCell::new(Seen::default());
    let config = Config { cases: 5_000, ..Config::default() };
    let bytes = prop::collection::vec(any::<u8>(), 80..300);
    let lot = prop::collection::vec(any::<u8>(), 200);
    let run =
        TestRunner::new(config).run(&(bytes, lot), |(bytes, lot)| try_chain(&bytes, &lot, &seen));
    let seen = seen.into_inner();
    if let Err(error) = run {
        panic!("{error}\n{seen:?}");
    }
    let decided = seen.allowed + seen.missing + seen.stale;
    assert!(decided > 20_000 && seen.chains > 2_500, "{seen:?}");
    let share = |count: u32, of: u32| count * 100 / of;
    assert!(share(seen.allowed, decided) > 20, "{seen:?}");
    assert!(share(seen.missing, decided) > 10 && share(seen.stale, decided) > 5, "{seen:?}");
    assert!(seen.of_branches > 500 && seen.again > 1_000, "{seen:?}");
}
