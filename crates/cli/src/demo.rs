//! `kvrm demo`: draws the Mandelbrot set, one machine per row.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use kvrm::{Lanes, Machine, Reg, RunReport, Stop};
use serde::Serialize;

use crate::args::{EngineArgs, TimeoutArgs};
use crate::failure::{Failure, Result};
use crate::guests;
use crate::picture::{Picture, Style};
use crate::{files, progress, text};

/// Options of `kvrm demo`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm demo
  kvrm demo --width 3840 --height 2160 --max-iterations 5000 --out large.png

A separate machine computes each row of the picture: a lane that runs guests/src/mandelbrot.c, in 64-bit fixed \
point. The picture goes to the terminal (in colour unless NO_COLOR is set) and to a PNG file.

Exit code: 0 if the picture was drawn, 1 if something failed (such as writing it), 2 if the command line is wrong, 124 if \
the time of --timeout ended first, 130 after Ctrl-C.")]
pub(crate) struct Demo {
    /// Pixels in a row
    #[arg(long, value_name = "N", default_value_t = 1920, value_parser = clap::value_parser!(u16).range(1..=4096))]
    width: u16,

    /// Number of rows, and of lanes
    #[arg(long, value_name = "N", default_value_t = 1080, value_parser = clap::value_parser!(u16).range(1..=4096))]
    height: u16,

    /// Iterations after which a point counts as part of the set
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    max_iterations: u16,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    timeout: TimeoutArgs,

    /// PNG file to write the picture to
    #[arg(long, value_name = "FILE", default_value = "mandelbrot.png", value_parser = png)]
    out: PathBuf,

    /// Do not draw in the terminal
    #[arg(long)]
    no_draw: bool,

    /// Print the summary as JSON, and do not draw in the terminal
    #[arg(long)]
    json: bool,
}

/// The summary.
#[derive(Serialize)]
struct Summary<'a> {
    engine: &'static str,
    width: u16,
    height: u16,
    max_iterations: u16,
    lanes: usize,
    /// Over all pixels.
    iterations: u64,
    instructions: u64,
    seconds: f64,
    instructions_per_second: f64,
    instructions_per_second_per_lane: f64,
    file: &'a std::path::Path,
}

/// Parses the name of a PNG file.
fn png(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    match ending {
        Some(ending) if ending != "png" => {
            Err("the picture is a PNG: let its name end so".to_string())
        }
        _ => Ok(path),
    }
}

/// Addresses of the guest's two buffers.
const COUNTS: u64 = 0x40000;
const SQUARES: u64 = 0x42000;

impl Demo {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let mut machine = self.build()?;
        let (quiet, deadline) = (Duration::from_millis(200), self.timeout.deadline());
        let report = progress::run(&mut machine, u64::MAX, false, quiet, deadline)?;
        if report.cancelled {
            let advice = "there is no picture: allow more time, or fewer pixels and iterations";
            return Err(Failure::ended_early(report.timed_out, advice));
        }
        let iterations = check_lanes(&machine)?;
        let picture = self.picture(&machine)?;
        self.save(&picture)?;
        if self.json {
            let summary = self.summary(&machine, &report, iterations);
            return crate::write_json(out, &summary);
        }
        if !self.no_draw {
            draw(out, &picture)?;
        }
        self.write_summary(out, &machine, &report)
    }

    fn build(&self) -> Result<Machine> {
        let builder = self.engine.builder().lanes(self.height.into());
        let mut machine = progress::build(builder.memory(guests::MEMORY))?;
        machine.load(guests::BASE, guests::MANDELBROT)?;
        machine.set_entry(guests::BASE)?;
        let (re, im, step) = self.view();
        let (width, height, limit) = (self.width, self.height, self.max_iterations);
        let arguments = [width.into(), height.into(), limit.into(), re, im, step];
        for (number, value) in (1..).zip(arguments) {
            machine.set_register(Lanes::All, Reg::X(number), value)?;
        }
        for lane in 0..machine.lanes() {
            machine.set_register(lane, Reg::X(0), lane as u64)?;
        }
        Ok(machine)
    }

    /// Returns centre and pixel distance, in the guest's fixed point, so that the whole set is in view.
    fn view(&self) -> (u64, u64, u64) {
        const ONE: f64 = (1u64 << 60) as f64;
        let step = (3.1 / f64::from(self.width)).max(2.4 / f64::from(self.height));
        // The guest's numbers reach from -4 to 4; of a very long picture, the ends of the set are missing.
        let widest = (6.5 / f64::from(self.width)).min(7.9 / f64::from(self.height));
        let fixed = |number: f64| ((number * ONE) as i64).cast_unsigned();
        (fixed(-0.7), 0, fixed(step.min(widest)))
    }

    fn picture(&self, machine: &Machine) -> Result<Picture> {
        let width = usize::from(self.width);
        let mut picture = Picture::new(width);
        for lane in 0..machine.lanes() {
            let counts = read_row(machine, lane, COUNTS, width)?;
            let squares = read_row(machine, lane, SQUARES, width)?;
            picture.push_row(&counts, &squares, self.max_iterations);
        }
        Ok(picture)
    }

    fn save(&self, picture: &Picture) -> Result<()> {
        files::write(&self.out, |out| Ok(picture.write_png(out)?))
    }

    fn summary(&self, machine: &Machine, report: &RunReport, iterations: u64) -> Summary<'_> {
        Summary {
            engine: machine.engine(),
            width: self.width,
            height: self.height,
            max_iterations: self.max_iterations,
            lanes: machine.lanes(),
            iterations,
            instructions: report.cycles,
            seconds: report.elapsed.as_secs_f64(),
            instructions_per_second: report.ips(),
            instructions_per_second_per_lane: report.ips() / machine.lanes() as f64,
            file: &self.out,
        }
    }

    fn write_summary(
        &self,
        out: &mut impl Write,
        machine: &Machine,
        report: &RunReport,
    ) -> Result<()> {
        let lanes = machine.lanes();
        writeln!(
            out,
            "{} x {} pixels, written to {}",
            self.width,
            self.height,
            self.out.display()
        )?;
        writeln!(
            out,
            "{} on {}: {} in {}, {}/s ({}/s per lane)",
            text::lanes(lanes),
            machine.engine(),
            text::instructions(report.cycles),
            text::seconds(report.elapsed),
            text::short(report.ips()),
            text::short(report.ips() / lanes as f64),
        )?;
        Ok(())
    }
}

/// Checks that every lane has halted; returns the total number of iterations.
fn check_lanes(machine: &Machine) -> Result<u64> {
    let mut iterations = 0;
    for lane in 0..machine.lanes() {
        match machine.stop(lane)? {
            Some(Stop::Halt { .. }) => iterations += machine.register(lane, Reg::X(0))?,
            stop => {
                let stop = stop.map_or("nothing".to_string(), |stop| stop.to_string());
                let message = format!("lane {lane} ended with {stop} instead of HALT");
                return Err(Failure::Host(message));
            }
        }
    }
    Ok(iterations)
}

fn read_row(machine: &Machine, lane: usize, address: u64, width: usize) -> Result<Vec<u16>> {
    let mut bytes = vec![0; 2 * width];
    machine.read_memory(lane, address, &mut bytes)?;
    let (pairs, _) = bytes.as_chunks();
    Ok(pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
}

/// Draws in the style that suits standard output.
fn draw(out: &mut impl Write, picture: &Picture) -> Result<()> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let terminal = std::io::stdout().is_terminal();
    let style = match terminal && !dumb && !set("NO_COLOR") {
        true => Style::Colour,
        false => Style::Plain,
    };
    let size = terminal_size::terminal_size().filter(|_| terminal);
    let (columns, lines) = size.map_or((80, 40), |(w, h)| (w.0.into(), h.0.into()));
    // Room for the summary and the prompt.
    picture.draw(out, style, columns, usize::max(lines, 10) - 4)
}
