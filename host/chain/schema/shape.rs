//! Compiled schemas: an arena of shapes, each of which says what one place of a value may hold.

use std::fmt;

use crate::model::json::Json;

use super::union::Union;

/// Index of a shape in the arena of its train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ShapeId(pub(super) usize);

/// What a value may be.
#[derive(Debug)]
pub(super) enum Shape {
    Object(Object),
    List {
        items: ShapeId,
        length: Length,
    },
    /// Each item has a shape of its own; there are no others.
    Tuple {
        items: Vec<ShapeId>,
        length: Length,
    },
    Text(Length),
    Integer(Bounds),
    Number(Bounds),
    Boolean,
    Null,
    /// One of these texts. Invariant: sorted by bytes, and at least one.
    Names(Vec<Box<str>>),
    /// Alternatives, as read. Linking makes it a [`Shape::Union`].
    OneOf(Vec<ShapeId>),
    /// Exactly one alternative can take a value, and a look at the value's outermost level says which.
    Union(Union),
    /// The type with this index, as read. Linking makes every use of it a use of what it stands for.
    Reference(usize),
}

/// What an object may hold.
#[derive(Debug)]
pub(super) struct Object {
    /// Invariant: sorted by the bytes of their names.
    pub(super) members: Vec<Member>,
    /// How many of the members are required.
    pub(super) required: usize,
    /// What members of other names hold; none are allowed without.
    pub(super) others: Option<ShapeId>,
}

/// A member that an object declares.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Box<str>,
    pub(super) shape: ShapeId,
    pub(super) is_required: bool,
}

impl Object {
    /// The declared member of this name.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        let at = self.members.binary_search_by(|m| m.name.as_bytes().cmp(name.as_bytes())).ok()?;
        Some(&self.members[at])
    }
}

/// How long a text is in characters, or a list in items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// The least and the greatest of a number, as they are written.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) min: Option<Box<str>>,
    pub(super) max: Option<Box<str>>,
}

/// The kinds of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    List,
    Object,
}

impl Kind {
    pub(super) const ALL: [Self; 6] =
        [Self::Null, Self::Boolean, Self::Number, Self::Text, Self::List, Self::Object];

    /// The kind of a value.
    pub(super) fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(_) => Self::Boolean,
            Json::Number(_) => Self::Number,
            Json::String(_) => Self::Text,
            Json::Array(_) => Self::List,
            Json::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Text => "string",
            Self::List => "array",
            Self::Object => "object",
        })
    }
}

impl Shape {
    /// The one kind of value it takes; unions and references have none of their own.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Object(_) => Some(Kind::Object),
            Self::List { .. } | Self::Tuple { .. } => Some(Kind::List),
            Self::Text(_) | Self::Names(_) => Some(Kind::Text),
            Self::Integer(_) | Self::Number(_) => Some(Kind::Number),
            Self::Boolean => Some(Kind::Boolean),
            Self::Null => Some(Kind::Null),
            Self::OneOf(_) | Self::Union(_) | Self::Reference(_) => None,
        }
    }
}
