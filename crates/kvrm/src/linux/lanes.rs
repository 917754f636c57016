//! Many programs in the lanes of engines on a GPU, one for each row.
//!
//! ```text
//!  rows ──► Feed ──► Station ◄──► lanes of an engine ─┐
//!    └────► Feed ──► Station ◄──► lanes of an engine ─┼──► results
//!                       └──► programs that leave ─────┘
//! ```
//!
//! All lanes begin with the [`Base`], the program of the first row up to where it uses something of its own. A [`Station`] lets the
//! lanes of its engine run, and serves those that stop. A program that needs more than a lane, a second thread for example,
//! leaves it and goes on on the `cpu` engine. A [`Side`] says which rows a GPU has: all, or those that it does beside `cpu`.

mod arguments;
mod base;
mod device;
mod feed;
mod guest;
mod image;
mod side;
mod station;
mod supervising;
mod times;

use std::sync::mpsc::{Receiver, SyncSender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use kvrm_engine::{Config, Engine, EngineError, MemoryModel};
use kvrm_linux::{memory, supervisor};
use kvrm_mem::{PAGE, Permissions};

use super::many::{LaneOutcome, Shared};
use super::rows::Row;
use crate::{Error, MachineBuilder, Result};
use base::Base;
use feed::Feed;
use image::Image;
use side::Taken;
use station::{Leaving, Server, Station};
use supervising::Calls;

pub use device::Device;
pub(super) use guest::lock;
pub(super) use side::Side;
pub use times::LaneTimes;
pub(super) use times::Times;

/// Engines on a device: one runs while lanes of the other are served.
pub(super) const ENGINES: usize = 2;
/// The most lanes, if nobody says how many there are.
const USUAL_LANES: usize = 1 << 16;

/// Starts a thread that runs a program with each row on a GPU, up to so many lanes at a time.
pub(super) fn start(
    shared: &Arc<Shared>,
    results: &SyncSender<LaneOutcome>,
    lanes: usize,
    threads: usize,
) -> Result<JoinHandle<()>> {
    let (side, results) = (Arc::new(Side::whole(shared)), results.clone());
    let device = Device::of(shared.runner.engine());
    let run = move || match side.next_row() {
        None => {}
        Some(Err(error)) => side.shared.fail(error),
        Some(Ok(first)) => {
            side.begin(1);
            if let Err(error) = run_all(&side, &results, &device, first, [lanes, threads]) {
                side.fail(error);
                side.abandon(1);
            }
        }
    };
    let builder = thread::Builder::new().name("kvrm lanes".to_string());
    builder.spawn(run).map_err(Error::NoThread)
}

/// Runs rows on a GPU beside workers of the `cpu` engine, as many as it may take.
pub(super) fn run_beside(
    side: &Arc<Side>,
    results: &SyncSender<LaneOutcome>,
    device: &Device,
    lanes: usize,
    threads: usize,
) -> Result<()> {
    match side.next_row() {
        None => Ok(()),
        Some(Err(error)) => {
            side.shared.fail(error);
            Ok(())
        }
        Some(Ok(first)) => run_all(side, results, device, first, [lanes, threads]),
    }
}

/// Runs all rows, of which the first was taken. Failures of stations are noted there.
fn run_all(
    side: &Arc<Side>,
    results: &SyncSender<LaneOutcome>,
    device: &Device,
    first: (Taken, Row),
    [lanes, threads]: [usize; 2],
) -> Result<()> {
    let shared = &side.shared;
    let base = Arc::new(Base::new(&shared.runner, &first.1, threads, &side.control)?);
    let wanted = lanes.min(shared.rows.most()).clamp(1, USUAL_LANES);
    let engines = engines(device, wanted, &base.image)?;
    side.lanes_begin(engines.iter().map(|engine| engine.config().lanes).sum());
    let (leaving, left) = channel();
    let mut stations = Vec::new();
    for engine in engines {
        let server = Server {
            side: side.clone(),
            results: results.clone(),
            leaving: leaving.clone(),
            engine: Arc::new(Mutex::new(engine)),
            base: base.clone(),
            threads,
            calls: Calls::default(),
        };
        stations.push(Station::new(server, Feed::new(side)?));
    }
    drop(leaving);
    stations[0].begin_with(first);
    let left = Mutex::new(left);
    thread::scope(|scope| {
        for station in stations {
            scope.spawn(|| station.run());
        }
        for _ in 0..threads {
            scope.spawn(|| finish_all(side, results, &left));
        }
    });
    Ok(())
}

/// Runs programs to their end that have left their lanes, until no more come.
fn finish_all(side: &Side, results: &SyncSender<LaneOutcome>, left: &Mutex<Receiver<Leaving>>) {
    loop {
        let next = lock(left).recv();
        let again = match next {
            Ok(Leaving::Program(program)) => program.finish(side, results),
            Ok(Leaving::Again(row)) => Some(row),
            Err(_) => return,
        };
        if let Some((lane, row)) = again.and_then(|row| side.take_back(row)) {
            side.shared.run_one(lane, row, results);
        }
    }
}

/// Builds engines with so many lanes together, or as many as there is room for.
fn engines(device: &Device, lanes: usize, image: &Image) -> Result<Vec<Box<dyn Engine>>> {
    let parts = ENGINES.min(lanes);
    let mut lanes = lanes.div_ceil(parts);
    loop {
        let engines: std::result::Result<Vec<_>, _> =
            (0..parts).map(|_| engine(device, lanes, image)).collect();
        match engines {
            Err(EngineError::DeviceFull(_)) if lanes > 1 => lanes /= 2,
            engines => return Ok(engines?),
        }
    }
}

fn engine(
    device: &Device,
    lanes: usize,
    image: &Image,
) -> std::result::Result<Box<dyn Engine>, EngineError> {
    let config = Config {
        lanes,
        model: MemoryModel::Private,
        supervisor_bytes: supervisor::BYTES,
        ..MachineBuilder::mapped_config(memory::TOP + supervisor::BYTES)
    };
    let mut engine = device.build(config)?;
    image.write(&mut *engine)?;
    engine.write_image(supervisor::PROGRAM, supervisor::program())?;
    engine.protect_image(supervisor::PROGRAM, PAGE, Permissions::EXECUTE)?;
    engine.write_image(supervisor::DESK, &[0; supervisor::DESK_BYTES as usize])?;
    Ok(engine)
}
