//! What junctions give: notes, or exactly the outputs that the script says.

use std::marker::PhantomData;

use trax_sdk::{Failure, JunctionDeclaration, Outputs, Value, types};

/// What a junction noted, as a value of its own.
pub(crate) trait Notes: Value {
    fn of(notes: Vec<String>) -> Self;
    fn into_notes(self) -> Vec<String>;
}

macro_rules! notes {
    ($($(#[$documentation:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$documentation])*
        #[derive(Value)]
        pub(crate) struct $name {
            notes: Vec<String>,
        }

        impl Notes for $name {
            fn of(notes: Vec<String>) -> Self {
                Self { notes }
            }

            fn into_notes(self) -> Vec<String> {
                self.notes
            }
        }
    )+};
}

notes! {
    /// The result of a train.
    Report,
    /// What the first of several junctions gives.
    First,
    /// What the second of several junctions gives.
    Second,
    /// What a track gives; the state of the checkpoint.
    Routed,
    /// What the left branch gives.
    LeftNotes,
    /// What the right branch gives.
    RightNotes,
}

/// What a junction declares as a `T` and may give as something else.
pub(crate) struct Scripted<T> {
    outputs: Played,
    declared: PhantomData<T>,
}

/// What became of a script.
pub(crate) enum Played {
    Notes(Vec<String>),
    Raw(Vec<types::Value>),
}

impl<T> From<Played> for Scripted<T> {
    fn from(outputs: Played) -> Self {
        Self { outputs, declared: PhantomData }
    }
}

impl<T: Notes> Outputs for Scripted<T> {
    fn declare(junction: &mut JunctionDeclaration<'_>) {
        junction.output::<T>();
    }

    fn give(self) -> Result<Vec<types::Value>, Failure> {
        match self.outputs {
            Played::Notes(notes) => T::of(notes).give(),
            Played::Raw(values) => Ok(values),
        }
    }
}
