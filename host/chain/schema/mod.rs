//! The types of a train: their schemas in normal form, and the values that fit them.
//!
//! A schema is [JSON Schema](https://json-schema.org/) with a closed list of keywords, as canonical JSON, and has
//! exactly one of:
//!
//! | keyword | beside it |
//! |---|---|
//! | `"type":"object"` | `properties`; `required`, sorted, each in `properties`; always `additionalProperties` |
//! | `"type":"array"` | `items`, or `prefixItems` with a schema per item and `"items":false`; `minItems`, `maxItems` |
//! | `"type":"string"` | `minLength`, `maxLength`, in characters |
//! | `"type":"integer"`, `"type":"number"` | `minimum`, `maximum`, kept and compared exactly |
//! | `"type":"boolean"`, `"type":"null"` | |
//! | `"enum"` | a list of different strings |
//! | `"const"` | a string |
//! | `"oneOf"` | a list of schemas that are told apart by a value's outermost level (see `union.rs`) |
//! | `"$ref"` | the bare name of a type of the train |
//!
//! `additionalProperties` is `false` or a schema: objects are closed unless they are maps.
//!
//! There are no titles, descriptions, formats and patterns: state fingerprints are made of the text, and words that
//! change no value are not to change them. An integer is written without fraction, exponent and negative zero; apart
//! from that a value fits when JSON Schema 2020-12 says so.
//!
//! Schemas and values are a guest's. Compiling takes time in proportion to the schemas' size, and checking takes time
//! in proportion to the value's: no keyword here tries one place of a value twice.

mod check;
mod compile;
mod decimal;
mod draft;
mod fault;
mod link;
mod read;
mod shape;
#[cfg(test)]
mod tests;
mod typed;
mod union;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::chain::declaration::TypeShape;
use crate::model::json::{Json, Problem};
use crate::model::value::{Shown, Value};

pub use fault::{MISMATCHES_MAX, Mismatch, TypeFault, ValueFault};

use shape::{Shape, ShapeId};

/// The compiled types of one train.
#[derive(Debug)]
pub struct Types {
    shapes: Vec<Shape>,
    declared: Vec<Type>,
    index_of: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Type {
    name: Arc<str>,
    /// Canonical text.
    schema: Box<str>,
    /// SHA-256 of the text.
    digest: [u8; 32],
    /// Invariant: never a reference.
    root: ShapeId,
    /// The canonical schemas of the members that its schema declares itself.
    members: BTreeMap<Box<str>, Box<str>>,
    /// Indices of the types that its schema names.
    refers_to: Vec<usize>,
    is_sensitive: bool,
    fingerprint: OnceLock<String>,
}

impl Types {
    /// Compiles the types of a train.
    ///
    /// # Errors
    /// The faults of all types; of more than one hundred the rest is only counted.
    pub fn compile(shapes: &[TypeShape]) -> Result<Self, Vec<TypeFault>> {
        compile::compile(shapes)
    }

    /// Whether the train declares this type.
    pub fn contains(&self, name: &str) -> bool {
        self.index_of.contains_key(name)
    }

    /// The type's schema as canonical JSON.
    pub fn schema(&self, name: &str) -> Option<&str> {
        self.find(name).map(|found| &*found.schema)
    }

    /// Whether the type, or a type that its schema reaches, is declared sensitive. A type that is not declared is not.
    pub fn is_sensitive(&self, name: &str) -> bool {
        self.find(name).is_some_and(|found| found.is_sensitive)
    }

    /// What operators see of a value: nothing unless its type is declared, and not as sensitive.
    pub fn shown(&self, type_name: &str, json: impl Into<String>) -> Shown {
        if self.contains(type_name) && !self.is_sensitive(type_name) {
            Shown::Plain(json.into())
        } else {
            Shown::Sensitive
        }
    }

    /// The value that a JSON text stands for, in canonical form, when it fits the type.
    ///
    /// # Errors
    /// [`ValueFault`] says what does not fit and where, without quoting the value.
    pub fn admit(&self, type_name: &str, text: &str) -> Result<Value, ValueFault> {
        let found = self.find_or_fault(type_name)?;
        let json = Json::parse(text).map_err(|error| {
            let (line, column) = (error.line, error.column);
            let problem = match error.problem {
                // The name is part of the value.
                Problem::Duplicate(_) if found.is_sensitive => {
                    format!("a member stands twice in one object at line {line}, column {column}")
                }
                _ => error.to_string(),
            };
            ValueFault::NotJson { type_name: type_name.to_owned(), problem }
        })?;
        self.fit(found, &json)
    }

    /// The same for a value that has been read.
    ///
    /// # Errors
    /// [`ValueFault`] says what does not fit and where, without quoting the value.
    pub fn admit_json(&self, type_name: &str, json: &Json) -> Result<Value, ValueFault> {
        self.fit(self.find_or_fault(type_name)?, json)
    }

    /// Whether the member `field` of `from` can be taken as a value of `to`: `from` is an object that requires it, and
    /// its schema is `{"$ref":"<to>"}` or the same text as the schema of `to`.
    ///
    /// # Errors
    /// What does not fit and what to do, as a fragment.
    pub fn assignable(&self, from: &str, field: &str, to: &str) -> Result<(), String> {
        let undeclared = |name: &str| format!("the type '{}' is not declared", fault::shown(name));
        let source = self.find(from).ok_or_else(|| undeclared(from))?;
        let target = self.find(to).ok_or_else(|| undeclared(to))?;
        let field_shown = fault::shown(field);
        let Shape::Object(object) = &self.shapes[source.root.0] else {
            return Err(format!("'{from}' is not an object, so it has no member '{field_shown}'"));
        };
        let Some(member) = object.member(field) else {
            return Err(format!(
                "'{from}' has no member '{field_shown}'; it has {}",
                fault::choices(object.members.iter().map(|m| &*m.name))
            ));
        };
        if !member.is_required {
            return Err(format!(
                "the member '{field_shown}' of '{from}' may be missing; name it in 'required'"
            ));
        }
        let owner = self.declared.iter().find(|t| t.root == source.root && !t.members.is_empty());
        let text = owner.and_then(|owner| owner.members.get(field));
        if member.shape == target.root || text == Some(&target.schema) {
            return Ok(());
        }
        Err(format!(
            "the member '{field_shown}' of '{from}' is not a '{to}'; write its schema as \
             {{\"$ref\":\"{to}\"}}"
        ))
    }

    /// Identifies what values of the type look like: SHA-256 in lowercase hex over the type's name and the schemas of
    /// all types that its schema reaches, itself included. Whether types are sensitive has no part in it.
    ///
    /// The hashed bytes are `trax shape 1`, a line feed, the type's name, and for each of the reached types, sorted by
    /// the bytes of their names, its name and the SHA-256 (32 bytes) of its schema. Before each name stands its length
    /// in bytes as 8 bytes, most significant first. Another layout takes another number in the first line.
    pub fn shape_fingerprint(&self, type_name: &str) -> Option<String> {
        let found = self.find(type_name)?;
        Some(found.fingerprint.get_or_init(|| self.fingerprint(found)).clone())
    }

    fn fingerprint(&self, of: &Type) -> String {
        let mut is_reached = vec![false; self.declared.len()];
        let mut reached = Vec::new();
        let mut open = vec![of];
        while let Some(found) = open.pop() {
            reached.push(found);
            for &index in &found.refers_to {
                if !std::mem::replace(&mut is_reached[index], true) {
                    open.push(&self.declared[index]);
                }
            }
        }
        // A recursive type is reached from itself too.
        reached.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        reached.dedup_by(|a, b| a.name == b.name);
        let mut hash = Sha256::new();
        let name = |hash: &mut Sha256, name: &[u8]| {
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name);
        };
        hash.update(b"trax shape 1\n");
        name(&mut hash, of.name.as_bytes());
        for found in reached {
            name(&mut hash, found.name.as_bytes());
            hash.update(found.digest);
        }
        hex::encode(hash.finalize())
    }

    fn find(&self, name: &str) -> Option<&Type> {
        self.index_of.get(name).map(|&index| &self.declared[index])
    }

    fn find_or_fault(&self, name: &str) -> Result<&Type, ValueFault> {
        self.find(name).ok_or_else(|| ValueFault::UnknownType { type_name: name.to_owned() })
    }

    fn fit(&self, found: &Type, json: &Json) -> Result<Value, ValueFault> {
        let mismatches = check::mismatches(&self.shapes, found.root, json, found.is_sensitive);
        if !mismatches.is_empty() {
            let type_name = found.name.to_string();
            return Err(ValueFault::Mismatch { type_name, mismatches });
        }
        Ok(Value::new(found.name.clone(), json.to_string()))
    }
}
