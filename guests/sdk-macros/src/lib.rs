//! The derive macros of `trax-sdk`, which re-exports and documents them.
//!
//! Everything that is wrong with a declaration is said at compile time, at the place where it is wrong.

mod attributes;
mod case;
mod members;
mod question;
mod schema;
mod value;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct or an enum a value that trains work with.
#[proc_macro_derive(Value, attributes(value, serde))]
pub fn derive_value(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), value::expand)
}

/// Makes an enum a question that is answered with one of its variants.
#[proc_macro_derive(Choice, attributes(asks, describe))]
pub fn derive_choice(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), question::expand_choice)
}

/// Makes an enum a question that is answered with a point on the scale of its variants, lowest first.
#[proc_macro_derive(Score, attributes(asks, describe))]
pub fn derive_score(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), question::expand_score)
}

/// Makes a struct without members a question that is answered with yes or no.
#[proc_macro_derive(YesNo, attributes(asks))]
pub fn derive_yes_no(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input as DeriveInput), question::expand_yes_no)
}

fn expand(
    input: DeriveInput,
    with: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    with(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
