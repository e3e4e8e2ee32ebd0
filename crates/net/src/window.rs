//! How much of a flow may be out: as much as keeps a queue of some length before the bottleneck.
//!
//! Packets that queued for less than the target let the window grow, others shrink it, at most once a
//! round trip, and a loss halves it: the shape of Swift (Kumar et al., SIGCOMM 2020), by the delay on
//! the way there only, as LEDBAT (RFC 6817) has it: answers queue behind the data of others, which is
//! not this flow's to mend. It shrinks when the last few were all too long, since a process that
//! waits for a core makes some of them long, and a queue all.  Delay alone leaves a window of one
//! packet; losses may take it below, where very many flows share a link: those send a packet every so
//! many round trips.
//!
//! Base delays between name spaces are some 100 us and the scheduler's some milliseconds; the target
//! is far above both, so that links stay busy while nobody runs.

use weft_units::Time;

/// How windows behave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowConfig {
    /// Packets are to queue for this long.
    pub target: Time,
    /// Never more packets out than this.
    pub most: f64,
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig { target: Time::ms(60), most: 32.0 }
    }
}

/// Delays of which the least counts.
const RECENT: usize = 4;
/// A window below this does not shrink.
const LEAST: f64 = 1.0 / 64.0;
/// What a window below one packet grows by with each answer.
const STEP: f64 = 0.1;

/// The window of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    config: WindowConfig,
    /// In packets.
    size: f64,
    /// No other cut before then.
    calm_until: Time,
    /// The last few delays.
    recent: [Time; RECENT],
    count: usize,
}

impl Window {
    /// Of a flow that begins.
    pub fn new(config: WindowConfig) -> Window {
        Window { config, size: 1.0, calm_until: Time::ZERO, recent: [Time::MAX; RECENT], count: 0 }
    }
    /// Packets that may be out.
    pub fn packets(&self) -> u32 {
        (self.size as u32).max(1)
    }
    /// How long after a packet left the next one may: nothing, from one packet on.
    pub fn gap(&self, rtt: Time) -> Time {
        if self.size >= 1.0 { Time::ZERO } else { Time((rtt.0 as f64 / self.size) as u64) }
    }
    /// So many packets were acknowledged, one of which queued for `queued` and was answered after
    /// `rtt`.
    pub fn on_ack(&mut self, now: Time, packets: u32, queued: Time, rtt: Time) {
        let WindowConfig { target, most } = self.config;
        let packets = f64::from(packets);
        self.recent[self.count % RECENT] = queued;
        self.count += 1;
        if queued.0 < target.0 / 4 {
            self.size += packets * self.size.min(1.0);
        } else if queued < target {
            self.size += if self.size < 1.0 { STEP * self.size } else { packets / self.size };
        } else {
            let least = self.recent.into_iter().min().unwrap_or(queued);
            let over = target.until(least).0 as f64 / least.0 as f64;
            if self.size > 1.0 && least > target && self.cut(now, rtt, 1.0 - over.min(0.5)) {
                self.size = self.size.max(1.0);
            }
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
        self.size = self.size.min(1.0);
    }

    fn cut(&mut self, now: Time, rtt: Time, to: f64) -> bool {
        let is_due = now >= self.calm_until;
        if is_due {
            self.calm_until = now.saturating_add(rtt);
            self.size = (self.size * to).max(LEAST);
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
            window.on_ack(Time::ms(round), window.packets(), Time::us(200), Time::us(200));
        }
        assert_eq!(window.packets(), 32);
    }

    #[test]
    fn long_ones_close_it_once_a_round_trip_and_not_below_a_packet() {
        let (mut window, long) = (window(), Time::ms(120));
        window.on_ack(Time::ZERO, 16, Time::us(200), Time::us(200));
        // One is not enough: the process may have waited for a core.
        for round in 1..RECENT as u64 {
            window.on_ack(Time::ms(120 + round), 1, long, long);
            assert_eq!(window.packets(), 17);
        }
        window.on_ack(Time::ms(240), 1, long, long);
        let once = window.packets();
        assert_eq!(once, 8);
        window.on_ack(Time::ms(241), 1, long, long);
        assert_eq!(window.packets(), once);
        for round in 3..30 {
            window.on_ack(Time::ms(120 * round), 1, long, long);
        }
        assert_eq!((window.packets(), window.gap(long)), (1, Time::ZERO));
    }

    #[test]
    fn losses_take_it_below_a_packet_and_answers_back() {
        let (mut window, rtt) = (window(), Time::ms(1));
        for round in 1..20 {
            assert!(window.on_loss(Time::ms(2 * round), rtt));
        }
        assert_eq!((window.packets(), window.gap(rtt)), (1, Time::ms(64)));
        for round in 0..10 {
            window.on_ack(Time::ms(100 + round), 1, rtt, rtt);
        }
        assert_eq!(window.gap(rtt), Time::ZERO);
    }

    #[test]
    fn a_loss_halves_it() {
        let mut window = window();
        window.on_ack(Time::ZERO, 16, Time::us(200), Time::us(200));
        assert!(window.on_loss(Time::ms(1), Time::ms(1)));
        assert!(!window.on_loss(Time::us(1500), Time::ms(1)));
        assert_eq!(window.packets(), 8);
    }
}
