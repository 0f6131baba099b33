//! Checks of one file each. Words that a check looks for are put together from parts, so that it
//! does not find itself.

use std::path::{Component, Path, PathBuf};

use super::{Fault, Source};

const WIDTH_MAX: usize = 120;
const FUNCTION_MAX: usize = 70;

/// A Rust file opens with what it is.
pub(super) fn opening(source: &Source) -> Vec<Fault> {
    if !source.has_extension(&["rs"]) || source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![Fault::new(1, "does not open with `//!`")]
}

/// A function fits on a screen. rustfmt puts its closing brace under its first word.
pub(super) fn function_length(source: &Source) -> Vec<Fault> {
    if !source.has_extension(&["rs"]) || source.is_generated() {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let mut faults = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        if is_test(&lines[..index]) {
            continue;
        }
        let length = function_end(&lines[index..]) + 1;
        if length > FUNCTION_MAX {
            let problem =
                format!("`{name}` has {length} lines, at most {FUNCTION_MAX} are allowed");
            faults.push(Fault::new(index + 1, problem));
        }
    }
    faults
}

/// Whether the function after these lines is a test: a table of cases reads best in one piece.
fn is_test(before: &[&str]) -> bool {
    before
        .iter()
        .rev()
        .map(|line| line.trim_start())
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// The index of the line that ends the function that the first line opens.
fn function_end(lines: &[&str]) -> usize {
    let indent = indent_of(lines[0]);
    if lines[0].ends_with(['}', ';']) {
        return 0;
    }
    // A closing brace, or the semicolon of a function without a body, under the first word.
    let is_end = |line: &&str| {
        indent_of(line) == indent
            && (line.trim_start() == "}" || line.ends_with(");") || line.ends_with(">;"))
    };
    lines.iter().position(is_end).unwrap_or(0)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn function_name(line: &str) -> Option<&str> {
    const BEFORE: [&str; 5] = ["async", "const", "unsafe", "extern", "pub"];
    let (before, after) = line.split_once("fn ")?;
    let is_function = before
        .split_whitespace()
        .all(|word| word.starts_with("pub(") || word.starts_with('"') || BEFORE.contains(&word));
    let name = after.split(['(', '<']).next()?;
    is_function.then_some(name)
}

/// A line is at most 120 letters wide; rows of tables, and JSON between `r#`, cannot be broken.
pub(super) fn width(source: &Source) -> Vec<Fault> {
    if !source.has_extension(&["rs", "wit", "md"]) || source.is_generated() {
        return Vec::new();
    }
    let rows: &[&str] =
        if source.has_extension(&["md"]) { &["|"] } else { &["(", "\"", "r\"", "r#"] };
    let is_row = |line: &str| {
        rows.iter().any(|row| line.trim_start().starts_with(row)) || line.contains("r#\"")
    };
    let wide = source.lines().filter(|(_, line)| line.chars().count() > WIDTH_MAX);
    wide.filter(|(_, line)| !is_row(line))
        .map(|(number, line)| {
            let width = line.chars().count();
            Fault::new(number, format!("{width} letters wide, at most {WIDTH_MAX} are allowed"))
        })
        .collect()
}

/// Nothing is left for later.
pub(super) fn leftovers(source: &Source) -> Vec<Fault> {
    if !source.has_extension(&["rs", "wit", "md", "toml"]) {
        return Vec::new();
    }
    let words = [
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("dbg", "!("),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
    ];
    found(source, &words, "is left over")
}

/// Only the guest room, and the tests of it, know which engine runs components.
pub(super) fn wasmtime(source: &Source) -> Vec<Fault> {
    if !source.is_below("host") || source.is_below("host/guest") {
        return Vec::new();
    }
    found(source, &["wasmtime::", "wasmtime_wasi::"], "belongs in host/guest")
}

/// Only the store speaks SQL.
pub(super) fn sql(source: &Source) -> Vec<Fault> {
    if !source.is_below("host") || source.is_below("host/store") {
        return Vec::new();
    }
    let words = [
        "SELECT ",
        "INSERT INTO ",
        "UPDATE ",
        "DELETE FROM ",
        "CREATE TABLE ",
        "BEGIN IMMEDIATE",
        "PRAGMA ",
    ];
    found(source, &words, "belongs in host/store")
}

/// Only the command line speaks to the terminal.
pub(super) fn printing(source: &Source) -> Vec<Fault> {
    if !source.is_below("host") || source.is_below("host/cli") {
        return Vec::new();
    }
    // What prints to the error output ends with the same words.
    found(source, &["print!(", "println!("], "belongs in host/cli")
}

/// Tests wait for signals.
pub(super) fn sleeping(source: &Source) -> Vec<Fault> {
    // Real processes are killed at any moment, and looked at until they are done.
    if !source.is_below("tests") || source.is_below("tests/processes") {
        return Vec::new();
    }
    found(source, &[concat!("sleep", "(")], "makes a test slow or wrong; wait for a signal")
}

/// No file knows the machine it was written on, or where that machine gets its packages.
pub(super) fn machines(source: &Source) -> Vec<Fault> {
    let places = [
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/wo", "rk/"),
        concat!("/Us", "ers/"),
        concat!("deb.", "debian.org"),
        concat!("snapshot.", "debian.org"),
        concat!("static.", "rust-lang.org"),
        concat!("index.", "crates.io"),
        concat!("arti", "factory"),
        concat!("replace", "-with"),
    ];
    let mut faults = found(source, &places, "names a machine");
    if source.path.ends_with("Cargo.lock") {
        let usual = concat!("registry+https://github.com/", "rust-lang/crates.io-index");
        for (number, line) in source.lines() {
            if line.starts_with("source = \"registry") && !line.contains(usual) {
                faults.push(Fault::new(number, "a package comes from another registry"));
            }
        }
    }
    faults
}

/// A link to another file of the project leads somewhere.
pub(super) fn links(source: &Source) -> Vec<Fault> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    links_below(source, &|path| root.join(path).exists())
}

fn links_below(source: &Source, exists: &dyn Fn(&Path) -> bool) -> Vec<Fault> {
    if !source.has_extension(&["md"]) {
        return Vec::new();
    }
    let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
    let mut faults = Vec::new();
    for (number, line) in source.lines() {
        for (start, opening) in line.match_indices("](") {
            let Some((target, _)) = line[start + opening.len()..].split_once(')') else { continue };
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            if !below_root(&folder.join(file)).is_some_and(|path| exists(&path)) {
                faults.push(Fault::new(number, format!("the link `{target}` leads nowhere")));
            }
        }
    }
    faults
}

/// The path without `.` and `..`; none where it leaves the project.
fn below_root(path: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            Component::ParentDir if below.pop() => {}
            _ => return None,
        }
    }
    Some(below)
}

/// A fault for each line that holds one of the words.
fn found(source: &Source, words: &[&str], problem: &str) -> Vec<Fault> {
    let lines = source.lines();
    lines
        .filter_map(|(number, line)| {
            let word = words.iter().find(|word| line.contains(**word))?;
            Some(Fault::new(number, format!("`{}` {problem}", word.trim_end())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Check;
    use super::*;

    fn problems(check: Check, path: &str, text: &str) -> Vec<String> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let faults = check(&source).into_iter();
        faults.map(|fault| format!("{}: {}", fault.line, fault.problem)).collect()
    }

    /// Each snippet has exactly one fault, which starts as given.
    fn all_found(check: Check, cases: &[(&str, &str, &str)]) {
        for (path, text, expected) in cases {
            let problems = problems(check, path, text);
            let is_right = problems.len() == 1 && problems[0].starts_with(expected);
            assert!(is_right, "{path}: {text}\nexpected {expected}, found {problems:?}");
        }
    }

    fn none_found(check: Check, cases: &[(&str, &str)]) {
        for (path, text) in cases {
            assert_eq!(problems(check, path, text), [""; 0], "{path}: {text}");
        }
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_found() {
        let missing = "1: does not open with `//!`";
        all_found(
            opening,
            &[("a.rs", "use std::fs;\n//! Late.\n", missing), ("host/a.rs", "", missing)],
        );
        none_found(opening, &[("a.rs", "//! What.\n"), ("a.wit", "package x;")]);
    }

    #[test]
    fn a_long_function_is_found() {
        let body = "    x();\n".repeat(69);
        let inner = "        x();\n".repeat(69);
        let parameters = "    a: u8,\n".repeat(69);
        all_found(
            function_length,
            &[
                ("a.rs", &format!("fn long() {{\n{body}}}\n"), "1: `long` has 71 lines"),
                ("a.rs", &format!("\npub(crate) async fn long<T>() {{\n{body}}}"), "2: `long` has"),
                (
                    "a.rs",
                    &format!("impl A {{\n    fn long() {{\n{inner}    }}\n}}"),
                    "2: `long` has",
                ),
                ("a.rs", &format!("fn long(\n{parameters}) {{\n    x();\n}}"), "1: `long` has 73"),
            ],
        );
        let enough = "    x();\n".repeat(68);
        none_found(
            function_length,
            &[
                ("a.rs", &format!("fn long() {{\n{enough}}}\n")),
                ("a.rs", &format!("fn short() {{}}\n// {}\nstruct A {{\n}}", "\n".repeat(90))),
                (
                    "a.rs",
                    &format!("    fn short();\n{}    }}", "    const A: u8 = 1;\n".repeat(90)),
                ),
                (
                    "a.rs",
                    &format!("    fn short(\n        a: u8,\n    );\n{}    }}", "\n".repeat(90)),
                ),
                ("a.rs", &format!("// @generated\nfn long() {{\n{body}}}\n")),
                ("a.md", &format!("fn long() {{\n{body}}}\n")),
            ],
        );
    }

    #[test]
    fn a_wide_line_is_found() {
        let wide = "\u{e9}".repeat(121);
        let fault = "1: 121 letters wide, at most 120 are allowed";
        all_found(
            width,
            &[("a.rs", &wide, fault), ("a.wit", &wide, fault), ("a.md", &wide, fault)],
        );
        none_found(
            width,
            &[
                ("a.rs", &"\u{e9}".repeat(120)),
                ("a.toml", &wide),
                ("a.md", &format!("| {wide} |")),
                ("a.rs", &format!("    (\"{wide}\", 1),")),
                ("a.rs", &format!("// @generated\n{wide}")),
            ],
        );
    }

    #[test]
    fn what_is_left_over_is_found() {
        all_found(
            leftovers,
            &[
                ("a.rs", concat!("\n// FIX", "ME: later"), concat!("2: `FIX", "ME` is left over")),
                ("a.md", concat!("TO", "DO"), concat!("1: `TO", "DO` is left over")),
                ("a.rs", concat!("dbg", "!(x)"), concat!("1: `dbg", "!(` is left over")),
                ("a.rs", concat!("todo", "!()"), concat!("1: `todo", "!(` is left over")),
                ("a.rs", concat!("unimplemented", "!()"), concat!("1: `unimplemented", "!(` is")),
            ],
        );
        none_found(leftovers, &[("Cargo.toml", "todo = \"deny\""), ("a.rs", "let todo = 1;")]);
    }

    #[test]
    fn what_belongs_elsewhere_is_found() {
        all_found(
            wasmtime,
            &[
                (
                    "host/engine/a.rs",
                    "use wasmtime::Store;",
                    "1: `wasmtime::` belongs in host/guest",
                ),
                (
                    "host/cli/a.rs",
                    "wasmtime_wasi::x()",
                    "1: `wasmtime_wasi::` belongs in host/guest",
                ),
            ],
        );
        none_found(
            wasmtime,
            &[("host/guest/a.rs", "use wasmtime::Store;"), ("tests/bench/a.rs", "wasmtime::x()")],
        );
        all_found(
            sql,
            &[
                ("host/engine/a.rs", "\"SELECT id\"", "1: `SELECT` belongs in host/store"),
                ("host/cli/a.rs", "\"DELETE FROM a\"", "1: `DELETE FROM` belongs in host/store"),
            ],
        );
        none_found(sql, &[("host/store/runs.rs", "SELECT id"), ("host/cli/a.rs", "// select one")]);
        all_found(
            printing,
            &[
                ("host/engine/a.rs", "println!()", "1: `println!(` belongs in host/cli"),
                ("host/main.rs", "eprint!(\"x\")", "1: `print!(` belongs in host/cli"),
            ],
        );
        none_found(printing, &[("host/cli/a.rs", "println!()"), ("host/a.rs", "writeln!(out)")]);
    }

    #[test]
    fn a_test_that_sleeps_is_found() {
        let call = concat!("thread::sleep", "(second)");
        all_found(
            sleeping,
            &[("tests/a/b.rs", call, concat!("1: `sleep", "(` makes a test slow"))],
        );
        none_found(sleeping, &[("xtask/src/a.rs", call), ("tests/processes/a.rs", call)]);
    }

    #[test]
    fn a_file_that_names_a_machine_is_found() {
        let elsewhere = concat!("source = \"registry+https://exam", "ple.org/index\"");
        let usual =
            concat!("source = \"registry+https://github.com/", "rust-lang/crates.io-index\"");
        all_found(
            machines,
            &[
                ("a.md", concat!("see /ro", "ot/x"), concat!("1: `/ro", "ot/` names a machine")),
                (
                    ".ci/run",
                    concat!("\ncd /ho", "me/me"),
                    concat!("2: `/ho", "me/` names a machine"),
                ),
                ("a.rs", concat!("\"/wo", "rk/a\""), concat!("1: `/wo", "rk/` names a machine")),
                (
                    ".cargo/config.toml",
                    concat!("replace", "-with = \"m\""),
                    concat!("1: `replace", "-with` names a machine"),
                ),
                ("guests/Cargo.lock", elsewhere, "1: a package comes from another registry"),
            ],
        );
        none_found(machines, &[("Cargo.lock", usual), ("a.md", "under `/var/lib/trax/`")]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let exists = |path: &Path| ["docs/a.md", "wit"].map(Path::new).contains(&path);
        let problems = |path: &str, text: &str| {
            let source = Source { path: path.to_owned(), text: text.to_owned() };
            let faults = links_below(&source, &exists).into_iter();
            faults.map(|fault| fault.problem).collect::<Vec<_>>()
        };

        let right = "[a](docs/a.md#top), [w](wit/), [h](#here), [n](https://example.org/x), [m](mailto:a@b)";
        assert_eq!(problems("README.md", right), [""; 0]);
        assert_eq!(problems("docs/b.md", "[a](a.md) and [w](../wit)"), [""; 0]);
        let wrong = "[a](a.md) and [b](docs/c.md#x)";
        let expected = ["the link `a.md` leads nowhere", "the link `docs/c.md#x` leads nowhere"];
        assert_eq!(problems("README.md", wrong), expected);
        assert_eq!(problems("README.md", "[a](../a.md)"), ["the link `../a.md` leads nowhere"]);
    }
}
