//! How long things take here. In a web page there is no clock to ask: all times are zero there, and whoever
//! shows the page measures by itself.

#[cfg(not(target_family = "wasm"))]
use std::time::Instant;

/// An instant of the machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    #[cfg(not(target_family = "wasm"))]
    at: Instant,
}

impl Moment {
    /// This one.
    pub(crate) fn now() -> Moment {
        Moment {
            #[cfg(not(target_family = "wasm"))]
            at: Instant::now(),
        }
    }

    /// Seconds from here to `later`; zero if that was earlier.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn seconds_until(self, later: Moment) -> f64 {
        later.at.saturating_duration_since(self.at).as_secs_f64()
    }

    /// Nobody knows.
    #[cfg(target_family = "wasm")]
    pub(crate) fn seconds_until(self, _later: Moment) -> f64 {
        0.0
    }
}
