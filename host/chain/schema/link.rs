//! Resolves references between types and turns lists of alternatives into unions.
//!
//! Afterwards every shape that a check meets takes a level of the value, so a check goes no deeper than the value.

use super::draft::Draft;
use super::shape::{Shape, ShapeId};
use super::union::Builder;

/// How many references and lists of alternatives may stand in one another without an object or array between. A type
/// that may be null of a tagged enum takes three. The work of linking grows with it.
const NESTING_MAX: u32 = 16;

/// Links the shapes of a train. `roots` has one per type.
pub(super) fn link(draft: &mut Draft<'_>, roots: &[ShapeId]) {
    if !check_nesting(draft, roots) {
        return;
    }
    let targets: Vec<_> =
        (0..draft.shapes.len()).map(|id| target(&draft.shapes, roots, ShapeId(id))).collect();
    for shape in &mut draft.shapes {
        for part in parts_mut(shape) {
            *part = targets[part.0];
        }
    }
    let mut builder = Builder::default();
    for id in (0..draft.shapes.len()).map(ShapeId) {
        if let Shape::OneOf(alternatives) = &draft.shapes[id.0]
            && !alternatives.is_empty()
        {
            match builder.build(&draft.shapes, alternatives) {
                Ok(Some(union)) => builder.keep(id, union),
                Ok(None) => {}
                Err(problem) => draft.fault(id, "/oneOf", || problem),
            }
            if builder.is_exhausted() {
                break;
            }
        }
    }
    for (id, union) in builder.into_unions() {
        draft.shapes[id.0] = Shape::Union(union);
    }
}

/// What a shape stands for when references are followed. Ends because nesting is bounded.
pub(super) fn target(shapes: &[Shape], roots: &[ShapeId], mut id: ShapeId) -> ShapeId {
    while let Shape::Reference(type_index) = shapes[id.0] {
        id = roots[type_index];
    }
    id
}

fn parts_mut(shape: &mut Shape) -> Vec<&mut ShapeId> {
    match shape {
        Shape::Object(object) => {
            object.members.iter_mut().map(|m| &mut m.shape).chain(&mut object.others).collect()
        }
        Shape::List { items, .. } => vec![items],
        Shape::Tuple { items, .. } | Shape::OneOf(items) => items.iter_mut().collect(),
        Shape::Text(_)
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Boolean
        | Shape::Null
        | Shape::Names(_)
        | Shape::Union(_)
        | Shape::Reference(_) => Vec::new(),
    }
}

#[derive(Clone, Copy)]
enum Visit {
    New,
    Open,
    Done(u32),
}

/// Names references that lead back to themselves with no object or array between, and those nested too deep.
/// Returns whether there are none.
fn check_nesting(draft: &mut Draft<'_>, roots: &[ShapeId]) -> bool {
    let mut visits = vec![Visit::New; draft.shapes.len()];
    let mut problems = Vec::new();
    for start in 0..draft.shapes.len() {
        if !matches!(visits[start], Visit::New) {
            continue;
        }
        // Not recursive: until it is checked, nesting is as deep as the guest likes.
        let mut open = vec![(ShapeId(start), 0, 0)];
        visits[start] = Visit::Open;
        while let Some((id, next, height)) = open.pop() {
            let Some(child) = nested(&draft.shapes[id.0], roots, next) else {
                visits[id.0] = Visit::Done(height);
                if height == NESTING_MAX + 1 {
                    problems.push((
                        id,
                        format!(
                            "references and 'oneOf' stand in one another more than {NESTING_MAX} \
                         times; put an object or array between, or leave some out"
                        ),
                    ));
                }
                continue;
            };
            match visits[child.0] {
                Visit::Done(below) => open.push((id, next + 1, height.max(below + 1))),
                Visit::New => {
                    visits[child.0] = Visit::Open;
                    open.push((id, next, height));
                    open.push((child, 0, 0));
                }
                Visit::Open => {
                    let name = draft.names[draft.type_index(child)];
                    problems.push((id, format!(
                        "'{name}' is made of itself with no object or array between, so no value \
                         could end; put one between"
                    )));
                    open.push((id, next + 1, height));
                }
            }
        }
    }
    let is_sound = problems.is_empty();
    for (id, problem) in problems {
        draft.fault(id, "", || problem);
    }
    is_sound
}

fn nested(shape: &Shape, roots: &[ShapeId], next: usize) -> Option<ShapeId> {
    match shape {
        Shape::OneOf(alternatives) => alternatives.get(next).copied(),
        Shape::Reference(type_index) if next == 0 => Some(roots[*type_index]),
        _ => None,
    }
}
