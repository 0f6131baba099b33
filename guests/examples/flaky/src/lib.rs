//! Fails as often as its input says, then works: a train to watch retries with.

use trax_sdk::prelude::*;
use trax_sdk::run;

trax_sdk::export!(flaky);

/// How often to fail.
#[derive(Value)]
struct Request {
    /// The attempts of an occurrence that fail, from the first one.
    failures: u32,
}

/// The result.
#[derive(Value)]
struct Delivered {
    /// The attempt that worked.
    attempt: u32,
}

fn flaky(train: NewTrain) -> Train {
    train
        .named::<Request, Delivered>("flaky", "Fails a given number of times, then works.")
        .chain(|chain| chain.junction("Deliver", deliver))
}

fn deliver(request: Request) -> Result<Delivered, Failure> {
    let attempt = run::info().attempt;
    if attempt <= request.failures {
        warn!("attempt {attempt} of {} that fail", request.failures);
        return Err(Failure::transient("UpstreamUnavailable", "Upstream answered 503"));
    }
    Ok(Delivered { attempt })
}
