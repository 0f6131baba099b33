//! Chains at random that are mostly accepted: steps take what is in Memory for certain.

use std::collections::BTreeSet;

use crate::chain::declaration::{Step, Train};
use crate::chain::resume::tests::player::MEMBERS;
use crate::chain::testing::tape::Tape;
use crate::chain::testing::{
    Draft, about, checkpoint, choice, decide, extract, gate, junction, parallel, scale, score,
    short_circuit, switch, yes_no,
};

const TEXTS: [&str; 6] = ["A", "B", "C", "D", "E", "F"];
const KEYS: [&str; 3] = ["Team", "Fraud", "Urgency"];

type Names = BTreeSet<String>;

struct Maker<'t, 'b> {
    tape: &'t mut Tape<'b>,
    draft: Draft,
    junctions: usize,
    extracts: usize,
    /// In Memory for certain, and perhaps.
    certain: Names,
    possible: Names,
    /// What a branch may not put.
    forbidden: Names,
    is_in_branch: bool,
    is_short_circuited: bool,
    is_withheld: bool,
    /// The key of the sensitive question.
    sensitive: Option<&'static str>,
}

/// A train, nearly always one without faults.
pub(super) fn train(tape: &mut Tape<'_>) -> Train {
    let mut draft = Draft::new()
        .types(&TEXTS)
        .question(choice("Team", &["Billing", "Tech"]))
        .question(yes_no("Fraud"))
        .question(score("Urgency", &["Low", "High"]));
    let names: Vec<String> = (0..MEMBERS).map(|at| format!("c{at:02}")).collect();
    let properties: Vec<String> =
        names.iter().map(|name| format!("\"{name}\":{{\"type\":\"string\"}}")).collect();
    let schema = format!(
        "{{\"additionalProperties\":false,\"properties\":{{{}}},\"required\":[\"{}\"],\"type\":\"object\"}}",
        properties.join(","),
        names.join("\",\"")
    );
    draft.shape("Basket", &schema);
    let has_sensitive = tape.number(3) == 0;
    draft.train.questions[2].sensitive = has_sensitive;
    let certain = Names::from(["Order".to_owned()]);
    let mut maker = Maker {
        tape,
        draft,
        junctions: 0,
        extracts: 0,
        possible: certain.clone(),
        certain,
        forbidden: Names::new(),
        is_in_branch: false,
        is_short_circuited: false,
        is_withheld: false,
        sensitive: has_sensitive.then_some(KEYS[2]),
    };
    let mut root = maker.steps(2, 6);
    root.push(maker.junction(Some("Receipt")));
    maker.draft.root(root).train
}

impl Maker<'_, '_> {
    fn steps(&mut self, depth: usize, most: usize) -> Vec<Step> {
        let count = 1 + self.tape.number(most);
        (0..count).filter_map(|_| self.step(depth)).collect()
    }

    fn step(&mut self, depth: usize) -> Option<Step> {
        let kinds = if depth == 0 { 10 } else { 14 };
        match self.tape.number(kinds) {
            0..=3 => Some(self.junction(None)),
            4..=6 => {
                let is_allowed = !self.is_short_circuited && !self.is_withheld;
                let state = self.declared();
                is_allowed.then(|| checkpoint(&state))
            }
            7 => {
                let (state, key) = (self.declared(), KEYS[self.tape.number(KEYS.len())]);
                self.put(&decision(key));
                Some(decide(&state, &[key]))
            }
            8 => self.extract(),
            9 => self.short_circuit(),
            10 | 11 => Some(self.route(depth)),
            _ => Some(self.parallel(depth)),
        }
    }

    fn put(&mut self, name: &str) {
        self.certain.insert(name.to_owned());
        self.possible.insert(name.to_owned());
    }

    fn pick(&mut self, names: &[String]) -> String {
        names[self.tape.number(names.len())].clone()
    }

    /// A declared type that is in Memory.
    fn declared(&mut self) -> String {
        let names: Vec<String> =
            self.certain.iter().filter(|name| !name.contains('<')).cloned().collect();
        self.pick(&names)
    }

    /// A text type that may be put here.
    fn output(&mut self) -> Option<String> {
        let all = TEXTS.iter().chain(&["Order", "Basket"]);
        let mut names: Vec<String> =
            all.map(ToString::to_string).filter(|name| !self.forbidden.contains(name)).collect();
        if self.tape.number(2) == 0 && names.iter().any(|name| self.certain.contains(name)) {
            names.retain(|name| self.certain.contains(name));
        }
        (!names.is_empty()).then(|| self.pick(&names))
    }

    fn junction(&mut self, output: Option<&str>) -> Step {
        self.junctions += 1;
        let held: Vec<String> = self.certain.iter().cloned().collect();
        let inputs: Vec<String> = (0..self.tape.number(3)).map(|_| self.pick(&held)).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let output = match output {
            Some(name) => Some(name.to_owned()),
            None => self.output(),
        };
        if let Some(name) = &output {
            self.put(name);
        }
        let outputs: Vec<&str> = output.iter().map(String::as_str).collect();
        junction(&format!("J{}", self.junctions), &inputs, &outputs)
    }

    fn extract(&mut self) -> Option<Step> {
        // Each extract takes a member of its own, so that no two give the same value.
        let member = format!("c{:02}", self.extracts);
        let to = self.output().filter(|to| to != "Basket" && self.extracts < MEMBERS)?;
        self.certain.contains("Basket").then(|| {
            self.extracts += 1;
            self.put(&to);
            extract("Basket", &member, &to)
        })
    }

    fn short_circuit(&mut self) -> Option<Step> {
        (!self.is_in_branch && !self.forbidden.contains("Receipt")).then(|| {
            self.junctions += 1;
            self.possible.insert("Receipt".to_owned());
            self.is_short_circuited = true;
            let input = self.declared();
            short_circuit(&format!("S{}", self.junctions), &[&input], &["Receipt"])
        })
    }

    fn route(&mut self, depth: usize) -> Step {
        let key = KEYS[self.tape.number(KEYS.len())];
        let asking = Some(about(&self.declared()));
        self.put(&decision(key));
        self.put(&format!("TrackTaken<{key}>"));
        let was_withheld = self.is_withheld;
        self.is_withheld |= self.sensitive == Some(key);
        let (certain, short) = (self.certain.clone(), self.is_short_circuited);
        let mut ends = Vec::new();
        let names = [["Billing", "Tech"], ["Yes", "No"], ["Low", "High"]];
        let names = names[KEYS.iter().position(|it| *it == key).unwrap_or(0)];
        let mut is_short = short;
        let tracks = names.map(|name| {
            self.certain.clone_from(&certain);
            self.is_short_circuited = short;
            let steps = self.steps(depth - 1, 4);
            is_short |= self.is_short_circuited;
            ends.push(self.certain.clone());
            self.draft.track(name, steps)
        });
        self.certain = ends[0].intersection(&ends[1]).cloned().collect();
        (self.is_withheld, self.is_short_circuited) = (was_withheld, is_short);
        match key {
            "Team" => switch(key, asking, &[("Billing", tracks[0]), ("Tech", tracks[1])], None),
            "Fraud" => gate(key, asking, tracks[0], tracks[1], None),
            _ => scale(key, asking, &[("Low", tracks[0]), ("High", tracks[1])], None),
        }
    }

    fn parallel(&mut self, depth: usize) -> Step {
        let (certain, possible) = (self.certain.clone(), self.possible.clone());
        let forbidden = self.forbidden.clone();
        let was_in_branch = std::mem::replace(&mut self.is_in_branch, true);
        let (mut put, mut may_put) = (Names::new(), Names::new());
        let count = 1 + self.tape.number(3);
        let branches: Vec<u32> = ["x", "y", "z"][..count]
            .iter()
            .map(|name| {
                self.certain.clone_from(&certain);
                self.possible.clone_from(&possible);
                self.forbidden = forbidden.union(&possible).chain(&may_put).cloned().collect();
                let steps = self.steps(depth - 1, 4);
                put.extend(self.certain.difference(&certain).cloned());
                may_put.extend(self.possible.difference(&possible).cloned());
                self.draft.track(name, steps)
            })
            .collect();
        let stays = |name: &&String| !name.contains('<');
        (self.certain, self.possible, self.forbidden) = (certain, possible, forbidden);
        self.certain.extend(put.iter().filter(stays).cloned());
        self.possible.extend(may_put.iter().filter(stays).cloned());
        self.is_in_branch = was_in_branch;
        parallel(&branches)
    }
}

fn decision(key: &str) -> String {
    let kind = match key {
        "Team" => "ChoiceDecision",
        "Fraud" => "YesNoDecision",
        _ => "ScoreDecision",
    };
    format!("{kind}<{key}>")
}
