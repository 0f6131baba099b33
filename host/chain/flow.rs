//! Which values are in Memory at each step of a chain, whichever tracks a run takes.

use std::collections::{HashMap, HashSet};

use crate::chain::names::Symbol;

/// A set that remembers in which order it grew, so that what a track added can be taken out again without copying it.
#[derive(Default)]
struct Grown {
    has: Vec<bool>,
    log: Vec<Symbol>,
}

impl Grown {
    fn contains(&self, symbol: Symbol) -> bool {
        self.has.get(symbol.0).copied().unwrap_or_default()
    }

    fn insert(&mut self, symbol: Symbol) {
        if self.has.len() <= symbol.0 {
            self.has.resize(symbol.0 + 1, false);
        }
        if !std::mem::replace(&mut self.has[symbol.0], true) {
            self.log.push(symbol);
        }
    }

    fn shrink(&mut self, length: usize) -> Vec<Symbol> {
        let added = self.log.split_off(length);
        for symbol in &added {
            self.has[symbol.0] = false;
        }
        added
    }
}

/// The values in Memory while the steps of a chain are read in order.
#[derive(Default)]
pub(super) struct Flow {
    /// In Memory on every path to this step.
    certain: Grown,
    /// In Memory on some path to this step.
    possible: Grown,
    /// Everything put so far, again and again if it was.
    puts: Vec<Symbol>,
    /// Whether the run's result may already be there.
    short_circuited: bool,
}

/// Where a track began.
pub(super) struct Mark {
    certain: usize,
    possible: usize,
    puts: usize,
    short_circuited: bool,
}

/// What one track added.
pub(super) struct Added {
    certain: Vec<Symbol>,
    possible: Vec<Symbol>,
    puts: Vec<Symbol>,
    short_circuited: bool,
}

/// Why a branch may not put a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// It may be in Memory before the branches start.
    Before,
    /// The branch with this position may put one as well.
    Branch(usize),
}

impl Flow {
    /// Whether the value is in Memory on every path.
    pub(super) fn has(&self, symbol: Symbol) -> bool {
        self.certain.contains(symbol)
    }

    /// Whether the value is in Memory on some path.
    pub(super) fn may_have(&self, symbol: Symbol) -> bool {
        self.possible.contains(symbol)
    }

    /// Whether a short circuit stands before this step on some path.
    pub(super) fn is_short_circuited(&self) -> bool {
        self.short_circuited
    }

    /// The step puts a value.
    pub(super) fn put(&mut self, symbol: Symbol) {
        self.certain.insert(symbol);
        self.possible.insert(symbol);
        self.puts.push(symbol);
    }

    /// The step is a short circuit: it puts the value, or fails and puts none.
    pub(super) fn short_circuit(&mut self, symbol: Symbol) {
        self.possible.insert(symbol);
        self.puts.push(symbol);
        self.short_circuited = true;
    }

    /// A track or branch begins here.
    pub(super) fn begin(&self) -> Mark {
        Mark {
            certain: self.certain.log.len(),
            possible: self.possible.log.len(),
            puts: self.puts.len(),
            short_circuited: self.short_circuited,
        }
    }

    /// The track or branch ends; Memory is again as it was at its begin.
    pub(super) fn end(&mut self, mark: &Mark) -> Added {
        let short_circuited = std::mem::replace(&mut self.short_circuited, mark.short_circuited);
        Added {
            certain: self.certain.shrink(mark.certain),
            possible: self.possible.shrink(mark.possible),
            puts: self.puts[mark.puts..].to_vec(),
            short_circuited,
        }
    }

    /// One of these tracks was taken: only what every one of them put is certain.
    pub(super) fn join_tracks(&mut self, tracks: Vec<Added>) {
        let count = tracks.len();
        let mut times: HashMap<Symbol, usize> = HashMap::new();
        for track in tracks {
            self.short_circuited |= track.short_circuited;
            track.possible.into_iter().for_each(|symbol| self.possible.insert(symbol));
            for symbol in track.certain {
                let times = times.entry(symbol).or_default();
                *times += 1;
                if *times == count {
                    self.certain.insert(symbol);
                }
            }
        }
    }

    /// All of these branches ran, and what they put is in Memory, except what stays a branch's own. Gives the values
    /// that more than one of them may put or that were there before, with the position of the branch at fault.
    pub(super) fn join_branches(
        &mut self,
        branches: Vec<Added>,
        stays: impl Fn(Symbol) -> bool,
    ) -> Vec<(usize, Symbol, Conflict)> {
        let mut conflicts = Vec::new();
        let mut put_by: HashMap<Symbol, usize> = HashMap::new();
        for (position, branch) in branches.iter().enumerate() {
            let mut seen = HashSet::new();
            for &symbol in branch.puts.iter().filter(|&&symbol| !stays(symbol)) {
                if !seen.insert(symbol) {
                    continue;
                }
                if self.may_have(symbol) {
                    conflicts.push((position, symbol, Conflict::Before));
                } else if let Some(&other) = put_by.get(&symbol) {
                    conflicts.push((position, symbol, Conflict::Branch(other)));
                } else {
                    put_by.insert(symbol, position);
                }
            }
        }
        for branch in branches {
            self.short_circuited |= branch.short_circuited;
            branch
                .certain
                .into_iter()
                .filter(|&symbol| !stays(symbol))
                .for_each(|symbol| self.certain.insert(symbol));
            branch
                .possible
                .into_iter()
                .filter(|&symbol| !stays(symbol))
                .for_each(|symbol| self.possible.insert(symbol));
        }
        conflicts
    }
}
