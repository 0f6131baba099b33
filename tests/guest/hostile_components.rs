//! Components made to harm the host before any train of theirs runs. Each is refused with its own reason, and the host
//! goes on.

use std::time::Duration;

use trax::guest::compiler::CompileLimits;
use trax::guest::component::{GuestConfig, GuestHost};

use crate::guest::hand_written::{component, component_that_imports, slow_to_compile};
use crate::world;

/// Why the component is refused; the host must then still run an honest one.
async fn refusal(wasm: &[u8]) -> String {
    let Err(refused) = world::host().load(wasm).await else { panic!("it was accepted") };
    let honest = world::TestRun::new("hello", "hello", r#"{"name":"Ada"}"#).await;
    honest.run().await.output();
    refused.to_string()
}

#[tokio::test]
async fn a_declaration_that_never_returns_is_ended_at_its_own_time_limit() {
    let reason = refusal(&component("", "(loop br 0) unreachable")).await;
    assert!(reason.contains("OwnTimeLimit: computed for more than 2s"), "{reason}");
}

#[tokio::test]
async fn a_start_function_that_never_returns_is_ended_too() {
    let wasm = component("(func $spin (loop br 0)) (start $spin)", "i32.const 0");
    let reason = refusal(&wasm).await;
    assert!(reason.contains("OwnTimeLimit: computed for more than 2s"), "{reason}");
}

#[tokio::test]
async fn memory_without_end_is_refused_when_it_is_asked_for() {
    let grow = "(loop (drop (memory.grow (i32.const 100))) br 0) unreachable";
    let reason = refusal(&component("", grow)).await;
    assert!(reason.contains("MemoryLimit: asked for 137691136 bytes of memory"), "{reason}");

    let several = component("(memory 1500) (memory 1500)", "i32.const 0");
    let reason = refusal(&several).await;
    assert!(reason.contains("MemoryLimit: asked for"), "{reason}");
}

#[tokio::test]
async fn tables_without_end_are_refused_when_they_are_asked_for() {
    let grow = "(loop (drop (table.grow (ref.null func) (i32.const 50000))) br 0) unreachable";
    let reason = refusal(&component("(table 0 funcref)", grow)).await;
    assert!(reason.contains("TableLimit: asked for 150000 table elements"), "{reason}");
}

#[tokio::test]
async fn recursion_without_end_overflows_the_guests_stack_only() {
    let recurse = "(func $down (result i32) (call $down) (drop) (call $down))";
    let reason = refusal(&component(recurse, "(call $down)")).await;
    assert!(reason.contains("StackOverflow: the stack overflowed"), "{reason}");
}

#[tokio::test]
async fn a_trap_says_which_one() {
    let reason = refusal(&component("", "unreachable")).await;
    assert!(reason.contains("Trap: trapped: wasm `unreachable` instruction executed"), "{reason}");
    let reason = refusal(&component("", "(i32.div_u (i32.const 1) (i32.const 0))")).await;
    assert!(reason.contains("Trap: trapped: integer divide by zero"), "{reason}");
}

/// Where the function's list begins: address 64 holds the pointer to its elements, 68 their number. Memory is zero, and
/// zeros are a train without a name.
fn list(elements: &str) -> String {
    format!(
        "(i32.store (i32.const 64) (i32.const 1024)) (i32.store (i32.const 68) {elements}) (i32.const 64)"
    )
}

#[tokio::test]
async fn a_declaration_that_lies_is_found_out() {
    let count = "(global $calls (mut i32) (i32.const 0))";
    let lie = format!(
        "(global.set $calls (i32.add (global.get $calls) (i32.const 1))) {}",
        list("(global.get $calls)")
    );
    let reason = refusal(&component(count, &lie)).await;
    assert!(reason.contains("it declares different trains when asked twice in a row"), "{reason}");
}

#[tokio::test]
async fn a_declaration_of_nothing_or_of_too_much_is_refused() {
    let reason = refusal(&component("", &list("(i32.const 0)"))).await;
    assert!(reason.contains("the component declares no train"), "{reason}");
    let memory = "(func $m (drop (memory.grow (i32.const 1000))))";
    let many = format!("(call $m) {}", list("(i32.const 100000)"));
    let reason = refusal(&component(memory, &many)).await;
    let told = reason.contains("it may have 1000") || reason.contains("OutputLimit");
    assert!(told, "{reason}");
}

/// A million steps, all zeros: junctions without a name.
#[tokio::test]
async fn a_declaration_of_a_million_nodes_is_refused() {
    let steps = "(i32.store (i32.const 1080) (i32.const 65536)) (i32.store (i32.const 1084) (i32.const 1000000))";
    let declare =
        format!("(drop (memory.grow (i32.const 1900))) {steps} {}", list("(i32.const 1)"));
    let reason = refusal(&component("", &declare)).await;
    assert!(reason.contains("OutputLimit") || reason.contains("MemoryLimit"), "{reason}");
}

#[tokio::test]
async fn pointers_and_texts_that_are_none_break_the_contract() {
    let outside = list("(i32.const 1000000000)");
    let reason = refusal(&component("", &outside)).await;
    assert!(
        reason.contains("BadCall: broke the contract") || reason.contains("OutputLimit"),
        "{reason}"
    );

    let not_text = format!(
        "(i32.store8 (i32.const 2000) (i32.const 255)) (i32.store (i32.const 1024) (i32.const 2000))
         (i32.store (i32.const 1028) (i32.const 1)) {}",
        list("(i32.const 1)")
    );
    let reason = refusal(&component("", &not_text)).await;
    assert!(reason.contains("BadCall: broke the contract: "), "{reason}");
}

#[tokio::test]
async fn a_component_that_takes_too_long_to_compile_is_refused() {
    let compile = CompileLimits { cpu: Duration::from_secs(1), ..CompileLimits::default() };
    let config = GuestConfig { code_folder: None, compile, ..world::guest_config() };
    let host = GuestHost::start(config).unwrap();
    let Err(refused) = host.load(&slow_to_compile(24_000)).await else { panic!("accepted") };
    let reason = refused.to_string();
    assert!(reason.contains("compiling took more than 1s of processor time"), "{reason}");
}

/// A guest that is built for WASI finds it sealed: its environment is empty, whatever the host's is.
#[tokio::test]
async fn wasi_is_there_and_empty() {
    let get = "get-environment: func() -> list<tuple<string, string>>;";
    let import =
        r#"(import "wasi:cli/environment@0.2.0" "get-environment" (func $get (param i32)))"#;
    // Traps when there is a variable, and otherwise declares nothing.
    let declare = "(call $get (i32.const 64))
        (if (i32.load (i32.const 68)) (then unreachable)) (i32.const 64)";
    let reason = refusal(&component_that_imports(get, import, declare)).await;
    assert!(reason.contains("the component declares no train"), "{reason}");
}
