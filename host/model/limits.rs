//! The limits of guests: every one has a name, a unit and a default.

use std::time::Duration;

/// The most bytes of a component's wasm.
pub const COMPONENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most nodes of one train's declaration. Verifying stays under a second.
pub const NODES_MAX: usize = 20_000;
/// The most trains of one component.
pub const TRAINS_MAX: usize = 1_000;
/// The most types of one train.
pub const TYPES_MAX: usize = 2_000;
/// The most bytes of one schema.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of all schemas of one train together. Compiling them takes a fraction of a second.
pub const SCHEMAS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What one call into a guest, and the run around it, may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// All linear memories of an instance together, in bytes.
    pub memory_bytes: usize,
    /// All table elements of an instance together.
    pub table_elements: usize,
    /// Time a junction may compute; waiting does not count.
    pub own_time: Duration,
    /// Time a junction may take, waiting included.
    pub wall_time: Duration,
    /// Instructions a junction may execute, in wasmtime's fuel.
    pub fuel: u64,
    /// The input of a run, in bytes of canonical JSON.
    pub input_bytes: usize,
    /// The outputs of one junction together, in bytes of JSON.
    pub output_bytes: usize,
    /// The log of one run, in bytes.
    pub log_bytes: usize,
    /// The log of one run, in lines.
    pub log_lines: usize,
    /// One line of a log, in bytes.
    pub log_line_bytes: usize,
    /// Handles a guest may hold at once.
    pub handles: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 * 1024 * 1024,
            table_elements: 100_000,
            own_time: Duration::from_secs(10),
            wall_time: Duration::from_mins(5),
            fuel: 50_000_000_000,
            input_bytes: 256 * 1024,
            output_bytes: 16 * 1024 * 1024,
            log_bytes: 256 * 1024,
            log_lines: 1_000,
            log_line_bytes: 8 * 1024,
            handles: 1_000,
        }
    }
}
