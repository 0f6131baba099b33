//! The members of a struct or of a variant: their names, and the code that reads and writes them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Fields, Ident, Type};

use crate::attributes::rename;
use crate::case::Case;
use crate::schema::{SchemaText, json_string};

/// What a struct or a variant holds.
pub(crate) enum Members {
    /// Nothing.
    None,
    /// One item without a name: written as the item itself.
    One(Box<Type>),
    /// Items without names: written as a list.
    Items(Vec<Type>),
    /// Members, sorted by the bytes of their names: written as an object.
    Named(Vec<Member>),
}

/// A member of an object.
pub(crate) struct Member {
    ident: Ident,
    name: String,
    of: Type,
}

impl Members {
    pub(crate) fn read(fields: &Fields, case: Option<Case>) -> syn::Result<Self> {
        let Fields::Named(fields) = fields else {
            for field in fields {
                if rename(&field.attrs)?.is_some() {
                    return Err(syn::Error::new_spanned(field, "an item of a tuple has no name"));
                }
            }
            let mut items: Vec<_> = fields.iter().map(|field| field.ty.clone()).collect();
            return match (fields, items.len()) {
                (Fields::Unit, _) => Ok(Self::None),
                (_, 0) => Err(syn::Error::new_spanned(fields, "leave out the empty parentheses")),
                (_, 1) => Ok(Self::One(Box::new(items.remove(0)))),
                _ => Ok(Self::Items(items)),
            };
        };
        let mut members = Vec::new();
        for field in &fields.named {
            let Some(ident) = field.ident.clone() else { continue };
            let rust_name = ident.unraw().to_string();
            let name = rename(&field.attrs)?.unwrap_or_else(|| {
                case.map_or_else(|| rust_name.clone(), |c| c.member(&rust_name))
            });
            members.push(Member { ident, name, of: field.ty.clone() });
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in members.windows(2) {
            if pair[0].name == pair[1].name {
                let message = format!("two members are named `{}`", pair[1].name);
                return Err(syn::Error::new(pair[1].ident.span(), message));
            }
        }
        Ok(Self::Named(members))
    }

    /// A pattern that binds every member to a name of its own, after the type's or variant's path.
    pub(crate) fn pattern(&self) -> TokenStream {
        match self {
            Self::None => TokenStream::new(),
            Self::One(_) => quote! { (item0) },
            Self::Items(items) => {
                let items = (0..items.len()).map(|at| format_ident!("item{at}"));
                quote! { (#(#items),*) }
            }
            Self::Named(members) => {
                let bindings = members.iter().enumerate().map(|(at, member)| {
                    let (ident, item) = (&member.ident, format_ident!("item{at}"));
                    quote! { #ident: #item }
                });
                quote! { { #(#bindings),* } }
            }
        }
    }

    pub(crate) fn schema(&self, schema: &mut SchemaText) {
        match self {
            Self::None => schema.text("{\"type\":\"null\"}"),
            Self::One(of) => schema.schema_of(of),
            Self::Items(items) => schema.tuple(&items.iter().collect::<Vec<_>>()),
            Self::Named(members) => {
                let members: Vec<_> = members.iter().map(|m| (m.name.as_str(), &m.of)).collect();
                schema.object(&members);
            }
        }
    }

    /// Statements that write what [`Members::pattern`] has bound.
    pub(crate) fn write(&self) -> TokenStream {
        let write = |at: usize, of: &Type| {
            let item = format_ident!("item{at}");
            quote_spanned! {of.span()=> <#of as ::trax_sdk::Shape>::write(#item, out); }
        };
        match self {
            Self::None => quote! { out.text("null"); },
            Self::One(of) => write(0, of),
            Self::Items(items) => {
                let items = items.iter().enumerate().map(|(at, of)| {
                    let (before, item) = (if at == 0 { "[" } else { "," }, write(at, of));
                    quote! { out.text(#before); #item }
                });
                quote! { #(#items)* out.text("]"); }
            }
            Self::Named(members) if members.is_empty() => quote! { out.text("{}"); },
            Self::Named(members) => {
                let members = members.iter().enumerate().map(|(at, member)| {
                    let open = if at == 0 { "{" } else { "," };
                    let before = format!("{open}{}:", json_string(&member.name));
                    let item = write(at, &member.of);
                    quote! { out.text(#before); #item }
                });
                quote! { #(#members)* out.text("}"); }
            }
        }
    }

    /// An expression that reads them and makes what `path` names.
    pub(crate) fn read_as(&self, path: &TokenStream) -> TokenStream {
        let read = |of: &Type| {
            quote_spanned! {of.span()=> <#of as ::trax_sdk::Shape>::read(input)? }
        };
        match self {
            Self::None => quote! { { input.null()?; #path } },
            Self::One(of) => {
                let item = read(of);
                quote! { #path(#item) }
            }
            Self::Items(items) => {
                let last = items.len().saturating_sub(1);
                let items = items.iter().enumerate().map(|(at, of)| {
                    let item = read(of);
                    let after = if at == last {
                        quote!(input.end_array()?)
                    } else {
                        quote!(input.comma()?)
                    };
                    quote! { { let item = #item; #after; item } }
                });
                quote! { { input.start_array()?; #path(#(#items),*) } }
            }
            Self::Named(members) => read_object(members, path),
        }
    }
}

fn read_object(members: &[Member], path: &TokenStream) -> TokenStream {
    let items: Vec<_> = (0..members.len()).map(|at| format_ident!("item{at}")).collect();
    let names: Vec<_> = members.iter().map(|member| &member.name).collect();
    let types: Vec<_> = members.iter().map(|member| &member.of).collect();
    let idents: Vec<_> = members.iter().map(|member| &member.ident).collect();
    let reads = types.iter().map(|of| {
        quote_spanned! {of.span()=> <#of as ::trax_sdk::Shape>::read(input)? }
    });
    let absent = types.iter().map(|of| {
        quote_spanned! {of.span()=> <#of as ::trax_sdk::Shape>::absent }
    });
    quote! { {
        #(let mut #items: ::core::option::Option<#types> = ::core::option::Option::None;)*
        input.object(&mut |input, name| {
            match name {
                #(#names => {
                    #items = ::core::option::Option::Some(#reads);
                    ::core::result::Result::Ok(())
                })*
                _ => ::core::result::Result::Err(input.unknown_member(name)),
            }
        })?;
        #path { #(#idents: input.member(#names, #items, #absent)?),* }
    } }
}
