//! The speed benchmark: packet-hops per second of the simulation loop, on one core and on two.
//!
//! `weft-bench [--seconds S] [--scaling | --threads] [NAME...]` runs every case (or those named) in a
//! process of its own, so that peak memory is the case's, and prints a table and, last, one
//! line of JSON: the record. A case repeats until it has run for S seconds (3 by default), at
//! least twice, and counts its median. Then come the usual cases on two cores ([`scaling`]), and what
//! more cores would gain ([`threads`]). With `--scaling` or `--threads` only these come, or those named;
//! with names alone they are left out.

mod cases;
mod json;
mod machine;
mod scaling;
mod speed;
mod stage;
mod threads;
mod traffic;

use cases::{CASES, Case};
use machine::{calibrate, median};
use scaling::Scaling;
use speed::Speed;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match Options::read(std::env::args().skip(1)).and_then(|options| options.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// What is measured of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Speed,
    Scaling,
    Threads,
}

struct Options {
    seconds: f64,
    /// The one part that is asked for.
    only: Option<Part>,
    /// Measure here, in this process, and print a row and a line of JSON for each case.
    child: bool,
    /// Empty: the usual ones.
    names: Vec<String>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { seconds: 3.0, only: None, child: false, names: Vec::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    let number = arguments.next().and_then(|text| text.parse().ok());
                    options.seconds = number.ok_or("--seconds needs a number")?;
                }
                "--scaling" => options.only = Some(Part::Scaling),
                "--threads" => options.only = Some(Part::Threads),
                "--child" => options.child = true,
                name if CASES.iter().any(|case| case.name == name) => options.names.push(argument),
                other => return Err(format!("no case is called {other:?}: {}", list())),
            }
        }
        Ok(options)
    }

    fn run(&self) -> Result<(), String> {
        if self.child {
            let part = self.only.unwrap_or(Part::Speed);
            self.cases(part).for_each(|case| self.measure(part, case));
            return Ok(());
        }
        let mut calibrations = vec![calibrate()];
        let mut run = |part| match self.has(part) {
            true => self.run_part(part, &mut calibrations),
            false => Ok(Vec::new()),
        };
        let (speed, scaling) = (run(Part::Speed)?, run(Part::Scaling)?);
        let threads = run(Part::Threads)?;
        let record = json::object(&[
            ("calibration_ns", format!("{:.3}", median(calibrations))),
            ("cases", json::list(&speed)),
            ("scaling", json::list(&scaling)),
            ("threads", json::list(&threads)),
        ]);
        println!("{record}");
        Ok(())
    }

    /// Whether a part is asked for: of named cases the first alone.
    fn has(&self, part: Part) -> bool {
        match self.only {
            Some(only) => part == only,
            None => part == Part::Speed || self.names.is_empty(),
        }
    }

    fn cases(&self, part: Part) -> impl Iterator<Item = &'static Case> {
        CASES.iter().filter(move |case| match self.names.is_empty() {
            true => part == Part::Speed || case.scaling,
            false => self.names.iter().any(|name| name == case.name),
        })
    }

    fn measure(&self, part: Part, case: &'static Case) {
        let (row, json) = match part {
            Part::Speed => {
                let speed = Speed::measure(case, self.seconds);
                (speed.row(), speed.json())
            }
            Part::Scaling => {
                let scaling = Scaling::measure(case, self.seconds);
                (scaling.row(), scaling.json())
            }
            Part::Threads => {
                let plan = threads::Plan::measure(case);
                (plan.row(), plan.json())
            }
        };
        println!("{row}\n{json}");
    }

    /// Prints the table of a part, row by row; returns the cases' JSON. Calibrates after each
    /// case, since the machine may change meanwhile.
    fn run_part(&self, part: Part, calibrations: &mut Vec<f64>) -> Result<Vec<String>, String> {
        match part {
            Part::Speed => println!("{}", speed::heading()),
            Part::Scaling => println!("{}", scaling::heading()),
            Part::Threads => println!("{}", threads::heading()),
        }
        let run = |case| {
            let (row, json) = self.run_child(part, case)?;
            println!("{row}");
            calibrations.push(calibrate());
            Ok(json)
        };
        self.cases(part).map(run).collect()
    }

    /// Measures a case in a child process: its row and its JSON.
    fn run_child(&self, part: Part, case: &Case) -> Result<(String, String), String> {
        let own = std::env::current_exe().map_err(|why| why.to_string())?;
        let mut command = Command::new(own);
        command.args(["--child", "--seconds", &self.seconds.to_string(), case.name]);
        match part {
            Part::Speed => {}
            Part::Scaling => _ = command.arg("--scaling"),
            Part::Threads => _ = command.arg("--threads"),
        }
        let output = command.output().map_err(|why| why.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.split_once('\n') {
            Some((row, json)) if output.status.success() => {
                Ok((row.to_owned(), json.trim().to_owned()))
            }
            _ => Err(format!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr))),
        }
    }
}

fn list() -> String {
    CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ")
}
