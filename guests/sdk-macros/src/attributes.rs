//! Reads `#[value(...)]`, `#[serde(...)]`, `#[asks(...)]` and `#[describe(...)]`.

use syn::ext::IdentExt as _;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, LitStr, Token};

use crate::case::Case;

/// The longest name, as the host has it.
const NAME_LENGTH_MAX: usize = 100;

/// What stands above a value.
#[derive(Default)]
pub(crate) struct ValueWords {
    pub(crate) name: Option<String>,
    pub(crate) is_sensitive: bool,
    pub(crate) rename_all: Option<Case>,
}

impl ValueWords {
    pub(crate) fn read(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut words = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("value") {
                attribute.parse_nested_meta(|meta| words.value(&meta))?;
            } else if attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| words.serde(&meta))?;
            }
        }
        Ok(words)
    }

    fn value(&mut self, meta: &ParseNestedMeta) -> syn::Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(identifier(&meta.value()?.parse()?)?);
        } else if meta.path.is_ident("sensitive") {
            self.is_sensitive = true;
        } else if meta.path.is_ident("rename_all") {
            self.rename_all = Some(case(meta)?);
        } else {
            return Err(meta.error(
                "a value takes `name = \"...\"`, `sensitive` and `rename_all = \"...\"` here",
            ));
        }
        Ok(())
    }

    fn serde(&mut self, meta: &ParseNestedMeta) -> syn::Result<()> {
        if meta.path.is_ident("rename_all") {
            self.rename_all = Some(case(meta)?);
        } else if !meta.path.is_ident("deny_unknown_fields") {
            return Err(meta.error(
                "a value's schema follows `rename_all` and no other serde attribute here; \
                 name the type with `#[value(name = \"...\")]`",
            ));
        }
        Ok(())
    }
}

/// The name that a member or variant is given in its attributes.
pub(crate) fn rename(attributes: &[Attribute]) -> syn::Result<Option<String>> {
    let mut name = None;
    for attribute in attributes {
        if attribute.path().is_ident("value") || attribute.path().is_ident("serde") {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    name = Some(meta.value()?.parse::<LitStr>()?.value());
                    return Ok(());
                }
                Err(meta.error(
                    "only `rename = \"...\"` is supported here; \
                     a member that may be absent is an `Option`",
                ))
            })?;
        }
    }
    Ok(name)
}

fn case(meta: &ParseNestedMeta) -> syn::Result<Case> {
    let name: LitStr = meta.value()?.parse()?;
    Case::named(&name.value()).map_err(|message| syn::Error::new(name.span(), message))
}

/// What stands in `#[asks(...)]`.
#[derive(Default)]
pub(crate) struct Asks {
    pub(crate) instructions: String,
    pub(crate) key: Option<String>,
    pub(crate) yes: Option<String>,
    pub(crate) no: Option<String>,
    pub(crate) is_sensitive: bool,
}

impl Asks {
    /// Reads the one `#[asks(...)]` of the question named `of`.
    pub(crate) fn read(attributes: &[Attribute], of: &Ident) -> syn::Result<Self> {
        let mut found = attributes.iter().filter(|a| a.path().is_ident("asks"));
        let Some(attribute) = found.next() else {
            return Err(syn::Error::new(
                of.span(),
                format!("`{of}` has no words to ask with: add `#[asks(\"...\")]` above it"),
            ));
        };
        if let Some(second) = found.next() {
            return Err(syn::Error::new_spanned(second, "a question is asked in one way"));
        }
        attribute.parse_args()
    }
}

impl Parse for Asks {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let instructions: LitStr = input.parse()?;
        if instructions.value().trim().is_empty() {
            return Err(syn::Error::new(instructions.span(), "the question has no words"));
        }
        let mut asks = Self { instructions: instructions.value(), ..Self::default() };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let word = input.call(Ident::parse_any)?;
            match word.to_string().as_str() {
                "sensitive" => asks.is_sensitive = true,
                "key" => asks.key = Some(identifier(&text(input)?)?),
                "yes" => asks.yes = Some(text(input)?.value()),
                "no" => asks.no = Some(text(input)?.value()),
                _ => {
                    return Err(syn::Error::new(
                        word.span(),
                        "a question takes `key = \"...\"`, `sensitive`, and for yes or no \
                         `yes = \"...\"` and `no = \"...\"`",
                    ));
                }
            }
        }
        Ok(asks)
    }
}

fn text(input: ParseStream) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// The words of `#[describe("...")]`, if it is there.
pub(crate) fn description(attributes: &[Attribute]) -> syn::Result<Option<String>> {
    let Some(attribute) = attributes.iter().find(|a| a.path().is_ident("describe")) else {
        return Ok(None);
    };
    let words = attribute.parse_args_with(Punctuated::<LitStr, Token![,]>::parse_terminated)?;
    match words.first() {
        Some(only) if words.len() == 1 => Ok(Some(only.value())),
        _ => Err(syn::Error::new_spanned(attribute, "`describe` takes one text")),
    }
}

/// The name of a type or question, checked as the host checks it.
fn identifier(name: &LitStr) -> syn::Result<String> {
    check_identifier(&name.value(), name.span())
}

/// A name that becomes part of ids and commands.
pub(crate) fn check_identifier(name: &str, span: proc_macro2::Span) -> syn::Result<String> {
    let is_known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_known) {
        return Ok(name.to_owned());
    }
    Err(syn::Error::new(
        span,
        format!("`{name}` cannot be a name: use 1 to 100 of ASCII letters, digits, `_`, `-`, `.`"),
    ))
}
