//! Steps that ask questions, and steps that route by the answers.

use std::marker::PhantomData;
use std::time::Duration;

use crate::bindings::trax::train::declaration as wit;
use crate::chain::Chain;
use crate::declaration::Declaration;
use crate::question::{Choice, Question, Score, YesNo};
use crate::value::Value;

/// How a step asks: about what, in which words, and whom.
#[derive(Default)]
struct Asking {
    state: Option<String>,
    instructions: Option<String>,
    decider: Option<String>,
    shadows: Vec<String>,
    wait_for_shadows_ms: Option<u64>,
}

impl Asking {
    /// # Panics
    /// The step says how to ask and asks nothing.
    fn into_wit(self, key: &str) -> Option<wit::Asking> {
        let Self { state, instructions, decider, shadows, wait_for_shadows_ms } = self;
        let Some(state) = state else {
            assert!(
                decider.is_none() && shadows.is_empty() && wait_for_shadows_ms.is_none(),
                "the step that routes by '{key}' names a decider or shadows and asks nothing; \
                 let it ask with `asking_about`, or name them where the question is asked",
            );
            return None;
        };
        Some(wit::Asking { state, instructions, decider, shadows, wait_for_shadows_ms })
    }
}

macro_rules! deciders {
    ($($asking:ident).+) => {
        /// This decider answers instead of the train's.
        pub fn decided_by(mut self, decider: &str) -> Self {
            if self.chain.mode.declaring().is_some() {
                self.$($asking).+.decider = Some(decider.to_owned());
            }
            self
        }

        /// This decider is asked the same; its answer is recorded and never acted on.
        pub fn shadow(mut self, decider: &str) -> Self {
            if self.chain.mode.declaring().is_some() {
                self.$($asking).+.shadows.push(decider.to_owned());
            }
            self
        }

        /// How long the run waits for shadows: 5 seconds unless said otherwise.
        pub fn wait_for_shadows(mut self, wait: Duration) -> Self {
            let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self.$($asking).+.wait_for_shadows_ms = Some(milliseconds);
            self
        }
    };
}

macro_rules! asking_step {
    ($($asking:ident).+) => {
        /// Asks the question here, about an `S`. Without this the step routes by what an earlier step has asked.
        pub fn asking_about<S: Value>(mut self) -> Self {
            if let Some(declaration) = self.chain.mode.declaring() {
                self.$($asking).+.state = Some(declaration.value::<S>());
            }
            self
        }

        /// Asks the question here, about an `S`, in these words.
        pub fn asking_in_words<S: Value>(mut self, instructions: &str) -> Self {
            self = self.asking_about::<S>();
            if self.chain.mode.declaring().is_some() {
                self.$($asking).+.instructions = Some(instructions.to_owned());
            }
            self
        }

        deciders!($($asking).+);

        /// Describes the track before it, for operators.
        pub fn described(self, description: &str) -> Self {
            self.chain.describe_track(description);
            self
        }
    };
}

/// A step that asks several questions in one call.
pub struct Decide<'a> {
    chain: &'a mut Chain,
    asking: Asking,
    questions: Vec<wit::DecideQuestion>,
}

impl<'a> Decide<'a> {
    pub(crate) fn new<S: Value>(chain: &'a mut Chain) -> Self {
        let state = chain.mode.declaring().map(Declaration::value::<S>);
        Self { chain, asking: Asking { state, ..Asking::default() }, questions: Vec::new() }
    }

    /// Asks this question.
    pub fn question<Q: Question>(self) -> Self {
        self.ask::<Q>(None)
    }

    /// Asks this question in these words.
    pub fn question_in_words<Q: Question>(self, instructions: &str) -> Self {
        self.ask::<Q>(Some(instructions))
    }

    fn ask<Q: Question>(mut self, instructions: Option<&str>) -> Self {
        if let Some(declaration) = self.chain.mode.declaring() {
            let key = declaration.question::<Q>();
            let instructions = instructions.map(str::to_owned);
            self.questions.push(wit::DecideQuestion { key, instructions });
        }
        self
    }

    deciders!(asking);

    pub(crate) fn finish(self) {
        let Self { chain, asking, questions } = self;
        let Asking { state, decider, shadows, wait_for_shadows_ms, .. } = asking;
        chain.declare(|_| {
            let state = state.unwrap_or_default();
            wit::Step::Decide(wit::Decide {
                state,
                questions,
                decider,
                shadows,
                wait_for_shadows_ms,
            })
        });
    }
}

/// What a step routes by that follows a decision only if it is confident enough.
struct Confident<T> {
    asking: Asking,
    tracks: Vec<T>,
    require_confidence: f64,
    otherwise: Option<u32>,
}

impl<T> Default for Confident<T> {
    fn default() -> Self {
        let asking = Asking::default();
        Self { asking, tracks: Vec::new(), require_confidence: 0.0, otherwise: None }
    }
}

/// What such a step can be told.
macro_rules! confident_step {
    () => {
        /// The least confidence to follow the decision, from 0 to 1; 0 unless said otherwise.
        pub fn require_confidence(mut self, require_confidence: f64) -> Self {
            self.routes.require_confidence = require_confidence;
            self
        }

        /// The track that is taken when the decision has none or is not confident enough. Without one the run fails
        /// then.
        pub fn otherwise(
            mut self,
            name: &str,
            track: impl FnOnce(&mut Chain) -> &mut Chain,
        ) -> Self {
            self.routes.otherwise = Some(self.chain.track(name, track));
            self
        }
    };
}

/// A step that routes by a choice.
pub struct Switch<'a, Q> {
    chain: &'a mut Chain,
    routes: Confident<wit::When>,
    question: PhantomData<Q>,
}

impl<'a, Q: Choice> Switch<'a, Q> {
    pub(crate) fn new(chain: &'a mut Chain) -> Self {
        Self { chain, routes: Confident::default(), question: PhantomData }
    }

    asking_step!(routes.asking);

    /// The track for an option, named after it.
    pub fn when(self, option: Q, track: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        self.track(&option, None, track)
    }

    /// The track for an option that is chosen with at least this confidence, whatever the switch requires.
    pub fn when_confident(
        self,
        option: Q,
        require_confidence: f64,
        track: impl FnOnce(&mut Chain) -> &mut Chain,
    ) -> Self {
        self.track(&option, Some(require_confidence), track)
    }

    fn track(
        mut self,
        option: &Q,
        require_confidence: Option<f64>,
        track: impl FnOnce(&mut Chain) -> &mut Chain,
    ) -> Self {
        let track = self.chain.track(option.name(), track);
        if self.chain.mode.declaring().is_some() {
            let option_name = option.name().to_owned();
            self.routes.tracks.push(wit::When { option_name, track, require_confidence });
        }
        self
    }

    confident_step!();

    pub(crate) fn finish(self) {
        let Self { chain, routes, .. } = self;
        let Confident { asking, tracks, require_confidence, otherwise } = routes;
        chain.declare(|declaration| {
            let question = declaration.question::<Q>();
            let asking = asking.into_wit(Q::KEY);
            wit::Step::Switch(wit::Switch {
                question,
                asking,
                tracks,
                require_confidence,
                otherwise,
            })
        });
    }
}

/// A step that routes by yes or no. It needs a track for each.
pub struct Gate<'a, Q> {
    chain: &'a mut Chain,
    asking: Asking,
    yes: Option<u32>,
    yes_at_least: f64,
    no: Option<u32>,
    no_below: f64,
    unsure: Option<u32>,
    question: PhantomData<Q>,
}

impl<'a, Q: YesNo> Gate<'a, Q> {
    /// From here upwards it is yes, and below it is no, unless said otherwise.
    const EVEN: f64 = 0.5;

    pub(crate) fn new(chain: &'a mut Chain) -> Self {
        Self {
            chain,
            asking: Asking::default(),
            yes: None,
            yes_at_least: Self::EVEN,
            no: None,
            no_below: Self::EVEN,
            unsure: None,
            question: PhantomData,
        }
    }

    asking_step!(asking);

    /// The track for yes: a probability of at least one half.
    pub fn yes(self, track: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        self.yes_at_least(Self::EVEN, track)
    }

    /// The track for yes: at least this probability.
    pub fn yes_at_least(
        mut self,
        probability: f64,
        track: impl FnOnce(&mut Chain) -> &mut Chain,
    ) -> Self {
        self.yes = Some(self.chain.track("Yes", track));
        self.yes_at_least = probability;
        self
    }

    /// The track for no: a probability below one half.
    pub fn no(self, track: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        self.no_below(Self::EVEN, track)
    }

    /// The track for no: below this probability.
    pub fn no_below(
        mut self,
        probability: f64,
        track: impl FnOnce(&mut Chain) -> &mut Chain,
    ) -> Self {
        self.no = Some(self.chain.track("No", track));
        self.no_below = probability;
        self
    }

    /// The track between no and yes. Without one the run fails there.
    pub fn unsure(mut self, track: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        self.unsure = Some(self.chain.track("Unsure", track));
        self
    }

    /// # Panics
    /// A track for yes or for no is missing.
    pub(crate) fn finish(self) {
        let Self { chain, asking, yes, yes_at_least, no, no_below, unsure, .. } = self;
        chain.declare(|declaration| {
            let (Some(yes), Some(no)) = (yes, no) else {
                panic!("the gate on '{}' needs a track for yes and one for no", Q::KEY)
            };
            let question = declaration.question::<Q>();
            let asking = asking.into_wit(Q::KEY);
            wit::Step::Gate(wit::Gate { question, asking, yes, yes_at_least, no, no_below, unsure })
        });
    }
}

/// A step that routes by a score.
pub struct Scale<'a, Q> {
    chain: &'a mut Chain,
    routes: Confident<wit::AtLeast>,
    question: PhantomData<Q>,
}

impl<'a, Q: Score> Scale<'a, Q> {
    pub(crate) fn new(chain: &'a mut Chain) -> Self {
        Self { chain, routes: Confident::default(), question: PhantomData }
    }

    asking_step!(routes.asking);

    /// The track from a level upwards, to the next level that has one. The lowest level must have one.
    pub fn at_least(mut self, level: Q, track: impl FnOnce(&mut Chain) -> &mut Chain) -> Self {
        let track = self.chain.track(level.name(), track);
        if self.chain.mode.declaring().is_some() {
            self.routes.tracks.push(wit::AtLeast { level: level.name().to_owned(), track });
        }
        self
    }

    confident_step!();

    pub(crate) fn finish(self) {
        let Self { chain, routes, .. } = self;
        let Confident { asking, tracks, require_confidence, otherwise } = routes;
        chain.declare(|declaration| {
            let question = declaration.question::<Q>();
            let asking = asking.into_wit(Q::KEY);
            wit::Step::Scale(wit::Scale { question, asking, tracks, require_confidence, otherwise })
        });
    }
}
