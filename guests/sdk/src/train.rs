//! The head of a train: its name, its input and result, and all that is not its chain.

use crate::bindings::trax::train::declaration::{DirectoryWant, Isolation};
use crate::bindings::trax::train::questions::{Answer, DecisionRequest};
use crate::chain::Chain;
use crate::failure::Failure;
use crate::mode::Mode;
use crate::rules::Rules;
use crate::value::Value;

/// What a train's function is given: it declares the train, or finds the function that the host calls. The function
/// runs for every call and must do the same each time, so it does nothing but declare.
pub struct NewTrain {
    pub(crate) mode: Mode,
}

impl NewTrain {
    /// Starts a train that takes an `I` and results in an `O`. The description is one sentence for operators.
    pub fn named<I: Value, O: Value>(self, name: &str, description: &str) -> Train {
        let mut mode = self.mode;
        mode.enter(name);
        if let Some(declaration) = mode.declaring() {
            name.clone_into(&mut declaration.train.name);
            description.clone_into(&mut declaration.train.description);
            declaration.train.input = declaration.value::<I>();
            declaration.train.output = declaration.value::<O>();
        }
        Train { chain: Chain::new(mode) }
    }
}

/// A train under construction.
#[must_use = "a train's function returns its train"]
pub struct Train {
    pub(crate) chain: Chain,
}

impl Train {
    /// Adds steps to the chain.
    pub fn chain(mut self, steps: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        steps(&mut self.chain);
        self
    }

    /// Ships a decider made of rules: plain functions from a state to a decision.
    pub fn rules(mut self, decider: &str, rules: impl FnOnce(Rules<'_>) -> Rules<'_>) -> Self {
        self.decider_is_declared(decider);
        if let Some(call) = self.chain.mode.answering(decider) {
            call.outcome = Some(rules(Rules::new(&call.request)).into_answers());
        }
        self
    }

    /// Ships a decider that is one function. Questions it leaves out are unanswered.
    pub fn decider(
        mut self,
        decider: &str,
        answer: impl FnOnce(&DecisionRequest) -> Result<Vec<Answer>, Failure>,
    ) -> Self {
        self.decider_is_declared(decider);
        if let Some(call) = self.chain.mode.answering(decider) {
            call.outcome = Some(answer(&call.request));
        }
        self
    }

    fn decider_is_declared(&mut self, decider: &str) {
        if let Some(declaration) = self.chain.mode.declaring() {
            declaration.train.deciders.push(decider.to_owned());
        }
    }

    /// The decider of every question that names none: one that the train ships, or one that the operator configured.
    pub fn default_decider(mut self, decider: &str) -> Self {
        if let Some(declaration) = self.chain.mode.declaring() {
            declaration.train.default_decider = Some(decider.to_owned());
        }
        self
    }

    /// What the train asks an operator for.
    pub fn wants(mut self, wants: impl FnOnce(Wants<'_>) -> Wants<'_>) -> Self {
        wants(Wants { chain: &mut self.chain });
        self
    }

    /// Runs whose input has an equal value at this JSON pointer, for example `/customer/id`, never run at once.
    pub fn subject_key(mut self, pointer: &str) -> Self {
        if let Some(declaration) = self.chain.mode.declaring() {
            declaration.train.subject_key = Some(pointer.to_owned());
        }
        self
    }

    /// One instance of the component serves a whole run, so that statics outlive a junction. Runs are then only as
    /// repeatable as the guest makes them.
    pub fn isolated_per_run(mut self) -> Self {
        if let Some(declaration) = self.chain.mode.declaring() {
            declaration.train.isolation = Isolation::PerRun;
        }
        self
    }

    /// The train runs through the queue alone.
    pub fn queue_only(mut self) -> Self {
        if let Some(declaration) = self.chain.mode.declaring() {
            declaration.train.queue_only = true;
        }
        self
    }
}

/// What a train asks an operator for. Nothing is granted by asking.
pub struct Wants<'a> {
    chain: &'a mut Chain,
}

impl Wants<'_> {
    /// Outbound HTTP to `https://host` or `https://host:port`.
    pub fn http(self, origin: &str) -> Self {
        self.add(|wants| wants.http.push(origin.to_owned()))
    }

    /// A configuration value.
    pub fn config(self, name: &str) -> Self {
        self.add(|wants| wants.config.push(name.to_owned()))
    }

    /// A secret.
    pub fn secret(self, name: &str) -> Self {
        self.add(|wants| wants.secrets.push(name.to_owned()))
    }

    /// A directory to read from.
    pub fn directory(self, name: &str) -> Self {
        self.add(|wants| {
            wants.directories.push(DirectoryWant { name: name.to_owned(), writable: false });
        })
    }

    /// A directory to read from and write to.
    pub fn writable_directory(self, name: &str) -> Self {
        self.add(|wants| {
            wants.directories.push(DirectoryWant { name: name.to_owned(), writable: true });
        })
    }

    fn add(self, want: impl FnOnce(&mut crate::bindings::trax::train::declaration::Wants)) -> Self {
        if let Some(declaration) = self.chain.mode.declaring() {
            want(&mut declaration.train.wants);
        }
        self
    }
}
