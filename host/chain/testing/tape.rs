//! Trains made of a tape of random bytes, which shrinks well: a shorter tape and smaller bytes make a simpler train.

use crate::chain::declaration::{Asking, BranchFailure, Parallel, Step};
use crate::chain::testing::{
    Draft, about, checkpoint, choice, decide, gate, junction, scale, score, short_circuit, switch,
    yes_no,
};

/// Random bytes; zeros after their end.
pub(crate) struct Tape<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Tape<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A number below `below`.
    pub(crate) fn number(&mut self, below: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        usize::from(byte) % below
    }

    fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

const TYPES: [&str; 5] = ["Order", "A", "B", "C", "Receipt"];
const KEYS: [&str; 3] = ["Team", "Fraud", "Urgency"];
const DECISIONS: [&str; 4] =
    ["ChoiceDecision<Team>", "YesNoDecision<Fraud>", "ScoreDecision<Urgency>", "TrackTaken<Team>"];

/// A draft that is well formed, apart from values that may be missing and what parallel steps refuse.
pub(crate) fn draft(tape: &mut Tape<'_>) -> Draft {
    let draft = Draft::new()
        .types(&["A", "B", "C"])
        .question(choice("Team", &["Billing", "Tech"]))
        .question(yes_no("Fraud"))
        .question(score("Urgency", &["Low", "High"]));
    let mut maker = Maker { draft, junctions: 0 };
    let mut root = maker.steps(tape, 3, false);
    root.push(maker.junction(tape, &["Receipt"]));
    maker.draft.root(root)
}

struct Maker {
    draft: Draft,
    junctions: usize,
}

impl Maker {
    fn steps(&mut self, tape: &mut Tape<'_>, depth: usize, is_branch: bool) -> Vec<Step> {
        let count = if tape.is_over() { 0 } else { 1 + tape.number(5) };
        (0..count).map(|_| self.step(tape, depth, is_branch)).collect()
    }

    fn step(&mut self, tape: &mut Tape<'_>, depth: usize, is_branch: bool) -> Step {
        let kinds = if depth == 0 { 6 } else { 12 };
        match tape.number(kinds) {
            0..=2 => {
                let output = TYPES[tape.number(TYPES.len())];
                let outputs = [output];
                let count = tape.number(2);
                self.junction(tape, &outputs[..count])
            }
            3 => decide(state(tape), &[KEYS[tape.number(KEYS.len())]]),
            4 => checkpoint(state(tape)),
            5 if is_branch => self.junction(tape, &[]),
            5 => {
                self.junctions += 1;
                short_circuit(&format!("Short{}", self.junctions), &[], &["Receipt"])
            }
            6 | 7 => self.switch(tape, depth, is_branch),
            8 => {
                let asking = asking(tape);
                let (yes, no) = (
                    self.track("Yes", tape, depth, is_branch),
                    self.track("No", tape, depth, is_branch),
                );
                gate("Fraud", asking, yes, no, None)
            }
            9 => {
                let asking = asking(tape);
                let (low, high) = (
                    self.track("L", tape, depth, is_branch),
                    self.track("H", tape, depth, is_branch),
                );
                scale("Urgency", asking, &[("Low", low), ("High", high)], None)
            }
            _ => {
                let branches = ["x", "y", "z"]
                    .iter()
                    .take(1 + tape.number(3))
                    .map(|name| self.track(name, tape, depth, true));
                Step::Parallel(Parallel {
                    branches: branches.collect(),
                    on_failure: BranchFailure::WaitForAll,
                })
            }
        }
    }

    fn switch(&mut self, tape: &mut Tape<'_>, depth: usize, is_branch: bool) -> Step {
        let asking = asking(tape);
        let billing = self.track("Billing", tape, depth, is_branch);
        if tape.number(2) == 0 {
            let rest = self.track("Rest", tape, depth, is_branch);
            return switch("Team", asking, &[("Billing", billing)], Some(rest));
        }
        let tech = self.track("Tech", tape, depth, is_branch);
        switch("Team", asking, &[("Billing", billing), ("Tech", tech)], None)
    }

    fn junction(&mut self, tape: &mut Tape<'_>, outputs: &[&str]) -> Step {
        self.junctions += 1;
        let inputs: Vec<&str> = (0..tape.number(3))
            .map(|_| match tape.number(14) {
                0..=10 => "Order",
                11 | 12 => TYPES[tape.number(TYPES.len())],
                _ => DECISIONS[tape.number(DECISIONS.len())],
            })
            .collect();
        // Every other junction shares its name with those of the same signature, so that ordinals grow.
        let signature = format!("{}-{}", inputs.concat(), outputs.concat());
        let signature: String =
            signature.chars().map(|c| if matches!(c, '<' | '>') { '_' } else { c }).collect();
        let own = if self.junctions.is_multiple_of(2) {
            self.junctions.to_string()
        } else {
            "J".to_string()
        };
        junction(&format!("{own}-{signature}"), &inputs, outputs)
    }

    fn track(&mut self, name: &str, tape: &mut Tape<'_>, depth: usize, is_branch: bool) -> u32 {
        let steps = self.steps(tape, depth.saturating_sub(1), is_branch);
        self.draft.track(name, steps)
    }
}

fn asking(tape: &mut Tape<'_>) -> Option<Asking> {
    (tape.number(10) < 9).then(|| about(state(tape)))
}

fn state(tape: &mut Tape<'_>) -> &'static str {
    if tape.number(8) == 7 { TYPES[tape.number(TYPES.len())] } else { "Order" }
}
