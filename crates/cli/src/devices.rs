//! `kvrm devices`: the engines on this computer.

use std::io::Write;

use serde::Serialize;

use crate::failure::Result;

/// Options of `kvrm devices`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm devices
  kvrm devices --json

The first engine is the one `--engine auto` takes.")]
pub(crate) struct Devices {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Device {
    engine: &'static str,
    device: String,
    description: &'static str,
}

impl Devices {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let engines = kvrm::engines();
        if self.json {
            let device = |engine: kvrm::EngineInfo| Device {
                engine: engine.name,
                device: engine.device,
                description: engine.description,
            };
            let devices: Vec<_> = engines.into_iter().map(device).collect();
            return crate::write_json(out, &devices);
        }
        let column = |f: fn(&kvrm::EngineInfo) -> usize| engines.iter().map(f).max().unwrap_or(0);
        let (name, device) = (column(|e| e.name.len()), column(|e| e.device.len()));
        for engine in &engines {
            writeln!(
                out,
                "{:name$}  {:device$}  {}",
                engine.name, engine.device, engine.description
            )?;
        }
        Ok(())
    }
}
