//! What each kind of step must say, apart from where its values come from.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::chain::declaration::{
    AtLeast, Extract, Gate, Junction, Parallel, Scale, Step, Switch, Train,
};
use crate::chain::faults::{Faults, Shown};
use crate::chain::names::{Names, TypeName};
use crate::chain::node::{Node, RESERVED};
use crate::chain::schema::Types;
use crate::chain::step::{Asked, Routing};
use crate::model::name::{is_identifier, is_label};
use crate::model::question::{Criterion, QuestionKind};

/// The longest wait for shadows, in milliseconds. A run holds its place while it waits, so an endless wait is refused.
pub(super) const WAIT_FOR_SHADOWS_MS_MAX: u64 = 600_000;

/// What an identifier is, for reports.
pub(super) const IDENTIFIER: &str = "1 to 100 of ASCII letters, digits, '_', '-' and '.'";
/// What a label is, for reports.
const LABEL: &str = "1 to 100 characters without '/', '#' and control characters";

/// What lies around a step.
pub(super) struct Surroundings<'n> {
    pub(super) is_in_branch: bool,
    /// The routing step whose sensitive question decides whether this step runs.
    pub(super) withheld_by: Option<&'n Node>,
    pub(super) is_short_circuited: bool,
}

/// The rules of steps, with what they need to know of the train.
pub(super) struct StepRules<'a> {
    train: &'a Train,
    /// Absent when the types themselves are at fault.
    types: Option<&'a Types>,
    /// The first declaration of each junction.
    junctions: HashMap<&'a str, &'a Junction>,
}

impl<'a> StepRules<'a> {
    pub(super) fn new(train: &'a Train, types: Option<&'a Types>) -> Self {
        Self { train, types, junctions: HashMap::new() }
    }

    /// Names every fault of the step itself.
    pub(super) fn check(
        &mut self,
        step: &'a Step,
        names: &Names<'_>,
        around: &Surroundings<'_>,
        faults: &mut Faults,
    ) {
        if let Some(asked) = step.asked() {
            self.asked(&asked, names, faults);
        }
        if let Some(routing) = step.routing() {
            routed(routing, names, faults);
        }
        self.track_names(step, faults);
        match step {
            Step::Junction(junction) => self.junction(junction, names, faults),
            Step::ShortCircuit(junction) => {
                self.junction(junction, names, faults);
                self.short_circuit(junction, around, faults);
            }
            Step::Extract(extract) => self.extract(extract, names, faults),
            Step::Checkpoint(state) => self.checkpoint(state, names, around, faults),
            Step::Parallel(Parallel { branches, .. }) if branches.is_empty() => {
                faults.refuse("it has no branches.");
            }
            Step::Decide(_)
            | Step::Switch(_)
            | Step::Gate(_)
            | Step::Scale(_)
            | Step::Parallel(_) => {}
        }
    }

    fn junction(&mut self, junction: &'a Junction, names: &Names<'_>, faults: &mut Faults) {
        let name = Shown(&junction.name);
        if !is_identifier(&junction.name) {
            faults.refuse(format_args!("the junction's name {name} is not {IDENTIFIER}."));
        } else if RESERVED.contains(&junction.name.as_str()) {
            faults.refuse(format_args!(
                "{name} is a step of the host's own; name the junction differently."
            ));
        }
        for input in &junction.inputs {
            if names.kind(input) == TypeName::Unknown {
                faults.refuse(format_args!(
                    "the junction takes {}, which is not a type.",
                    Shown(input)
                ));
            }
        }
        for output in &junction.outputs {
            let output_name = Shown(output);
            match names.kind(output) {
                TypeName::Declared => {}
                TypeName::HostMade => faults.refuse(format_args!(
                    "the junction gives {output_name}, which only the host makes."
                )),
                TypeName::Unknown => faults
                    .refuse(format_args!("the junction gives {output_name}, which is not a type.")),
            }
        }
        for output in repeated(&junction.outputs) {
            faults.refuse(format_args!("the junction gives {} twice.", Shown(output)));
        }
        for key in &junction.asks {
            question_exists(key, names, faults);
        }
        for key in repeated(&junction.asks) {
            faults.refuse(format_args!("the junction names the question {} twice.", Shown(key)));
        }
        let first = *self.junctions.entry(&junction.name).or_insert(junction);
        if first != junction {
            faults.refuse(format_args!(
                "the junction {name} has other inputs, outputs or questions than where the train names it first. A \
                 name stands for the same work wherever it appears."
            ));
        }
    }

    fn short_circuit(&self, junction: &Junction, around: &Surroundings<'_>, faults: &mut Faults) {
        if junction.outputs != [self.train.output.as_str()] {
            faults.refuse(format_args!(
                "a short circuit gives the train's output {} and nothing else.",
                Shown(&self.train.output)
            ));
        }
        if around.is_in_branch {
            faults.refuse(
                "a short circuit in a branch would race the other branches for the run's result; move it out.",
            );
        }
    }

    fn extract(&self, extract: &Extract, names: &Names<'_>, faults: &mut Faults) {
        let Extract { from, field, to } = extract;
        let is_declared = [from, to].map(|name| declared(name, names, faults)) == [true, true];
        if !is_declared {
            return;
        }
        if let Some(types) = self.types
            && let Err(problem) = types.assignable(from, field, to)
        {
            faults.refuse(format_args!(
                "{} cannot be taken from {} as {}: {problem}.",
                Shown(field),
                Shown(from),
                Shown(to)
            ));
        }
    }

    fn checkpoint(
        &self,
        state: &str,
        names: &Names<'_>,
        around: &Surroundings<'_>,
        faults: &mut Faults,
    ) {
        declared(state, names, faults);
        if self.types.is_some_and(|types| types.is_sensitive(state)) {
            faults.refuse(format_args!(
                "it checkpoints {}, which is sensitive or contains a sensitive type, and checkpoints are stored.",
                Shown(state)
            ));
        }
        if let Some(routing) = around.withheld_by {
            faults.refuse(format_args!(
                "a checkpoint in a track of {} would tell which track was taken, and the question is sensitive.",
                routing.name
            ));
        }
        if around.is_short_circuited {
            faults.refuse(
                "a checkpoint after a ShortCircuit could not restore the result it may have given; move it before.",
            );
        }
    }

    fn asked(&self, asked: &Asked<'_>, names: &Names<'_>, faults: &mut Faults) {
        declared(asked.state, names, faults);
        if asked.questions.is_empty() {
            faults.refuse("it asks no question.");
        }
        let mut keys = HashSet::new();
        for question in &asked.questions {
            question_exists(question.key, names, faults);
            if !keys.insert(question.key) {
                faults.refuse(format_args!("it asks {} twice.", Shown(question.key)));
            }
            if question.instructions.is_some_and(|words| words.trim().is_empty()) {
                faults.refuse(format_args!("it asks {} with no words.", Shown(question.key)));
            }
        }
        let decider = asked.decider.or(self.train.default_decider.as_deref());
        if let Some(name) = asked.decider {
            decider_name("decider", name, faults);
        }
        for shadow in asked.shadows {
            decider_name("shadow", shadow, faults);
            if Some(shadow.as_str()) == decider {
                faults.refuse(format_args!("its shadow {} is its decider as well.", Shown(shadow)));
            }
        }
        for shadow in repeated(asked.shadows) {
            faults.refuse(format_args!("it names the shadow {} twice.", Shown(shadow)));
        }
        if asked.wait_for_shadows_ms.is_some_and(|wait| wait > WAIT_FOR_SHADOWS_MS_MAX) {
            faults.refuse(format_args!(
                "it waits for shadows longer than {WAIT_FOR_SHADOWS_MS_MAX} milliseconds."
            ));
        }
    }

    /// Names of tracks are parts of ids: each must be fit for that and unique in its step.
    fn track_names(&self, step: &Step, faults: &mut Faults) {
        let mut seen = HashSet::new();
        let tracks = step.tracks();
        let declared = tracks.iter().filter_map(|used| self.train.tracks.get(used.track as usize));
        for track in declared {
            let name = Shown(&track.name);
            if !is_label(&track.name) {
                faults.refuse(format_args!("the name of its track {name} is not {LABEL}."));
            }
            if !seen.insert(track.name.as_str()) {
                faults.refuse(format_args!("it has two tracks named {name}."));
            }
        }
    }
}

/// Names every fault in how a step routes.
fn routed(routing: Routing<'_>, names: &Names<'_>, faults: &mut Faults) {
    let key = routing.question();
    // One that asks has been told already if there is no such question.
    let exists = match routing.asking() {
        Some(_) => names.question(key).is_some(),
        None => question_exists(key, names, faults),
    };
    let question = names.question(key).filter(|_| exists);
    if let Some(question) = question
        && !routing.fits(&question.kind)
    {
        faults.refuse(format_args!(
            "{} routes by a question that is answered by {}.",
            routing.key(),
            question.kind.as_str()
        ));
    }
    let kind = question.map(|question| &question.kind);
    match (routing, kind) {
        (Routing::Switch(switch), Some(QuestionKind::Choice(options))) => {
            switched(switch, Some(options), faults);
        }
        (Routing::Switch(switch), _) => switched(switch, None, faults),
        (Routing::Gate(gate), _) => gated(gate, faults),
        (Routing::Scale(scale), Some(QuestionKind::Score(levels))) => {
            scaled(scale, Some(levels), faults);
        }
        (Routing::Scale(scale), _) => scaled(scale, None, faults),
    }
}

fn switched(switch: &Switch, options: Option<&Vec<Criterion>>, faults: &mut Faults) {
    if switch.tracks.is_empty() {
        faults.refuse("it has no tracks.");
    }
    bar("its bar", switch.require_confidence, faults);
    for when in &switch.tracks {
        if let Some(required) = when.require_confidence {
            bar(format_args!("the bar of {}", Shown(&when.option_name)), required, faults);
        }
    }
    let named = switch.tracks.iter().map(|when| when.option_name.as_str());
    criteria("option", named, options, faults);
}

fn gated(gate: &Gate, faults: &mut Faults) {
    bar("its bar for yes", gate.yes_at_least, faults);
    bar("its bar for no", gate.no_below, faults);
    if gate.no_below > gate.yes_at_least {
        faults.refuse(format_args!(
            "its bars cross: no below {} and yes from {}.",
            gate.no_below, gate.yes_at_least
        ));
    }
}

fn scaled(scale: &Scale, levels: Option<&Vec<Criterion>>, faults: &mut Faults) {
    if scale.tracks.is_empty() {
        faults.refuse("it has no tracks.");
    }
    bar("its bar", scale.require_confidence, faults);
    let named = || scale.tracks.iter().map(|AtLeast { level, .. }| level.as_str());
    criteria("level", named(), levels, faults);
    if let Some(lowest) = levels.and_then(|levels| levels.first())
        && !named().any(|level| level == lowest.name)
    {
        faults.refuse(format_args!(
            "its lowest level {} has no track, so a low score would lead nowhere.",
            Shown(&lowest.name)
        ));
    }
}

/// Every option or level with a track is one that the question has, and stands there once.
fn criteria<'n>(
    what: &str,
    named: impl Iterator<Item = &'n str>,
    of_question: Option<&Vec<Criterion>>,
    faults: &mut Faults,
) {
    let known: Option<HashSet<&str>> =
        of_question.map(|criteria| criteria.iter().map(|one| one.name.as_str()).collect());
    let mut seen = HashSet::new();
    for name in named {
        if known.as_ref().is_some_and(|known| !known.contains(name)) {
            faults.refuse(format_args!("the question has no {what} {}.", Shown(name)));
        }
        if !seen.insert(name) {
            faults.refuse(format_args!("its {what} {} has two tracks.", Shown(name)));
        }
    }
}

fn bar(what: impl fmt::Display, value: f64, faults: &mut Faults) {
    if !(0.0..=1.0).contains(&value) {
        faults.refuse(format_args!("{what} is {value}, and bars are from 0 to 1."));
    }
}

fn declared(type_name: &str, names: &Names<'_>, faults: &mut Faults) -> bool {
    let name = Shown(type_name);
    match names.kind(type_name) {
        TypeName::Declared => return true,
        TypeName::HostMade => {
            faults.refuse(format_args!("{name} is made by the host; only junctions can take it."));
        }
        TypeName::Unknown => faults.refuse(format_args!("{name} is not a type of the train.")),
    }
    false
}

fn question_exists(key: &str, names: &Names<'_>, faults: &mut Faults) -> bool {
    let exists = names.question(key).is_some();
    if !exists {
        faults.refuse(format_args!("the train has no question {}.", Shown(key)));
    }
    exists
}

fn decider_name(what: &str, name: &str, faults: &mut Faults) {
    if !is_identifier(name) {
        faults.refuse(format_args!("the name of its {what} {} is not {IDENTIFIER}.", Shown(name)));
    }
}

/// The names that stand there more than once, each once.
pub(super) fn repeated<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<&'n str> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut repeated = Vec::new();
    for name in names {
        let times = seen.entry(name).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(name.as_str());
        }
    }
    repeated
}
