//! The one wasmtime engine of a process, and the ticker that makes its interruptions happen.

use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, OptLevel,
    PoolingAllocationConfig,
};

use crate::guest::GuestError;

/// How often running guests are looked at. A guest is stopped at most one tick after its limit; halving it would
/// double the interruptions of every honest guest, doubling it would let a hostile one hold a thread for longer.
pub const TICK: Duration = Duration::from_millis(10);

/// How many instances can exist at once. Each takes five to eight of the 65,530 memory maps Linux gives a process.
pub const INSTANCES_MAX: u32 = 1_000;

/// Memories of one component. Adapters and tools that link several modules need a few.
pub const MEMORIES_MAX: u32 = 8;

/// Tables of one component.
pub const TABLES_MAX: u32 = 16;

/// Part of the key of compiled code: to be counted up when [`config`] changes in a way that wasmtime's own
/// compatibility hash does not see.
const CONFIG_VERSION: u32 = 1;

/// The most bytes of one memory, whatever its limit. (Address space is 4 GiB for each, so that compiled code needs no
/// checks of bounds.)
pub const MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The settings under which guests are compiled and run, also in the compile child.
pub fn config(optimise: bool) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(true)
        .concurrency_support(false)
        .wasm_memory64(false)
        .relaxed_simd_deterministic(true)
        .cranelift_nan_canonicalization(true)
        .cranelift_opt_level(if optimise { OptLevel::Speed } else { OptLevel::None })
        .max_wasm_stack(512 * 1024)
        .async_stack_size(2 * 1024 * 1024)
        .async_stack_zeroing(true)
        .wasm_backtrace_max_frames(NonZeroUsize::new(20));
    config
}

/// The same with pooled instances, which are several times cheaper to make.
fn pooled() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(INSTANCES_MAX)
        .total_core_instances(INSTANCES_MAX * 4)
        .total_memories(INSTANCES_MAX)
        .total_tables(INSTANCES_MAX * 4)
        .total_stacks(INSTANCES_MAX)
        .max_core_instances_per_component(32)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memories_per_module(MEMORIES_MAX)
        .max_tables_per_module(TABLES_MAX)
        .max_memory_size(MEMORY_BYTES_MAX)
        .table_elements(100_000)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(64 * 1024)
        .async_stack_keep_resident(64 * 1024)
        .decommit_batch_size(16)
        .pagemap_scan(Enabled::Auto);
    let mut config = config(true);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// The engine together with its ticker. It cannot be had without one, so that no guest runs for ever.
pub struct TickedEngine {
    engine: Engine,
    stop: Arc<AtomicBool>,
}

impl TickedEngine {
    /// Starts an engine: pooled where the address space allows it.
    ///
    /// # Errors
    /// [`GuestError::Engine`] when this machine cannot run one.
    pub fn start() -> Result<Self, GuestError> {
        let engine = Engine::new(&pooled())
            .or_else(|error| {
                tracing::warn!(%error, "no address space for pooled instances; runs cost more");
                Engine::new(&config(true))
            })
            .map_err(|error| GuestError::Engine(format!("{error:#}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (weak, stopped) = (engine.weak(), Arc::clone(&stop));
        thread::Builder::new()
            .name("trax-ticker".to_owned())
            .spawn(move || tick(&weak, &stopped))
            .map_err(|error| GuestError::Engine(format!("cannot start the ticker: {error}")))?;
        Ok(Self { engine, stop })
    }

    /// The engine.
    pub const fn get(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for TickedEngine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn tick(engine: &EngineWeak, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(TICK);
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
    }
}

/// What compiled code must agree on to be run here: wasmtime's own settings and ours, as SHA-256 in hex.
pub fn compatibility(engine: &Engine) -> String {
    struct Collect(Sha256);
    impl Hasher for Collect {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut collect = Collect(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut collect);
    CONFIG_VERSION.hash(&mut collect);
    hex::encode(collect.0.finalize())
}
