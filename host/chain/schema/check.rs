//! Checks values against shapes: one step per place of the value, whatever the schema.

use crate::model::json::Json;

use super::decimal;
use super::fault::{MISMATCHES_MAX, Mismatch, choices, push_segment};
use super::shape::{Bounds, Kind, Length, Object, Shape, ShapeId};
use super::union::{Objects, Union, find};

/// Names up to [`MISMATCHES_MAX`] places where the value does not fit. With `hides_keys` the names of members that the
/// schema does not declare are left out of pointers, because they are part of the value.
pub(super) fn mismatches(
    shapes: &[Shape],
    id: ShapeId,
    value: &Json,
    hides_keys: bool,
) -> Vec<Mismatch> {
    let mut check = Check { shapes, hides_keys, path: Vec::new(), found: Vec::new() };
    check.value(id, value);
    check.found
}

#[derive(Clone, Copy)]
enum Segment<'v> {
    Member(&'v str),
    /// A member whose name is part of the value.
    Key(&'v str),
    Item(usize),
}

struct Check<'v> {
    shapes: &'v [Shape],
    hides_keys: bool,
    path: Vec<Segment<'v>>,
    found: Vec<Mismatch>,
}

impl<'v> Check<'v> {
    fn found(&mut self, problem: impl Into<String>) {
        if self.found.len() < MISMATCHES_MAX {
            let mut pointer = String::new();
            for segment in &self.path {
                match segment {
                    Segment::Key(_) if self.hides_keys => pointer.push_str("/*"),
                    Segment::Member(name) | Segment::Key(name) => push_segment(&mut pointer, name),
                    Segment::Item(i) => push_segment(&mut pointer, &i.to_string()),
                }
            }
            self.found.push(Mismatch { pointer, problem: problem.into() });
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() == MISMATCHES_MAX
    }

    fn at(&mut self, segment: Segment<'v>, id: ShapeId, value: &'v Json) {
        if self.is_full() {
            return;
        }
        self.path.push(segment);
        self.value(id, value);
        self.path.pop();
    }

    fn value(&mut self, id: ShapeId, value: &'v Json) {
        let shapes = self.shapes;
        match (&shapes[id.0], value) {
            (Shape::Object(object), Json::Object(members)) => self.object(object, members),
            (Shape::List { items, length }, Json::Array(values)) => {
                self.length(*length, values.len(), "items");
                for (i, value) in values.iter().enumerate() {
                    if self.is_full() {
                        break;
                    }
                    self.at(Segment::Item(i), *items, value);
                }
            }
            (Shape::Tuple { items, length }, Json::Array(values)) => {
                let max = length.max.min(items.len() as u64);
                self.length(Length { min: length.min, max }, values.len(), "items");
                for (i, (item, value)) in items.iter().zip(values).enumerate() {
                    self.at(Segment::Item(i), *item, value);
                }
            }
            (Shape::Text(length), Json::String(text)) => self.text_length(*length, text),
            (Shape::Names(names), Json::String(text)) => self.name(names, text),
            (Shape::Integer(bounds), Json::Number(text)) => {
                if decimal::is_integer(text) {
                    self.bounds(bounds, text);
                } else {
                    self.found(
                        "value is not of type \"integer\", which is written without fraction or \
                         exponent",
                    );
                }
            }
            (Shape::Number(bounds), Json::Number(text)) => self.bounds(bounds, text),
            (Shape::Boolean, Json::Bool(_)) | (Shape::Null, Json::Null) => {}
            (Shape::Union(union), _) => self.union(union, value),
            (Shape::Integer(_), _) => self.found("value is not of type \"integer\""),
            (Shape::Names(names), _) => self.not_one_of(names),
            (shape, _) => match shape.kind() {
                Some(kind) => self.found(format!("value is not of type \"{kind}\"")),
                // Only faulty types have such shapes, and those are not compiled.
                None => self.found("no value fits"),
            },
        }
    }

    fn object(&mut self, object: &'v Object, members: &'v [(String, Json)]) {
        let mut required = 0;
        for (name, value) in members {
            if self.is_full() {
                return;
            }
            match (object.member(name), object.others) {
                (Some(member), _) => {
                    required += usize::from(member.is_required);
                    self.at(Segment::Member(name), member.shape, value);
                }
                (None, Some(others)) => self.at(Segment::Key(name), others, value),
                (None, None) => {
                    self.path.push(Segment::Key(name));
                    self.found("there is no such member; remove it");
                    self.path.pop();
                }
            }
        }
        if required < object.required {
            let is_there = |name: &str| {
                members.binary_search_by(|(n, _)| n.as_bytes().cmp(name.as_bytes())).is_ok()
            };
            for member in object.members.iter().filter(|m| m.is_required && !is_there(&m.name)) {
                self.missing(&member.name);
                if self.is_full() {
                    return;
                }
            }
        }
    }

    fn missing(&mut self, name: &'v str) {
        self.path.push(Segment::Member(name));
        self.found("the required member is missing");
        self.path.pop();
    }

    fn length(&mut self, length: Length, count: usize, what: &str) {
        if (count as u64) < length.min {
            self.found(format!("value has fewer than {} {what}", length.min));
        } else if count as u64 > length.max {
            self.found(format!("value has more than {} {what}", length.max));
        }
    }

    fn text_length(&mut self, length: Length, text: &str) {
        // Counting characters reads the whole text.
        if length.min > 0 || length.max < u64::MAX {
            self.length(length, text.chars().count(), "characters");
        }
    }

    fn bounds(&mut self, bounds: &Bounds, text: &str) {
        if let Some(min) = &bounds.min
            && decimal::compare(text, min).is_lt()
        {
            self.found(format!("value is less than the minimum of {min}"));
        }
        if let Some(max) = &bounds.max
            && decimal::compare(text, max).is_gt()
        {
            self.found(format!("value is greater than the maximum of {max}"));
        }
    }

    fn name(&mut self, names: &[Box<str>], text: &str) {
        if names.binary_search_by(|name| name.as_bytes().cmp(text.as_bytes())).is_err() {
            self.not_one_of(names);
        }
    }

    fn not_one_of(&mut self, names: &[Box<str>]) {
        self.found(format!("value is not one of {}", choices(names.iter().map(|name| &**name))));
    }

    fn union(&mut self, union: &'v Union, value: &'v Json) {
        if let Some(single) = union.single(Kind::of(value)) {
            return self.value(single, value);
        }
        match (value, &union.objects) {
            (Json::String(text), _) if !union.names.is_empty() => self.name(&union.names, text),
            (Json::Object(members), Objects::ByMember(alternatives)) => {
                let only = if let [(name, _)] = &members[..] { name } else { "" };
                match find(alternatives, only) {
                    Some(id) if members.len() == 1 => self.value(id, value),
                    _ => self.found(format!(
                        "value is not an object with one of the members {}",
                        names_of(alternatives)
                    )),
                }
            }
            (Json::Object(_), Objects::ByTag { tag, alternatives }) => {
                self.tagged(tag, alternatives, value);
            }
            _ => {
                let kinds: Vec<_> = union.kinds().map(|kind| format!("\"{kind}\"")).collect();
                self.found(format!("value is not of type {}", kinds.join(" or ")));
            }
        }
    }

    fn tagged(&mut self, tag: &'v str, alternatives: &[(Box<str>, ShapeId)], value: &'v Json) {
        let Some(name) = value.member(tag) else { return self.missing(tag) };
        if let Some(id) = name.as_str().and_then(|name| find(alternatives, name)) {
            return self.value(id, value);
        }
        self.path.push(Segment::Member(tag));
        self.found(format!("value is not one of {}", names_of(alternatives)));
        self.path.pop();
    }
}

fn names_of(alternatives: &[(Box<str>, ShapeId)]) -> String {
    choices(alternatives.iter().map(|(name, _)| &**name))
}
