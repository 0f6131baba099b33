//! Which checkpoints of several runs count.

use crate::chain::Chain;
use crate::chain::resume::lineage::{Attempt, RUNS_MAX, stored};
use crate::chain::resume::tests::points::{row, shop};
use crate::model::ids::RunId;

const GOODS: &str = "Checkpoint<Goods>#0";
const PAYMENT: &str = "Checkpoint<Payment>#0";

fn attempt(chain: &Chain, run: i64, resume_at: Option<&str>, ids: &[&str]) -> Attempt {
    Attempt {
        run: RunId(run),
        resume_at: resume_at.map(str::to_owned),
        checkpoints: ids.iter().map(|id| row(chain, run, id)).collect(),
    }
}

fn shown(chain: &Chain, attempts: Vec<Attempt>) -> Vec<String> {
    stored(chain, attempts).iter().map(|row| format!("{} of {}", row.node_id, row.run)).collect()
}

/// K13b, R95: a run that resumed has the checkpoints of the runs before it; of one node the nearest run's counts.
#[test]
fn the_nearest_run_wins() {
    let chain = shop();
    let attempts = vec![
        attempt(&chain, 3, None, &[]),
        attempt(&chain, 2, None, &[PAYMENT]),
        attempt(&chain, 1, None, &[GOODS, PAYMENT]),
    ];
    assert_eq!(shown(&chain, attempts), ["Checkpoint<Payment>#0 of 2", "Checkpoint<Goods>#0 of 1"]);
}

/// K13b: what older runs stored at or after the node that a nearer run resumed at does not count.
#[test]
fn what_was_resumed_before_does_not_count() {
    let chain = shop();
    for (resume_at, expected) in [
        (Some("Pay#0"), vec![format!("{GOODS} of 1")]),
        (Some(GOODS), vec![]),
        (Some("Sell#0"), vec![format!("{GOODS} of 1"), format!("{PAYMENT} of 1")]),
        (None, vec![format!("{GOODS} of 1"), format!("{PAYMENT} of 1")]),
    ] {
        let attempts = vec![
            attempt(&chain, 3, None, &[]),
            attempt(&chain, 2, resume_at, &[]),
            attempt(&chain, 1, None, &[GOODS, PAYMENT]),
        ];
        assert_eq!(shown(&chain, attempts), expected, "{resume_at:?}");
    }
}

/// K13b: at most 64 runs are followed back, and a run that leads back to itself once.
#[test]
fn the_way_back_is_bounded() {
    let chain = shop();
    let empty = |run: i64| attempt(&chain, run, None, &[]);
    let most = i64::try_from(RUNS_MAX).unwrap();
    for (before, expected) in [(most - 1, 1), (most, 0)] {
        let mut attempts: Vec<Attempt> = (0..before).map(|run| empty(1_000 - run)).collect();
        attempts.push(attempt(&chain, 1, None, &[GOODS]));
        assert_eq!(stored(&chain, attempts).len(), expected, "{before}");
    }
    let cycle = vec![empty(2), empty(1), attempt(&chain, 2, None, &[GOODS])];
    assert_eq!(stored(&chain, cycle), []);
}
