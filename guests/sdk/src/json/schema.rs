//! Schemas in normal form, and the set of types that a train reaches.

use std::any::TypeId;

use crate::bindings::trax::train::declaration::TypeShape;
use crate::value::Value;

/// The types that a train works with, each with everything it refers to.
#[derive(Default)]
pub struct Types {
    shapes: Vec<TypeShape>,
    known: Vec<TypeId>,
}

impl Types {
    /// Adds a type, and the types it is made of, once. Two types of one name are both kept: the host names them.
    pub fn add<T: Value>(&mut self) {
        self.add_known(TypeId::of::<T>(), T::NAME, T::IS_SENSITIVE, T::own_schema);
    }

    /// The part of [`Types::add`] that a component has once rather than per type.
    #[inline(never)]
    fn add_known(
        &mut self,
        id: TypeId,
        name: &str,
        sensitive: bool,
        own_schema: fn(&mut Schema<'_>),
    ) {
        if self.known.contains(&id) {
            return;
        }
        self.known.push(id);
        let at = self.shapes.len();
        self.shapes.push(TypeShape { name: name.to_owned(), schema: String::new(), sensitive });
        let mut schema = Schema { text: String::new(), types: self };
        own_schema(&mut schema);
        self.shapes[at].schema = schema.text;
    }

    /// The types in the order in which they were reached.
    pub fn into_shapes(self) -> Vec<TypeShape> {
        self.shapes
    }
}

/// A schema under construction: canonical JSON Schema of a closed list of keywords.
pub struct Schema<'a> {
    text: String,
    types: &'a mut Types,
}

impl Schema<'_> {
    /// Adds text as it is.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a reference to a type, and the type to the train's types.
    pub fn reference<T: Value>(&mut self) {
        self.text.push_str("{\"$ref\":\"");
        self.text.push_str(T::NAME);
        self.text.push_str("\"}");
        self.types.add::<T>();
    }

    /// Adds the `required` keyword for members that have to be there, given as JSON strings.
    pub fn required(&mut self, members: &[(&str, bool)]) {
        let mut before = ",\"required\":[";
        for (name, may_be_absent) in members {
            if !may_be_absent {
                self.text.push_str(before);
                self.text.push_str(name);
                before = ",";
            }
        }
        if before == "," {
            self.text.push(']');
        }
    }
}
