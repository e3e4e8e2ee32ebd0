//! A library in the place of libibverbs, for tests: C that is compiled on the spot.

use crate::library::{Functions, open};
use crate::{Device, Verbs};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A library with the functions that `source` defines, which are called `defined`; all others do
/// nothing and return zero.
pub(crate) fn library(source: &str, defined: &[&str]) -> Arc<Verbs> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("weft-verbs-{}-{number}", std::process::id()));
    let (c, so) = (file.with_extension("c"), file.with_extension("so"));
    let mut text = format!("#include <errno.h>\n#include <stddef.h>\n{source}\n");
    for name in Functions::NAMES {
        let name = str::from_utf8(name).expect("letters").trim_end_matches('\0');
        if !defined.contains(&name) {
            text.push_str(&format!("void *{name}(void) {{ return 0; }}\n"));
        }
    }
    std::fs::write(&c, text).expect("written");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&so, &c]).status();
    assert!(made.expect("a C compiler, as linking takes").success());
    // It is that of mlx5 as well, if it has its function.
    let [library, mlx5] = [0; 2].map(|_| open(so.to_str().expect("text")).expect("it loads"));
    for file in [c, so] {
        let _ = std::fs::remove_file(file);
    }
    Verbs::of(library, Some(mlx5)).expect("all functions are there")
}

/// A device of such a library, which must not look at it.
pub(crate) fn device(verbs: Arc<Verbs>) -> Arc<Device> {
    let none = std::ptr::null_mut();
    Arc::new(Device { verbs, context: none, pd: none.cast(), name: "fake".into() })
}
