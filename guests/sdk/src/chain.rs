//! The chain of a train or of a track: its steps, in order.

use crate::bindings::trax::train::{declaration as wit, types};
use crate::declaration::{Declaration, Function, JunctionDeclaration};
use crate::failure::Failure;
use crate::junction::{self, Junction, Outputs, Parameters, Returns};
use crate::mode::Mode;
use crate::parallel::Branches;
use crate::question::{Choice, Score, YesNo};
use crate::routes::{Decide, Gate, Scale, Switch};
use crate::value::Value;

/// A chain under construction. Every method adds a step after those before it.
pub struct Chain {
    pub(crate) mode: Mode,
    pub(crate) steps: Vec<wit::Step>,
}

impl Chain {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, steps: Vec::new() }
    }

    /// Calls a function with values from Memory, and puts what it returns there.
    ///
    /// The name stands for the function wherever it appears in the train, and is part of what is stored about runs:
    /// renaming the function changes nothing, renaming the junction does.
    pub fn junction<S, J>(&mut self, name: &str, junction: J) -> &mut Self
    where
        J: Junction<S>,
        J::Parameters: Parameters,
        J::Returned: Returns<Outputs: Outputs>,
    {
        self.work::<S, J>(name, &junction, wit::Step::Junction)
    }

    /// Calls a function whose one output may be the run's result, in which case the steps after it still run but do
    /// not change the result. Its failure means that the run goes on without it.
    pub fn short_circuit<S, J>(&mut self, name: &str, junction: J) -> &mut Self
    where
        J: Junction<S>,
        J::Parameters: Parameters,
        J::Returned: Returns<Outputs: Outputs>,
    {
        self.work::<S, J>(name, &junction, wit::Step::ShortCircuit)
    }

    fn work<S, J>(
        &mut self,
        name: &str,
        junction: &J,
        step: fn(wit::Junction) -> wit::Step,
    ) -> &mut Self
    where
        J: Junction<S>,
        J::Parameters: Parameters,
        J::Returned: Returns<Outputs: Outputs>,
    {
        self.work_known(
            name,
            &|inputs| junction::call::<S, J>(junction, inputs),
            Function::of::<J>(),
            junction::declare::<S, J>,
            step,
        )
    }

    /// The part of [`Chain::work`] that a component has once rather than per junction.
    #[inline(never)]
    fn work_known(
        &mut self,
        name: &str,
        call: &dyn Fn(Vec<types::Value>) -> Result<Vec<types::Value>, Failure>,
        function: Function,
        declare: fn(&mut JunctionDeclaration<'_>),
        step: fn(wit::Junction) -> wit::Step,
    ) -> &mut Self {
        if let Some(running) = self.mode.running(name) {
            let inputs = std::mem::take(&mut running.inputs);
            running.outcome = Some(call(inputs));
        } else if let Some(declaration) = self.mode.declaring() {
            declaration.junction(name, function);
            let mut junction = JunctionDeclaration::new(name, declaration);
            declare(&mut junction);
            self.steps.push(step(junction.junction));
        }
        self
    }

    /// Takes the member `field` of an `A` in Memory, and puts it there as a `B` of its own.
    pub fn extract<A: Value, B: Value>(&mut self, field: &str) -> &mut Self {
        self.declare(|declaration| {
            wit::Step::Extract(wit::Extract {
                from: declaration.value::<A>(),
                field: field.to_owned(),
                to: declaration.value::<B>(),
            })
        })
    }

    /// Asks several questions about an `S` in one call. Each decision goes into Memory.
    pub fn decide<S: Value>(
        &mut self,
        questions: impl FnOnce(Decide<'_>) -> Decide<'_>,
    ) -> &mut Self {
        questions(Decide::new::<S>(self)).finish();
        self
    }

    /// Routes by a choice.
    pub fn switch<Q: Choice>(
        &mut self,
        tracks: impl FnOnce(Switch<'_, Q>) -> Switch<'_, Q>,
    ) -> &mut Self {
        tracks(Switch::new(self)).finish();
        self
    }

    /// Routes by yes or no.
    pub fn gate<Q: YesNo>(&mut self, tracks: impl FnOnce(Gate<'_, Q>) -> Gate<'_, Q>) -> &mut Self {
        tracks(Gate::new(self)).finish();
        self
    }

    /// Routes by a score.
    pub fn scale<Q: Score>(
        &mut self,
        tracks: impl FnOnce(Scale<'_, Q>) -> Scale<'_, Q>,
    ) -> &mut Self {
        tracks(Scale::new(self)).finish();
        self
    }

    /// Stores the `T` in Memory. A retry resumes after it with the train's input, this value and the tracks taken so
    /// far; when a later step needs more than that, a retry starts from the top.
    pub fn checkpoint<T: Value>(&mut self) -> &mut Self {
        self.declare(|declaration| wit::Step::Checkpoint(declaration.value::<T>()))
    }

    /// Runs branches beside each other, each on its own copy of Memory, joined in the order in which they are written.
    pub fn parallel(&mut self, branches: impl FnOnce(Branches<'_>) -> Branches<'_>) -> &mut Self {
        branches(Branches::new(self)).finish();
        self
    }

    /// Adds a step when the train is being declared.
    pub(crate) fn declare(
        &mut self,
        step: impl FnOnce(&mut Declaration) -> wit::Step,
    ) -> &mut Self {
        if let Some(declaration) = self.mode.declaring() {
            let step = step(declaration);
            self.steps.push(step);
        }
        self
    }

    /// Runs the steps of a track, and gives its index among the train's tracks.
    pub(crate) fn track(&mut self, name: &str, steps: impl FnOnce(&mut Self) -> &mut Self) -> u32 {
        let outer = std::mem::take(&mut self.steps);
        steps(self);
        self.end_track(name, outer)
    }

    #[inline(never)]
    fn end_track(&mut self, name: &str, outer: Vec<wit::Step>) -> u32 {
        let steps = std::mem::replace(&mut self.steps, outer);
        let Some(declaration) = self.mode.declaring() else { return 0 };
        let tracks = &mut declaration.train.tracks;
        tracks.push(wit::Track { name: name.to_owned(), description: None, steps });
        u32::try_from(tracks.len() - 1).unwrap_or(u32::MAX)
    }

    /// Describes the track that was added last.
    pub(crate) fn describe_track(&mut self, description: &str) {
        if let Some(declaration) = self.mode.declaring()
            && let Some(track) = declaration.train.tracks.last_mut()
        {
            track.description = Some(description.to_owned());
        }
    }
}
