//! Alternatives that a look at a value's outermost level tells apart.
//!
//! A general `oneOf` tries every alternative on every level, which takes exponential time on a recursive type, and
//! says of a value that fits none only that it fits none. The normal form needs `oneOf` for values that may be null and
//! for tagged enums; those are told apart by their kind, by a tag, or by their one member's name. So exactly the
//! alternatives that can be told apart are in the normal form: a check takes one step per place of the value, and its
//! messages speak of the alternative that was meant.

use super::fault::shown;
use super::shape::{Kind, Object, Shape, ShapeId};

/// The most alternatives of one `oneOf`, those of nested ones included.
const ALTERNATIVES_MAX: usize = 1_000;
/// The most alternatives of all `oneOf`s of a train together, each name of an `enum` among them counted. Bounds the
/// time and memory of types that refer to one another's alternatives again and again.
const ALTERNATIVES_TOTAL_MAX: usize = 100_000;
/// How many members are tried as the tag of objects. Tags are few; trying all of many takes quadratic time.
const TAGS_TRIED_MAX: usize = 16;

/// Alternatives by the name that tells them apart, sorted by its bytes.
type ByName = Vec<(Box<str>, ShapeId)>;

/// Alternatives by the kind of value that they take.
#[derive(Debug, Default)]
pub(super) struct Union {
    /// The one alternative per kind, where there is just one.
    single: [Option<ShapeId>; Kind::ALL.len()],
    /// The texts of several `enum`s and `const`s, sorted by bytes.
    pub(super) names: Vec<Box<str>>,
    pub(super) objects: Objects,
}

/// How objects among the alternatives are told apart.
#[derive(Debug, Default)]
pub(super) enum Objects {
    /// There are less than two.
    #[default]
    Single,
    /// By the text of a member that all have.
    ByTag { tag: Box<str>, alternatives: ByName },
    /// By the name of their only member.
    ByMember(ByName),
}

impl Union {
    /// The alternative that takes values of this kind, if there is just one.
    pub(super) fn single(&self, kind: Kind) -> Option<ShapeId> {
        self.single[kind as usize]
    }

    /// The kinds of value that some alternative takes.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|&kind| match kind {
            Kind::Text => self.single(kind).is_some() || !self.names.is_empty(),
            Kind::Object => self.single(kind).is_some() || !matches!(self.objects, Objects::Single),
            Kind::Null | Kind::Boolean | Kind::Number | Kind::List => self.single(kind).is_some(),
        })
    }
}

/// Finds a name in a list sorted by bytes.
pub(super) fn find(sorted: &[(Box<str>, ShapeId)], name: &str) -> Option<ShapeId> {
    let at = sorted.binary_search_by(|(n, _)| n.as_bytes().cmp(name.as_bytes())).ok()?;
    Some(sorted[at].1)
}

/// Builds the unions of a train.
#[derive(Debug, Default)]
pub(super) struct Builder {
    total: usize,
    unions: Vec<(ShapeId, Union)>,
}

impl Builder {
    /// The union of these alternatives; `None` when one of them has a fault of its own.
    pub(super) fn build(
        &mut self,
        shapes: &[Shape],
        alternatives: &[ShapeId],
    ) -> Result<Option<Union>, String> {
        let mut leaves = Vec::new();
        if !collect(shapes, alternatives, &mut leaves)? {
            return Ok(None);
        }
        self.count(leaves.len())?;
        let mut union = Union::default();
        for kind in Kind::ALL {
            let of_kind: Vec<_> =
                leaves.iter().copied().filter(|leaf| shapes[leaf.0].kind() == Some(kind)).collect();
            match (of_kind.as_slice(), kind) {
                ([], _) => {}
                ([one], _) => union.single[kind as usize] = Some(*one),
                (several, Kind::Text) => union.names = self.merged_names(shapes, several)?,
                (several, Kind::Object) => union.objects = self.told_apart(shapes, several)?,
                _ => {
                    return Err(format!(
                        "more than one alternative takes a value of type \"{kind}\"; keep one"
                    ));
                }
            }
        }
        Ok(Some(union))
    }

    /// Whether the train has too many alternatives, which its next ones would only say again.
    pub(super) fn is_exhausted(&self) -> bool {
        self.total > ALTERNATIVES_TOTAL_MAX
    }

    pub(super) fn keep(&mut self, id: ShapeId, union: Union) {
        self.unions.push((id, union));
    }

    pub(super) fn into_unions(self) -> Vec<(ShapeId, Union)> {
        self.unions
    }

    fn count(&mut self, more: usize) -> Result<(), String> {
        self.total += more;
        if self.total > ALTERNATIVES_TOTAL_MAX {
            return Err(format!(
                "the types of the train have more than {ALTERNATIVES_TOTAL_MAX} alternatives \
                 together; leave some out"
            ));
        }
        Ok(())
    }

    fn merged_names(
        &mut self,
        shapes: &[Shape],
        leaves: &[ShapeId],
    ) -> Result<Vec<Box<str>>, String> {
        let mut merged = Vec::new();
        for leaf in leaves {
            let Shape::Names(names) = &shapes[leaf.0] else {
                return Err("beside an alternative that takes any string another takes one too; \
                            keep one of them"
                    .to_owned());
            };
            self.count(names.len())?;
            merged.extend(names.iter().cloned());
        }
        merged.sort_unstable();
        match merged.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                Err(format!("more than one alternative takes \"{}\"; keep one", shown(&pair[0])))
            }
            None => Ok(merged),
        }
    }

    fn told_apart(&mut self, shapes: &[Shape], leaves: &[ShapeId]) -> Result<Objects, String> {
        let objects: Vec<_> = leaves
            .iter()
            .filter_map(|&leaf| match &shapes[leaf.0] {
                Shape::Object(object) => Some((leaf, object)),
                _ => None,
            })
            .collect();
        if let Some(alternatives) = by_member(&objects) {
            return Ok(Objects::ByMember(alternatives));
        }
        let candidates = objects.first().map_or(&[][..], |(_, object)| &object.members);
        let candidates = candidates.iter().filter(|m| tag_names(shapes, m).is_some());
        for candidate in candidates.take(TAGS_TRIED_MAX) {
            if let Some(alternatives) = self.by_tag(shapes, &objects, &candidate.name)? {
                return Ok(Objects::ByTag { tag: candidate.name.clone(), alternatives });
            }
        }
        Err("nothing tells the objects among the alternatives apart; give each a required member \
         of the same name with a 'const' of its own, or only one member, each with another name"
            .to_owned())
    }

    fn by_tag(
        &mut self,
        shapes: &[Shape],
        objects: &[(ShapeId, &Object)],
        tag: &str,
    ) -> Result<Option<ByName>, String> {
        let mut alternatives = Vec::new();
        for &(id, object) in objects {
            let names = object.member(tag).and_then(|member| tag_names(shapes, member));
            let Some(names) = names else { return Ok(None) };
            self.count(names.len())?;
            alternatives.extend(names.iter().map(|name| (name.clone(), id)));
        }
        Ok(distinct(alternatives))
    }
}

/// The texts that a member can be a tag by.
fn tag_names<'s>(shapes: &'s [Shape], member: &super::shape::Member) -> Option<&'s [Box<str>]> {
    match &shapes[member.shape.0] {
        Shape::Names(names) if member.is_required => Some(names),
        _ => None,
    }
}

/// The objects by the name of their only member, when each has just one and all differ.
fn by_member(objects: &[(ShapeId, &Object)]) -> Option<ByName> {
    let named = objects.iter().map(|(id, object)| match (&*object.members, &object.others) {
        ([only], None) if only.is_required => Some((only.name.clone(), *id)),
        _ => None,
    });
    distinct(named.collect::<Option<Vec<_>>>()?)
}

fn distinct(mut alternatives: ByName) -> Option<ByName> {
    alternatives.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let is_distinct = alternatives.windows(2).all(|pair| pair[0].0 != pair[1].0);
    is_distinct.then_some(alternatives)
}

/// Collects the alternatives, those of nested ones included. Returns whether none has a fault of its own.
fn collect(
    shapes: &[Shape],
    alternatives: &[ShapeId],
    leaves: &mut Vec<ShapeId>,
) -> Result<bool, String> {
    for &id in alternatives {
        match &shapes[id.0] {
            Shape::OneOf(nested) if nested.is_empty() => return Ok(false),
            Shape::OneOf(nested) => {
                if !collect(shapes, nested, leaves)? {
                    return Ok(false);
                }
            }
            _ if leaves.len() == ALTERNATIVES_MAX => {
                return Err(format!(
                    "it has more than {ALTERNATIVES_MAX} alternatives; leave some out"
                ));
            }
            _ => leaves.push(id),
        }
    }
    Ok(true)
}
