//! The threads of the kernel: one pool for each process.
//!
//! A forked child has a copy of its parent's pool without its threads, so work given to the copy would never finish.
//! Each process therefore builds its own pool on first use. The copy is never dropped, because that would wait for
//! its threads.

use std::process;
use std::sync::OnceLock;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

/// Enough for Variants that nest as deeply as the limits allow.
const STACK_BYTES: usize = 16 << 20;

static POOL: OnceLock<Box<ProcessPool>> = OnceLock::new();

struct ProcessPool {
    process: u32,
    threads: ThreadPool,
    /// The pool of a process that was forked from this one.
    of_child: OnceLock<Box<ProcessPool>>,
}

/// Run `work` on the kernel's threads, without the interpreter.
pub fn run<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> PyResult<T> {
    py.detach(|| Ok(pool()?.install(work)))
        .and_then(|outcome: std::result::Result<T, E>| outcome.map_err(Into::into))
}

/// Run `work` on the kernel's threads.
pub fn install<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    pool().map_err(no_threads)?.install(work)
}

/// Run `work`, which must not panic, on the kernel's threads, and do not wait for it.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    pool().map_err(no_threads)?.spawn(work);
    Ok(())
}

fn no_threads(error: PyErr) -> Error {
    Error::data_file(error.to_string())
}

/// The pool of this process, which is built on the first call.
fn pool() -> PyResult<&'static ThreadPool> {
    let process = process::id();
    let mut slot = &POOL;
    loop {
        match slot.get() {
            Some(pool) if pool.process == process => return Ok(&pool.threads),
            Some(pool) => slot = &pool.of_child,
            None => {
                let pool = ProcessPool { process, threads: build()?, of_child: OnceLock::new() };
                // If another thread was faster, its pool is used.
                drop(slot.set(Box::new(pool)));
            }
        }
    }
}

fn build() -> PyResult<ThreadPool> {
    let builder = ThreadPoolBuilder::new().stack_size(STACK_BYTES);
    let named = builder.thread_name(|index| format!("delta-variant-{index}"));
    named
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start the kernel's threads: {error}")))
}
