//! The speed benchmark: packet-hops per second of the simulation loop, on one core.
//!
//! `weft-bench [--seconds S] [NAME...]` runs every case (or those named) in a process of its
//! own, so that peak memory is the case's, and prints a table and, last, one line of JSON: the
//! record. A case repeats until it has run for S seconds (3 by default) and counts its median.

mod cases;

use cases::{CASES, Case};
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weft_sim::Simulation;
use weft_units::random::mix64;

fn main() -> ExitCode {
    let mut seconds = 3.0;
    let mut child = false;
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => match arguments.next().and_then(|text| text.parse().ok()) {
                Some(number) => seconds = number,
                None => return fail("--seconds needs a number"),
            },
            "--child" => child = true,
            name if CASES.iter().any(|case| case.name == name) => names.push(name.to_owned()),
            other => return fail(&format!("no case is called {other:?}: {}", list())),
        }
    }
    let chosen = CASES.iter().filter(|c| names.is_empty() || names.iter().any(|n| n == c.name));
    if child {
        chosen.for_each(|case| println!("{}", measure(case, seconds).to_json()));
        return ExitCode::SUCCESS;
    }
    match run_all(chosen, seconds) {
        Ok(record) => {
            println!("{record}");
            ExitCode::SUCCESS
        }
        Err(why) => fail(&why),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}

fn list() -> String {
    CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ")
}

/// Runs each case in a child process; returns the record.
fn run_all<'a>(cases: impl Iterator<Item = &'a Case>, seconds: f64) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|why| why.to_string())?;
    println!(
        "{:<26} {:>9} {:>8} {:>9} {:>10}",
        "case", "M hops/s", "ns/hop", "hops (M)", "peak MB"
    );
    let mut lines = Vec::new();
    for case in cases {
        let output = Command::new(&own)
            .args(["--child", "--seconds", &seconds.to_string(), case.name])
            .output()
            .map_err(|why| why.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() {
            return Err(format!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr)));
        }
        print_row(case, &text);
        lines.push(text);
    }
    Ok(format!("{{\"calibration_ns\": {:.3}, \"cases\": [{}]}}", calibrate(), lines.join(", ")))
}

fn print_row(case: &Case, json: &str) {
    let field = |name: &str| -> f64 {
        let start = json.find(&format!("\"{name}\": ")).map_or(0, |at| at + name.len() + 4);
        let rest = &json[start..];
        rest[..rest.find([',', '}']).unwrap_or(rest.len())].parse().unwrap_or(f64::NAN)
    };
    let rate = field("hops_per_s");
    println!(
        "{:<26} {:>9.2} {:>8.1} {:>9.2} {:>10.1}   {}",
        case.name,
        rate / 1e6,
        1e9 / rate,
        field("packet_hops") / 1e6,
        field("peak_bytes") / 1e6,
        case.about,
    );
}

/// What a case gave.
struct Measurement {
    name: &'static str,
    packet_hops: u64,
    least_hops: u64,
    drops: u64,
    retransmits: u64,
    events: u64,
    cct_ps: u64,
    /// Seconds of the simulation loop, one for each repetition, in order.
    loop_s: Vec<f64>,
    build_s: f64,
    peak_bytes: u64,
}

impl Measurement {
    fn to_json(&self) -> String {
        let mut sorted = self.loop_s.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        let raw: Vec<_> = self.loop_s.iter().map(|s| format!("{s:.6}")).collect();
        format!(
            "{{\"name\": \"{}\", \"hops_per_s\": {:.0}, \"packet_hops\": {}, \"least_hops\": {}, \
             \"drops\": {}, \"retransmits\": {}, \"events\": {}, \"cct_ps\": {}, \
             \"build_s\": {:.6}, \"peak_bytes\": {}, \"loop_s\": [{}]}}",
            self.name,
            self.packet_hops as f64 / median,
            self.packet_hops,
            self.least_hops,
            self.drops,
            self.retransmits,
            self.events,
            self.cct_ps,
            self.build_s,
            self.peak_bytes,
            raw.join(", ")
        )
    }
}

fn measure(case: &Case, seconds: f64) -> Measurement {
    let build = Instant::now();
    let stage = case.stage();
    let build_s = build.elapsed().as_secs_f64();
    let config = case.config(&stage);
    let mut loop_s = Vec::new();
    let outcome = loop {
        let simulation = Simulation::new(&config);
        let start = Instant::now();
        let outcome = simulation.run(&AtomicBool::new(false)).expect("the cases finish");
        loop_s.push(start.elapsed().as_secs_f64());
        if loop_s.iter().sum::<f64>() >= seconds {
            break outcome;
        }
    };
    let least_hops = case.least_hops(&stage);
    let totals = outcome.totals;
    assert!(
        totals.packet_hops >= least_hops
            && (totals.packet_hops == least_hops || totals.retransmits > 0),
        "{} packet-hops, but pencil and paper say {least_hops}",
        totals.packet_hops
    );
    Measurement {
        name: case.name,
        packet_hops: totals.packet_hops,
        least_hops,
        drops: totals.drops,
        retransmits: totals.retransmits,
        events: totals.events,
        cct_ps: totals.cct.0,
        loop_s,
        build_s,
        peak_bytes: peak_memory(),
    }
}

/// Most memory that this process ever had, in bytes; zero where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Nanoseconds for a step of a fixed loop of arithmetic and scattered memory accesses: what
/// this machine is worth today, to compare records of different days. Best of five.
fn calibrate() -> f64 {
    const STEPS: u64 = 20_000_000;
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
