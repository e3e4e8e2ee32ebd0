//! Random tests: each case has a seed of its own, is the same on every machine, and can be repeated
//! by itself.
//!
//! ```
//! use weft_trial::prelude::*;
//!
//! trials! {
//!     #![cases(64)]
//!
//!     /// What must hold for any two numbers.
//!     fn sums_commute((a, b) in (0u32..1000, 0u32..1000)) {
//!         prop_assert_eq!(a + b, b + a);
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Without `#![cases(n)]` there are 256. A case that fails, or takes long, is named with its seed.
//! What the environment says:
//!
//! | variable | what it does |
//! |---|---|
//! | `WEFT_CASE` | only the case of this seed |
//! | `WEFT_SEED` | other cases: their seeds follow from this number; 0 if it is not set |
//! | `WEFT_SOAK` | as many cases as there is time for in so many seconds, in each test |
//!
//! A test that goes through all combinations of something asks [`is_drawn`]: `WEFT_SEED` says which quarter
//! of them is tried, and `WEFT_SOAK` tries all.
//!
//! No case is interrupted: what a test simulates has bounds of its own, in packets.

// Tests may look at the clock and the environment.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use proptest::strategy::{BoxedStrategy, Strategy};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use std::any::Any;
use std::fmt;
use std::time::{Duration, Instant};

pub use proptest;

/// What a file of random tests uses.
pub mod prelude {
    pub use crate::{any_of, trials};
    pub use proptest::prelude::*;
}

/// A case that takes longer is named.
const SLOW: Duration = Duration::from_secs(5);
/// For how long a smaller case is looked for that fails, too.
const SHRINKING: Duration = Duration::from_secs(20);

/// Any of `items`, such as what a registry lists. One more item changes the cases that it takes, and no
/// other one: each item has a draw of its own, by how it is printed, and the largest wins.
pub fn any_of<T: Clone + fmt::Debug>(items: Vec<T>) -> impl Strategy<Value = T> {
    assert!(!items.is_empty(), "nothing to choose from");
    let named: Vec<(u64, T)> = items.into_iter().map(|item| (hash_of(&item), item)).collect();
    (0..=u64::MAX).prop_map(move |case| {
        let best = named.iter().max_by_key(|(name, _)| seed_of(case, *name));
        best.expect("there are some").1.clone()
    })
}

/// Whether the combination called `what` is among those that this run tries.
#[must_use]
pub fn is_drawn(what: &str) -> bool {
    let first = variable("WEFT_SEED").unwrap_or(0);
    variable("WEFT_SOAK").is_some() || seed_of(first, hash_of(&what)).is_multiple_of(4)
}

/// FNV-1a of how it is printed.
fn hash_of(item: &impl fmt::Debug) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    format!("{item:?}").bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

/// Declares random tests: functions whose arguments are drawn from strategies, and which may use
/// `prop_assert!` and its like. See the crate's page.
#[macro_export]
macro_rules! trials {
    (#![cases($cases:expr)] $($rest:tt)*) => {
        $crate::trials! { @tests $cases; $($rest)* }
    };
    (@tests $cases:expr; $(
        $(#[$meta:meta])*
        fn $name:ident($($argument:pat in $strategy:expr),+ $(,)?) $body:block
    )*) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            $crate::run(stringify!($name), $cases, ($($strategy,)+), |($($argument,)+)| {
                $body
                Ok(())
            });
        }
    )*};
    (@$($rest:tt)*) => {
        compile_error!("write: fn name(pattern in strategy, ...) { ... }");
    };
    ($($rest:tt)*) => {
        $crate::trials! { @tests 256; $($rest)* }
    };
}

/// Runs the test called `name` on `cases` random values, or as the environment says.
///
/// # Panics
/// If one fails, with the smallest failing value that was found and the seed of the case; or if a
/// variable of the environment is not a number.
pub fn run<S: Strategy<Value: 'static> + 'static>(
    name: &str,
    cases: u32,
    strategy: S,
    test: impl Fn(S::Value) -> TestCaseResult,
) {
    let strategy = strategy.prop_map(|value| Drawn(Box::new(value))).boxed();
    run_cases(name, cases, &strategy, &|Drawn(value)| {
        let value: Box<dyn Any> = value;
        test(*value.downcast().expect("the strategy drew it"))
    });
}

/// What a strategy drew, of whatever type: the search for small cases is compiled once, and not for each test.
struct Drawn(Box<dyn Value>);

trait Value: Any + fmt::Debug {}

impl<T: Any + fmt::Debug> Value for T {}

impl fmt::Debug for Drawn {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

fn run_cases(
    name: &str,
    cases: u32,
    strategy: &BoxedStrategy<Drawn>,
    test: &dyn Fn(Drawn) -> TestCaseResult,
) {
    if let Some(seed) = variable("WEFT_CASE") {
        return run_case(name, seed, strategy, test);
    }
    let first = variable("WEFT_SEED").unwrap_or(0);
    let started = Instant::now();
    let soak = variable("WEFT_SOAK").map(Duration::from_secs);
    let goes_on = |case: u64| match soak {
        Some(time) => started.elapsed() < time,
        None => case < u64::from(cases),
    };
    for case in (0..).take_while(|case| goes_on(*case)) {
        run_case(name, seed_of(first, case), strategy, test);
    }
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number")))
}

/// The seed of a case (SplitMix64, Steele et al., OOPSLA 2014).
fn seed_of(first: u64, case: u64) -> u64 {
    let mut z = first.wrapping_mul(0xA076_1D64_78BD_642F).wrapping_add(case);
    z = z.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn run_case(
    name: &str,
    seed: u64,
    strategy: &BoxedStrategy<Drawn>,
    test: &dyn Fn(Drawn) -> TestCaseResult,
) {
    let config = Config {
        cases: 1,
        failure_persistence: None,
        // The largest number stands for a default: four.
        max_shrink_iters: u32::MAX - 1,
        max_shrink_time: SHRINKING.as_millis() as u32,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let started = Instant::now();
    let outcome = TestRunner::new_with_rng(config, rng).run(strategy, test);
    let repeat = format!("to repeat it: WEFT_CASE={seed} cargo test {name}");
    match outcome {
        Ok(()) if started.elapsed() > SLOW => {
            eprintln!("{name}: a case took {:.1} s; {repeat}", started.elapsed().as_secs_f64());
        }
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => {
            panic!("{name}: {why}\nthe smallest case that was found: {value:#?}\n{repeat}")
        }
        Err(TestError::Abort(why)) => panic!("{name}: no case: {why}\n{repeat}"),
    }
}
