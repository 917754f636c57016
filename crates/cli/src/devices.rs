//! `kvrm devices`: the engines on this computer, and how many lanes its GPUs have room for.

use std::io::Write;

use kvrm::{DeviceInfo, EngineInfo};
use serde::Serialize;

use crate::failure::Result;
use crate::{args, text};

/// Options of `kvrm devices`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kvrm devices
  kvrm devices --memory 16M --written 256K
  kvrm devices --json

`--device` takes the number of one of the engine's GPUs. For each GPU of `cuda` this tells how many lanes with private memory it has \
room for: memory starts out the same for all lanes, and each pays for the pages it writes. One number is \
for lanes that write all of their memory, the other for lanes that write as much as --written says.

`--engine auto` takes the first GPU of `cuda` if there are at least 512 lanes for each host thread and it has room \
for them, else the CPU.")]
pub(crate) struct Devices {
    /// Memory of each lane (K, M, G and T are powers of 1024); the default is that of `kvrm exec`
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = args::size)]
    memory: u64,

    /// How much of its memory a lane writes; the default is a stack and some data
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = args::size)]
    written: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Device {
    engine: &'static str,
    device: String,
    description: &'static str,
    gpu: Option<Gpu>,
}

#[derive(Serialize)]
struct Gpu {
    /// What `--device` takes.
    number: usize,
    name: String,
    memory: u64,
    free_memory: Option<u64>,
    compute_capability: String,
    driver_cuda: String,
    room: Option<Room>,
}

/// Lanes with private memory that fit.
#[derive(Serialize)]
struct Room {
    lane_memory: u64,
    lane_written: u64,
    lanes_that_write_all: u64,
    lanes_that_write_some: u64,
}

/// What engines need that are not on every computer.
const MISSING: [(&str, &str); 2] = [
    ("cuda", "needs an NVIDIA GPU with its driver"),
    ("wgpu", "needs a GPU with a driver for Vulkan, Metal or DX12"),
];

impl Devices {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let engines = kvrm::engines();
        match self.json {
            true => crate::write_json(out, &self.entries(engines)),
            false => self.write_human(out, &engines),
        }
    }

    fn room(&self, gpu: &DeviceInfo) -> Option<Room> {
        let lanes = |written| Some(kvrm::lanes_that_fit(gpu.free?, self.memory, written));
        Some(Room {
            lane_memory: self.memory,
            lane_written: self.written,
            lanes_that_write_all: lanes(self.memory)?,
            lanes_that_write_some: lanes(self.written)?,
        })
    }

    fn entries(&self, engines: Vec<EngineInfo>) -> Vec<Device> {
        let gpu = |gpu: DeviceInfo| Gpu {
            number: gpu.index,
            memory: gpu.memory,
            free_memory: gpu.free,
            compute_capability: version(gpu.capability),
            driver_cuda: version(gpu.driver),
            room: self.room(&gpu),
            name: gpu.name,
        };
        let device = |engine: EngineInfo| Device {
            engine: engine.name,
            device: engine.device,
            description: engine.description,
            gpu: engine.gpu.map(gpu),
        };
        engines.into_iter().map(device).collect()
    }

    fn write_human(&self, out: &mut impl Write, engines: &[EngineInfo]) -> Result<()> {
        let column = |f: fn(&EngineInfo) -> usize| engines.iter().map(f).max().unwrap_or(0);
        let (name, device) = (column(|e| e.name.len()), column(|e| e.device.len()));
        for engine in engines {
            writeln!(
                out,
                "{:name$}  {:device$}  {}",
                engine.name, engine.device, engine.description
            )?;
            for line in engine.gpu.iter().flat_map(|gpu| self.details(gpu)) {
                writeln!(out, "{:name$}  {line}", "")?;
            }
        }
        for (missing, needs) in MISSING {
            if engines.iter().all(|engine| engine.name != missing) {
                writeln!(out, "{missing:name$}  none here: {needs}")?;
            }
        }
        Ok(())
    }

    /// What there is to say of a GPU, in lines.
    fn details(&self, gpu: &DeviceInfo) -> Vec<String> {
        let free = gpu.free.map_or("unknown".to_string(), text::bytes);
        let hardware = format!(
            "memory {}, free {free}; compute capability {}; driver for CUDA {}",
            text::bytes(gpu.memory),
            version(gpu.capability),
            version(gpu.driver)
        );
        let room = self.room(gpu).map(|room| {
            format!(
                "room for {} of {} that write all of it, or {} that write {} each",
                text::lanes(room.lanes_that_write_all as usize),
                text::bytes(room.lane_memory),
                text::thousands(room.lanes_that_write_some),
                text::bytes(room.lane_written)
            )
        });
        [hardware].into_iter().chain(room).collect()
    }
}

fn version((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engines() -> Vec<EngineInfo> {
        let gpu = |index, free| DeviceInfo {
            index,
            name: "Some GPU".to_string(),
            memory: 24 << 30,
            free,
            capability: (8, 6),
            driver: (12, 4),
        };
        let engine = |gpu: DeviceInfo| EngineInfo {
            name: "cuda",
            description: "interprets",
            device: format!("{} (device {})", gpu.name, gpu.index),
            gpu: Some(gpu),
        };
        vec![engine(gpu(0, Some(23 << 30))), engine(gpu(1, None))]
    }

    const DEVICES: Devices = Devices { memory: 4 << 20, written: 64 << 10, json: false };

    #[test]
    fn every_gpu_is_described() {
        let mut text = Vec::new();
        DEVICES.write_human(&mut text, &engines()).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let capability = "compute capability 8.6; driver for CUDA 12.4";
        assert_eq!(lines[0], "cuda  Some GPU (device 0)  interprets");
        assert_eq!(lines[1], format!("      memory 24 GiB, free 23 GiB; {capability}"));
        assert!(
            lines[2].starts_with("      room for ") && lines[2].ends_with(" write 64 KiB each")
        );
        assert_eq!(lines[3], "cuda  Some GPU (device 1)  interprets");
        assert_eq!(lines[4], format!("      memory 24 GiB, free unknown; {capability}"));
        let wgpu = "wgpu  none here: needs a GPU with a driver for Vulkan, Metal or DX12";
        assert_eq!((lines[5], lines.len()), (wgpu, 6));
    }

    #[test]
    fn programs_learn_the_same() {
        let json = serde_json::to_value(DEVICES.entries(engines())).unwrap();
        let gpu = &json[0]["gpu"];
        assert_eq!((&gpu["number"], &gpu["free_memory"]), (&0.into(), &(23u64 << 30).into()));
        assert_eq!(gpu["compute_capability"], "8.6");
        let lanes = |key| gpu["room"][key].as_u64().unwrap();
        assert!(lanes("lanes_that_write_some") > 50 * lanes("lanes_that_write_all"));
        assert!(json[1]["gpu"]["room"].is_null());
    }
}
