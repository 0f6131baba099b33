//! Verification: a declaration becomes a chain that every run can follow to its end, or every fault of it is named.

use std::collections::HashSet;
use std::fmt;

use crate::chain::Chain;
use crate::chain::declaration::{Step, Train};
use crate::chain::faults::{Fault, Faults, Shown};
use crate::chain::question::question_faults;
use crate::chain::reader;
use crate::chain::rules::{IDENTIFIER, repeated};
use crate::chain::schema::Types;
use crate::model::limits::{NODES_MAX, TYPES_MAX};
use crate::model::name::is_identifier;

/// Reads a declaration without running anything.
///
/// Whoever gets a [`Chain`] may rely on this: whichever tracks a run takes and whichever short circuits fail, every
/// step finds its values in Memory, the chain ends with the train's output there, and the nodes it meets are the
/// chain's.
///
/// # Errors
/// Every fault, refusals first, each with its place; the first hundred of them and how many more. A declaration of more
/// than [`NODES_MAX`] nodes or tracks, or [`TYPES_MAX`] types or questions, is refused for that alone.
pub fn verify(train: Train) -> Result<Chain, Vec<Fault>> {
    let mut faults = Faults::default();
    if !check_size(&train, &mut faults) {
        return Err(faults.into_list());
    }
    let types = Types::compile(&train.types);
    if let Err(type_faults) = &types {
        for fault in type_faults {
            faults.refuse(format_args!("{fault}."));
        }
    }
    check_train(&train, &mut faults);
    let layout = reader::read(&train, types.as_ref().ok(), &mut faults);
    let faults = faults.into_list();
    match types {
        Ok(types) if faults.is_empty() => Ok(Chain::new(train, types, layout)),
        Ok(_) | Err(_) => Err(faults),
    }
}

/// Whether the declaration is small enough to be worth reading.
fn check_size(train: &Train, faults: &mut Faults) -> bool {
    let all_steps = train.tracks.iter().map(|track| &track.steps).chain([&train.root]);
    let nodes = all_steps.flatten().map(nodes_of_step).sum::<usize>().saturating_add(1);
    let mut is_small = true;
    for (what, count, most) in [
        ("nodes", nodes, NODES_MAX),
        ("tracks", train.tracks.len(), NODES_MAX),
        ("types", train.types.len(), TYPES_MAX),
        ("questions", train.questions.len(), TYPES_MAX),
    ] {
        if count > most {
            is_small = false;
            faults.refuse(format_args!("the train has {count} {what}, and {most} are the most."));
        }
    }
    is_small
}

fn nodes_of_step(step: &Step) -> usize {
    let asks_itself = step.routing().is_some_and(|routing| routing.asking().is_some());
    1 + usize::from(asks_itself)
}

/// What is not about a step.
fn check_train(train: &Train, faults: &mut Faults) {
    identifier("train's name", &train.name, faults);
    let declared: HashSet<&str> = train.types.iter().map(|shape| shape.name.as_str()).collect();
    for (what, type_name) in [("input", &train.input), ("output", &train.output)] {
        if !declared.contains(type_name.as_str()) {
            let name = Shown(type_name);
            faults.refuse(format_args!("the train's {what} {name} is not a type of the train."));
        }
    }
    for question in &train.questions {
        for fault in question_faults(question) {
            faults.refuse(format_args!("question {}: {fault}.", Shown(&question.key)));
        }
    }
    for key in repeated(train.questions.iter().map(|question| &question.key)) {
        faults.refuse(format_args!("the train has two questions with the key {}.", Shown(key)));
    }
    identifiers("decider", &train.deciders, faults);
    if let Some(decider) = &train.default_decider {
        identifier("default decider", decider, faults);
    }
    check_texts(train, faults);
    check_wants(train, faults);
    if let Some(pointer) = &train.subject_key
        && !is_json_pointer(pointer)
    {
        let pointer = Shown(pointer);
        faults.refuse(format_args!(
            "the subject key {pointer} is not a JSON pointer, which is '' or begins with '/', with '~' as '~0'."
        ));
    }
}

/// Texts for people may say anything that databases can store.
fn check_texts(train: &Train, faults: &mut Faults) {
    let tracks = train.tracks.iter().filter_map(|track| track.description.as_ref());
    for text in tracks.chain([&train.description]) {
        if text.contains('\0') {
            faults.refuse("a description holds NUL (U+0000), which cannot be stored; remove it.");
        }
    }
}

fn check_wants(train: &Train, faults: &mut Faults) {
    let wants = &train.wants;
    for origin in &wants.http {
        if !is_https_origin(origin) {
            faults.refuse(format_args!(
                "it wants HTTP to {}, which is not 'https://host' or 'https://host:port'.",
                Shown(origin)
            ));
        }
    }
    for origin in repeated(&wants.http) {
        faults.refuse(format_args!("it wants HTTP to {} twice.", Shown(origin)));
    }
    identifiers("wanted config value", &wants.config, faults);
    identifiers("wanted secret", &wants.secrets, faults);
    let directories = wants.directories.iter().map(|directory| &directory.name);
    identifiers("wanted directory", directories, faults);
}

fn identifiers<'n>(
    what: &str,
    names: impl IntoIterator<Item = &'n String> + Clone,
    faults: &mut Faults,
) {
    for name in names.clone() {
        identifier(what, name, faults);
    }
    for name in repeated(names) {
        faults.refuse(format_args!("the {what} {} is named twice.", Shown(name)));
    }
}

fn identifier(what: impl fmt::Display, name: &str, faults: &mut Faults) {
    if !is_identifier(name) {
        faults.refuse(format_args!("the {what} {} is not {IDENTIFIER}.", Shown(name)));
    }
}

/// RFC 6901: empty, or parts that each begin with `/`, in which `~` only begins `~0` and `~1`.
fn is_json_pointer(pointer: &str) -> bool {
    let is_rooted = pointer.is_empty() || pointer.starts_with('/');
    let mut escapes = pointer.split('~').skip(1);
    is_rooted && escapes.all(|rest| rest.starts_with(['0', '1'])) && !pointer.contains('\0')
}

fn is_https_origin(origin: &str) -> bool {
    let Some(rest) = origin.strip_prefix("https://") else { return false };
    let (host, port) = match rest.rsplit_once(':') {
        // The colons of an address in brackets are its own.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_port = port.is_none_or(|port| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.len() <= 253
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        }
    };
    is_port && is_host
}
