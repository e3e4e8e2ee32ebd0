//! What the machine gives and takes: memory, and what it is worth today.

use std::time::Instant;
use weft_units::random::mix64;

/// Most memory that this process ever had, in bytes; zero where the system does not say.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Watches what else the machine does: a disturbed measurement should say so.
pub(crate) struct Watch {
    start: Instant,
    all: u64,
    own: u64,
}

impl Watch {
    pub(crate) fn start() -> Watch {
        Watch { start: Instant::now(), all: busy_ticks(), own: own_ticks() }
    }

    /// How many cores others have used on average since the start, other guests of the same
    /// computer included; zero where the system does not say.
    pub(crate) fn others(&self) -> f64 {
        // Linux counts in hundredths of a second, whatever the kernel's own clock.
        let own = own_ticks() - self.own;
        let ticks = busy_ticks().saturating_sub(self.all).saturating_sub(own);
        ticks as f64 / 100.0 / self.start.elapsed().as_secs_f64()
    }
}

/// Others that use more cores than this disturb.
pub(crate) const QUIET: f64 = 0.05;

/// What a row says of others that were at work; nothing if that is too little to matter.
pub(crate) fn remark_on(others: f64) -> String {
    match others > QUIET {
        true => format!("  (others used {others:.2} cores meanwhile)"),
        false => String::new(),
    }
}

/// Ticks that all cores have worked: user, nice, system, not idle and waiting, interrupts of
/// both kinds, and what other guests stole.
fn busy_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let columns: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
    [0, 1, 2, 5, 6, 7].iter().filter_map(|at| columns.get(*at)).sum()
}

/// Ticks that all threads of this process have worked, user and system.
fn own_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in brackets, may hold blanks.
    let columns = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    columns.skip(11).take(2).flat_map(str::parse::<u64>).sum()
}

/// Nanoseconds for a step of a fixed loop of arithmetic and scattered memory accesses: what
/// this machine is worth today, to compare records of different days. Best of five.
pub(crate) fn calibrate() -> f64 {
    const STEPS: u64 = 4_000_000;
    let mut table = vec![1u64; 1 << 17];
    let mask = table.len() as u64 - 1;
    let mut once = || {
        let start = Instant::now();
        let mut state = 1u64;
        for _ in 0..STEPS {
            let cell = &mut table[(state & mask) as usize];
            *cell = cell.wrapping_add(state);
            state = mix64(state.wrapping_add(*cell));
        }
        std::hint::black_box(state);
        start.elapsed().as_secs_f64() * 1e9 / STEPS as f64
    };
    (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// The middle of some times or ratios, or the mean of the two in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[half - 1] + sorted[half]) / 2.0,
        _ => sorted[half],
    }
}
