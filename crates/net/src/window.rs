//! How much of a flow may be out: as much as keeps a queue of some length before the bottleneck.
//!
//! Round trips shorter than the target let the window grow, longer ones shrink it, at most once a
//! round trip, and a loss halves it: the shape of Swift (Kumar et al., SIGCOMM 2020) with whole
//! packets only. Base round trips between name spaces take some 100 us and the scheduler some
//! milliseconds; the target is far above both, so links stay busy while nobody runs, and far below
//! what a queue of 512 kB takes to drain at 100 Mbit/s (42 ms).
//!
//! What this does not do: hold below one packet. Many flows on one link then queue one packet each.

use weft_units::Time;

/// How windows behave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowConfig {
    /// Round trips are to take this long.
    pub target: Time,
    /// Never more packets out than this.
    pub most: f64,
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig { target: Time::ms(15), most: 32.0 }
    }
}

/// The window of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    config: WindowConfig,
    /// In packets, at least one.
    size: f64,
    /// No other cut before then.
    calm_until: Time,
}

impl Window {
    /// Of a flow that begins.
    pub fn new(config: WindowConfig) -> Window {
        Window { config, size: 1.0, calm_until: Time::ZERO }
    }
    /// Packets that may be out.
    pub fn packets(&self) -> u32 {
        self.size as u32
    }
    /// So many packets were acknowledged, the last of them after `rtt`.
    pub fn on_ack(&mut self, now: Time, packets: u32, rtt: Time) {
        let WindowConfig { target, most } = self.config;
        let packets = f64::from(packets);
        if rtt.0 < target.0 / 4 {
            self.size += packets;
        } else if rtt < target {
            self.size += packets / self.size;
        } else {
            let over = (rtt.0 - target.0) as f64 / rtt.0 as f64;
            self.cut(now, rtt, 1.0 - over.min(0.5));
        }
        self.size = self.size.min(most);
    }
    /// A packet was lost; round trips take some `rtt`. Returns whether this is news: not of the
    /// same round trip as the last cut.
    pub fn on_loss(&mut self, now: Time, rtt: Time) -> bool {
        self.cut(now, rtt, 0.5)
    }
    /// Nothing comes back any more.
    pub fn on_time_out(&mut self) {
        self.size = 1.0;
    }

    fn cut(&mut self, now: Time, rtt: Time, to: f64) -> bool {
        let is_due = now >= self.calm_until;
        if is_due {
            self.calm_until = now.saturating_add(rtt);
            self.size = (self.size * to).max(1.0);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window::new(WindowConfig::default())
    }

    #[test]
    fn short_round_trips_open_it_up_to_the_most() {
        let mut window = window();
        assert_eq!(window.packets(), 1);
        for round in 0..6 {
            window.on_ack(Time::ms(round), window.packets(), Time::us(200));
        }
        assert_eq!(window.packets(), 32);
    }

    #[test]
    fn long_ones_close_it_once_a_round_trip_and_never_below_one() {
        let mut window = window();
        window.on_ack(Time::ZERO, 16, Time::us(200));
        window.on_ack(Time::ms(30), 1, Time::ms(30));
        let once = window.packets();
        assert_eq!(once, 8);
        window.on_ack(Time::ms(31), 1, Time::ms(30));
        assert_eq!(window.packets(), once);
        for round in 3..20 {
            window.on_ack(Time::ms(30 * round), 1, Time::ms(30));
        }
        assert_eq!(window.packets(), 1);
    }

    #[test]
    fn a_loss_halves_it() {
        let mut window = window();
        window.on_ack(Time::ZERO, 16, Time::us(200));
        assert!(window.on_loss(Time::ms(1), Time::ms(1)));
        assert!(!window.on_loss(Time::us(1500), Time::ms(1)));
        assert_eq!(window.packets(), 8);
    }
}
