//! Tables of schemas and values, and another implementation of JSON Schema to compare with.

mod hostile;
mod normal_form;
mod oracle;
mod reach;
mod values;

use super::*;

const TICKET: &str = concat!(
    r#"{"additionalProperties":false,"properties":{"id":{"type":"string"},"#,
    r#""level":{"type":"integer"}},"required":["id"],"type":"object"}"#,
);

fn shape(name: &str, schema: &str) -> TypeShape {
    TypeShape { name: name.to_owned(), schema: schema.to_owned(), sensitive: false }
}

fn types(shapes: &[(&str, &str)]) -> Types {
    let shapes: Vec<_> = shapes.iter().map(|(name, schema)| shape(name, schema)).collect();
    Types::compile(&shapes).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn faults(shapes: &[(&str, &str)]) -> Vec<String> {
    let shapes: Vec<_> = shapes.iter().map(|(name, schema)| shape(name, schema)).collect();
    let faults = Types::compile(&shapes).map(|_| ()).unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}
