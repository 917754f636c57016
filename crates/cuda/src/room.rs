//! How many lanes a device has room for.

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::launch::Status;
use kvrm_mem::PAGE;

use crate::frames::PIECE;
use crate::memory::{FRAME_BYTES, FRAME_LANES};

/// Bytes of a warp's page table for each page.
const TABLE_ENTRY: u64 = 8;

/// Bytes of a lane's registers and counts.
const LANE_BYTES: u64 =
    (size_of::<CpuState>() + size_of::<VectorState>() + size_of::<Status>()) as u64;

/// Lanes with private memory that `free` bytes of a device hold, if each has `memory_size` bytes of memory
/// and writes `written` of them, in whole pages.
///
/// The image is there once. Every lane has its registers and counts; every warp of 32 has a page table,
/// and a frame for each page that its lanes write. Frames are mapped in large pieces, and one piece is
/// left free for the driver and for kernels. Lanes of a warp that write different pages take up to 32
/// times as much as is counted here.
///
/// ```
/// let gib = 1 << 30;
/// let all = kvrm_cuda::lanes_that_fit(16 * gib, 4 << 20, 4 << 20);
/// let few = kvrm_cuda::lanes_that_fit(16 * gib, 4 << 20, 64 << 10);
/// assert!(all > 3_500 && few > 60 * all);
/// ```
pub fn lanes_that_fit(free: u64, memory_size: u64, written: u64) -> u64 {
    let pages = written.min(memory_size).div_ceil(PAGE);
    let warp = FRAME_LANES * LANE_BYTES + memory_size.div_ceil(PAGE) * TABLE_ENTRY;
    let fits = |warps: u64| {
        // The first frame is not used.
        let frames = (warps.saturating_mul(pages).saturating_add(1)).saturating_mul(FRAME_BYTES);
        let pieces = if pages == 0 { 0 } else { frames.div_ceil(PIECE).saturating_mul(PIECE) };
        [memory_size, warps.saturating_mul(warp), pieces, PIECE]
            .into_iter()
            .fold(0, u64::saturating_add)
            <= free
    };
    let (mut enough, mut too_many) = (0, free / warp + 1);
    while too_many - enough > 1 {
        let between = enough + (too_many - enough) / 2;
        match fits(between) {
            true => enough = between,
            false => too_many = between,
        }
    }
    enough * FRAME_LANES
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// Bytes of a warp without frames, for a memory of 4 MiB.
    fn warp() -> u64 {
        32 * LANE_BYTES + 1024 * 8
    }

    #[test]
    fn lanes_that_write_nothing_cost_registers_and_tables() {
        let fixed = 4 * MIB + PIECE;
        assert_eq!(lanes_that_fit(fixed + 10 * warp(), 4 * MIB, 0), 320);
        assert_eq!(lanes_that_fit(fixed + 10 * warp() - 1, 4 * MIB, 0), 288);
        assert_eq!(lanes_that_fit(fixed, 4 * MIB, 0), 0);
    }

    #[test]
    fn frames_come_in_pieces() {
        // A piece has 2,048 frames, of which the first is not used: one warp of 1,024 pages.
        let fixed = 4 * MIB + PIECE + warp();
        assert_eq!(lanes_that_fit(fixed + PIECE, 4 * MIB, 4 * MIB), 32);
        assert_eq!(lanes_that_fit(fixed + PIECE - 1, 4 * MIB, 4 * MIB), 0);
        // Two need a second piece, which then has room for the third.
        assert_eq!(lanes_that_fit(fixed + 2 * PIECE + 2 * warp(), 4 * MIB, 4 * MIB), 96);
    }

    #[test]
    fn whole_pages_are_counted_and_no_more_than_there_are() {
        let fit = |written| lanes_that_fit(16 * GIB, 4 * MIB, written);
        assert_eq!(fit(1), fit(PAGE));
        assert!(fit(PAGE) > fit(PAGE + 1));
        assert_eq!(fit(4 * MIB), fit(u64::MAX));
    }

    #[test]
    fn extremes() {
        assert_eq!(lanes_that_fit(0, 4 * MIB, 0), 0);
        assert_eq!(lanes_that_fit(GIB, 1 << 40, 1 << 40), 0);
        assert_eq!(lanes_that_fit(GIB, u64::MAX, u64::MAX), 0);
        assert!(lanes_that_fit(u64::MAX, PAGE, PAGE) > 1 << 50);
    }
}
