//! Memory in a snapshot.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::charged::{Budget, Charged};
use super::space::effective;
use super::written::Written;
use super::{Areas, Memory, PAGE, Permissions, TOP};
use crate::SnapshotError;
use crate::guest::Guest;
use crate::snapshot::Packed;

/// Pages that are compressed together.
const PIECE: usize = 256;

/// The memory of a process: what is mapped, and the pages that are not zero.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    areas: Areas,
    heap: Range<u64>,
    charged: Vec<Range<u64>>,
    pieces: Vec<Piece>,
}

/// Some pages in order.
#[derive(Serialize, Deserialize)]
struct Piece {
    /// Their numbers.
    pages: Vec<u32>,
    bytes: Packed,
}

impl Saved {
    /// How many pages there are.
    pub(crate) fn pages(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.pages.len() as u64).sum()
    }

    /// Finds out whether memory can be like that.
    fn check(&self) -> Result<(), SnapshotError> {
        let must = |holds| if holds { Ok(()) } else { Err(SnapshotError::Damaged("memory")) };
        must(self.heap.start <= self.heap.end && self.heap.end <= TOP)?;
        let mut free = 0;
        for part in &self.charged {
            let is_whole = part.start.is_multiple_of(PAGE) && part.end.is_multiple_of(PAGE);
            must(is_whole && free <= part.start && part.start < part.end && part.end <= TOP)?;
            // Those that continue one another are one.
            free = part.end + 1;
        }
        let mut pages = self.pieces.iter().flat_map(|piece| &piece.pages);
        must(pages.clone().is_sorted_by(|a, b| a < b))?;
        let is_charged = |page: &u32| {
            let at = u64::from(*page) * PAGE;
            let behind = self.charged.partition_point(|part| part.start <= at);
            behind > 0 && at < self.charged[behind - 1].end
        };
        must(pages.all(is_charged))
    }
}

impl Memory {
    /// Everything, for a snapshot.
    pub(crate) fn save(&self) -> Result<Saved, SnapshotError> {
        // What was written is known.
        let Memory { guest, areas, heap, charged, written: _ } = self;
        let mut pieces = Vec::new();
        let (mut pages, mut bytes) = (Vec::new(), Vec::new());
        let mut page = [0; PAGE as usize];
        let charged: Vec<Range<u64>> = charged.within(0..TOP).collect();
        for at in charged.iter().flat_map(|part| part.clone().step_by(PAGE as usize)) {
            guest.read(at, &mut page)?;
            if page.iter().all(|byte| *byte == 0) {
                continue;
            }
            pages.push((at / PAGE) as u32);
            bytes.extend_from_slice(&page);
            if pages.len() == PIECE {
                pieces
                    .push(Piece { pages: std::mem::take(&mut pages), bytes: Packed::new(&bytes) });
                bytes.clear();
            }
        }
        if !pages.is_empty() {
            pieces.push(Piece { pages, bytes: Packed::new(&bytes) });
        }
        Ok(Saved { areas: areas.clone(), heap: heap.clone(), charged, pieces })
    }

    /// The memory of a snapshot, in a machine whose memory is empty.
    pub(crate) fn restore(
        saved: &Saved,
        mut guest: Box<dyn Guest>,
        budget: &Budget,
    ) -> Result<Memory, SnapshotError> {
        saved.check()?;
        let Saved { areas, heap, charged, pieces } = saved;
        let charged = Charged::of(charged, budget).map_err(|_| SnapshotError::MemoryLimit)?;
        for (start, area) in areas.iter() {
            let access = effective(area);
            if access != Permissions::NONE {
                guest.protect(start, area.end - start, access)?;
            }
        }
        for Piece { pages, bytes } in pieces {
            let bytes = bytes.unpack(PIECE * PAGE as usize);
            let bytes = bytes.filter(|bytes| bytes.len() == pages.len() * PAGE as usize);
            let bytes = bytes.ok_or(SnapshotError::Damaged("pages"))?;
            let mut done = 0;
            for run in pages.chunk_by(|a, b| a + 1 == *b) {
                let len = run.len() * PAGE as usize;
                guest.write(u64::from(run[0]) * PAGE, &bytes[done..done + len])?;
                done += len;
            }
        }
        let written = Written::default();
        Ok(Memory { guest, areas: areas.clone(), heap: heap.clone(), charged, written })
    }
}
