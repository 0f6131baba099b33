//! `#[derive(Choice)]`, `#[derive(Score)]` and `#[derive(YesNo)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Data, DeriveInput, Fields, Ident};

use crate::attributes::{Asks, check_identifier, description};

pub(crate) fn expand_choice(input: &DeriveInput) -> syn::Result<TokenStream> {
    let asks = asks(input)?;
    refuse_meanings(&asks, input)?;
    let criteria = Criteria::read(input, "option", 1)?;
    let ident = &input.ident;
    let question = question(ident, &asks, &quote! { ChoiceDecision<Self> })?;
    let criteria = criteria.expand(ident);
    Ok(quote! {
        #question
        #criteria
        impl ::trax_sdk::Choice for #ident {}
    })
}

pub(crate) fn expand_score(input: &DeriveInput) -> syn::Result<TokenStream> {
    let asks = asks(input)?;
    refuse_meanings(&asks, input)?;
    let criteria = Criteria::read(input, "level", 2)?;
    let ident = &input.ident;
    let question = question(ident, &asks, &quote! { ScoreDecision<Self> })?;
    let criteria = criteria.expand(ident);
    Ok(quote! {
        #question
        #criteria
        impl ::trax_sdk::Score for #ident {}
    })
}

pub(crate) fn expand_yes_no(input: &DeriveInput) -> syn::Result<TokenStream> {
    let asks = asks(input)?;
    let ident = &input.ident;
    let is_marker = matches!(&input.data, Data::Struct(data) if data.fields.is_empty());
    if !is_marker {
        return Err(syn::Error::new_spanned(
            ident,
            format!("a yes/no question is a struct without members: write `struct {ident};`"),
        ));
    }
    let question = question(ident, &asks, &quote! { YesNoDecision<Self> })?;
    let (yes, no) = (option(asks.yes.as_deref()), option(asks.no.as_deref()));
    Ok(quote! {
        #question
        impl ::trax_sdk::YesNo for #ident {
            const YES: ::core::option::Option<&'static str> = #yes;
            const NO: ::core::option::Option<&'static str> = #no;
        }
    })
}

fn asks(input: &DeriveInput) -> syn::Result<Asks> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&input.generics, "a question cannot be generic"));
    }
    Asks::read(&input.attrs, &input.ident)
}

fn refuse_meanings(asks: &Asks, input: &DeriveInput) -> syn::Result<()> {
    if asks.yes.is_none() && asks.no.is_none() {
        return Ok(());
    }
    Err(syn::Error::new_spanned(
        &input.ident,
        "`yes` and `no` belong to a `YesNo` question; describe variants with `#[describe(\"...\")]`",
    ))
}

fn question(ident: &Ident, asks: &Asks, decision: &TokenStream) -> syn::Result<TokenStream> {
    let key = match &asks.key {
        Some(key) => key.clone(),
        None => check_identifier(&ident.unraw().to_string(), ident.span())?,
    };
    let (instructions, is_sensitive) = (&asks.instructions, asks.is_sensitive);
    Ok(quote! {
        impl ::trax_sdk::Question for #ident {
            const KEY: &'static str = #key;
            const INSTRUCTIONS: &'static str = #instructions;
            const IS_SENSITIVE: bool = #is_sensitive;
            type Decision = ::trax_sdk::#decision;
        }
    })
}

/// The variants of a choice or a score.
struct Criteria<'a>(Vec<(&'a Ident, Option<String>)>);

impl<'a> Criteria<'a> {
    fn read(input: &'a DeriveInput, word: &str, count_min: usize) -> syn::Result<Self> {
        let Data::Enum(data) = &input.data else {
            let message = format!("only an enum can be asked for: its variants are the {word}s");
            return Err(syn::Error::new_spanned(&input.ident, message));
        };
        let mut criteria = Vec::new();
        for variant in &data.variants {
            if !matches!(variant.fields, Fields::Unit) {
                let message = format!(
                    "a decider answers with a name, so the {word} `{}` cannot hold data",
                    variant.ident
                );
                return Err(syn::Error::new_spanned(&variant.fields, message));
            }
            if let Some((_, number)) = &variant.discriminant {
                let message = format!(
                    "{word}s stand in the order in which they are written; leave the number out"
                );
                return Err(syn::Error::new_spanned(number, message));
            }
            criteria.push((&variant.ident, description(&variant.attrs)?));
        }
        if criteria.len() < count_min {
            let message = format!("`{}` needs at least {count_min} {word}s", input.ident);
            return Err(syn::Error::new_spanned(&input.ident, message));
        }
        Ok(Self(criteria))
    }

    fn expand(&self, ident: &Ident) -> TokenStream {
        let variants: Vec<_> = self.0.iter().map(|(variant, _)| variant).collect();
        let names = variants.iter().map(|variant| variant.unraw().to_string());
        let descriptions = self.0.iter().map(|(_, description)| option(description.as_deref()));
        let positions: Vec<_> = (0..variants.len()).collect();
        quote! {
            impl ::trax_sdk::Criteria for #ident {
                const CRITERIA: &'static [::trax_sdk::Criterion] = &[#(::trax_sdk::Criterion {
                    name: #names,
                    description: #descriptions,
                }),*];
                fn position(&self) -> usize {
                    match self { #(Self::#variants => #positions),* }
                }
                fn at(position: usize) -> ::core::option::Option<Self> {
                    match position {
                        #(#positions => ::core::option::Option::Some(Self::#variants),)*
                        _ => ::core::option::Option::None,
                    }
                }
            }
        }
    }
}

fn option(text: Option<&str>) -> TokenStream {
    text.map_or_else(
        || quote! { ::core::option::Option::None },
        |text| quote! { ::core::option::Option::Some(#text) },
    )
}
