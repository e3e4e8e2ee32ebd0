//! NCCL's logger, as the last `init` gave it.

#![expect(unsafe_code, reason = "the logger is a C function, and so is `write`")]

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_deploy::Log;
use weft_nccl_abi::{Level, Logger, subsystem};

struct State {
    logger: Option<Logger>,
    /// What goes to standard error where there is no logger.
    alone: Log,
    /// What was warned of last: a channel that failed says so for each of its requests.
    warned: String,
}

static STATE: Mutex<State> =
    Mutex::new(State { logger: None, alone: Log::Warn, warned: String::new() });

/// Takes NCCL's logger.
pub(crate) fn set(logger: Option<Logger>) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.logger = logger.or(state.logger);
    state.warned.clear();
}

/// How much to say where there is no logger: with one, `NCCL_DEBUG` decides.
pub(crate) fn alone(log: Log) {
    STATE.lock().unwrap_or_else(PoisonError::into_inner).alone = log;
}

/// Why a call has failed; the same twice in a row is said once.
pub(crate) fn error(text: &str) {
    once(Log::Error, text);
}

/// What a user should mend, though it works; the same twice in a row is said once.
pub(crate) fn warn(text: &str) {
    once(Log::Warn, text);
}

/// What a user sees who asks with `NCCL_DEBUG=INFO`.
pub(crate) fn info(text: &str) {
    write(STATE.lock().unwrap_or_else(PoisonError::into_inner), Log::Info, text);
}

/// That `call` does not work in a child that was forked, once. No lock is taken, here or in NCCL's logger:
/// a thread that the child does not have may hold it.
pub(crate) fn forked(call: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let line = format!(
        "Weft: {call}: this process was forked from one that had called init, whose threads it does not \
         have; fork before that, or start processes anew (spawn)\n"
    );
    // SAFETY: the line is there during the call. Where it cannot be said the result still says it.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

fn once(log: Log, text: &str) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.warned == text {
        return;
    }
    text.clone_into(&mut state.warned);
    write(state, log, text);
}

fn write(state: MutexGuard<'_, State>, log: Log, text: &str) {
    let (logger, alone) = (state.logger, state.alone);
    // The logger may take its time, or lead back here.
    drop(state);
    let Some(logger) = logger else {
        if alone >= log {
            eprintln!("Weft: {text}");
        }
        return;
    };
    // NCCL has no level between.
    let level = if log <= Log::Warn { Level::Warn } else { Level::Info };
    let line = CString::new(format!("NET/Weft: {}", text.replace('\0', " "))).unwrap_or_default();
    let flags = subsystem::INIT | subsystem::NET;
    // SAFETY: NCCL's logger takes a format and what it asks for; all three texts end in zero.
    unsafe { logger(level as i32, flags, c"weft".as_ptr(), 0, c"%s".as_ptr(), line.as_ptr()) }
}
