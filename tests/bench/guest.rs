//! What calling guests costs, always beside the bare minimum in the same run.
//!
//! - `noop/bare`: wasmtime alone: store, instance, call, drop. `noop/trax`: the same through the guest room, with every
//!   limit, meter and task. The goal is at most 1.5 times.
//! - `run/three junctions, one question`: a whole run of `support-triage` without a database, answered from a script.
//!   The goal is under 70 us. `..., asked of its own rules` makes a fourth instance for the decider.
//! - `verify/1,000 nodes`: from declaration to verified chain. The goal is under 5 ms.
//! - `workers`: runs per second with one and with two worker threads. The goal is at least 1.6 times.
//! - `loop stop`: how long after its own-time limit a looping guest is ended while others run. The goal is 100 ms.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use trax::chain::Chain;
use trax::chain::declaration::{Isolation, Junction, Step, Train};
use trax::chain::next::End;
use trax::chain::verify::verify;
use trax::cli::trace::Trace;
use trax::decide::state_hash::StateHasher;
use trax::deciders::rules::RuleDecider;
use trax::deciders::scripted::ScriptedDecider;
use trax::deciders::{Decider, Deciders};
use trax::engine::job_runner::JobRunner;
use trax::engine::journal::Event;
use trax::guest::bindings::exports::trax::train::guest::{
    Failure as WitFailure, Value as WitValue,
};
use trax::guest::compiler::{CompileLimits, Compiler};
use trax::guest::component::{Component, GuestConfig, GuestHost};
use trax::guest::context::{CallContext, RunInfo};
use trax::guest::engine::TickedEngine;
use trax::guest::outcome::Ended;
use trax::guest::precheck::GUEST_EXPORT;
use trax::guest::run_log::RunLog;
use trax::model::limits::Limits;
use trax::model::value::Value;
use wasmtime::Store;
use wasmtime::component::Linker;

/// What makes the probe loop.
const LOOP: &str = r#"{"acts":{"Act":["loop_forever"]}}"#;

/// The input of `support-triage`.
const TICKET: &str = include_str!("../../guests/examples/support-triage/ticket.json");

/// The input of the probe's trains that do nothing.
const TOKEN: &str = r#"{"number":0}"#;

type Outcome = (Result<Vec<WitValue>, WitFailure>,);

fn wasm(guest: &str) -> Vec<u8> {
    let file = Path::new("target/guests").join(guest).with_extension("wasm");
    std::fs::read(file).expect("run `cargo xtask guests` first")
}

fn config() -> GuestConfig {
    GuestConfig {
        program: env!("CARGO_BIN_EXE_trax").into(),
        code_folder: None,
        compile: CompileLimits::default(),
    }
}

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("a runtime")
}

/// Everything on one thread: what a call costs, without the wake-ups between threads.
fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// One train of the probe, ready to run.
#[derive(Clone)]
struct Ready {
    component: Arc<Component>,
    chain: Arc<Chain>,
    deciders: Arc<Deciders>,
    input: Value,
}

impl Ready {
    fn new(component: &Arc<Component>, train: &str, input: &str) -> Self {
        let declared = component.trains().iter().find(|t| t.name == train).expect("the train");
        let chain = Arc::new(verify(declared.clone()).expect("a valid chain"));
        let mut deciders = Deciders::new(declared.default_decider.clone());
        for name in &declared.deciders {
            let component = Arc::clone(component);
            let rules = RuleDecider::new(component, name.clone(), Limits::default());
            deciders.add(name.clone(), Decider::Rules(rules));
        }
        let input = chain.types().admit(&declared.input, input).expect("a valid input");
        let component = Arc::clone(component);
        Self { component, chain, deciders: Arc::new(deciders), input }
    }

    /// The same with its questions answered from a script.
    fn answered(&self, script: &str) -> Self {
        let script = ScriptedDecider::from_json(script).expect("a script");
        let mut deciders = Deciders::new(None);
        deciders.add_in_place_of_all("answers", Decider::Scripted(script));
        Self { deciders: Arc::new(deciders), ..self.clone() }
    }

    async fn run(&self, limits: Limits) -> End {
        self.run_traced(limits, Arc::new(Trace::default())).await
    }

    async fn run_traced(&self, limits: Limits, trace: Arc<Trace>) -> End {
        let runner = JobRunner {
            chain: Arc::clone(&self.chain),
            component: Arc::clone(&self.component),
            deciders: Arc::clone(&self.deciders),
            journal: trace,
            log: Arc::new(RunLog::new(&limits)),
            limits,
            cancel: CancellationToken::new(),
            run: RunInfo::default(),
            hasher: StateHasher::unkeyed(),
        };
        runner.run(self.input.clone()).await.expect("the host works")
    }
}

fn noop(criterion: &mut Criterion, component: &Arc<Component>) {
    let runtime = one_thread();
    let ready = Ready::new(component, "probe-noop", TOKEN);
    let junction = ready.chain.nodes()[0].name.clone();
    let mut group = criterion.benchmark_group("noop");

    let ticked = TickedEngine::start().expect("an engine");
    let compiler = Compiler { program: config().program, limits: CompileLimits::default() };
    let code = runtime.block_on(compiler.compile(&wasm("probe"))).expect("it compiles");
    let bare = load_bare(ticked.get(), &code);
    let mut linker = Linker::<()>::new(ticked.get());
    linker.define_unknown_imports_as_traps(&bare).expect("stubs");
    let pre = linker.instantiate_pre(&bare).expect("it links");
    let guest = bare.get_export_index(None, GUEST_EXPORT).expect("the contract");
    let run = bare.get_export_index(Some(&guest), "run-junction").expect("the function");
    let input = WitValue {
        type_name: ready.input.type_name.to_string(),
        json: ready.input.json.to_string(),
    };
    group.bench_function("bare", |bencher| {
        bencher.to_async(&runtime).iter(|| async {
            let mut store = Store::new(ticked.get(), ());
            store.set_epoch_deadline(1_000_000);
            store.set_fuel(u64::MAX).expect("fuel");
            let instance = pre.instantiate_async(&mut store).await.expect("an instance");
            let run = instance
                .get_typed_func::<(&str, &str, &[WitValue]), Outcome>(&mut store, run)
                .expect("its type");
            let inputs = std::slice::from_ref(&input);
            let (result,) = run
                .call_async(&mut store, ("probe-noop", &junction, inputs))
                .await
                .expect("no trap");
            black_box(result.expect("no failure"));
        });
    });

    let log = Arc::new(RunLog::new(&Limits::default()));
    group.bench_function("trax", |bencher| {
        bencher.to_async(&runtime).iter(|| async {
            let mut session = Arc::clone(component).session(Isolation::PerJunction);
            let mut call = CallContext::bare(Limits::default());
            call.log = Arc::clone(&log);
            let inputs = std::slice::from_ref(&ready.input);
            let called = session.run_junction(call, "probe-noop", &junction, inputs).await;
            assert!(matches!(called.expect("the host works").ended, Ended::Returned(_)));
        });
    });
    group.finish();
}

#[expect(unsafe_code, reason = "the bare comparison loads the code it has just compiled")]
fn load_bare(engine: &wasmtime::Engine, code: &[u8]) -> wasmtime::component::Component {
    // SAFETY: the code comes from our own compile child, a moment ago.
    unsafe { wasmtime::component::Component::deserialize(engine, code) }.expect("it loads")
}

fn whole_run(criterion: &mut Criterion, component: &Arc<Component>) {
    let runtime = one_thread();
    let mut group = criterion.benchmark_group("run");
    let own_rules = Ready::new(component, "support-triage", TICKET);
    let scripted = own_rules.answered(r#"{"Team": {"choice": "Billing", "confidence": 0.9}}"#);
    let cases = [
        ("three junctions, one question", scripted),
        ("three junctions, one question, asked of its own rules", own_rules),
    ];
    for (name, ready) in cases {
        group.bench_function(name, |bencher| {
            bencher.to_async(&runtime).iter(|| async {
                let end = ready.run(Limits::default()).await;
                assert!(matches!(end, End::Completed(_)), "{end:?}");
            });
        });
    }
    group.finish();
}

fn verification(criterion: &mut Criterion, component: &Arc<Component>) {
    let noop = component.trains().iter().find(|t| t.name == "probe-noop").expect("the train");
    let Some(Step::Junction(first)) = noop.root.first().cloned() else { panic!("a junction") };
    let junction = |n: usize| Step::Junction(Junction { name: format!("J{n}"), ..first.clone() });
    let train = Train { root: (0..1_000).map(junction).collect(), ..noop.clone() };
    criterion.bench_function("verify/1,000 nodes", |bencher| {
        bencher.iter_batched(
            || train.clone(),
            |train| verify(black_box(train)).expect("a valid chain"),
            BatchSize::SmallInput,
        );
    });
}

/// Runs per second with this many worker threads.
fn runs_per_second(ready: &Ready, workers: usize) -> f64 {
    const RUNS: u32 = 20_000;
    let runtime = runtime(workers);
    let started = now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let ready = ready.clone();
                tokio::spawn(async move {
                    for _ in 0..RUNS / 8 {
                        black_box(ready.run(Limits::default()).await);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    f64::from(RUNS) / started.elapsed().as_secs_f64()
}

/// The latest a loop was ended after its limit, while three others loop and honest runs go on, and the slowest honest
/// run.
fn loop_stop(component: &Arc<Component>) -> (Duration, Duration) {
    let own_time = Duration::from_millis(200);
    let endless = Ready::new(component, "probe", LOOP);
    let honest = Ready::new(component, "probe-three", TOKEN);
    runtime(2).block_on(async {
        let loops: Vec<_> = (0..4)
            .map(|_| {
                let endless = endless.clone();
                tokio::spawn(async move {
                    let limits = Limits { own_time, ..Limits::default() };
                    let trace = Arc::new(Trace::default());
                    let end = endless.run_traced(limits, Arc::clone(&trace)).await;
                    assert!(matches!(end, End::Failed(_)), "{end:?}");
                    computed(&trace).saturating_sub(own_time)
                })
            })
            .collect();
        let mut slowest = Duration::ZERO;
        while loops.iter().any(|task| !task.is_finished()) {
            let started = now();
            black_box(honest.run(Limits::default()).await);
            slowest = slowest.max(started.elapsed());
        }
        let mut latest = Duration::ZERO;
        for task in loops {
            latest = latest.max(task.await.expect("no panic"));
        }
        (latest, slowest)
    })
}

/// How long the junctions of a run computed.
fn computed(trace: &Trace) -> Duration {
    let own_time = |event: &Event| match event {
        Event::JunctionEnded { receipt, .. } => receipt.own_time,
        _ => Duration::ZERO,
    };
    trace.events().iter().map(own_time).sum()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn report(component: &Arc<Component>) {
    let ready = Ready::new(component, "probe-three", TOKEN);
    runs_per_second(&ready, 1);
    let (one, two) = (runs_per_second(&ready, 1), runs_per_second(&ready, 2));
    println!("workers: {one:.0} runs/s with one, {two:.0} with two: {:.2} times", two / one);
    let (latest, slowest) = loop_stop(component);
    println!("loop stop: four loops on two workers ended at most {latest:?} after their limit;");
    println!("           the slowest honest run beside them took {slowest:?}");
}

fn main() {
    let load = runtime(1);
    let host = GuestHost::start(config()).expect("a guest host");
    let component = load.block_on(host.load(&wasm("probe"))).expect("the probe loads");
    let triage = load.block_on(host.load(&wasm("support-triage"))).expect("the example loads");
    let mut criterion = Criterion::default().configure_from_args();
    noop(&mut criterion, &component);
    whole_run(&mut criterion, &triage);
    verification(&mut criterion, &component);
    // With a filter only what it names is measured.
    let has_filter = std::env::args().skip(1).any(|argument| !argument.starts_with('-'));
    if !has_filter {
        report(&component);
    }
    criterion.final_summary();
}
