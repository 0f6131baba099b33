//! `#[derive(Value)]`: the schema of a type as text, and the code that reads and writes it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Data, DataEnum, DeriveInput};

use crate::attributes::{ValueWords, check_identifier, rename};
use crate::members::Members;
use crate::schema::SchemaText;

/// The three bodies of a type's `Shape`.
struct Bodies {
    schema: TokenStream,
    write: TokenStream,
    read: TokenStream,
}

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "a value has one schema, so its type cannot be generic",
        ));
    }
    let words = ValueWords::read(&input.attrs)?;
    let ident = &input.ident;
    let name = match &words.name {
        Some(name) => name.clone(),
        None => check_identifier(&ident.unraw().to_string(), ident.span())?,
    };
    let bodies = match &input.data {
        Data::Struct(data) => {
            let members = Members::read(&data.fields, words.rename_all)?;
            let mut schema = SchemaText::default();
            members.schema(&mut schema);
            let (pattern, write) = (members.pattern(), members.write());
            let read = members.read_as(&quote! { Self });
            Bodies {
                schema: schema.into_statements(),
                write: quote! { let Self #pattern = self; #write },
                read: quote! { ::core::result::Result::Ok(#read) },
            }
        }
        Data::Enum(data) => enum_bodies(input, data, &words)?,
        Data::Union(_) => {
            return Err(syn::Error::new_spanned(ident, "a union cannot be a value"));
        }
    };
    let (is_sensitive, Bodies { schema, write, read }) = (words.is_sensitive, bodies);
    Ok(quote! {
        const _: () = {
            impl ::trax_sdk::Shape for #ident {
                fn schema(out: &mut ::trax_sdk::json::Schema<'_>) {
                    out.reference::<Self>();
                }
                fn write(&self, out: &mut ::trax_sdk::json::Writer) {
                    #write
                }
                fn read(
                    input: &mut ::trax_sdk::json::Reader<'_>,
                ) -> ::core::result::Result<Self, ::trax_sdk::json::ReadError> {
                    #read
                }
            }
            impl ::trax_sdk::Value for #ident {
                const NAME: &'static str = #name;
                const IS_SENSITIVE: bool = #is_sensitive;
                fn own_schema(out: &mut ::trax_sdk::json::Schema<'_>) {
                    #schema
                }
            }
        };
    })
}

fn enum_bodies(input: &DeriveInput, data: &DataEnum, words: &ValueWords) -> syn::Result<Bodies> {
    let mut variants = Vec::new();
    for variant in &data.variants {
        let rust_name = variant.ident.unraw().to_string();
        let name = rename(&variant.attrs)?.unwrap_or_else(|| {
            words.rename_all.map_or_else(|| rust_name.clone(), |case| case.variant(&rust_name))
        });
        if variants.iter().any(|(_, known, _): &(_, String, _)| *known == name) {
            let message = format!("two variants are named `{name}`");
            return Err(syn::Error::new(variant.ident.span(), message));
        }
        variants.push((&variant.ident, name, Members::read(&variant.fields, None)?));
    }
    if variants.is_empty() {
        return Err(syn::Error::new_spanned(&input.ident, "an enum without variants has no value"));
    }
    let (mut writes, mut units, mut tagged) = (Vec::new(), Vec::new(), Vec::new());
    for (ident, name, members) in &variants {
        let pattern = members.pattern();
        if matches!(members, Members::None) {
            writes.push(quote! { Self::#ident => out.string(#name), });
            units.push(quote! { #name => ::core::result::Result::Ok(Self::#ident), });
        } else {
            let write = members.write();
            let read = members.read_as(&quote! { Self::#ident });
            writes.push(quote! {
                Self::#ident #pattern => { out.tag(#name); #write out.text("}"); }
            });
            tagged.push(quote! { #name => ::core::result::Result::Ok(#read), });
        }
    }
    Ok(Bodies {
        schema: enum_schema(&variants),
        write: quote! { match self { #(#writes)* } },
        read: quote! {
            input.variant(
                |input, name| match name { #(#units)* _ => ::core::result::Result::Err(input.unknown_variant(name)) },
                |input, name| match name { #(#tagged)* _ => ::core::result::Result::Err(input.unknown_variant(name)) },
            )
        },
    })
}

fn enum_schema(variants: &[(&syn::Ident, String, Members)]) -> TokenStream {
    let is_unit_only = variants.iter().all(|(_, _, members)| matches!(members, Members::None));
    let mut schema = SchemaText::default();
    schema.text(if is_unit_only { "{\"enum\":[" } else { "{\"oneOf\":[" });
    for (at, (_, name, members)) in variants.iter().enumerate() {
        schema.text(if at == 0 { "" } else { "," });
        if is_unit_only {
            schema.name(name);
        } else if matches!(members, Members::None) {
            schema.text("{\"const\":");
            schema.name(name);
            schema.text("}");
        } else {
            schema.text("{\"additionalProperties\":false,\"properties\":{");
            schema.name(name);
            schema.text(":");
            members.schema(&mut schema);
            schema.text("},\"required\":[");
            schema.name(name);
            schema.text("],\"type\":\"object\"}");
        }
    }
    schema.text("]}");
    schema.into_statements()
}
