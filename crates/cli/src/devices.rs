//! `kvrm devices`: lists the engines on this computer and how many lanes fit its GPUs.

use std::io::Write;

use kvrm::{Device, EngineKind};
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

`--device` takes the number of one of the engine's GPUs. For each GPU of `cuda`, this shows how many lanes with private \
memory fit: all lanes start with the same memory, and each needs room for the pages it writes. One number is \
for lanes that write all of their memory, the other for lanes that write as much as --written says.

`--engine auto` takes the first GPU of `cuda` if there are at least 512 lanes per host thread and they fit, else the \
CPU.")]
pub(crate) struct Devices {
    /// Memory of each lane, written as for `kvrm exec`, whose default this is
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = args::memory)]
    memory: u64,

    /// How much of its memory a lane writes; the default is a stack and some data
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = args::size)]
    written: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    engine: &'static str,
    /// The number for `--device`.
    number: usize,
    name: String,
    driver: Option<String>,
    memory: Option<u64>,
    free_memory: Option<u64>,
    compute_capability: Option<String>,
    usable: bool,
    why_not: Option<String>,
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

/// Requirements of the engines that are not available everywhere.
const MISSING: [(EngineKind, &str); 2] = [
    (EngineKind::Cuda, "needs an NVIDIA GPU with its driver"),
    (EngineKind::Wgpu, "needs a GPU with a driver for Vulkan, Metal or DX12"),
];

impl Devices {
    pub(crate) fn run(&self, out: &mut impl Write) -> Result<()> {
        let devices = kvrm::devices();
        match self.json {
            true => crate::write_json(out, &self.entries(devices)),
            false => self.write_human(out, &devices),
        }
    }

    fn room(&self, device: &Device) -> Option<Room> {
        let free = device.free_memory?;
        let lanes = |written| kvrm::lanes_that_fit(free, self.memory, written);
        Some(Room {
            lane_memory: self.memory,
            lane_written: self.written,
            lanes_that_write_all: lanes(self.memory),
            lanes_that_write_some: lanes(self.written),
        })
    }

    fn entries(&self, devices: Vec<Device>) -> Vec<Entry> {
        let entry = |device: Device| Entry {
            engine: device.engine.name(),
            number: device.index,
            room: self.room(&device),
            name: device.name,
            driver: device.driver,
            memory: device.memory,
            free_memory: device.free_memory,
            compute_capability: device.compute_capability.map(version),
            usable: device.why_not.is_none(),
            why_not: device.why_not,
        };
        devices.into_iter().map(entry).collect()
    }

    fn write_human(&self, out: &mut impl Write, devices: &[Device]) -> Result<()> {
        let names: Vec<String> = devices.iter().map(name).collect();
        let engine = devices.iter().map(|device| device.engine.name().len()).max().unwrap_or(0);
        let width = names.iter().map(String::len).max().unwrap_or(0);
        for (device, name) in devices.iter().zip(&names) {
            let what = device.why_not.as_deref().unwrap_or(how(device.engine));
            writeln!(out, "{:engine$}  {name:width$}  {what}", device.engine.name())?;
            for line in self.details(device) {
                writeln!(out, "{:engine$}  {line}", "")?;
            }
        }
        for (missing, needs) in MISSING {
            if devices.iter().all(|device| device.engine != missing) {
                writeln!(out, "{:engine$}  none here: {needs}", missing.name())?;
            }
        }
        Ok(())
    }

    /// Describes a GPU, line by line.
    fn details(&self, device: &Device) -> Vec<String> {
        let parts = [
            device.memory.map(|bytes| format!("memory {}", text::bytes(bytes))),
            device.free_memory.map(|bytes| format!("free {}", text::bytes(bytes))),
            device.compute_capability.map(|pair| format!("compute capability {}", version(pair))),
            device.driver.as_ref().map(|driver| format!("driver {driver}")),
        ];
        let hardware = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let room = self.room(device).map(|room| {
            format!(
                "room for {} of {} that write all of it, or {} that write {} each",
                text::lanes(room.lanes_that_write_all as usize),
                text::bytes(room.lane_memory),
                text::thousands(room.lanes_that_write_some),
                text::bytes(room.lane_written)
            )
        });
        [hardware].into_iter().filter(|line| !line.is_empty()).chain(room).collect()
    }
}

/// Formats a device's name, with its number if the engine has numbers.
fn name(device: &Device) -> String {
    match device.engine {
        EngineKind::Cuda | EngineKind::Wgpu => format!("{} (device {})", device.name, device.index),
        _ => device.name.clone(),
    }
}

/// Describes how an engine runs lanes.
fn how(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Auto => "chooses one of the others",
        EngineKind::Cpu => "translates to host machine code; lanes spread over threads",
        EngineKind::Cuda => "interprets on the GPU; one thread a lane",
        EngineKind::Wgpu => "interprets on the GPU; one invocation a lane",
        EngineKind::Eval => "reference evaluator, slow, for comparison",
    }
}

fn version((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices() -> Vec<Device> {
        let cuda = |index, free_memory| Device {
            engine: EngineKind::Cuda,
            index,
            name: "Some GPU".to_string(),
            memory: Some(24 << 30),
            free_memory,
            compute_capability: Some((8, 6)),
            driver: Some("CUDA 12.4".to_string()),
            why_not: None,
        };
        let wgpu = |index, why_not: Option<&str>| Device {
            engine: EngineKind::Wgpu,
            index,
            name: "Some GPU".to_string(),
            memory: None,
            free_memory: None,
            compute_capability: None,
            driver: Some("Vulkan, maker 1.2".to_string()),
            why_not: why_not.map(str::to_string),
        };
        vec![cuda(0, Some(23 << 30)), cuda(1, None), wgpu(1, Some("too old"))]
    }

    const DEVICES: Devices = Devices { memory: 4 << 20, written: 64 << 10, json: false };

    #[test]
    fn every_gpu_is_described() {
        let mut text = Vec::new();
        DEVICES.write_human(&mut text, &devices()).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let capability = "compute capability 8.6, driver CUDA 12.4";
        let how = "interprets on the GPU; one thread a lane";
        assert_eq!(lines[0], format!("cuda  Some GPU (device 0)  {how}"));
        assert_eq!(lines[1], format!("      memory 24 GiB, free 23 GiB, {capability}"));
        assert!(
            lines[2].starts_with("      room for ") && lines[2].ends_with(" write 64 KiB each")
        );
        assert_eq!(lines[3], format!("cuda  Some GPU (device 1)  {how}"));
        assert_eq!(lines[4], format!("      memory 24 GiB, {capability}"));
        assert_eq!(lines[5], "wgpu  Some GPU (device 1)  too old");
        assert_eq!((lines[6], lines.len()), ("      driver Vulkan, maker 1.2", 7));
    }

    #[test]
    fn engines_without_a_device_are_named() {
        let mut text = Vec::new();
        DEVICES.write_human(&mut text, &devices()[..1]).unwrap();
        let text = String::from_utf8(text).unwrap();
        let wgpu = "wgpu  none here: needs a GPU with a driver for Vulkan, Metal or DX12";
        assert_eq!(text.lines().last(), Some(wgpu));
    }

    #[test]
    fn programs_learn_the_same() {
        let json = serde_json::to_value(DEVICES.entries(devices())).unwrap();
        let (cuda, wgpu) = (&json[0], &json[2]);
        assert_eq!((&cuda["number"], &cuda["free_memory"]), (&0.into(), &(23u64 << 30).into()));
        assert_eq!((&cuda["compute_capability"], &cuda["usable"]), (&"8.6".into(), &true.into()));
        let lanes = |key| cuda["room"][key].as_u64().unwrap();
        assert!(lanes("lanes_that_write_some") > 50 * lanes("lanes_that_write_all"));
        assert!(json[1]["room"].is_null());
        assert_eq!((&wgpu["number"], &wgpu["usable"]), (&1.into(), &false.into()));
        assert_eq!(wgpu["why_not"], "too old");
    }
}
