//! Schema text that is mostly constant: pieces of text, and the types whose schemas stand between them.

use std::fmt::Write as _;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned as _;

/// A schema under construction.
#[derive(Default)]
pub(crate) struct SchemaText {
    statements: Vec<TokenStream>,
    text: String,
}

impl SchemaText {
    pub(crate) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(crate) fn name(&mut self, name: &str) {
        self.text.push_str(&json_string(name));
    }

    pub(crate) fn schema_of(&mut self, of: &Type) {
        self.flush();
        self.statements.push(quote_spanned! {of.span()=>
            <#of as ::trax_sdk::Shape>::schema(out);
        });
    }

    /// An object with these members, which are sorted by name.
    pub(crate) fn object(&mut self, members: &[(&str, &Type)]) {
        self.text("{\"additionalProperties\":false,\"properties\":{");
        for (at, (name, of)) in members.iter().enumerate() {
            self.text(if at == 0 { "" } else { "," });
            self.name(name);
            self.text(":");
            self.schema_of(of);
        }
        self.text("}");
        self.flush();
        let required = members.iter().map(|(name, of)| {
            let name = json_string(name);
            quote_spanned! {of.span()=> (#name, <#of as ::trax_sdk::Shape>::MAY_BE_ABSENT) }
        });
        self.statements.push(quote! { out.required(&[#(#required),*]); });
        self.text(",\"type\":\"object\"}");
    }

    /// A list of exactly these items.
    pub(crate) fn tuple(&mut self, items: &[&Type]) {
        self.text(&format!("{{\"items\":false,\"minItems\":{},\"prefixItems\":[", items.len()));
        for (at, of) in items.iter().enumerate() {
            self.text(if at == 0 { "" } else { "," });
            self.schema_of(of);
        }
        self.text("],\"type\":\"array\"}");
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.statements.push(quote! { out.text(#text); });
        }
    }

    /// The statements that write the schema to `out`.
    pub(crate) fn into_statements(mut self) -> TokenStream {
        self.flush();
        self.statements.into_iter().collect()
    }
}

/// A JSON string with the shortest escapes.
pub(crate) fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            control if control < ' ' => {
                // Writing to a string does not fail.
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
            other => json.push(other),
        }
    }
    json.push('"');
    json
}
