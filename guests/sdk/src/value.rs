//! Values: the named types that stand in a run's Memory.

use crate::bindings::trax::train::types;
use crate::failure::Failure;
use crate::json::{self, Schema};
use crate::shape::Shape;

/// A type that junctions take and give. Implemented by `#[derive(Value)]`, on structs and enums:
///
/// - `#[value(name = "...")]` names the type otherwise than Rust does.
/// - `#[value(sensitive)]` keeps its values from operators.
/// - `#[value(rename_all = "camelCase")]`, and `#[value(rename = "...")]` on a member or variant, name members as serde
///   does. The same words in `#[serde(...)]` count too, for a type that also derives serde's traits.
/// - A member of type `Option` may be left out. Members that the type does not have are refused.
/// - Enums are written as serde writes them by default: `"Unit"`, `{"Variant":...}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Trax value",
    label = "not a value",
    note = "junctions take and give types with `#[derive(Value)]`; wrap other types in a struct"
)]
pub trait Value: Shape + 'static {
    /// The type's name in the train.
    const NAME: &'static str;
    /// Whether operators may not see values of this type.
    const IS_SENSITIVE: bool;

    /// Adds the schema that stands for the type's name.
    fn own_schema(out: &mut Schema<'_>);
}

/// Puts a value into the form in which it crosses to the host.
pub(crate) fn give<T: Value>(value: &T) -> Result<types::Value, Failure> {
    match json::to_string(value) {
        Ok(json) => Ok(types::Value { type_name: T::NAME.to_owned(), json }),
        Err(error) => Err(Failure::permanent(
            "UnwritableValue",
            format!("a {} cannot be written: {error}", T::NAME),
        )),
    }
}

/// Reads a value that the host has given.
pub(crate) fn take<T: Shape>(value: &types::Value) -> Result<T, Failure> {
    json::from_str(&value.json).map_err(|error| {
        let message = format!("a {} cannot be read: {error}", value.type_name);
        Failure::permanent("UnreadableValue", message)
    })
}
