//! The open files of a process, by number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Errno;
use crate::console::Stream;
use crate::files::{FileId, Files, Kind, Mode, OpenFile};

/// An open file of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Descriptor {
    /// Which.
    pub file: FileId,
    /// It is closed when the process runs another program.
    pub closes_on_exec: bool,
}

/// The open files of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Descriptors(BTreeMap<u32, Descriptor>);

impl Descriptors {
    /// Standard input, output and error.
    pub(crate) fn of_console(files: &mut Files) -> Descriptors {
        let streams = [Stream::Input, Stream::Output, Stream::Error];
        let descriptors = streams.map(|stream| {
            let mode = Mode { reads: true, writes: true, ..Mode::default() };
            let file = files.add(OpenFile::new(Kind::Console(stream), mode));
            Descriptor { file, closes_on_exec: false }
        });
        Descriptors((0..).zip(descriptors).collect())
    }

    /// One of them.
    pub(crate) fn get(&self, number: u64) -> Result<Descriptor, Errno> {
        let number = u32::try_from(number).map_err(|_| Errno::BADF)?;
        self.0.get(&number).copied().ok_or(Errno::BADF)
    }

    /// Adds one with the lowest free number from `least` on that is below `limit`.
    pub(crate) fn add(
        &mut self,
        least: u32,
        limit: u64,
        descriptor: Descriptor,
    ) -> Result<u32, Errno> {
        let mut number = least;
        for taken in self.0.range(least..).map(|(number, _)| *number) {
            if taken != number {
                break;
            }
            number += 1;
        }
        if u64::from(number) >= limit {
            return Err(Errno::MFILE);
        }
        self.0.insert(number, descriptor);
        Ok(number)
    }

    /// Sets one; what had the number before.
    pub(crate) fn set(&mut self, number: u32, descriptor: Descriptor) -> Option<Descriptor> {
        self.0.insert(number, descriptor)
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, number: u64) -> Result<Descriptor, Errno> {
        let number = u32::try_from(number).map_err(|_| Errno::BADF)?;
        self.0.remove(&number).ok_or(Errno::BADF)
    }

    /// Whether it is closed when another program runs.
    pub(crate) fn set_closes_on_exec(&mut self, number: u64, closes: bool) -> Result<(), Errno> {
        let number = u32::try_from(number).map_err(|_| Errno::BADF)?;
        self.0.get_mut(&number).ok_or(Errno::BADF)?.closes_on_exec = closes;
        Ok(())
    }

    /// Those with numbers in a range.
    pub(crate) fn within(&self, first: u32, last: u32) -> Vec<u32> {
        self.0.range(first..=last).map(|(number, _)| *number).collect()
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Descriptor)> + '_ {
        self.0.iter().map(|(number, descriptor)| (*number, *descriptor))
    }

    /// Takes out those that are closed when another program runs.
    pub(crate) fn take_closing(&mut self) -> Vec<Descriptor> {
        let closing: Vec<u32> =
            self.iter().filter(|(_, d)| d.closes_on_exec).map(|(number, _)| number).collect();
        closing.into_iter().filter_map(|number| self.0.remove(&number)).collect()
    }
}
