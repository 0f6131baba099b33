//! Reads schemas in normal form into shapes, and names everything that is not in it.
//!
//! References are read as they stand; `link.rs` resolves them.

use crate::model::json::Json;

use super::draft::{Draft, Place};
use super::fault::shown;
use super::shape::{Shape, ShapeId};

/// The keywords of which a schema has exactly one.
const HEADS: [&str; 5] = ["type", "enum", "const", "oneOf", "$ref"];
/// All keywords of the normal form.
const KEYWORDS: [&str; 16] = [
    "$ref",
    "additionalProperties",
    "const",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "required",
    "type",
];

/// The members of a schema: its keywords.
pub(super) type Members = [(String, Json)];

impl Draft<'_> {
    /// Reads the schema of a type.
    pub(super) fn read_root(&mut self, type_index: usize, schema: &Json) -> ShapeId {
        self.read(schema, Place { type_index, parent: None, path: "".into() })
    }

    /// Stands for the schema of a type that cannot be read at all.
    pub(super) fn faulty_root(&mut self, type_index: usize) -> ShapeId {
        self.open(Place { type_index, parent: None, path: "".into() })
    }

    pub(super) fn read_part(&mut self, parent: ShapeId, path: String, schema: &Json) -> ShapeId {
        let type_index = self.type_index(parent);
        self.read(schema, Place { type_index, parent: Some(parent), path: path.into() })
    }

    fn read(&mut self, schema: &Json, place: Place) -> ShapeId {
        let id = self.open(place);
        let Json::Object(members) = schema else {
            self.fault(id, "", || {
                "this is no schema; write an object such as {\"type\":\"string\"}".to_owned()
            });
            return id;
        };
        if let Some(shape) = self.shape(id, members) {
            self.shapes[id.0] = shape;
        }
        id
    }

    fn shape(&mut self, id: ShapeId, members: &Members) -> Option<Shape> {
        let mut heads = HEADS.into_iter().filter(|head| member(members, head).is_some());
        let head = heads.next();
        if let Some(second) = heads.next() {
            let first = head.unwrap_or_default();
            self.fault(id, "", || format!("'{first}' and '{second}' exclude each other; keep one"));
            return None;
        }
        let Some(head) = head else {
            self.allow(id, members, "it", &[]);
            self.fault(id, "", || {
                "it would take any value; add one of 'type', 'enum', 'const', 'oneOf', '$ref'"
                    .to_owned()
            });
            return None;
        };
        let value = member(members, head)?;
        if head == "type" {
            return self.typed(id, members, value);
        }
        self.allow(id, members, &format!("'{head}'"), &[head]);
        match head {
            "enum" => self.names(id, value),
            "const" => self.constant(id, value),
            "oneOf" => self.one_of(id, value),
            _ => self.reference(id, value),
        }
    }

    fn typed(&mut self, id: ShapeId, members: &Members, name: &Json) -> Option<Shape> {
        let Some(name) = name.as_str() else {
            self.fault(id, "/type", || {
                "a type is one name; for a value that may be null write \
                 {\"oneOf\":[{\"type\":\"null\"},..]}"
                    .to_owned()
            });
            return None;
        };
        let beside: &[&str] = match name {
            "object" => &["additionalProperties", "properties", "required", "type"],
            "array" => &["items", "maxItems", "minItems", "prefixItems", "type"],
            "string" => &["maxLength", "minLength", "type"],
            "integer" | "number" => &["maximum", "minimum", "type"],
            "boolean" | "null" => &["type"],
            _ => {
                self.fault(id, "/type", || {
                    format!(
                        "there is no type '{}'; use object, array, string, integer, number, \
                         boolean or null",
                        shown(name)
                    )
                });
                return None;
            }
        };
        self.allow(id, members, &format!("type '{name}'"), beside);
        match name {
            "object" => Some(self.object(id, members)),
            "array" => self.array(id, members),
            "string" => Some(Shape::Text(self.length(id, members, "minLength", "maxLength"))),
            "integer" => Some(Shape::Integer(self.bounds(id, members, true))),
            "number" => Some(Shape::Number(self.bounds(id, members, false))),
            "boolean" => Some(Shape::Boolean),
            _ => Some(Shape::Null),
        }
    }

    /// Refuses every keyword that may not stand beside `head`.
    fn allow(&mut self, id: ShapeId, members: &Members, head: &str, beside: &[&str]) {
        for (keyword, _) in members.iter().filter(|(k, _)| !beside.contains(&k.as_str())) {
            self.fault(id, "", || {
                if KEYWORDS.contains(&keyword.as_str()) {
                    format!("the keyword '{keyword}' does not belong beside {head}; remove it")
                } else {
                    format!("the keyword '{}' is not in the normal form; remove it", shown(keyword))
                }
            });
        }
    }

    fn names(&mut self, id: ShapeId, value: &Json) -> Option<Shape> {
        let Some(mut names) = texts(value).filter(|names| !names.is_empty()) else {
            self.fault(id, "/enum", || "write a list of at least one string".to_owned());
            return None;
        };
        names.sort_unstable();
        let duplicate = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        if let Some(name) = duplicate {
            self.fault(id, "/enum", || format!("'{}' stands twice; keep one", shown(name)));
        }
        Some(Shape::Names(names.into_iter().map(Into::into).collect()))
    }

    fn constant(&mut self, id: ShapeId, value: &Json) -> Option<Shape> {
        let Some(name) = value.as_str() else {
            self.fault(id, "/const", || "a constant is a string; write one".to_owned());
            return None;
        };
        Some(Shape::Names(vec![name.into()]))
    }

    fn one_of(&mut self, id: ShapeId, value: &Json) -> Option<Shape> {
        let Json::Array(alternatives) = value else {
            self.fault(id, "/oneOf", || "write a list of schemas".to_owned());
            return None;
        };
        if alternatives.is_empty() {
            self.fault(id, "/oneOf", || "no value fits an empty list; add a schema".to_owned());
            return None;
        }
        let alternatives = alternatives.iter().enumerate();
        let parts = alternatives.map(|(i, s)| self.read_part(id, format!("/oneOf/{i}"), s));
        Some(Shape::OneOf(parts.collect()))
    }

    fn reference(&mut self, id: ShapeId, value: &Json) -> Option<Shape> {
        let Some(name) = value.as_str() else {
            self.fault(id, "/$ref", || "a reference is the name of a type; write one".to_owned());
            return None;
        };
        let Some(&index) = self.index_of.get(name) else {
            self.fault(id, "/$ref", || {
                format!("no type '{}' is declared; declare it or name one that is", shown(name))
            });
            return None;
        };
        Some(Shape::Reference(index))
    }
}

pub(super) fn member<'j>(members: &'j Members, name: &str) -> Option<&'j Json> {
    members.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

/// The strings of a list of strings.
pub(super) fn texts(value: &Json) -> Option<Vec<&str>> {
    let Json::Array(items) = value else { return None };
    items.iter().map(Json::as_str).collect()
}
