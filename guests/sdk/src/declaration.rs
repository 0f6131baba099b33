//! A train's declaration under construction.

use std::any::{TypeId, type_name};

use crate::bindings::trax::train::{declaration as wit, questions};
use crate::decision::Decision;
use crate::json::Types;
use crate::question::{self, Question};
use crate::value::Value;

/// What a train has declared so far, beside its chain.
pub struct Declaration {
    pub(crate) train: wit::Train,
    pub(crate) types: Types,
    questions: Vec<TypeId>,
    junctions: Vec<KnownJunction>,
}

/// Which function a junction's name stands for.
struct KnownJunction {
    name: String,
    function: Function,
}

/// A function, told apart from every other.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    id: TypeId,
    path: &'static str,
}

impl Function {
    pub(crate) fn of<F: 'static>() -> Self {
        Self { id: TypeId::of::<F>(), path: type_name::<F>() }
    }
}

impl Declaration {
    pub(crate) fn new() -> Self {
        Self {
            train: wit::Train {
                name: String::new(),
                description: String::new(),
                input: String::new(),
                output: String::new(),
                types: Vec::new(),
                questions: Vec::new(),
                tracks: Vec::new(),
                root: Vec::new(),
                deciders: Vec::new(),
                default_decider: None,
                wants: wit::Wants {
                    http: Vec::new(),
                    config: Vec::new(),
                    secrets: Vec::new(),
                    directories: Vec::new(),
                },
                subject_key: None,
                isolation: wit::Isolation::PerJunction,
                queue_only: false,
            },
            types: Types::default(),
            questions: Vec::new(),
            junctions: Vec::new(),
        }
    }

    /// Adds a value's type, and gives its name.
    pub fn value<T: Value>(&mut self) -> String {
        self.types.add::<T>();
        T::NAME.to_owned()
    }

    /// Adds a question, and gives its key.
    pub fn question<Q: Question>(&mut self) -> String {
        self.question_known(TypeId::of::<Q>(), question::declare::<Q>);
        Q::KEY.to_owned()
    }

    #[inline(never)]
    fn question_known(&mut self, id: TypeId, declare: fn() -> questions::Question) {
        if !self.questions.contains(&id) {
            self.questions.push(id);
            self.train.questions.push(declare());
        }
    }

    /// Two functions under one name would be one junction to the host: only here can they be told apart.
    ///
    /// # Panics
    /// The name stands for another function already.
    pub(crate) fn junction(&mut self, name: &str, function: Function) {
        match self.junctions.iter().find(|known| known.name == name) {
            Some(known) => assert!(
                known.function.id == function.id,
                "the junction '{name}' of train '{}' stands for two functions, {} and {}; name them apart",
                self.train.name,
                known.function.path,
                function.path,
            ),
            None => self.junctions.push(KnownJunction { name: name.to_owned(), function }),
        }
    }
}

/// A junction's declaration under construction: what its function's signature says.
pub struct JunctionDeclaration<'a> {
    pub(crate) junction: wit::Junction,
    train: &'a mut Declaration,
}

impl<'a> JunctionDeclaration<'a> {
    pub(crate) fn new(name: &str, train: &'a mut Declaration) -> Self {
        let junction = wit::Junction {
            name: name.to_owned(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            asks: Vec::new(),
        };
        Self { junction, train }
    }

    /// It takes a value.
    pub fn input<T: Value>(&mut self) {
        self.junction.inputs.push(self.train.value::<T>());
    }

    /// It takes the decision of a question.
    pub fn decision<D: Decision>(&mut self) {
        let input = format!("{}<{}>", D::PREFIX, D::Question::KEY);
        self.junction.inputs.push(input);
    }

    /// It takes the track that a question led to.
    pub fn track_taken<Q: Question>(&mut self) {
        self.junction.inputs.push(format!("TrackTaken<{}>", Q::KEY));
    }

    /// It asks a question while it runs.
    pub fn asks<Q: Question>(&mut self) {
        let key = self.train.question::<Q>();
        if !self.junction.asks.contains(&key) {
            self.junction.asks.push(key);
        }
    }

    /// It asks about values of this type.
    pub fn asks_about<T: Value>(&mut self) {
        self.train.types.add::<T>();
    }

    /// It gives a value.
    pub fn output<T: Value>(&mut self) {
        self.junction.outputs.push(self.train.value::<T>());
    }
}
