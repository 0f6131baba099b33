//! `trax:train/run`: the run a junction is called in.

use crate::guest::bindings::trax::train::run::{Host, RunInfo};
use crate::guest::context::Progress;
use crate::guest::run_log::escape_controls;
use crate::guest::state::State;

/// The longest progress message, in bytes: it is stored with the run and shown in lists.
const PROGRESS_BYTES_MAX: usize = 1_000;

impl Host for State {
    fn info(&mut self) -> wasmtime::Result<RunInfo> {
        let run = &self.call.run;
        Ok(RunInfo {
            tenant: run.tenant.clone(),
            train: run.train.clone(),
            run_id: run.run_id.clone(),
            occurrence_id: run.occurrence_id.clone(),
            component: run.component.clone(),
            attempt: run.attempt,
            node_id: self.call.visit.node_id.clone(),
            visit: self.call.visit.visit,
            manifest: run.manifest.clone(),
            scheduled_at: run.scheduled_at,
        })
    }

    fn idempotency_key(&mut self) -> wasmtime::Result<String> {
        Ok(self.call.idempotency_key())
    }

    fn progress(&mut self, fraction: Option<f64>, message: String) -> wasmtime::Result<()> {
        let fraction = fraction.filter(|f| f.is_finite()).map(|f| f.clamp(0.0, 1.0));
        let kept = &message[..message.floor_char_boundary(PROGRESS_BYTES_MAX)];
        self.call.set_progress(Progress { fraction, message: escape_controls(kept) });
        Ok(())
    }

    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.call.cancel.is_cancelled())
    }
}
