//! The shapes of a train while its types are compiled, where each was read, and what is wrong with them.

use std::collections::HashMap;

use super::fault::TypeFaults;
use super::shape::{Shape, ShapeId};

/// Where a shape was read: for messages while a train's types are compiled.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) type_index: usize,
    pub(super) parent: Option<ShapeId>,
    /// From the parent, with its slashes and escapes.
    pub(super) path: Box<str>,
}

/// Shapes and where they were read, while types are compiled.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) names: Vec<&'a str>,
    pub(super) index_of: HashMap<&'a str, usize>,
    pub(super) shapes: Vec<Shape>,
    places: Vec<Place>,
    pub(super) faults: TypeFaults,
}

impl<'a> Draft<'a> {
    pub(super) fn new(names: Vec<&'a str>, index_of: HashMap<&'a str, usize>) -> Self {
        let (shapes, places) = (Vec::new(), Vec::new());
        Self { names, index_of, shapes, places, faults: TypeFaults::default() }
    }

    pub(super) fn type_index(&self, id: ShapeId) -> usize {
        self.places[id.0].type_index
    }

    /// JSON pointer from the root of the shape's type.
    pub(super) fn pointer(&self, id: ShapeId) -> String {
        let mut paths = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            paths.push(&*self.places[id.0].path);
            at = self.places[id.0].parent;
        }
        paths.reverse();
        paths.concat()
    }

    /// Adds a fault at a place within a shape; `path` has its slash or is empty.
    pub(super) fn fault(&mut self, id: ShapeId, path: &str, problem: impl FnOnce() -> String) {
        let mut faults = std::mem::take(&mut self.faults);
        let name = self.names[self.type_index(id)];
        faults.add(name, || self.pointer(id) + path, problem);
        self.faults = faults;
    }

    /// Makes room for a shape. Until it is read, and when it has a fault, it is an empty list of alternatives, which
    /// nothing else is read as.
    pub(super) fn open(&mut self, place: Place) -> ShapeId {
        self.shapes.push(Shape::OneOf(Vec::new()));
        self.places.push(place);
        ShapeId(self.shapes.len() - 1)
    }
}
