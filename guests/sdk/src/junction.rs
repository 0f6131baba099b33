//! Junctions: plain functions, and what their signatures say.

use std::vec::IntoIter;

use crate::bindings::trax::train::types;
use crate::decision::{ChoiceDecision, Decision, ScoreDecision, TrackTaken, YesNoDecision};
use crate::declaration::JunctionDeclaration;
use crate::failure::Failure;
use crate::json::Reader;
use crate::question::{Choice, Question, Score, YesNo};
use crate::value::{self, Value};

/// A function that can be a junction: 1 to 8 parameters by value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a junction",
    label = "not a junction",
    note = "a junction is a function of 1 to 8 parameters by value: values, decisions, `TrackTaken`, `Ask`"
)]
pub trait Junction<Signature>: 'static {
    /// Its parameters, as a tuple.
    type Parameters;
    /// What it returns.
    type Returned;

    /// Calls the function.
    fn call(&self, parameters: Self::Parameters) -> Self::Returned;
}

/// What a junction can take.
#[diagnostic::on_unimplemented(
    message = "a junction cannot take `{Self}`",
    label = "not a value, a decision, `TrackTaken` or `Ask`",
    note = "junctions take types with `#[derive(Value)]`, by value"
)]
pub trait Parameter: Sized {
    /// Says what the parameter stands for.
    fn declare(junction: &mut JunctionDeclaration<'_>);

    /// Takes the parameter from the inputs that are left.
    fn take(inputs: &mut Inputs) -> Result<Self, Failure>;
}

/// The inputs of a call that no parameter has taken yet.
pub struct Inputs(IntoIter<types::Value>);

impl Inputs {
    pub(crate) fn new(inputs: Vec<types::Value>) -> Self {
        Self(inputs.into_iter())
    }

    /// The next input.
    pub fn next_input(&mut self) -> Result<types::Value, Failure> {
        self.0.next().ok_or_else(|| {
            Failure::permanent(
                "MissingInput",
                "the host gave fewer inputs than the junction declares",
            )
        })
    }

    fn read<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, crate::json::ReadError>,
    ) -> Result<T, Failure> {
        let input = self.next_input()?;
        read(&mut Reader::new(&input.json)).map_err(|error| {
            let message = format!("a {} cannot be read: {error}", input.type_name);
            Failure::permanent("UnreadableValue", message)
        })
    }
}

impl<T: Value> Parameter for T {
    fn declare(junction: &mut JunctionDeclaration<'_>) {
        junction.input::<T>();
    }

    fn take(inputs: &mut Inputs) -> Result<Self, Failure> {
        value::take(&inputs.next_input()?)
    }
}

macro_rules! decisions {
    ($($decision:ident: $kind:ident),+) => {$(
        impl<Q: $kind> Parameter for $decision<Q> {
            fn declare(junction: &mut JunctionDeclaration<'_>) {
                junction.decision::<Self>();
            }

            fn take(inputs: &mut Inputs) -> Result<Self, Failure> {
                inputs.read(<Self as Decision>::read)
            }
        }
    )+};
}

decisions!(ChoiceDecision: Choice, ScoreDecision: Score, YesNoDecision: YesNo);

impl<Q: Question> Parameter for TrackTaken<Q> {
    fn declare(junction: &mut JunctionDeclaration<'_>) {
        junction.track_taken::<Q>();
    }

    fn take(inputs: &mut Inputs) -> Result<Self, Failure> {
        inputs.read(Self::read)
    }
}

/// The parameters of a junction together.
pub trait Parameters: Sized {
    /// Says what they stand for, in order.
    fn declare(junction: &mut JunctionDeclaration<'_>);

    /// Takes them all.
    fn take(inputs: Vec<types::Value>) -> Result<Self, Failure>;
}

macro_rules! junctions {
    ($(($($parameter:ident)+))+) => {$(
        impl<F, R, $($parameter),+> Junction<fn($($parameter),+) -> R> for F
        where
            F: Fn($($parameter),+) -> R + 'static,
        {
            type Parameters = ($($parameter,)+);
            type Returned = R;

            #[expect(non_snake_case, reason = "a parameter is named after its type")]
            fn call(&self, ($($parameter,)+): Self::Parameters) -> R {
                self($($parameter),+)
            }
        }

        impl<$($parameter: Parameter),+> Parameters for ($($parameter,)+) {
            fn declare(junction: &mut JunctionDeclaration<'_>) {
                $($parameter::declare(junction);)+
            }

            fn take(inputs: Vec<types::Value>) -> Result<Self, Failure> {
                let mut inputs = Inputs::new(inputs);
                Ok(($($parameter::take(&mut inputs)?,)+))
            }
        }
    )+};
}

junctions! {
    (P1) (P1 P2) (P1 P2 P3) (P1 P2 P3 P4) (P1 P2 P3 P4 P5) (P1 P2 P3 P4 P5 P6) (P1 P2 P3 P4 P5 P6 P7)
    (P1 P2 P3 P4 P5 P6 P7 P8)
}

/// What a junction gives: a value, or a tuple of values.
#[diagnostic::on_unimplemented(
    message = "a junction cannot give `{Self}`",
    label = "not a value or a tuple of values",
    note = "junctions give types with `#[derive(Value)]`, or tuples of them, or a `Result` of these"
)]
pub trait Outputs: Sized {
    /// Says what it gives, in order.
    fn declare(junction: &mut JunctionDeclaration<'_>);

    /// Puts the outputs into the form in which they cross to the host.
    fn give(self) -> Result<Vec<types::Value>, Failure>;
}

impl<T: Value> Outputs for T {
    fn declare(junction: &mut JunctionDeclaration<'_>) {
        junction.output::<T>();
    }

    fn give(self) -> Result<Vec<types::Value>, Failure> {
        Ok(vec![value::give(&self)?])
    }
}

macro_rules! outputs {
    ($(($($output:ident)+))+) => {$(
        impl<$($output: Value),+> Outputs for ($($output,)+) {
            fn declare(junction: &mut JunctionDeclaration<'_>) {
                $(junction.output::<$output>();)+
            }

            #[expect(non_snake_case, reason = "an output is named after its type")]
            fn give(self) -> Result<Vec<types::Value>, Failure> {
                let ($($output,)+) = self;
                Ok(vec![$(value::give(&$output)?),+])
            }
        }
    )+};
}

outputs! { (V1 V2) (V1 V2 V3) (V1 V2 V3 V4) (V1 V2 V3 V4 V5) (V1 V2 V3 V4 V5 V6) }

/// What a junction's function returns: its outputs, or a `Result` of them.
#[diagnostic::on_unimplemented(
    message = "a junction cannot return `{Self}`",
    label = "not a value, a tuple of values, or a `Result` of these",
    note = "values have `#[derive(Value)]`; the error of a `Result` is `Failure` or any standard error"
)]
pub trait Returns {
    /// What is given when nothing failed.
    type Outputs;

    /// What became of the call.
    fn outcome(self) -> Result<Self::Outputs, Failure>;
}

impl<T: Outputs> Returns for T {
    type Outputs = T;

    fn outcome(self) -> Result<T, Failure> {
        Ok(self)
    }
}

/// Not bound to [`Outputs`] here, so that the compiler names the type that is no value rather than the `Result`.
impl<T, E: Into<Failure>> Returns for Result<T, E> {
    type Outputs = T;

    fn outcome(self) -> Result<T, Failure> {
        self.map_err(Into::into)
    }
}

/// Declares a junction by its function's signature.
pub(crate) fn declare<S, J>(junction: &mut JunctionDeclaration<'_>)
where
    J: Junction<S, Parameters: Parameters, Returned: Returns<Outputs: Outputs>>,
{
    J::Parameters::declare(junction);
    <J::Returned as Returns>::Outputs::declare(junction);
}

/// Calls a junction with what the host gave.
pub(crate) fn call<S, J>(
    junction: &J,
    inputs: Vec<types::Value>,
) -> Result<Vec<types::Value>, Failure>
where
    J: Junction<S, Parameters: Parameters, Returned: Returns<Outputs: Outputs>>,
{
    junction.call(J::Parameters::take(inputs)?).outcome()?.give()
}
