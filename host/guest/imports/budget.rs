//! `trax:train/budget`: what is left of a call's limits.

use std::time::Duration;

use crate::guest::bindings::trax::train::budget::{Host, RemainingBudget};
use crate::guest::state::State;

/// The share of a limit at which a guest is warned.
const WARN_AT_PERCENT: u128 = 80;

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

const fn is_nearly_used(used: u128, limit: u128) -> bool {
    used * 100 >= limit * WARN_AT_PERCENT
}

impl Host for State {
    fn remaining(&mut self) -> wasmtime::Result<RemainingBudget> {
        let limits = &self.call.limits;
        Ok(RemainingBudget {
            own_time_us: micros(limits.own_time.saturating_sub(self.meter.own_time())),
            wall_time_us: micros(limits.wall_time.saturating_sub(self.meter.wall_time())),
            fuel: limits.fuel.saturating_sub(self.meter.fuel()),
            memory_bytes: limits.memory_bytes.saturating_sub(self.memory_bytes()) as u64,
            log_bytes: self.call.log.bytes_left() as u64,
        })
    }

    fn warned(&mut self) -> wasmtime::Result<bool> {
        let limits = &self.call.limits;
        Ok(is_nearly_used(self.meter.own_time().as_nanos(), limits.own_time.as_nanos())
            || is_nearly_used(self.meter.wall_time().as_nanos(), limits.wall_time.as_nanos())
            || is_nearly_used(self.meter.fuel().into(), limits.fuel.into())
            || is_nearly_used(self.memory_bytes() as u128, limits.memory_bytes as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_nearly_used_from_80_percent() {
        assert!(!is_nearly_used(79, 100));
        assert!(is_nearly_used(80, 100));
        assert!(is_nearly_used(u64::MAX.into(), u64::MAX.into()));
    }
}
