//! Components: from the bytes of a file to something that can be called, with its declaration read and compared.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::{ComponentExportIndex, InstancePre, Linker};

use crate::chain::declaration::{Isolation, Train};
use crate::guest::GuestError;
use crate::guest::bindings::TrainsPre;
use crate::guest::call::Session;
use crate::guest::code_cache::{CacheError, CodeCache, Miss};
use crate::guest::compiler::{CompileError, CompileLimits, Compiler};
use crate::guest::context::CallContext;
use crate::guest::engine::{self, INSTANCES_MAX, TickedEngine};
use crate::guest::imports;
use crate::guest::outcome::{self, Ended};
use crate::guest::precheck::{GUEST_EXPORT, Refused, precheck};
use crate::guest::state::State;
use crate::model::failure::Failure;
use crate::model::limits::{Limits, TRAINS_MAX};

/// How a process runs guests.
#[derive(Debug, Clone)]
pub struct GuestConfig {
    /// The `trax` binary, which is also the compile child.
    pub program: PathBuf,
    /// Where compiled code is kept; nowhere if absent.
    pub code_folder: Option<PathBuf>,
    /// What compiling one component may use.
    pub compile: CompileLimits,
}

/// Why a component was not loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It is not a component that this host runs.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// It could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It does not fit what the host gives.
    #[error("the component does not fit the contract: {0}")]
    Link(String),
    /// Its declaration could not be had.
    #[error("its declaration cannot be read: {}: {}", .0.name, .0.message)]
    Declare(Failure),
    /// It does not say the same each time it is asked.
    #[error(
        "it declares different trains when asked twice in a row; a declaration must depend on \
         nothing, so build it from constants"
    )]
    Lies,
    /// It declares nothing, or too much.
    #[error("{0}")]
    Trains(String),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] GuestError),
}

/// Loads components and holds what they share: the engine, the linked imports, the compiler and its cache.
pub struct GuestHost {
    engine: TickedEngine,
    linker: Linker<State>,
    compiler: Compiler,
    cache: Option<CodeCache>,
    slots: Arc<Semaphore>,
    side_slots: Arc<Semaphore>,
}

/// Instances kept free for declarations and deciders. A junction that waits for an answer holds its own instance, so
/// deciders must never wait for one that only junctions can give back.
const SIDE_INSTANCES: usize = 100;

impl GuestHost {
    /// Starts an engine.
    ///
    /// # Errors
    /// [`GuestError::Engine`] when this machine cannot run one or the folder of compiled code cannot be used.
    pub fn start(config: GuestConfig) -> Result<Arc<Self>, GuestError> {
        let engine = TickedEngine::start()?;
        let mut linker = Linker::new(engine.get());
        imports::link(&mut linker).map_err(|error| GuestError::Engine(format!("{error:#}")))?;
        let compatibility = engine::compatibility(engine.get());
        let cache = config
            .code_folder
            .map(|folder| CodeCache::open(&folder, compatibility))
            .transpose()
            .map_err(|error: CacheError| GuestError::Engine(error.to_string()))?;
        Ok(Arc::new(Self {
            engine,
            linker,
            compiler: Compiler { program: config.program, limits: config.compile },
            cache,
            slots: Arc::new(Semaphore::new(INSTANCES_MAX as usize - SIDE_INSTANCES)),
            side_slots: Arc::new(Semaphore::new(SIDE_INSTANCES)),
        }))
    }

    /// Checks, compiles and links a component, and reads its declaration twice.
    ///
    /// # Errors
    /// [`LoadError`] says why it is refused.
    pub async fn load(self: &Arc<Self>, wasm: &[u8]) -> Result<Arc<Component>, LoadError> {
        precheck(wasm)?;
        let digest = hex::encode(Sha256::digest(wasm));
        let compiled = self.compiled(&digest, wasm).await?;
        let link = |error: wasmtime::Error| LoadError::Link(outcome::reason(&error));
        let pre = self.linker.instantiate_pre(&compiled).map_err(link)?;
        // Checks the types of everything it exports, once.
        TrainsPre::new(pre.clone()).map_err(link)?;
        let exports = Exports::of(&compiled).ok_or_else(|| {
            LoadError::Link("it does not export the functions of trax:train/guest".to_owned())
        })?;
        let host = Arc::clone(self);
        let component = Arc::new(Component { host, digest, pre, exports, trains: Vec::new() });
        let trains = declared(&component).await?;
        Ok(Arc::new(component.with_trains(trains)))
    }

    async fn compiled(
        &self,
        digest: &str,
        wasm: &[u8],
    ) -> Result<wasmtime::component::Component, LoadError> {
        let Some(cache) = &self.cache else {
            return self.trusted(&self.compiler.compile(wasm).await?);
        };
        match cache.get(digest) {
            Ok(code) => match self.trusted(&code) {
                Ok(component) => return Ok(component),
                Err(error) => tracing::warn!(digest, %error, "compiled code does not load; again"),
            },
            Err(miss @ (Miss::BadSeal | Miss::Unreadable)) => {
                tracing::warn!(digest, ?miss, "compiled code cannot be trusted; compiling again");
            }
            Err(Miss::Absent) => tracing::debug!(digest, "no compiled code yet"),
        }
        let code = self.compiler.compile(wasm).await?;
        let component = self.trusted(&code)?;
        if let Err(error) = cache.put(digest, &code) {
            tracing::warn!(%error, "compiled code is not kept");
        }
        Ok(component)
    }

    /// Loads compiled code that comes from our own compile child or has our own seal.
    #[expect(unsafe_code, reason = "the one place where compiled code is loaded")]
    fn trusted(&self, code: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
        // SAFETY: the code was made by this program's compile child a moment ago, or read from a file whose MAC, under
        // a key that only this user can read, says that it was made so. No code of a user gets here.
        let loaded =
            unsafe { wasmtime::component::Component::deserialize(self.engine.get(), code) };
        loaded.map_err(|error| LoadError::Link(outcome::reason(&error)))
    }
}

/// Where a component has the functions of the contract. Looking one up checks its type again, so only the one that is
/// called is looked up: the types of a declaration are large.
#[derive(Clone, Copy)]
pub(in crate::guest) struct Exports {
    pub(in crate::guest) declare: ComponentExportIndex,
    pub(in crate::guest) run_junction: ComponentExportIndex,
    pub(in crate::guest) decide: ComponentExportIndex,
}

impl Exports {
    fn of(component: &wasmtime::component::Component) -> Option<Self> {
        let guest = component.get_export_index(None, GUEST_EXPORT)?;
        let function = |name| component.get_export_index(Some(&guest), name);
        Some(Self {
            declare: function("declare")?,
            run_junction: function("run-junction")?,
            decide: function("decide")?,
        })
    }
}

/// A component that can be called.
pub struct Component {
    host: Arc<GuestHost>,
    digest: String,
    pre: InstancePre<State>,
    exports: Exports,
    trains: Vec<Train>,
}

impl Component {
    /// SHA-256 of its bytes, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What it declares. Nothing of this has been verified.
    pub fn trains(&self) -> &[Train] {
        &self.trains
    }

    /// Calls for one run.
    pub const fn session(self: Arc<Self>, isolation: Isolation) -> Session {
        Session::new(self, isolation)
    }

    fn with_trains(self: Arc<Self>, trains: Vec<Train>) -> Self {
        let (host, digest, pre) = (Arc::clone(&self.host), self.digest.clone(), self.pre.clone());
        Self { host, digest, pre, exports: self.exports, trains }
    }

    pub(in crate::guest) const fn pre(&self) -> &InstancePre<State> {
        &self.pre
    }

    pub(in crate::guest) const fn exports(&self) -> Exports {
        self.exports
    }

    pub(in crate::guest) fn engine(&self) -> &wasmtime::Engine {
        self.host.engine.get()
    }

    /// Waits until an instance may be made for a junction, or else for a declaration or a decider.
    pub(in crate::guest) async fn slot(
        &self,
        is_junction: bool,
    ) -> Result<OwnedSemaphorePermit, GuestError> {
        let slots = if is_junction { &self.host.slots } else { &self.host.side_slots };
        let slots = Arc::clone(slots);
        slots.acquire_owned().await.map_err(|error| GuestError::Capacity(error.to_string()))
    }
}

/// Limits of a declaration, which has nothing to compute.
fn declare_limits() -> Limits {
    Limits {
        memory_bytes: 128 * 1024 * 1024,
        own_time: Duration::from_secs(2),
        wall_time: Duration::from_secs(10),
        fuel: 5_000_000_000,
        output_bytes: 64 * 1024 * 1024,
        ..Limits::default()
    }
}

async fn declared(component: &Arc<Component>) -> Result<Vec<Train>, LoadError> {
    let mut session = Arc::clone(component).session(Isolation::PerJunction);
    let called = session.declare_twice(CallContext::bare(declare_limits())).await?;
    let (first, second) = match called.ended {
        Ended::Returned(both) => both,
        Ended::Failed(failure) => return Err(LoadError::Declare(failure)),
        Ended::Cancelled => {
            let stopped = Failure::transient("Cancelled", "the host is shutting down");
            return Err(LoadError::Declare(stopped));
        }
    };
    // Compared as text: floats that are not equal to themselves must not pass for a lie.
    if format!("{first:?}") != format!("{second:?}") {
        return Err(LoadError::Lies);
    }
    match first.len() {
        0 => Err(LoadError::Trains("the component declares no train".to_owned())),
        1..=TRAINS_MAX => Ok(first),
        count => {
            let reason = format!("the component declares {count} trains; it may have {TRAINS_MAX}");
            Err(LoadError::Trains(reason))
        }
    }
}
