//! Generators of traffic, and the registry of them.
//!
//! One file a pattern: a struct of its options with `INFO`, `read`, `messages` and `generate`; here
//! its `mod` line and one line in the registry (`docs/extend/pattern.md`). All messages of a pattern have the same size and
//! start; none waits for another.
//!
//! Invariant: a pattern is a pure function of its options and its [`Scope`]; only patterns
//! that say so use the seed.

mod all_to_all;
mod incast;
mod permutation;
mod ring;
mod tree;

pub use all_to_all::Launch;
pub use tree::Direction;

use crate::{Message, Workload, WorkloadError};
use weft_units::options::ResolvedOptions;
use weft_units::{HostId, OptionError, OptionInfo, Options, Time};

/// On what a pattern is laid: the hosts, and what all its messages have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// How many hosts take part: `0..hosts`.
    pub hosts: u32,
    /// How many consecutive hosts share a leaf; only patterns that cross racks look at it.
    pub hosts_per_leaf: u32,
    /// Payload of every message, in bytes.
    pub bytes: u64,
    /// When every message is posted.
    pub start: Time,
    /// The seed of random patterns.
    pub seed: u64,
}

/// A line of the catalogue: what a pattern is called, does and can be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternInfo {
    /// The value of `workload.pattern`.
    pub name: &'static str,
    /// What it sends, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its own options, beside what its [`Scope`] says.
    pub options: &'static [OptionInfo],
}

macro_rules! patterns {
    ($($module:ident::$Pattern:ident),* $(,)?) => {
        $(pub use $module::$Pattern;)*

        /// Any of the patterns, with its options.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Pattern {
            $(#[doc = concat!("See [`", stringify!($Pattern), "`].")] $Pattern($Pattern)),*
        }

        /// All patterns there are.
        pub const PATTERNS: &[PatternInfo] = &[$($module::INFO),*];

        impl Pattern {
            /// The catalogue's line about it.
            pub fn info(&self) -> &'static PatternInfo {
                match self { $(Pattern::$Pattern(_) => const { &$module::INFO }),* }
            }
            /// How many messages it has at most on `scope`, and the key that makes them many.
            pub fn messages(&self, scope: &Scope) -> (u64, &'static str) {
                match self { $(Pattern::$Pattern(pattern) => pattern.messages(scope)),* }
            }
            /// Its messages on `scope`.
            ///
            /// # Errors
            /// If the scope is too small for the options, or the messages are too many.
            pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
                match self { $(Pattern::$Pattern(pattern) => pattern.generate(scope)),* }
            }
            /// As [`Pattern::read`], with all options as they were understood.
            ///
            /// # Errors
            /// As [`Pattern::read`].
            pub fn resolve(
                name: &str,
                given: &[(&str, &str)],
            ) -> Result<(Pattern, ResolvedOptions), OptionError> {
                $(if name == $module::INFO.name {
                    let owner = format!("pattern {name:?}");
                    let mut options = Options::new(&owner, $module::INFO.options, given)?;
                    let pattern = Pattern::$Pattern($Pattern::read(&mut options)?);
                    return Ok((pattern, options.resolve()?));
                })*
                let known: Vec<_> = PATTERNS.iter().map(|info| info.name).collect();
                Err(OptionError::unknown("pattern", name, &known))
            }
        }
    };
}

// The registry: one line a pattern.
patterns! {
    all_to_all::AllToAll,
    permutation::Permutation,
    incast::Incast,
    ring::Ring,
    tree::Tree,
}

/// Some ten gigabytes in the simulator.
const MOST_MESSAGES: u64 = 1 << 26;

impl Pattern {
    /// The pattern called `name` with options as an experiment file writes them:
    /// `[("count", "4")]`.
    ///
    /// # Errors
    /// If the name (key `pattern`) or an option is unknown, or a value is not what the option
    /// takes.
    pub fn read(name: &str, given: &[(&str, &str)]) -> Result<Pattern, OptionError> {
        Pattern::resolve(name, given).map(|(pattern, _)| pattern)
    }
}

impl Scope {
    /// Where so many messages of this scope will go, of which the key given makes many.
    ///
    /// # Errors
    /// If there is nobody to send to, nothing to send, or more than can be counted.
    pub fn workload(&self, (messages, key): (u64, &str)) -> Result<Workload, WorkloadError> {
        let error = |text: String| Err(WorkloadError(text));
        if self.hosts < 2 {
            return error(format!(
                "hosts: {} cannot send to each other; use at least 2",
                self.hosts
            ));
        }
        if self.bytes == 0 {
            return error("size: 0 bytes are nothing to send; use at least 1".into());
        }
        if messages > MOST_MESSAGES {
            return error(format!(
                "{key}: {messages} messages are too many, more than {MOST_MESSAGES}; use less, or \
                 fewer hosts"
            ));
        }
        if messages.checked_mul(self.bytes).is_none() {
            return error(format!(
                "size: {messages} messages of {} bytes are too many; use smaller messages, or fewer",
                self.bytes
            ));
        }
        Ok(Workload::new(self.hosts))
    }
    /// Appends one message, from host `src` to host `dst`.
    pub fn send(&self, workload: &mut Workload, src: u32, dst: u32) {
        let (src, dst) = (HostId(src), HostId(dst));
        workload.push(Message { src, dst, bytes: self.bytes, start: self.start }, &[]);
    }
    /// The hosts of a leaf, if there are at least two full leaves. With a partial one some
    /// neighbours would stand under the same leaf.
    ///
    /// # Errors
    /// If there are not (key `cross_rack`).
    pub fn full_leaf(&self) -> Result<u32, WorkloadError> {
        let Scope { hosts, hosts_per_leaf, .. } = *self;
        if hosts_per_leaf == 0 {
            return Err(WorkloadError(
                "cross_rack: switches have unequal numbers of hosts; use cross_rack = false".into(),
            ));
        }
        if hosts <= hosts_per_leaf || !hosts.is_multiple_of(hosts_per_leaf) {
            return Err(WorkloadError(format!(
                "cross_rack: {hosts} hosts do not fill two or more leaves of {hosts_per_leaf}; \
                 use full leaves or cross_rack = false"
            )));
        }
        Ok(hosts_per_leaf)
    }
    /// The host `distance` after `host`, counting on from zero at the end.
    pub fn ahead(&self, host: u32, distance: u32) -> u32 {
        ((u64::from(host) + u64::from(distance)) % u64::from(self.hosts)) as u32
    }
}
