//! What tests share: the built guests, a guest host, and one run from input to end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;
use trax::chain::Chain;
use trax::chain::next::End;
use trax::chain::verify::verify;
use trax::cli::trace::Trace;
use trax::decide::state_hash::StateHasher;
use trax::deciders::rules::RuleDecider;
use trax::deciders::scripted::ScriptedDecider;
use trax::deciders::{Decider, Deciders};
use trax::engine::job_runner::JobRunner;
use trax::guest::compiler::CompileLimits;
use trax::guest::component::{Component, GuestConfig, GuestHost};
use trax::guest::context::RunInfo;
use trax::guest::run_log::RunLog;
use trax::model::failure::Failure;
use trax::model::limits::Limits;

/// The `trax` binary.
pub(crate) const TRAX: &str = env!("CARGO_BIN_EXE_trax");

/// The file of a built guest.
pub(crate) fn guest_path(name: &str) -> PathBuf {
    let path = Path::new("target/guests").join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing; run `cargo xtask guests`", path.display());
    path
}

/// The bytes of a built guest.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    std::fs::read(guest_path(name)).unwrap()
}

/// How tests run guests: compiled code is kept between them.
pub(crate) fn guest_config() -> GuestConfig {
    GuestConfig {
        program: TRAX.into(),
        code_folder: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("code")),
        compile: CompileLimits::default(),
    }
}

/// The guest host of this process.
pub(crate) fn host() -> Arc<GuestHost> {
    static HOST: OnceLock<Arc<GuestHost>> = OnceLock::new();
    Arc::clone(HOST.get_or_init(|| GuestHost::start(guest_config()).unwrap()))
}

/// A loaded guest.
pub(crate) async fn component(name: &str) -> Arc<Component> {
    host().load(&guest(name)).await.unwrap()
}

/// One run of a train, to be changed before it starts.
pub(crate) struct TestRun {
    /// The component.
    pub(crate) component: Arc<Component>,
    /// The verified train.
    pub(crate) chain: Arc<Chain>,
    /// The input as JSON.
    pub(crate) input: String,
    /// Answers in place of the train's own deciders.
    pub(crate) answers: Option<String>,
    /// What junctions may use.
    pub(crate) limits: Limits,
    /// Stops the run.
    pub(crate) cancel: CancellationToken,
    /// Who the run is.
    pub(crate) info: RunInfo,
}

/// What came of a run.
pub(crate) struct TestEnd {
    /// How it ended.
    pub(crate) end: End,
    /// What happened.
    pub(crate) trace: Arc<Trace>,
    /// What its guests wrote.
    pub(crate) log: Arc<RunLog>,
}

impl TestRun {
    /// A run of this train of a built guest.
    pub(crate) async fn new(guest: &str, train: &str, input: impl Into<String>) -> Self {
        let component = component(guest).await;
        let train = component.trains().iter().find(|t| t.name == train).unwrap().clone();
        let chain = Arc::new(verify(train).unwrap());
        let info = RunInfo {
            tenant: "default".to_owned(),
            train: chain.train().name.clone(),
            run_id: "run-1".to_owned(),
            occurrence_id: "occurrence-1".to_owned(),
            attempt: 1,
            ..RunInfo::default()
        };
        Self {
            component,
            chain,
            input: input.into(),
            answers: None,
            limits: Limits::default(),
            cancel: CancellationToken::new(),
            info,
        }
    }

    /// The same with these limits.
    pub(crate) fn limited(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The same, answered from a script.
    pub(crate) fn answered(mut self, script: &str) -> Self {
        self.answers = Some(script.to_owned());
        self
    }

    /// Runs it to its end.
    pub(crate) async fn run(self) -> TestEnd {
        let trace = Arc::new(Trace::default());
        let log = Arc::new(RunLog::new(&self.limits));
        let train = self.chain.train();
        let mut deciders = Deciders::new(train.default_decider.clone());
        for name in &train.deciders {
            let component = Arc::clone(&self.component);
            let rules = RuleDecider::new(component, name.clone(), self.limits.clone());
            deciders.add(name.clone(), Decider::Rules(rules));
        }
        if let Some(script) = &self.answers {
            let script = ScriptedDecider::from_json(script).unwrap();
            deciders.add_in_place_of_all("answers", Decider::Scripted(script));
        }
        let input = self.chain.types().admit(&train.input, &self.input).unwrap();
        let runner = JobRunner {
            chain: self.chain,
            component: self.component,
            deciders: Arc::new(deciders),
            journal: Arc::clone(&trace) as _,
            limits: self.limits,
            log: Arc::clone(&log),
            cancel: self.cancel,
            run: self.info,
            hasher: StateHasher::unkeyed(),
        };
        let end = runner.run(input).await.unwrap();
        TestEnd { end, trace, log }
    }
}

impl TestEnd {
    /// The output as JSON text.
    pub(crate) fn output(&self) -> &str {
        match &self.end {
            End::Completed(value) => &value.json,
            other => panic!("the run did not complete: {other:?}"),
        }
    }

    /// Why it failed.
    pub(crate) fn failure(&self) -> &Failure {
        match &self.end {
            End::Failed(failed) => &failed.failure,
            other => panic!("the run did not fail: {other:?}"),
        }
    }
}
