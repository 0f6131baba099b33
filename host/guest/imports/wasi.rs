//! WASI 0.2, sealed: no directories, no environment, no arguments, no network; output goes to the run's log.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use crate::guest::context::CallContext;
use crate::guest::run_log::{LogLevel, RunLog};

/// The most random bytes a guest gets at once.
const RANDOM_BYTES_MAX: u64 = 64 * 1024;

/// A context that grants nothing.
pub fn sealed(call: &CallContext) -> WasiCtx {
    let output = |level| Output {
        log: Arc::clone(&call.log),
        node: Arc::from(call.visit.node_id.as_str()),
        level,
    };
    WasiCtxBuilder::new()
        .stdout(output(LogLevel::Info))
        .stderr(output(LogLevel::Warn))
        .max_random_size(RANDOM_BYTES_MAX)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .allow_blocking_current_thread(false)
        .build()
}

/// Standard output or error of a guest.
#[derive(Clone)]
struct Output {
    log: Arc<RunLog>,
    node: Arc<str>,
    level: LogLevel,
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.is_empty()) {
            self.log.write(self.level, &self.node, line);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
