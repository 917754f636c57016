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
//! leaves it and goes on on the `cpu` engine.

mod arguments;
mod base;
mod feed;
mod guest;
mod image;
mod station;

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use kvrm_engine::{Config, Engine, EngineError, MemoryModel};
use kvrm_linux::memory;

use super::many::{LaneOutcome, Shared};
use super::rows::Row;
use crate::{EngineKind, Error, MachineBuilder, Result};
use base::Base;
use feed::Feed;
use guest::lock;
use image::Image;
use station::{Program, Server, Station};

/// Engines on a device: one runs while lanes of the other are served.
const ENGINES: usize = 2;
/// The most lanes, if nobody says how many there are.
const USUAL_LANES: usize = 1 << 16;

/// Starts a thread that runs a program with each row on a GPU, up to so many lanes at a time.
pub(super) fn start(
    shared: &Arc<Shared>,
    results: &SyncSender<LaneOutcome>,
    lanes: usize,
    threads: usize,
) -> Result<JoinHandle<()>> {
    let (shared, results) = (shared.clone(), results.clone());
    let run = move || match shared.rows.next() {
        None => {}
        Some(Err(error)) => shared.fail(error),
        Some(Ok(first)) => {
            shared.taken.fetch_add(1, Ordering::Release);
            if let Err(error) = run_all(&shared, &results, first, [lanes, threads]) {
                shared.fail(error);
                shared.control.cancel();
                shared.ended.fetch_add(1, Ordering::Release);
            }
        }
    };
    let builder = thread::Builder::new().name("kvrm lanes".to_string());
    builder.spawn(run).map_err(Error::NoThread)
}

/// Runs all rows, of which the first was taken. Failures of stations are noted there.
fn run_all(
    shared: &Arc<Shared>,
    results: &SyncSender<LaneOutcome>,
    first: (u64, Row),
    [lanes, threads]: [usize; 2],
) -> Result<()> {
    let base = Arc::new(Base::new(&shared.runner, &first.1, threads, &shared.control)?);
    let wanted = lanes.min(shared.rows.most()).clamp(1, USUAL_LANES);
    let engines = engines(shared.runner.engine(), wanted, &base.image)?;
    let (leaving, left) = channel::<Box<Program>>();
    let mut stations = Vec::new();
    for engine in engines {
        let server = Server {
            shared: shared.clone(),
            results: results.clone(),
            leaving: leaving.clone(),
            engine: Arc::new(Mutex::new(engine)),
            base: base.clone(),
            threads,
        };
        stations.push(Station::new(server, Feed::new(shared)?));
    }
    drop(leaving);
    stations[0].begin_with(first);
    let left = Mutex::new(left);
    thread::scope(|scope| {
        for station in stations {
            scope.spawn(|| station.run());
        }
        for _ in 0..threads {
            scope.spawn(|| finish_all(shared, results, &left));
        }
    });
    Ok(())
}

/// Runs programs to their end that have left their lanes, until no more come.
fn finish_all(
    shared: &Shared,
    results: &SyncSender<LaneOutcome>,
    left: &Mutex<Receiver<Box<Program>>>,
) {
    loop {
        let next = lock(left).recv();
        let Ok(program) = next else { return };
        program.finish(shared, results);
    }
}

/// Builds engines with so many lanes together, or as many as there is room for.
fn engines(kind: EngineKind, lanes: usize, image: &Image) -> Result<Vec<Box<dyn Engine>>> {
    let parts = ENGINES.min(lanes);
    let mut lanes = lanes.div_ceil(parts);
    loop {
        let engines: std::result::Result<Vec<_>, _> =
            (0..parts).map(|_| engine(kind, lanes, image)).collect();
        match engines {
            Err(EngineError::DeviceFull(_)) if lanes > 1 => lanes /= 2,
            engines => return Ok(engines?),
        }
    }
}

fn engine(
    kind: EngineKind,
    lanes: usize,
    image: &Image,
) -> std::result::Result<Box<dyn Engine>, EngineError> {
    let config =
        Config { lanes, model: MemoryModel::Private, ..MachineBuilder::mapped_config(memory::TOP) };
    let mut engine: Box<dyn Engine> = match kind {
        EngineKind::Cuda => Box::new(kvrm_cuda::build(config, 0)?.keeping_handlers()),
        EngineKind::Wgpu => Box::new(kvrm_wgpu::build(config, None)?.keeping_handlers()),
        EngineKind::Auto | EngineKind::Cpu | EngineKind::Eval => {
            unreachable!("programs on the host run each on a machine of its own")
        }
    };
    image.write(&mut *engine)?;
    Ok(engine)
}
