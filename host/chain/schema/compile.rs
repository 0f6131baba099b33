//! Compiles the declared types of a train: bounds, names, schemas, links, and which types reach sensitive ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::chain::declaration::TypeShape;
use crate::model::json::Json;
use crate::model::limits::{SCHEMA_BYTES_MAX, SCHEMAS_BYTES_MAX, TYPES_MAX};
use crate::model::name::is_identifier;

use super::draft::Draft;
use super::fault::TypeFault;
use super::shape::{Shape, ShapeId};
use super::{Type, Types, link};

pub(super) fn compile(declared: &[TypeShape]) -> Result<Types, Vec<TypeFault>> {
    check_bounds(declared)?;
    let mut draft = draft(declared);
    let mut roots = Vec::new();
    let mut members = Vec::new();
    for (index, shape) in declared.iter().enumerate() {
        let schema = schema(&mut draft, shape);
        members.push(schema.as_ref().map(member_schemas).unwrap_or_default());
        roots.push(match schema {
            Some(schema) => draft.read_root(index, &schema),
            None => draft.faulty_root(index),
        });
    }
    let refers_to = references(&draft);
    link::link(&mut draft, &roots);
    if !draft.faults.is_empty() {
        return Err(draft.faults.into_faults());
    }
    let sensitive = sensitive(declared, &refers_to);
    let types: Vec<_> = declared
        .iter()
        .zip(members)
        .zip(refers_to)
        .enumerate()
        .map(|(index, ((shape, members), refers_to))| Type {
            name: shape.name.as_str().into(),
            schema: shape.schema.as_str().into(),
            digest: Sha256::digest(&shape.schema).into(),
            root: link::target(&draft.shapes, &roots, roots[index]),
            members,
            refers_to: refers_to.into_iter().collect(),
            is_sensitive: sensitive[index],
            fingerprint: OnceLock::new(),
        })
        .collect();
    let index_of = types.iter().enumerate().map(|(index, t)| (t.name.clone(), index)).collect();
    Ok(Types { shapes: draft.shapes, declared: types, index_of })
}

/// Refuses what would take long even to read.
fn check_bounds(declared: &[TypeShape]) -> Result<(), Vec<TypeFault>> {
    let fault = |shape: &TypeShape, problem: String| {
        let type_name = shape.name.clone();
        Err(vec![TypeFault { type_name, pointer: String::new(), problem }])
    };
    if let Some(first_over) = declared.get(TYPES_MAX) {
        let count = declared.len();
        return fault(
            first_over,
            format!("the train has {count} types; declare at most {TYPES_MAX}"),
        );
    }
    let mut bytes = 0;
    for shape in declared {
        bytes += shape.schema.len();
        if bytes > SCHEMAS_BYTES_MAX {
            return fault(
                shape,
                format!(
                    "the schemas of the train are longer than {SCHEMAS_BYTES_MAX} bytes together; \
                     shorten them"
                ),
            );
        }
    }
    Ok(())
}

fn draft(declared: &[TypeShape]) -> Draft<'_> {
    let names: Vec<_> = declared.iter().map(|shape| shape.name.as_str()).collect();
    let mut index_of = HashMap::new();
    let mut faults = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if !is_identifier(name) {
            faults.push((
                *name,
                "the name is not 1 to 100 of ASCII letters, digits, '_', '-', '.'; rename it",
            ));
        }
        if index_of.insert(*name, index).is_some() {
            faults.push((*name, "it is declared twice; remove or rename one"));
        }
    }
    let mut draft = Draft::new(names, index_of);
    for (name, problem) in faults {
        draft.faults.add(name, String::new, || problem.to_owned());
    }
    draft
}

fn schema(draft: &mut Draft<'_>, shape: &TypeShape) -> Option<Json> {
    let (name, text) = (&shape.name, &shape.schema);
    let mut fault = |problem: String| draft.faults.add(name, String::new, || problem);
    if text.len() > SCHEMA_BYTES_MAX {
        fault(format!(
            "the schema has {} bytes, more than {SCHEMA_BYTES_MAX}; make parts of it types of \
             their own",
            text.len()
        ));
        return None;
    }
    let schema = match Json::parse(text) {
        Ok(schema) => schema,
        Err(error) => {
            fault(format!("the schema is not JSON as Trax takes it: {error}"));
            return None;
        }
    };
    if schema.to_string() != *text {
        fault(
            "the schema is not canonical JSON; sort members by their bytes, and leave out spaces \
             and needless escapes"
                .to_owned(),
        );
    }
    Some(schema)
}

fn member_schemas(schema: &Json) -> BTreeMap<Box<str>, Box<str>> {
    let Some(Json::Object(properties)) = schema.member("properties") else {
        return BTreeMap::new();
    };
    let texts = properties.iter().map(|(n, s)| (n.as_str().into(), s.to_string().into()));
    texts.collect()
}

/// Per type the types that its schema names.
fn references(draft: &Draft<'_>) -> Vec<BTreeSet<usize>> {
    let mut references = vec![BTreeSet::new(); draft.names.len()];
    for (id, shape) in draft.shapes.iter().enumerate() {
        if let Shape::Reference(to) = shape {
            references[draft.type_index(ShapeId(id))].insert(*to);
        }
    }
    references
}

/// Per type whether it is, or reaches, a type declared sensitive.
fn sensitive(declared: &[TypeShape], refers_to: &[BTreeSet<usize>]) -> Vec<bool> {
    let mut referred_by = vec![Vec::new(); declared.len()];
    for (from, targets) in refers_to.iter().enumerate() {
        for &to in targets {
            referred_by[to].push(from);
        }
    }
    let mut sensitive = vec![false; declared.len()];
    let mut open: Vec<_> = (0..declared.len()).filter(|&index| declared[index].sensitive).collect();
    while let Some(index) = open.pop() {
        if !std::mem::replace(&mut sensitive[index], true) {
            open.extend(&referred_by[index]);
        }
    }
    sensitive
}
