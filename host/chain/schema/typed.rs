//! Reads the keywords that stand beside `type`.

use crate::model::json::Json;

use super::decimal;
use super::draft::Draft;
use super::fault::{push_segment, shown};
use super::read::{Members, member, texts};
use super::shape::{Bounds, Length, Member, Object, Shape, ShapeId};

/// The longest text of a bound. Bounds are compared with every value and repeated in messages.
const BOUND_LENGTH_MAX: usize = 100;

impl Draft<'_> {
    pub(super) fn object(&mut self, id: ShapeId, members: &Members) -> Shape {
        let mut object = Object { members: Vec::new(), required: 0, others: None };
        match member(members, "properties") {
            None => {}
            Some(Json::Object(properties)) => {
                for (name, schema) in properties {
                    let mut path = "/properties".to_owned();
                    push_segment(&mut path, name);
                    let shape = self.read_part(id, path, schema);
                    object.members.push(Member {
                        name: name.as_str().into(),
                        shape,
                        is_required: false,
                    });
                }
            }
            Some(_) => self
                .fault(id, "/properties", || "write an object with a schema per member".to_owned()),
        }
        if let Some(required) = member(members, "required") {
            self.required(id, required, &mut object);
        }
        match member(members, "additionalProperties") {
            Some(Json::Bool(false)) => {}
            Some(schema @ Json::Object(_)) => {
                object.others =
                    Some(self.read_part(id, "/additionalProperties".to_owned(), schema));
            }
            Some(_) => self.fault(id, "/additionalProperties", || {
                "an object's other members are not open; write false or a schema".to_owned()
            }),
            None => self.fault(id, "", || {
                "an object says whether it has other members; add \
                 \"additionalProperties\":false"
                    .to_owned()
            }),
        }
        Shape::Object(object)
    }

    fn required(&mut self, id: ShapeId, required: &Json, object: &mut Object) {
        let Some(names) = texts(required) else {
            return self.fault(id, "/required", || "write a list of names of members".to_owned());
        };
        if !names.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()) {
            self.fault(id, "/required", || {
                "the names are not in the order of their bytes, each once; sort them".to_owned()
            });
        }
        for name in names {
            let at = object.members.binary_search_by(|m| m.name.as_bytes().cmp(name.as_bytes()));
            match at {
                Ok(at) => object.members[at].is_required = true,
                Err(_) => self.fault(id, "/required", || {
                    format!("'{}' is not in 'properties'; declare or remove it", shown(name))
                }),
            }
        }
        object.required = object.members.iter().filter(|m| m.is_required).count();
    }

    pub(super) fn array(&mut self, id: ShapeId, members: &Members) -> Option<Shape> {
        let length = self.length(id, members, "minItems", "maxItems");
        match (member(members, "prefixItems"), member(members, "items")) {
            (None, Some(schema @ Json::Object(_))) => {
                let items = self.read_part(id, "/items".to_owned(), schema);
                Some(Shape::List { items, length })
            }
            (Some(Json::Array(schemas)), Some(Json::Bool(false))) if !schemas.is_empty() => {
                let items = schemas.iter().enumerate();
                let items = items.map(|(i, s)| self.read_part(id, format!("/prefixItems/{i}"), s));
                let items: Vec<_> = items.collect();
                if length.min > items.len() as u64 {
                    self.fault(id, "/minItems", || {
                        "it is greater than the number of items, so no value fits; lower it"
                            .to_owned()
                    });
                }
                Some(Shape::Tuple { items, length })
            }
            (Some(Json::Array(schemas)), _) if !schemas.is_empty() => {
                self.fault(id, "", || {
                    "a tuple has no items but its own; add \"items\":false".to_owned()
                });
                None
            }
            (Some(_), _) => {
                self.fault(id, "/prefixItems", || "write a list with a schema per item".to_owned());
                None
            }
            (None, _) => {
                self.fault(id, "", || {
                    "an array says what its items are; add 'items' with a schema".to_owned()
                });
                None
            }
        }
    }

    pub(super) fn length(
        &mut self,
        id: ShapeId,
        members: &Members,
        min: &str,
        max: &str,
    ) -> Length {
        let mut count = |keyword: &str, absent: u64| match member(members, keyword) {
            None => absent,
            Some(Json::Number(text)) if text.parse::<u64>().is_ok() => {
                text.parse().unwrap_or(absent)
            }
            Some(_) => {
                self.fault(id, &format!("/{keyword}"), || {
                    "write a whole number that is not negative".to_owned()
                });
                absent
            }
        };
        let length = Length { min: count(min, 0), max: count(max, u64::MAX) };
        if length.min > length.max {
            self.fault(id, "", || {
                format!("'{min}' is greater than '{max}', so no value fits; change one of them")
            });
        }
        length
    }

    pub(super) fn bounds(&mut self, id: ShapeId, members: &Members, is_integer: bool) -> Bounds {
        let mut bound = |keyword: &str| match member(members, keyword)? {
            Json::Number(text) if text.len() > BOUND_LENGTH_MAX => {
                self.fault(id, &format!("/{keyword}"), || {
                    format!("the bound is longer than {BOUND_LENGTH_MAX} digits; shorten it")
                });
                None
            }
            Json::Number(text) if !is_integer || decimal::is_integer(text) => {
                Some(text.as_str().into())
            }
            _ => {
                let what =
                    if is_integer { "an integer without fraction or exponent" } else { "a number" };
                self.fault(id, &format!("/{keyword}"), || format!("write {what}"));
                None
            }
        };
        let bounds = Bounds { min: bound("minimum"), max: bound("maximum") };
        if let (Some(min), Some(max)) = (&bounds.min, &bounds.max)
            && decimal::compare(min, max).is_gt()
        {
            self.fault(id, "", || {
                "'minimum' is greater than 'maximum', so no value fits; change one of them"
                    .to_owned()
            });
        }
        bounds
    }
}
