//! `cargo xtask gpu-report`: writes the measurements on a GPU as a section of the page of benchmarks.

use std::fs;
use std::path::PathBuf;

use crate::bench::page_path;
use crate::gpu_results::{Figures, Memory, Reset, Results, Start, Step, billions};
use crate::plot::{self, Line};
use crate::shell::{Outcome, root};
use crate::text::{Section, bytes, thousands};
use crate::tools::cannot;

/// Its place in docs/BENCHMARKS.md.
pub(crate) const SECTION: Section = Section {
    start: "<!-- Written by `cargo xtask gpu-report`. -->",
    end: "<!-- End of what gpu-report writes. -->",
};
/// The plot, next to the page.
const PLOT: &str = "cuda-lanes.svg";

/// Options of `cargo xtask gpu-report`.
pub(crate) struct Options {
    check: bool,
    folders: Vec<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let (options, folders): (Vec<_>, Vec<_>) =
            arguments.iter().partition(|argument| argument.starts_with("--"));
        if let Some(option) = options.iter().find(|option| **option != "--check") {
            return Err(format!("unexpected {option}"));
        }
        if folders.is_empty() {
            return Err("gpu-report needs a folder with a results.json".to_string());
        }
        let folders = folders.into_iter().map(PathBuf::from).collect();
        Ok(Options { check: !options.is_empty(), folders })
    }

    pub(crate) fn run(&self) -> Outcome {
        let results = Results::read(&self.folders)?;
        match self.check {
            true => results.check(),
            false => write(&results),
        }
    }
}

fn write(results: &Results) -> Outcome {
    if results.guests("cuda").is_empty() {
        return Err("no results of the step `bench` are there to write about".to_string());
    }
    let (page, picture) = (page_path(), root().join("docs").join(PLOT));
    fs::write(&picture, plot(results)).map_err(|error| cannot("write", &picture, &error))?;
    let text = fs::read_to_string(&page).map_err(|error| cannot("read", &page, &error))?;
    let text = with_section(&text, &section(results));
    fs::write(&page, text).map_err(|error| cannot("write", &page, &error))?;
    println!("written: docs/{PLOT} and its section of docs/BENCHMARKS.md");
    Ok(())
}

/// Returns the page with this section in place of the old one, or at the end.
fn with_section(page: &str, section: &str) -> String {
    let replaced = SECTION.replace(page, section);
    replaced.unwrap_or_else(|| format!("{page}\n{}\n", SECTION.around(section)))
}

/// Plots instructions per second over lanes.
fn plot(results: &Results) -> String {
    let line = |guest: &str| {
        let point = |lanes| Some((lanes as f64, results.speed("cuda", guest, lanes)?));
        Line {
            name: guest.to_string(),
            points: results.lanes("cuda").into_iter().filter_map(point).collect(),
        }
    };
    let lines: Vec<_> = results.guests("cuda").into_iter().map(line).collect();
    plot::log_log("lanes", "guest instructions per second", &lines)
}

fn section(results: &Results) -> String {
    let Results { date, version, cpu, cores, .. } = results;
    format!(
        "\
## On a GPU

`cargo xtask gpu-report` writes this section from the measurements of `cargo xtask gpu-check`.

| | |
|---|---|
| date | {date} |
{gpus}| processor | {cpu}, {cores} cores |
| kvrm | {version} |

![Guest instructions per second over the number of lanes, a line for each program]({PLOT})

Billions of guest instructions per second, summed over all lanes. Every lane has its own input and a private memory of
1 MiB (`kvrm bench --engine cuda --lanes N`):

{lanes}
{wgpu}The GPU compared with the processor: one process of `qemu-aarch64` per core, all running the same program, and the
`cpu` engine with one lane per core. The number of lanes is the one with which the GPU is fastest.

{peers}
{figures}{starts}{steps}",
        gpus = gpus(results),
        lanes = lanes_table(results),
        wgpu = wgpu_part(results),
        peers = peers_table(results),
        figures = results.figures.iter().map(Figures::list).collect::<String>(),
        starts = starts_part(results),
        steps = steps_part(results),
    )
}

/// Returns rows with the GPU, as each engine sees it.
fn gpus(results: &Results) -> String {
    let cuda = row(["GPU".to_string(), results.gpu("cuda").unwrap_or("unknown".to_string())]);
    let wgpu = results.gpu("wgpu").map(|device| row(["with `wgpu`".into(), device]));
    cuda + &wgpu.unwrap_or_default()
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", cells.into_iter().collect::<Vec<_>>().join(" | "))
}

/// Formats a number, or a dash if there is none.
fn cell(number: Option<f64>, text: impl Fn(f64) -> String) -> String {
    number.map_or("–".to_string(), text)
}

fn lanes_table(results: &Results) -> String {
    speeds_table(results, "cuda", |guest, lanes| {
        cell(results.speed("cuda", guest, lanes), billions)
    })
}

/// Returns a table with a row for each guest and a column for each number of lanes.
fn speeds_table(results: &Results, engine: &str, cell: impl Fn(&str, u64) -> String) -> String {
    let lanes = results.lanes(engine);
    let numbers = lanes.iter().map(|lanes| thousands(*lanes));
    let mut table = row(std::iter::once("program, lanes:".to_string()).chain(numbers));
    table += &format!("|---|{}\n", "---:|".repeat(lanes.len()));
    for guest in results.guests(engine) {
        let cells = lanes.iter().map(|lanes| cell(guest, *lanes));
        table += &row(std::iter::once(format!("`{guest}`")).chain(cells));
    }
    table
}

/// Returns the part about the engine `wgpu`, if it was measured.
fn wgpu_part(results: &Results) -> String {
    if results.lanes("wgpu").is_empty() {
        return String::new();
    }
    let table = speeds_table(results, "wgpu", |guest, lanes| {
        let speed = cell(results.speed("wgpu", guest, lanes), billions);
        let share = results.share(guest, lanes).map(|share| format!(" ({share:.2})"));
        speed + &share.unwrap_or_default()
    });
    format!(
        "The same on the engine `wgpu`, through Vulkan; in brackets, its speed divided by that of `cuda`\n\
         (`kvrm bench --engine wgpu --lanes N`):\n\n{table}\n"
    )
}

fn peers_table(results: &Results) -> String {
    let mut table = "\
| program | memory | lanes | G/s | QEMU, G/s | times as fast | `cpu` engine, G/s | times as fast |
|---|---|---:|---:|---:|---:|---:|---:|
"
    .to_string();
    for guest in results.guests("cuda") {
        let qemu = results.qemu(guest);
        let cpu = results.best("cpu", "private", guest).map(|speed| speed.instructions_per_second);
        for memory in ["private", "shared"] {
            let Some(gpu) = results.best("cuda", memory, guest) else { continue };
            let speed = gpu.instructions_per_second;
            let ratio = |peer: Option<f64>| cell(peer, |peer| format!("{:.1}", speed / peer));
            table += &row([
                format!("`{guest}`"),
                memory.to_string(),
                thousands(gpu.lanes),
                billions(speed),
                cell(qemu, billions),
                ratio(qemu),
                cell(cpu, billions),
                ratio(cpu),
            ]);
        }
    }
    table
}

/// Returns the part about times to the first instruction.
fn starts_part(results: &Results) -> String {
    let Some(starts) = &results.start else { return String::new() };
    let rows: String = starts.starts.iter().map(Start::row).collect();
    format!(
        "
### Starting

`kvrm bench --engine cuda --only start` ([CUDA.md](CUDA.md#starting) explains the columns):

| program | handlers | cache | driver's initialisation | machine | kernel | first instruction |
|---|---:|---|---:|---:|---:|---:|
{rows}"
    )
}

impl Start {
    fn row(&self) -> String {
        row([
            format!("`{}`", self.program),
            self.handlers().to_string(),
            self.cache.clone().unwrap_or("–".to_string()),
            seconds(self.driver()),
            seconds(self.timing.machine_seconds),
            seconds(self.kernels()),
            seconds(self.timing.run_seconds),
        ])
    }
}

/// Formats milliseconds, or seconds if there is at least one.
fn seconds(seconds: f64) -> String {
    match seconds {
        1.0.. => format!("{seconds:.2} s"),
        0.1.. => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{:.1} ms", seconds * 1e3),
    }
}

/// Returns the part about the steps of the script.
fn steps_part(results: &Results) -> String {
    let rows: String = results.steps.iter().map(Step::row).collect();
    format!(
        "
### What was run

The steps of `cargo xtask gpu-check` ([CUDA.md](CUDA.md#what-was-run-where) explains them):

| step | | seconds | with | |
|---|---|---:|---|---|
{rows}"
    )
}

impl Step {
    fn row(&self) -> String {
        let Step { name, outcome, seconds, note, version } = self;
        let seconds = format!("{seconds:.1}");
        row([format!("`{name}`"), outcome.clone(), seconds, version.clone(), note.clone()])
    }
}

impl Figures {
    /// Returns the figures as items of a list.
    fn list(&self) -> String {
        let mut list = self.memory.item();
        self.resets.iter().for_each(|reset| list += &reset.item());
        list += &format!(
            "- Cancelling: {} lanes of an endless loop end within {:.1} ms.\n",
            thousands(self.cancel.lanes),
            self.cancel.milliseconds
        );
        if let Some(full) = &self.full {
            list += &format!(
                "- {} lanes that write {} each, more than the GPU holds: {} come to their end, {} stop with \
                 OUT_OF_MEMORY.\n",
                thousands(full.lanes),
                bytes(full.written_bytes_per_lane),
                thousands(full.halted),
                thousands(full.out_of_memory)
            );
        }
        list
    }
}

impl Memory {
    fn item(&self) -> String {
        let Some(used) = self.used_bytes else { return String::new() };
        format!(
            "- Memory: {} lanes with an image of {}, each of which has written {}, take {} of the GPU's memory.\n",
            thousands(self.lanes),
            bytes(self.image_bytes),
            bytes(self.written_bytes_per_lane),
            bytes(used)
        )
    }
}

impl Reset {
    fn item(&self) -> String {
        format!(
            "- Resetting {} lanes that have written {} each takes {:.2} µs per lane, or {:.2} µs if a register \
             of each is set,\n  too.\n",
            thousands(self.lanes),
            bytes(self.written_bytes_per_lane),
            self.reset_us,
            self.reset_and_set_us
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu_results::tests::example;

    #[test]
    fn the_section_has_all_that_was_measured() {
        let section = section(&example());
        for line in [
            "| GPU | Some GPU |",
            "| program, lanes: | 1 | 1,024 |",
            "| `loop` | 0.0070 | 8.00 |",
            "| with `wgpu` | Some GPU, Vulkan |",
            "| program, lanes: | 1 | 1,024 | 131,072 |",
            "| `loop` | 0.0042 (0.60) | 6.00 (0.75) | – |",
            "| `loop_store` | – | – | 75.0 |",
            "| `loop` | 9 | warm | 250 ms | 15.6 ms | 7.8 ms | 7.8 ms |",
            "| `suite` | passed | 1.5 |  | 7 passed |",
            "| `sort` | 0.0020 | – |",
            "| `loop` | private | 1,024 | 8.00 | 1.00 | 8.0 | 2.00 | 4.0 |",
            "| `loop` | shared | 1,024 | 6.00 | 1.00 | 6.0 | 2.00 | 3.0 |",
            "| `sort` | private | 1 | 0.0020 | – | – | – | – |",
            "- Memory: 65,536 lanes with an image of 16 MiB, each of which has written 256 KiB, take 17 GiB \
             of the GPU's memory.",
            "- Cancelling: 270,336 lanes of an endless loop end within 12.5 ms.",
        ] {
            assert!(section.lines().any(|found| found == line), "{line}\n{section}");
        }
    }

    #[test]
    fn the_section_comes_last_and_is_replaced() {
        let page = with_section("# Page\n", "one\n");
        assert!(page.starts_with("# Page\n\n<!-- Written by"));
        assert_eq!(with_section(&page, "two\n"), page.replace("one", "two"));
    }

    #[test]
    fn the_plot_has_a_line_for_each_guest() {
        assert_eq!(plot(&example()).matches("<polyline ").count(), 2);
    }

    #[test]
    fn options() {
        let parse = |text: &str| {
            Options::parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>())
        };
        assert!(parse("a b").is_ok_and(|options| !options.check && options.folders.len() == 2));
        assert!(parse("--check a").is_ok_and(|options| options.check));
        assert!(parse("").is_err() && parse("--what a").is_err());
    }
}
