//! Panics, for a program that tells them in its own words instead of Rust's.

use pyo3::prelude::*;
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, Once, PoisonError};

/// `message (file:line)`, the first ones first.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// More are not worth the memory.
const MOST: usize = 16;

/// From now on panics of any thread are kept for [`held_panics`] instead of printed.
#[pyfunction]
pub(crate) fn hold_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(hold)));
}

fn hold(info: &PanicHookInfo<'_>) {
    let text = info.payload().downcast_ref::<&str>().copied();
    let text = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("(no message)");
    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.len() < MOST {
        held.push(format!("{message}{}", place.unwrap_or_default()));
    }
}

/// What has been held; it is forgotten.
#[pyfunction]
pub(crate) fn held_panics() -> Vec<String> {
    std::mem::take(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Panics, on a thread of its own if asked: so that tests see what becomes of it.
#[pyfunction]
#[pyo3(signature = (message, alone=false))]
pub(crate) fn panic_for_tests(message: String, alone: bool) {
    if !alone {
        panic!("{message}");
    }
    let thread = std::thread::spawn(move || panic!("{message}"));
    let _ = thread.join();
}
