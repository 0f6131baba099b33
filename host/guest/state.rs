//! The state behind one instance, the only way to make its store, and the accounting of what it uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::task;
use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::clock::Clock;
use crate::guest::GuestError;
use crate::guest::context::CallContext;
use crate::guest::engine::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
use crate::guest::imports::wasi;

/// How long a guest that has been asked to stop may go on computing or waiting before it is ended.
pub const CANCEL_GRACE: Duration = Duration::from_millis(50);

/// Why the host ended a guest.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stop {
    /// It computed for too long.
    #[error("computed for more than {0:?}, the limit of own time")]
    OwnTime(Duration),
    /// The run was asked to stop.
    #[error("the run was asked to stop")]
    Cancelled,
    /// It asked for too much memory.
    #[error("asked for {asked} bytes of memory; the limit is {limit}")]
    Memory {
        /// What it would have had.
        asked: usize,
        /// What it may have.
        limit: usize,
    },
    /// It asked for too large tables.
    #[error("asked for {asked} table elements; the limit is {limit}")]
    Table {
        /// What it would have had.
        asked: usize,
        /// What it may have.
        limit: usize,
    },
}

/// What a guest has used. Shared with the caller, so that a guest that had to be dropped is accounted for too.
#[derive(Debug)]
pub struct Meter {
    clock: Clock,
    base: Instant,
    own_nanos: AtomicU64,
    /// When the guest last went on, in nanoseconds since `base`, plus one; 0 while it does not run.
    since: AtomicU64,
    fuel_used: AtomicU64,
    memory_peak: AtomicU64,
    /// When the guest was first seen to run though it is to stop, as `since`.
    stopping_since: AtomicU64,
}

impl Meter {
    /// A meter that has counted nothing.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            base: clock.instant(),
            own_nanos: AtomicU64::new(0),
            since: AtomicU64::new(0),
            fuel_used: AtomicU64::new(0),
            memory_peak: AtomicU64::new(0),
            stopping_since: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        let nanos = self.clock.instant().duration_since(self.base).as_nanos();
        u64::try_from(nanos).unwrap_or(u64::MAX - 1) + 1
    }

    fn go_on(&self) {
        if self.since.load(Ordering::Relaxed) == 0 {
            self.since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn pause(&self) {
        let since = self.since.swap(0, Ordering::Relaxed);
        if since != 0 {
            let ran = self.now().saturating_sub(since);
            self.own_nanos.fetch_add(ran, Ordering::Relaxed);
        }
    }

    /// Time the guest has computed, without what it waited.
    pub fn own_time(&self) -> Duration {
        Duration::from_nanos(self.own_nanos.load(Ordering::Relaxed))
    }

    /// Time since the call began, waiting included.
    pub fn wall_time(&self) -> Duration {
        self.clock.instant().duration_since(self.base)
    }

    /// Fuel used, as of the last look.
    pub fn fuel(&self) -> u64 {
        self.fuel_used.load(Ordering::Relaxed)
    }

    /// The most memory it had, in bytes.
    pub fn memory_peak(&self) -> u64 {
        self.memory_peak.load(Ordering::Relaxed)
    }

    /// Whether a guest that is to stop has had its grace.
    fn is_overdue(&self) -> bool {
        let now = self.now();
        let first = self
            .stopping_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or_else(|first| first);
        first != 0 && Duration::from_nanos(now.saturating_sub(first)) >= CANCEL_GRACE
    }
}

/// Sums what all memories and tables of an instance hold together; wasmtime's own limits are per memory.
#[derive(Debug, Default)]
pub struct Limiter {
    memory: usize,
    table: usize,
    memory_limit: usize,
    table_limit: usize,
    peak: usize,
    growing: usize,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let asked = self.memory.saturating_add(desired.saturating_sub(current));
        if asked > self.memory_limit {
            return Err(Stop::Memory { asked, limit: self.memory_limit }.into());
        }
        self.growing = asked - self.memory;
        self.memory = asked;
        self.peak = self.peak.max(asked);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory -= std::mem::take(&mut self.growing);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let asked = self.table.saturating_add(desired.saturating_sub(current));
        if asked > self.table_limit {
            return Err(Stop::Table { asked, limit: self.table_limit }.into());
        }
        self.table = asked;
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX as usize
    }

    fn tables(&self) -> usize {
        TABLES_MAX as usize
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX as usize
    }
}

/// What a store holds.
pub struct State {
    /// Made when the guest first uses WASI: most never do, and seeding its randomness costs more than a call.
    wasi: Option<Box<WasiCtx>>,
    table: ResourceTable,
    limiter: Limiter,
    /// What the call was given.
    pub(in crate::guest) call: CallContext,
    /// What the call has used.
    pub(in crate::guest) meter: Arc<Meter>,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let call = &self.call;
        let ctx = self.wasi.get_or_insert_with(|| Box::new(wasi::sealed(call)));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

impl State {
    /// Bytes of memory it holds now.
    pub(in crate::guest) const fn memory_bytes(&self) -> usize {
        self.limiter.memory
    }
}

/// Makes a store with every limit set. There is no other way to make one.
///
/// # Errors
/// [`GuestError::Host`] when wasmtime refuses a setting, which is a bug.
pub fn new_store(
    engine: &wasmtime::Engine,
    call: CallContext,
    meter: Arc<Meter>,
) -> Result<Store<State>, GuestError> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(call.limits.handles);
    let limiter = Limiter {
        memory_limit: call.limits.memory_bytes,
        table_limit: call.limits.table_elements,
        ..Limiter::default()
    };
    let mut store = Store::new(engine, State { wasi: None, table, limiter, call, meter });
    store.limiter(|state| &mut state.limiter);
    store.call_hook(|store, hook| {
        let meter = &store.data().meter;
        match hook {
            CallHook::CallingWasm | CallHook::ReturningFromHost => meter.go_on(),
            CallHook::CallingHost => meter.pause(),
            // Between two calls into the guest the host only copies what it gave or gets: reading the clock for each
            // would cost more than that.
            CallHook::ReturningFromWasm => {}
        }
        Ok(())
    });
    store.epoch_deadline_callback(on_tick);
    begin_call(&mut store)?;
    Ok(store)
}

/// Renews the limits that count per call, before each call into the store.
///
/// # Errors
/// [`GuestError::Host`] when wasmtime refuses a setting, which is a bug.
pub fn begin_call(store: &mut Store<State>) -> Result<(), GuestError> {
    let limits = store.data().call.limits.clone();
    store.set_epoch_deadline(1);
    store.set_hostcall_fuel(limits.output_bytes);
    store.set_fuel(limits.fuel).map_err(|error| GuestError::Host(format!("{error:#}")))?;
    Ok(())
}

/// Ends the counting of own time, and puts the call's use of fuel and memory on the meter.
pub fn note_use(store: &Store<State>) {
    let state = store.data();
    state.meter.pause();
    let left = store.get_fuel().unwrap_or(0);
    note(state, left);
}

fn note(state: &State, fuel_left: u64) {
    let used = state.call.limits.fuel.saturating_sub(fuel_left);
    state.meter.fuel_used.store(used, Ordering::Relaxed);
    state.meter.memory_peak.store(state.limiter.peak as u64, Ordering::Relaxed);
}

/// Runs at every tick while the guest computes: ends it at its limit, otherwise lets others have the thread.
#[expect(clippy::needless_pass_by_value, reason = "the signature of wasmtime's callback")]
fn on_tick(store: wasmtime::StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data();
    let meter = Arc::clone(&state.meter);
    meter.pause();
    note(state, store.get_fuel().unwrap_or(0));
    if state.call.cancel.is_cancelled() && meter.is_overdue() {
        return Err(Stop::Cancelled.into());
    }
    let limit = state.call.limits.own_time;
    if meter.own_time() > limit {
        return Err(Stop::OwnTime(limit).into());
    }
    let others = Box::pin(async move {
        task::yield_now().await;
        meter.go_on();
    });
    Ok(UpdateDeadline::YieldCustom(1, others))
}
