//! Calls into a component: each under its limits, with one outcome whatever the guest does.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::error::Elapsed;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::chain::declaration;
use crate::clock::Clock;
use crate::guest::GuestError;
use crate::guest::bindings::exports::trax::train::guest as wit;
use crate::guest::component::{Component, Exports};
use crate::guest::context::CallContext;
use crate::guest::convert;
use crate::guest::outcome::{self, Ended, Receipt};
use crate::guest::state::{self, CANCEL_GRACE, Meter, State};
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::question::Question;
use crate::model::value::Value;

/// The least that is added to a junction's time at once while the host keeps it waiting.
const STALL_STEP: Duration = Duration::from_millis(100);

/// A value as a guest returned it: nothing of it has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawValue {
    /// The name the guest gives its type.
    pub type_name: String,
    /// What should be JSON.
    pub json: String,
}

/// What came of a call, and what it used.
#[derive(Debug, Clone, PartialEq)]
pub struct Called<T> {
    /// What came of it.
    pub ended: Ended<T>,
    /// What it used.
    pub receipt: Receipt,
}

/// Calls into one component for one run.
///
/// With [`declaration::Isolation::PerJunction`] every call gets an instance of its own. With `PerRun` they share one,
/// until a call does not return properly; the next one starts with a new instance.
pub struct Session {
    component: Arc<Component>,
    isolation: declaration::Isolation,
    live: Option<Live>,
}

struct Live {
    store: Store<State>,
    instance: Instance,
    exports: Exports,
    _slot: OwnedSemaphorePermit,
}

/// An instance, or the right to make one.
enum Start {
    Live(Box<Live>),
    Slot(OwnedSemaphorePermit),
}

enum Request {
    RunJunction { train: String, junction: String, inputs: Vec<wit::Value> },
    Decide(wit::DecisionRequest),
    DeclareTwice,
}

enum Response {
    Values(Result<Vec<wit::Value>, wit::Failure>),
    Answers(Result<Vec<wit::Answer>, wit::Failure>),
    Trains(Vec<wit::Train>, Vec<wit::Train>),
}

impl Session {
    /// A session without an instance yet.
    pub const fn new(component: Arc<Component>, isolation: declaration::Isolation) -> Self {
        Self { component, isolation, live: None }
    }

    /// Runs a junction.
    ///
    /// # Errors
    /// [`GuestError`] when the host could not ask the guest.
    pub async fn run_junction(
        &mut self,
        call: CallContext,
        train: &str,
        junction: &str,
        inputs: &[Value],
    ) -> Result<Called<Vec<RawValue>>, GuestError> {
        let request = Request::RunJunction {
            train: train.to_owned(),
            junction: junction.to_owned(),
            inputs: inputs.iter().map(convert::value_to_guest).collect(),
        };
        let raw = |value: wit::Value| RawValue { type_name: value.type_name, json: value.json };
        let called = self.perform(call, request).await?;
        Ok(called.map(|response| match response {
            Response::Values(result) => {
                result.map(|values| values.into_iter().map(raw).collect()).map_err(convert::failure)
            }
            Response::Answers(_) | Response::Trains(..) => Err(mismatched()),
        }))
    }

    /// Asks a rule decider of the component.
    ///
    /// # Errors
    /// [`GuestError`] when the host could not ask the guest.
    pub async fn decide(
        &mut self,
        call: CallContext,
        train: &str,
        decider: &str,
        state: &Value,
        questions: &[&Question],
    ) -> Result<Called<Vec<Answer>>, GuestError> {
        let request = Request::Decide(wit::DecisionRequest {
            train: train.to_owned(),
            decider: decider.to_owned(),
            state: convert::value_to_guest(state),
            questions: questions.iter().map(|q| convert::question_to_guest(q)).collect(),
        });
        let called = self.perform(call, request).await?;
        Ok(called.map(|response| match response {
            Response::Answers(result) => result
                .map(|answers| answers.into_iter().map(convert::answer).collect())
                .map_err(convert::failure),
            Response::Values(_) | Response::Trains(..) => Err(mismatched()),
        }))
    }

    /// Reads the declaration twice, in one instance.
    pub(in crate::guest) async fn declare_twice(
        &mut self,
        call: CallContext,
    ) -> Result<Called<(Vec<declaration::Train>, Vec<declaration::Train>)>, GuestError> {
        let trains = |list: Vec<wit::Train>| list.into_iter().map(convert::train).collect();
        let called = self.perform(call, Request::DeclareTwice).await?;
        Ok(called.map(|response| match response {
            Response::Trains(first, second) => Ok((trains(first), trains(second))),
            Response::Values(_) | Response::Answers(_) => Err(mismatched()),
        }))
    }

    async fn perform(
        &mut self,
        call: CallContext,
        request: Request,
    ) -> Result<Called<Response>, GuestError> {
        // Waiting for a slot is the host's shortage and counts against no limit of the guest.
        let start = if let Some(live) = self.live.take() {
            Start::Live(Box::new(live))
        } else {
            let is_junction = matches!(request, Request::RunJunction { .. });
            Start::Slot(self.component.slot(is_junction).await?)
        };
        let meter = Arc::new(Meter::new(Clock));
        let work =
            work(Arc::clone(&self.component), start, call.clone(), Arc::clone(&meter), request);
        let finished = supervise(Box::pin(work), &call).await?;
        let ended = match finished {
            Finished::Ran(Ok((live, response))) => {
                if self.isolation == declaration::Isolation::PerRun {
                    self.live = Some(live);
                }
                Ended::Returned(response)
            }
            Finished::Ran(Err(error)) => outcome::from_error(&error, &call.limits, &call.log)?,
            Finished::Cancelled => Ended::Cancelled,
            Finished::TookTooLong => {
                let message =
                    format!("took more than {:?}, waiting included", call.limits.wall_time);
                Ended::Failed(Failure::unclassified("WallTimeLimit", message))
            }
        };
        let receipt = Receipt {
            own_time: meter.own_time(),
            wall_time: meter.wall_time(),
            fuel: meter.fuel(),
            memory_bytes: meter.memory_peak(),
        };
        Ok(Called { ended, receipt })
    }
}

impl Called<Response> {
    fn map<T>(self, read: impl FnOnce(Response) -> Result<T, Failure>) -> Called<T> {
        let ended = match self.ended {
            Ended::Returned(response) => match read(response) {
                Ok(value) => Ended::Returned(value),
                Err(failure) => Ended::Failed(failure),
            },
            Ended::Failed(failure) => Ended::Failed(failure),
            Ended::Cancelled => Ended::Cancelled,
        };
        Called { ended, receipt: self.receipt }
    }
}

fn mismatched() -> Failure {
    Failure::permanent("BadCall", "the guest answered another call")
}

/// Loads, instantiates, calls and lifts: everything that runs guest code, so that one deadline covers it all.
async fn work(
    component: Arc<Component>,
    start: Start,
    call: CallContext,
    meter: Arc<Meter>,
    request: Request,
) -> wasmtime::Result<(Live, Response)> {
    let mut live = match start {
        Start::Live(mut live) => {
            let state = live.store.data_mut();
            state.call = call;
            state.meter = meter;
            state::begin_call(&mut live.store)?;
            *live
        }
        Start::Slot(slot) => instantiate(&component, slot, call, meter).await?,
    };
    let result = ask(&mut live, request).await;
    state::note_use(&live.store);
    Ok((live, result?))
}

async fn instantiate(
    component: &Component,
    slot: OwnedSemaphorePermit,
    call: CallContext,
    meter: Arc<Meter>,
) -> wasmtime::Result<Live> {
    let mut store = state::new_store(component.engine(), call, meter)?;
    match component.pre().instantiate_async(&mut store).await {
        Ok(instance) => Ok(Live { store, instance, exports: component.exports(), _slot: slot }),
        Err(error) => {
            state::note_use(&store);
            Err(error)
        }
    }
}

type Outcome<T> = (Result<Vec<T>, wit::Failure>,);

async fn ask(live: &mut Live, request: Request) -> wasmtime::Result<Response> {
    let (instance, exports, store) = (live.instance, live.exports, &mut live.store);
    Ok(match request {
        Request::RunJunction { train, junction, inputs } => {
            let run_junction = instance
                .get_typed_func::<(&str, &str, &[wit::Value]), Outcome<wit::Value>>(
                    &mut *store,
                    exports.run_junction,
                )?;
            Response::Values(run_junction.call_async(store, (&train, &junction, &inputs)).await?.0)
        }
        Request::Decide(request) => {
            let decide = instance
                .get_typed_func::<(&wit::DecisionRequest,), Outcome<wit::Answer>>(
                    &mut *store,
                    exports.decide,
                )?;
            Response::Answers(decide.call_async(store, (&request,)).await?.0)
        }
        Request::DeclareTwice => {
            let declare =
                instance.get_typed_func::<(), (Vec<wit::Train>,)>(&mut *store, exports.declare)?;
            let first = declare.call_async(&mut *store, ()).await?.0;
            Response::Trains(first, declare.call_async(store, ()).await?.0)
        }
    })
}

enum Finished {
    Ran(wasmtime::Result<(Live, Response)>),
    Cancelled,
    TookTooLong,
}

/// Waits for the work, ends it when it is to stop or takes too long, and catches panics of host functions.
///
/// A guest that computes gives way at every tick, so the other two are looked at in time.
async fn supervise(
    mut work: Pin<Box<impl Future<Output = wasmtime::Result<(Live, Response)>>>>,
    call: &CallContext,
) -> Result<Finished, GuestError> {
    let caught = poll_fn(|context| {
        // What a panic leaves behind is dropped with the work and never looked at.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
            Err(panic) => Poll::Ready(Err(host_fault(&*panic))),
        }
    });
    let stopping = async {
        call.cancel.cancelled().await;
        // Twice the grace: a guest that computes is ended by its ticks, which also tell where it was.
        let _ = Clock.timeout(CANCEL_GRACE * 2, std::future::pending::<()>()).await;
    };
    tokio::select! {
        biased;
        finished = within_wall_time(caught, call) => match finished {
            Ok(result) => Ok(Finished::Ran(result?)),
            Err(_elapsed) => Ok(Finished::TookTooLong),
        },
        () = stopping => Ok(Finished::Cancelled),
    }
}

/// Waits for the work for as long as the junction may take. What the host kept it waiting for its own reasons is added.
async fn within_wall_time<F: Future>(work: F, call: &CallContext) -> Result<F::Output, Elapsed> {
    // Not what its run had waited before this call.
    let before = call.stalled();
    let (mut allowed, mut added) = (call.limits.wall_time, Duration::ZERO);
    tokio::pin!(work);
    loop {
        let finished = Clock.timeout(allowed, work.as_mut()).await;
        let stalled = call.stalled().saturating_sub(before);
        match finished {
            Err(_elapsed) if stalled > added => {
                allowed = stalled.saturating_sub(added).max(STALL_STEP);
                added = stalled;
            }
            other => return other,
        }
    }
}

fn host_fault(panic: &(dyn Any + Send)) -> GuestError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without text");
    tracing::error!(panic = text, "a host function panicked while a guest ran");
    GuestError::Host(text.to_owned())
}
