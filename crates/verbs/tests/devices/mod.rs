//! RDMA devices in software in the place of libibverbs (`verbs.c`), for tests of whatever loads it: `fake_0`,
//! `fake_1` and `fake_2`, of which `fake_N` has the addresses 127.0.N.1 to 127.0.N.4.

#![allow(
    unsafe_code,
    dead_code,
    unreachable_pub,
    reason = "C functions; each test uses some of it"
)]

use std::ffi::{CStr, c_int, c_uint};
use std::path::{Path, PathBuf};
use std::process::Command;

const INSIDE: &str = "RDMA_TEST_INSIDE";

/// The library, compiled, in a folder of its own.
fn library(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weft-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verbs/tests/devices/verbs.c");
    let flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o"];
    let made =
        Command::new("cc").args(flags).arg(folder.join("libibverbs.so.1")).arg(source).status();
    assert!(made.expect("a C compiler, as linking takes").success());
    folder
}

/// Runs `test` again in a process where libibverbs is that library, with `variables`. Whether this is it.
pub fn with_devices(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var(INSIDE).is_ok() {
        return true;
    }
    if !Path::new("/usr/include/infiniband/verbs.h").exists() {
        println!("skipped: no infiniband/verbs.h here (libibverbs-dev)");
        return false;
    }
    let folder = library(test);
    let end = Command::new(std::env::current_exe().expect("a test"))
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", &folder)
        .envs(variables.iter().copied())
        .status();
    std::fs::remove_dir_all(folder).expect("it is ours");
    assert!(end.expect("it starts").success());
    false
}

/// How a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Up = 0,
    /// It says that it is down.
    Down = 1,
    /// It says that it is up, and nothing gets through.
    Silent = 2,
    /// It says that it is up, and posting is an error.
    Faulty = 3,
    /// The device answers nothing any more.
    Gone = 4,
}

/// A device, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Fake(pub u8);

impl Fake {
    /// A function of the library, which whoever is tested has loaded.
    fn function<T: Copy>(name: &CStr) -> T {
        assert_eq!(size_of::<T>(), size_of::<*const ()>());
        // SAFETY: the library is the one that stands in, and callers name the types of its functions.
        unsafe {
            let library = libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            let found = libc::dlsym(library, name.as_ptr());
            assert!(!found.is_null(), "{name:?}");
            std::mem::transmute_copy(&found)
        }
    }

    fn number(self) -> c_int {
        c_int::from(self.0)
    }

    /// From now on its port is so.
    pub fn set(self, state: State) {
        let set: extern "C" fn(c_int, c_int) = Fake::function(c"fake_set_state");
        set(self.number(), state as c_int);
    }

    /// Whether it registers no more memory from now on.
    pub fn refuse_memory(self, refuses: bool) {
        let refuse: extern "C" fn(c_int, c_int) = Fake::function(c"fake_refuse_memory");
        refuse(self.number(), c_int::from(refuses));
    }

    /// All its queue pairs are in the state of error now.
    pub fn fail_pairs(self) {
        let fail: extern "C" fn(c_int) = Fake::function(c"fake_fail_pairs");
        fail(self.number());
    }

    /// Whether nobody looks at what ends there from now on, as where a process stands still.
    pub fn stand_still(self, still: bool) {
        let stand: extern "C" fn(c_int, c_int) = Fake::function(c"fake_stand_still");
        stand(self.number(), c_int::from(still));
    }

    /// Its addresses stand at other places of its table from now on, and the first of them here.
    pub fn move_addresses(self, first: u8) {
        let set: extern "C" fn(c_int, c_uint) = Fake::function(c"fake_move_addresses");
        set(self.number(), c_uint::from(first));
    }

    /// So long it takes from now on to know a range of the host's memory.
    pub fn register_in(self, time: std::time::Duration) {
        let set: extern "C" fn(c_int, c_uint) = Fake::function(c"fake_register_in");
        set(self.number(), time.as_micros() as c_uint);
    }

    /// How many ranges of memory it knows.
    pub fn regions(self) -> u32 {
        let count: extern "C" fn(c_int) -> c_uint = Fake::function(c"fake_regions");
        count(self.number())
    }

    /// How many ranges of the host's memory it was to know that are no whole pages.
    pub fn ragged(self) -> u32 {
        let count: extern "C" fn(c_int) -> c_uint = Fake::function(c"fake_ragged");
        count(self.number())
    }

    /// How many bytes it has written to peers.
    pub fn written(self) -> u64 {
        let count: extern "C" fn(c_int) -> u64 = Fake::function(c"fake_written");
        count(self.number())
    }

    /// How often it has read.
    pub fn reads(self) -> u64 {
        let count: extern "C" fn(c_int) -> u64 = Fake::function(c"fake_reads");
        count(self.number())
    }
}
