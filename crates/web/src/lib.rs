//! The packet engine in a web page: questions in JSON, answers in JSON (`answers`), and the few functions by
//! which a page hands both over.
//!
//! A page asks for room ([`weft_room`]), writes its question there, has it answered ([`weft_answer`]) and reads the
//! answer where [`weft_text`] says. Nothing else is shared, so that the page needs no generated code. It runs in a
//! worker, a question at a time. `page` has the rest: what is drawn, and how it is packed into one file.
//!
//! Invariant: an answer is what the command line would say, from the same crates; only times of the machine are
//! missing (`weft_experiment` has no clock here).

#![expect(unsafe_code, reason = "names of functions are exported as they are")]

mod answers;
mod json;

use std::cell::RefCell;
use std::panic::set_hook;

thread_local! {
    /// The question, then its answer.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a question of so many bytes; where it has to be written.
#[unsafe(no_mangle)]
pub extern "C" fn weft_room(bytes: usize) -> *mut u8 {
    set(vec![0; bytes]);
    TEXT.with_borrow_mut(|text| text.as_mut_ptr())
}

/// Answers the question that is there. If it ends in a trap, the text says why.
#[unsafe(no_mangle)]
pub extern "C" fn weft_answer() {
    set_hook(Box::new(|panic| set(panic.to_string().into_bytes())));
    let question = TEXT.take();
    set(answers::to(&question).into_bytes());
}

/// Where the text begins that is there.
#[unsafe(no_mangle)]
pub extern "C" fn weft_text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn weft_text_bytes() -> usize {
    TEXT.with_borrow(Vec::len)
}

fn set(text: Vec<u8>) {
    TEXT.set(text);
}
