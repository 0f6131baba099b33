//! Every name that the steps of one train can use, and a small number for each type, so that the flow of values
//! through a chain is followed without comparing texts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::chain::declaration::Train;
use crate::model::question::{Question, QuestionKind};

/// A type's number in one train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Symbol(pub(super) usize);

/// What a type's name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeName {
    /// The train declares it.
    Declared,
    /// The host makes its values: decisions and tracks taken.
    HostMade,
    /// Nothing of that name exists.
    Unknown,
}

/// Whether values of this type are made by the host. No declared type has such a name.
pub(super) fn is_host_made(type_name: &str) -> bool {
    type_name.contains('<')
}

/// The names of one train.
pub(super) struct Names<'a> {
    declared: HashSet<&'a str>,
    questions: HashMap<&'a str, &'a Question>,
    symbols: HashMap<Arc<str>, Symbol>,
    texts: Vec<Arc<str>>,
}

impl<'a> Names<'a> {
    /// The names of this train. Of several questions with one key the first counts.
    pub(super) fn of(train: &'a Train) -> Self {
        let mut questions = HashMap::with_capacity(train.questions.len());
        for question in &train.questions {
            questions.entry(question.key.as_str()).or_insert(question);
        }
        let declared = train.types.iter().map(|shape| shape.name.as_str()).collect();
        Self { declared, questions, symbols: HashMap::new(), texts: Vec::new() }
    }

    /// The question with this key.
    pub(super) fn question(&self, key: &str) -> Option<&'a Question> {
        self.questions.get(key).copied()
    }

    /// What the name of a type stands for.
    pub(super) fn kind(&self, type_name: &str) -> TypeName {
        if self.declared.contains(type_name) {
            return TypeName::Declared;
        }
        let host_made = type_name.strip_suffix('>').and_then(|rest| rest.split_once('<'));
        let Some((maker, key)) = host_made else { return TypeName::Unknown };
        let Some(question) = self.question(key) else { return TypeName::Unknown };
        let exists = match maker {
            "TrackTaken" => true,
            "ChoiceDecision" => matches!(question.kind, QuestionKind::Choice(_)),
            "ScoreDecision" => matches!(question.kind, QuestionKind::Score(_)),
            "YesNoDecision" => matches!(question.kind, QuestionKind::YesNo { .. }),
            _ => false,
        };
        if exists { TypeName::HostMade } else { TypeName::Unknown }
    }

    /// The number of a type, which may be one that does not exist.
    pub(super) fn symbol(&mut self, type_name: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(type_name) {
            return *symbol;
        }
        let text: Arc<str> = type_name.into();
        let symbol = Symbol(self.texts.len());
        self.texts.push(text.clone());
        self.symbols.insert(text, symbol);
        symbol
    }

    /// The name behind a number.
    pub(super) fn text(&self, symbol: Symbol) -> &Arc<str> {
        &self.texts[symbol.0]
    }
}
