//! What values are made of: every type with a JSON form and a schema.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use crate::json::{ReadError, Reader, Schema, Writer};

/// A type that can be part of a value. `#[derive(Value)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a Trax value",
    label = "has no schema",
    note = "a value is made of `bool`, integers from `i8` to `u64`, `f32`, `f64`, `String`, `Option`, `Vec`, `Box`, \
            tuples, maps from `String`, and types with `#[derive(Value)]`"
)]
pub trait Shape: Sized {
    /// Whether a member of this type may be left out of an object.
    const MAY_BE_ABSENT: bool = false;

    /// Adds the schema of this type.
    fn schema(out: &mut Schema<'_>);

    /// Writes the value as JSON.
    fn write(&self, out: &mut Writer);

    /// Reads the value from JSON.
    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError>;

    /// The value of a member that has been left out.
    fn absent() -> Option<Self> {
        None
    }
}

macro_rules! integers {
    ($($integer:ident),+) => {$(
        impl Shape for $integer {
            fn schema(out: &mut Schema<'_>) {
                out.text("{\"maximum\":");
                out.text(&Self::MAX.to_string());
                out.text(",\"minimum\":");
                out.text(&Self::MIN.to_string());
                out.text(",\"type\":\"integer\"}");
            }

            fn write(&self, out: &mut Writer) {
                out.integer(self);
            }

            fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
                let text = input.number()?;
                let problem = concat!("expected an integer that fits ", stringify!($integer));
                text.parse().map_err(|_| input.error(problem))
            }
        }
    )+};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Shape for bool {
    fn schema(out: &mut Schema<'_>) {
        out.text("{\"type\":\"boolean\"}");
    }

    fn write(&self, out: &mut Writer) {
        out.text(if *self { "true" } else { "false" });
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        input.bool()
    }
}

impl Shape for f64 {
    fn schema(out: &mut Schema<'_>) {
        out.text("{\"type\":\"number\"}");
    }

    fn write(&self, out: &mut Writer) {
        out.float(*self);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        input.number()?.parse().map_err(|_| input.error("expected a number"))
    }
}

impl Shape for f32 {
    fn schema(out: &mut Schema<'_>) {
        f64::schema(out);
    }

    fn write(&self, out: &mut Writer) {
        out.float32(*self);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        input.number()?.parse().map_err(|_| input.error("expected a number"))
    }
}

impl Shape for String {
    fn schema(out: &mut Schema<'_>) {
        out.text("{\"type\":\"string\"}");
    }

    fn write(&self, out: &mut Writer) {
        out.string(self);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        input.string().map(std::borrow::Cow::into_owned)
    }
}

impl<T: Shape> Shape for Option<T> {
    const MAY_BE_ABSENT: bool = true;

    fn schema(out: &mut Schema<'_>) {
        const {
            assert!(
                !T::MAY_BE_ABSENT,
                "JSON cannot tell `None` from `Some(None)`: use one `Option`"
            );
        };
        out.text("{\"oneOf\":[{\"type\":\"null\"},");
        T::schema(out);
        out.text("]}");
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Some(value) => value.write(out),
            None => out.text("null"),
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        if input.takes_null() { Ok(None) } else { T::read(input).map(Some) }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Shape> Shape for Box<T> {
    const MAY_BE_ABSENT: bool = T::MAY_BE_ABSENT;

    fn schema(out: &mut Schema<'_>) {
        T::schema(out);
    }

    fn write(&self, out: &mut Writer) {
        T::write(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        T::read(input).map(Self::new)
    }

    fn absent() -> Option<Self> {
        T::absent().map(Self::new)
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn schema(out: &mut Schema<'_>) {
        out.text("{\"items\":");
        T::schema(out);
        out.text(",\"type\":\"array\"}");
    }

    fn write(&self, out: &mut Writer) {
        for (at, item) in self.iter().enumerate() {
            out.text(if at == 0 { "[" } else { "," });
            item.write(out);
        }
        out.text(if self.is_empty() { "[]" } else { "]" });
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let mut items = Self::new();
        input.array(&mut |input| {
            items.push(T::read(input)?);
            Ok(())
        })?;
        Ok(items)
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn schema(out: &mut Schema<'_>) {
        out.text("{\"additionalProperties\":");
        T::schema(out);
        out.text(",\"type\":\"object\"}");
    }

    fn write(&self, out: &mut Writer) {
        write_map(out, self.iter());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let mut members = Self::new();
        input.object(&mut |input, name| {
            members.insert(name.to_owned(), T::read(input)?);
            Ok(())
        })?;
        Ok(members)
    }
}

impl<T: Shape, S: BuildHasher + Default> Shape for HashMap<String, T, S> {
    fn schema(out: &mut Schema<'_>) {
        BTreeMap::<String, T>::schema(out);
    }

    fn write(&self, out: &mut Writer) {
        write_map(out, self.iter().collect::<BTreeMap<_, _>>().into_iter());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
        let mut members = Self::default();
        input.object(&mut |input, name| {
            members.insert(name.to_owned(), T::read(input)?);
            Ok(())
        })?;
        Ok(members)
    }
}

fn write_map<'a, T: Shape + 'a>(
    out: &mut Writer,
    members: impl ExactSizeIterator<Item = (&'a String, &'a T)>,
) {
    let is_empty = members.len() == 0;
    for (at, (name, value)) in members.enumerate() {
        out.text(if at == 0 { "{" } else { "," });
        out.string(name);
        out.text(":");
        value.write(out);
    }
    out.text(if is_empty { "{}" } else { "}" });
}

macro_rules! tuples {
    ($(($first:ident $($rest:ident)+))+) => {$(
        impl<$first: Shape, $($rest: Shape),+> Shape for ($first, $($rest),+) {
            fn schema(out: &mut Schema<'_>) {
                const COUNT: usize = [stringify!($first), $(stringify!($rest)),+].len();
                out.text("{\"items\":false,\"minItems\":");
                out.text(&COUNT.to_string());
                out.text(",\"prefixItems\":[");
                $first::schema(out);
                $(
                    out.text(",");
                    $rest::schema(out);
                )+
                out.text("],\"type\":\"array\"}");
            }

            #[expect(non_snake_case, reason = "an item is named after its type")]
            fn write(&self, out: &mut Writer) {
                let ($first, $($rest),+) = self;
                out.text("[");
                $first.write(out);
                $(
                    out.text(",");
                    $rest.write(out);
                )+
                out.text("]");
            }

            #[expect(non_snake_case, reason = "an item is named after its type")]
            fn read(input: &mut Reader<'_>) -> Result<Self, ReadError> {
                input.start_array()?;
                let $first = $first::read(input)?;
                $(
                    input.comma()?;
                    let $rest = $rest::read(input)?;
                )+
                input.end_array()?;
                Ok(($first, $($rest),+))
            }
        }
    )+};
}

tuples! { (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }
