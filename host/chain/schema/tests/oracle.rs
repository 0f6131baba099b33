//! The check against another implementation of JSON Schema, on schemas and values made at random.

use boon::{Compiler, Schemas};
use proptest::prelude::*;
use serde_json::json;

use crate::chain::declaration::TypeShape;
use crate::chain::schema::Types;
use crate::model::json::Json;

/// Turns random bytes into choices, so that proptest can shrink what was chosen.
struct Choices<'b> {
    bytes: &'b [u8],
}

impl Choices<'_> {
    /// A number below `count`; 0 when the bytes have run out.
    fn below(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first) % count
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const NAMES: [&str; 3] = ["A", "B", "C"];
const TEXTS: [&str; 5] = ["", "a", "b", "äö", "card"];
const NUMBERS: [&str; 7] = ["0", "1", "2", "-1", "3", "0.5", "2.5"];

fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::object(members.into_iter().map(|(name, value)| (name.to_owned(), value)))
}

fn with(schema: Json, keyword: &str, value: Json) -> Json {
    let Json::Object(members) = schema else { return schema };
    Json::object(members.into_iter().chain([(keyword.to_owned(), value)]))
}

/// A schema that is mostly in normal form.
fn schema(choices: &mut Choices<'_>, depth: usize) -> Json {
    if depth == 0 {
        return object([("type", text(choices.of(&["string", "integer", "null"])))]);
    }
    let kind = object([("type", text(choices.of(&["null", "boolean"])))]);
    match choices.below(11) {
        0 => object_schema(choices, depth, &[]),
        1 => {
            let items = schema(choices, depth - 1);
            let list = object([("type", text("array")), ("items", items)]);
            bounded(choices, list, "minItems", "maxItems")
        }
        2 => {
            let items = (0..=choices.below(3)).map(|_| schema(choices, depth - 1)).collect();
            let prefix = ("prefixItems", Json::Array(items));
            object([("type", text("array")), ("items", Json::Bool(false)), prefix])
        }
        3 => bounded(choices, object([("type", text("string"))]), "minLength", "maxLength"),
        4 => bounded(choices, object([("type", text("integer"))]), "minimum", "maximum"),
        5 => bounded(choices, object([("type", text("number"))]), "minimum", "maximum"),
        6 => object([(
            "enum",
            Json::Array(TEXTS[choices.below(4)..].iter().map(|t| text(t)).collect()),
        )]),
        7 => object([("$ref", text(choices.of(&NAMES)))]),
        8 => {
            let nullable = vec![object([("type", text("null"))]), schema(choices, depth - 1)];
            object([("oneOf", Json::Array(nullable))])
        }
        9 => {
            let is_tagged = choices.chance(50);
            let alternative = |tag: &&str| {
                let tag = object([("const", text(tag))]);
                if is_tagged {
                    object_schema(choices, depth - 1, &[("kind", tag)])
                } else {
                    let name = tag.member("const").cloned().unwrap_or(Json::Null);
                    let name = name.as_str().unwrap_or_default().to_owned();
                    let properties = Json::object([(name.clone(), schema(choices, depth - 1))]);
                    object([
                        ("type", text("object")),
                        ("properties", properties),
                        ("required", Json::Array(vec![Json::String(name)])),
                        ("additionalProperties", Json::Bool(false)),
                    ])
                }
            };
            let alternatives: Vec<_> = TEXTS[1..4].iter().map(alternative).collect();
            object([("oneOf", Json::Array(alternatives))])
        }
        _ => kind,
    }
}

fn object_schema(choices: &mut Choices<'_>, depth: usize, tag: &[(&str, Json)]) -> Json {
    let mut properties = Vec::new();
    let mut required = Vec::new();
    for (name, tag) in tag {
        properties.push(((*name).to_owned(), tag.clone()));
        required.push(text(name));
    }
    for name in &TEXTS[..choices.below(4)] {
        properties.push(((*name).to_owned(), schema(choices, depth.saturating_sub(1))));
        if choices.chance(50) {
            required.push(text(name));
        }
    }
    required.sort_unstable_by_key(|name| name.as_str().map(str::to_owned));
    let others = match choices.below(2) {
        0 => Json::Bool(false),
        _ => schema(choices, depth.saturating_sub(1)),
    };
    object([
        ("type", text("object")),
        ("properties", Json::object(properties)),
        ("required", Json::Array(required)),
        ("additionalProperties", others),
    ])
}

fn bounded(choices: &mut Choices<'_>, schema: Json, min: &str, max: &str) -> Json {
    let mut bounded = schema;
    if choices.chance(30) {
        bounded = with(bounded, min, Json::Number(choices.of(&["0", "1"]).to_owned()));
    }
    if choices.chance(30) {
        bounded = with(bounded, max, Json::Number(choices.of(&["1", "2"]).to_owned()));
    }
    bounded
}

/// A value that often fits the schema.
fn value(choices: &mut Choices<'_>, schemas: &[Json], schema: &Json, depth: usize) -> Json {
    if depth == 0 || choices.chance(6) {
        return match choices.below(6) {
            0 => Json::Null,
            1 => Json::Bool(true),
            2 => Json::Number(choices.of(&NUMBERS).to_owned()),
            3 => Json::Array(Vec::new()),
            4 => Json::object([(choices.of(&TEXTS).to_owned(), Json::Null)]),
            _ => text(choices.of(&TEXTS)),
        };
    }
    let part =
        |choices: &mut Choices<'_>, schema: &Json| value(choices, schemas, schema, depth - 1);
    if let Some(name) = schema.member("$ref").and_then(Json::as_str) {
        let index = NAMES.iter().position(|n| *n == name).unwrap_or_default();
        return part(choices, &schemas[index]);
    }
    if let Some(Json::Array(alternatives)) = schema.member("oneOf") {
        let at = choices.below(alternatives.len());
        return part(choices, &alternatives[at]);
    }
    if let Some(Json::Array(names)) = schema.member("enum") {
        return names[choices.below(names.len())].clone();
    }
    if let Some(name) = schema.member("const") {
        return name.clone();
    }
    match schema.member("type").and_then(Json::as_str).unwrap_or_default() {
        "object" => {
            let mut members = Vec::new();
            if let Some(Json::Object(properties)) = schema.member("properties") {
                for (name, schema) in properties {
                    if choices.chance(85) {
                        members.push((name.clone(), part(choices, schema)));
                    }
                }
            }
            if choices.chance(20) {
                let others = schema.member("additionalProperties").unwrap_or(&Json::Null).clone();
                members.push(("more".to_owned(), part(choices, &others)));
            }
            Json::object(members)
        }
        "array" => {
            if let Some(Json::Array(items)) = schema.member("prefixItems") {
                let count = items.len() + 1 - choices.below(3).min(items.len());
                let items = items.iter().chain([&Json::Null]).take(count);
                Json::Array(items.map(|schema| part(choices, schema)).collect())
            } else {
                let items = schema.member("items").unwrap_or(&Json::Null);
                Json::Array((0..choices.below(4)).map(|_| part(choices, items)).collect())
            }
        }
        "string" => text(choices.of(&TEXTS)),
        "integer" => Json::Number(choices.of(&NUMBERS[..5]).to_owned()),
        "number" => Json::Number(choices.of(&NUMBERS).to_owned()),
        "boolean" => Json::Bool(choices.chance(50)),
        _ => Json::Null,
    }
}

/// The same schemas as one document of JSON Schema.
fn document(schemas: &[Json], root: &str) -> serde_json::Value {
    fn rewritten(schema: &mut serde_json::Value) {
        match schema {
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        serde_json::Value::String(target) if name == "$ref" => {
                            *target = format!("#/$defs/{target}");
                        }
                        _ => rewritten(value),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(rewritten),
            _ => {}
        }
    }
    let mut definitions = serde_json::Map::new();
    for (name, schema) in NAMES.iter().zip(schemas) {
        let mut schema = schema.to_serde();
        rewritten(&mut schema);
        definitions.insert((*name).to_owned(), schema);
    }
    json!({ "$ref": format!("#/$defs/{root}"), "$defs": definitions })
}

fn declared(schemas: &[Json]) -> Vec<TypeShape> {
    let shape = |(name, schema): (&&str, &Json)| TypeShape {
        name: (*name).to_owned(),
        schema: schema.to_string(),
        sensitive: false,
    };
    NAMES.iter().zip(schemas).map(shape).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_value_fits_exactly_when_json_schema_says_so(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut choices = Choices { bytes: &bytes };
        let schemas: Vec<_> = NAMES.iter().map(|_| schema(&mut choices, 3)).collect();
        let Ok(types) = Types::compile(&declared(&schemas)) else { return Ok(()) };
        for (name, schema) in NAMES.iter().zip(&schemas) {
            let mut oracle = Schemas::new();
            let mut compiler = Compiler::new();
            compiler.add_resource("memory:schema", document(&schemas, name)).unwrap();
            let compiled = compiler.compile("memory:schema", &mut oracle).unwrap();
            for _ in 0..8 {
                let value = value(&mut choices, &schemas, schema, 6);
                let admitted = types.admit(name, &value.to_string());
                let expected = oracle.validate(&value.to_serde(), compiled).is_ok();
                prop_assert_eq!(admitted.is_ok(), expected, "{} {} {:?}", schema, value, admitted);
            }
        }
    }

    #[test]
    fn any_text_as_a_schema_is_compiled_or_refused(text in "[\\[\\]{}\":,a-z$0-9]{0,40}") {
        let shape = TypeShape { name: "T".to_owned(), schema: text, sensitive: false };
        let _ = Types::compile(&[shape]);
    }
}
