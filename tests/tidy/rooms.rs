//! The rooms of `host/`: which there are, and which may name which.

use super::{Fault, Source};

/// The rooms in reading order, each with the rooms that it may name.
const ROOMS: [(&str, &[&str]); 11] = [
    ("clock", &[]),
    ("model", &[]),
    ("chain", &["model"]),
    ("decide", &["model", "chain"]),
    ("store", &["clock", "model", "chain", "decide"]),
    ("guest", &["clock", "model", "chain"]),
    ("deciders", &["clock", "model", "chain", "decide", "guest"]),
    ("engine", &["clock", "model", "chain", "decide", "store", "guest", "deciders"]),
    ("operations", &["clock", "model", "chain", "decide", "store", "guest", "deciders", "engine"]),
    ("api", &["clock", "model", "chain", "decide", "store", "guest", "engine", "operations"]),
    (
        "cli",
        &[
            "clock",
            "model",
            "chain",
            "decide",
            "store",
            "guest",
            "deciders",
            "engine",
            "operations",
            "api",
        ],
    ),
];

/// The two files that belong to no room and may name them all.
const ABOVE_ROOMS: [&str; 2] = ["host/lib.rs", "host/main.rs"];

/// A room names only the rooms that the table allows it.
///
/// The check reads paths, so braces at the root of the crate and climbing out of a room by `super`
/// are refused: either would hide a name from it.
pub(super) fn directions(source: &Source) -> Vec<Fault> {
    let Some(room) = room_of(source) else { return Vec::new() };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![Fault::new(1, format!("the room `{room}` is not in the table of rooms"))];
    };
    let mut faults = Vec::new();
    for (number, line) in source.lines() {
        for (start, path) in line.match_indices("crate::") {
            let named: String = line[start + path.len()..]
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            if named.is_empty() {
                faults.push(Fault::new(number, "names the crate's root; write `crate::room::..`"));
            } else if named != room && !allowed.contains(&named.as_str()) {
                faults.push(Fault::new(number, format!("`{room}` may not name `{named}`")));
            }
        }
        if line.contains("super::super::") {
            faults.push(Fault::new(number, "climbs by `super::super::`; write `crate::room::..`"));
        }
    }
    faults
}

/// `host/lib.rs` lists every module in the table, in its order.
pub(super) fn map(source: &Source) -> Vec<Fault> {
    if source.path != "host/lib.rs" {
        return Vec::new();
    }
    let rows: Vec<(usize, &str)> = source
        .lines()
        .filter_map(|(number, line)| Some((number, line.strip_prefix("//! | [`")?)))
        .filter_map(|(number, row)| Some((number, row.split_once('`')?.0)))
        .collect();
    let place = |room: &str| ROOMS.iter().position(|(name, _)| *name == room);
    let mut faults = Vec::new();
    for (number, room) in &rows {
        if place(room).is_none() {
            faults.push(Fault::new(
                *number,
                format!("the room `{room}` is not in the table of rooms"),
            ));
        }
    }
    for pair in rows.windows(2) {
        if place(pair[0].1) > place(pair[1].1) {
            let problem = format!("`{}` stands after `{}`", pair[1].1, pair[0].1);
            faults.push(Fault::new(pair[1].0, problem));
        }
    }
    for (number, line) in source.lines() {
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(room) = module.map(|module| module.trim_end_matches(';'))
            && !rows.iter().any(|(_, listed)| *listed == room)
        {
            faults.push(Fault::new(number, format!("the map does not list `{room}`")));
        }
    }
    faults
}

/// The room that a file of `host/` lies in.
fn room_of(source: &Source) -> Option<&str> {
    let path = source.path.as_str();
    if ABOVE_ROOMS.contains(&path) || !source.has_extension(&["rs"]) {
        return None;
    }
    let room = path.strip_prefix("host/")?.split(['/', '.']).next()?;
    (!room.is_empty()).then_some(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(check: super::super::Check, path: &str, text: &str) -> Vec<String> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let faults = check(&source).into_iter();
        faults.map(|fault| format!("{}: {}", fault.line, fault.problem)).collect()
    }

    #[test]
    fn a_room_that_names_a_room_below_it_is_found() {
        let cases = [
            ("host/model/a.rs", "\nuse crate::chain::Node;", "2: `model` may not name `chain`"),
            ("host/clock.rs", "use crate::model::Value;", "1: `clock` may not name `model`"),
            ("host/guest/a.rs", "fn x(_: crate::decide::Y) {}", "1: `guest` may not name `decide`"),
            ("host/chain/a.rs", "//! [`crate::engine::Run`]", "1: `chain` may not name `engine`"),
            ("host/store/a/b.rs", "use crate::guest::X;", "1: `store` may not name `guest`"),
            (
                "host/engine/a.rs",
                "use crate::{model, cli};",
                "1: names the crate's root; write `crate::room::..`",
            ),
            (
                "host/chain/a.rs",
                "use super::super::guest;",
                "1: climbs by `super::super::`; write `crate::room::..`",
            ),
            ("host/attic/a.rs", "", "1: the room `attic` is not in the table of rooms"),
        ];

        for (path, text, expected) in cases {
            assert_eq!(problems(directions, path, text), [expected], "{path}");
        }
    }

    #[test]
    fn a_room_may_name_itself_and_those_above_it() {
        let cases = [
            ("host/chain/a.rs", "use crate::chain::Node;\nuse crate::model::json::Json;"),
            ("host/deciders/a.rs", "use crate::guest::Host;\nuse super::Decider;"),
            ("host/cli/a.rs", "use crate::engine::run;"),
            ("host/lib.rs", "use crate::{chain, engine};"),
            ("host/main.rs", "use trax::cli;"),
            ("tests/a.rs", "use crate::world::World;"),
        ];

        for (path, text) in cases {
            assert!(problems(directions, path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_map_that_differs_from_the_rooms_is_found() {
        let cases = [
            ("//! | [`clock`] | time | - |\npub mod model;", "2: the map does not list `model`"),
            ("//! | [`chain`] | a |\n//! | [`model`] | b |", "2: `model` stands after `chain`"),
            ("//! | [`attic`] | a |", "1: the room `attic` is not in the table of rooms"),
        ];

        for (text, expected) in cases {
            assert_eq!(problems(map, "host/lib.rs", text), [expected]);
        }
        let right = "//! | room |\n//! | [`clock`] | a |\n//! | [`model`] | b |\npub mod clock;";
        assert!(problems(map, "host/lib.rs", right).is_empty());
    }
}
