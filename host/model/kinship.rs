//! Runs that replay or resume each other, and so are deleted together or not at all.
//!
//! A run that is gone can no longer say that its answers were replayed, and one that is kept may need the answers or
//! the checkpoints of the one it names. So runs that are linked, through however many others, share one fate.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ids::RunId;

/// A run, and the runs it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relative {
    /// The run.
    pub id: RunId,
    /// The run whose answers it replays.
    pub replays: Option<RunId>,
    /// The run it resumes.
    pub resumes: Option<RunId>,
    /// Whether it could be deleted if nothing were linked to it.
    pub is_expired: bool,
}

/// The runs that can be deleted: those that are linked to nothing that has to stay. `pinned` are named by what is
/// queued; `open` may be linked to runs that are not among these.
pub fn deletable(
    runs: &[Relative],
    pinned: &BTreeSet<RunId>,
    open: &BTreeSet<RunId>,
) -> Vec<RunId> {
    let known: BTreeMap<RunId, &Relative> = runs.iter().map(|run| (run.id, run)).collect();
    let mut links: BTreeMap<RunId, Vec<RunId>> = BTreeMap::new();
    for run in runs {
        for named in [run.replays, run.resumes].into_iter().flatten() {
            // One that is gone holds nothing back.
            if known.contains_key(&named) {
                links.entry(run.id).or_default().push(named);
                links.entry(named).or_default().push(run.id);
            }
        }
    }
    let stays =
        |run: &&Relative| !run.is_expired || pinned.contains(&run.id) || open.contains(&run.id);
    let mut kept: BTreeSet<RunId> = BTreeSet::new();
    let mut next: Vec<RunId> = runs.iter().filter(stays).map(|run| run.id).collect();
    while let Some(run) = next.pop() {
        if kept.insert(run) {
            next.extend(links.get(&run).into_iter().flatten());
        }
    }
    known.into_keys().filter(|run| !kept.contains(run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: i64, replays: Option<i64>, resumes: Option<i64>, is_expired: bool) -> Relative {
        Relative {
            id: RunId(id),
            replays: replays.map(RunId),
            resumes: resumes.map(RunId),
            is_expired,
        }
    }

    fn ids(runs: &[i64]) -> BTreeSet<RunId> {
        runs.iter().copied().map(RunId).collect()
    }

    /// What it shows; the runs; those pinned, open and expected.
    type Case<'a> = (&'a str, &'a [Relative], &'a [i64], &'a [i64], &'a [i64]);

    /// R59, R61, W21: what is linked is deleted together or not at all.
    #[test]
    fn linked_runs_share_one_fate() {
        let cases: &[Case<'_>] = &[
            (
                "nothing is linked",
                &[run(1, None, None, true), run(2, None, None, false)],
                &[],
                &[],
                &[1],
            ),
            (
                "both expired",
                &[run(1, None, None, true), run(2, Some(1), None, true)],
                &[],
                &[],
                &[1, 2],
            ),
            (
                "only the source",
                &[run(1, None, None, true), run(2, Some(1), None, false)],
                &[],
                &[],
                &[],
            ),
            (
                "only the replay",
                &[run(1, None, None, false), run(2, Some(1), None, true)],
                &[],
                &[],
                &[],
            ),
            ("the source is gone", &[run(2, Some(1), None, true)], &[], &[], &[2]),
            (
                "pinned source",
                &[run(1, None, None, true), run(2, Some(1), None, true)],
                &[1],
                &[],
                &[],
            ),
            (
                "pinned replay",
                &[run(1, None, None, true), run(2, Some(1), None, true)],
                &[2],
                &[],
                &[],
            ),
            (
                "a chain of resumes with a young end",
                &[
                    run(1, None, None, true),
                    run(2, None, Some(1), true),
                    run(3, None, Some(2), false),
                ],
                &[],
                &[],
                &[],
            ),
            (
                "an open end",
                &[run(1, None, None, true), run(2, None, Some(1), true)],
                &[],
                &[2],
                &[],
            ),
            (
                "a cycle",
                &[run(1, Some(2), None, true), run(2, Some(1), None, true)],
                &[],
                &[],
                &[1, 2],
            ),
        ];
        for (name, runs, pinned, open, expected) in cases {
            let found = deletable(runs, &ids(pinned), &ids(open));
            assert_eq!(found, ids(expected).into_iter().collect::<Vec<_>>(), "{name}");
        }
    }
}
