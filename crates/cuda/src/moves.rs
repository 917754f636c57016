//! A kernel that reads, changes and copies words anywhere in guest memory: for very many lanes, a transfer for each would take
//! far longer than all that they do.
//!
//! It is given *moves*. A thread makes one, or, of those that copy a page, the threads of a warp together.

use std::fmt::Write;

use kvrm_engine::EngineError;
use kvrm_engine::memory::{Masked, PAGE_WORDS, PageCopy, Run};
use kvrm_mem::PAGE;

use crate::driver::{Buffer, CudaError, Kernel, Plain};
use crate::guest::{Guest, TOO_MUCH};
use crate::memory::{FRAME_BYTES, FRAME_LANES};

/// Threads in a block.
const BLOCK: u32 = 128;
/// Bytes from a word of a lane in a frame to its next.
const STRIDE: u64 = 8 * FRAME_LANES;

/// What a launch is given.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MoveArguments {
    moves: u64,
    count: u64,
    /// Words that are read, or words and masks that are written; nothing for copies.
    words: u64,
    /// What moves do: a number of those below.
    kind: u64,
}

const GATHER: u64 = 0;
const SCATTER: u64 = 1;
const COPY: u64 = 2;

/// A move: where its first word is, how far it is from there to the next, how many there are, and which of the launch's words
/// is the first. A copy goes from there to `stride`, the lane's part of a frame.
#[derive(Clone, Copy)]
#[repr(C)]
struct Move {
    at: u64,
    stride: u64,
    len: u64,
    first: u64,
}

// SAFETY: integers.
unsafe impl Plain for Move {}
/// A word's new value, and which of its bits change.
#[derive(Clone, Copy)]
#[repr(C)]
struct NewWord(u64, u64);

// SAFETY: integers.
unsafe impl Plain for NewWord {}

/// The kernel's text, for devices of all generations.
pub(crate) fn kernel() -> String {
    let mut out = String::from(".version 6.5\n.target sm_70\n.address_size 64\n\n");
    let _ = write!(
        out,
        ".visible .entry run(.param .align 8 .b8 args[{bytes}])
{{
\t.reg .pred %p<4>;
\t.reg .b32 %r<8>;
\t.reg .b64 %d<24>;
\tld.param.u64 %d0, [args];
\tld.param.u64 %d1, [args+8];
\tld.param.u64 %d2, [args+16];
\tld.param.u64 %d3, [args+24];
\tmov.u32 %r0, %ctaid.x;
\tmov.u32 %r1, %ntid.x;
\tmov.u32 %r2, %tid.x;
\tmad.lo.u32 %r3, %r0, %r1, %r2;
\tsetp.eq.u64 %p0, %d3, {COPY};
\t@%p0 bra COPIES;
\tcvt.u64.u32 %d4, %r3;
\tsetp.ge.u64 %p1, %d4, %d1;
\t@%p1 ret;
\tmad.wide.u32 %d5, %r3, {each}, %d0;
\tld.global.v2.u64 {{%d6, %d7}}, [%d5];
\tld.global.v2.u64 {{%d8, %d9}}, [%d5+16];
\tsetp.eq.u64 %p0, %d3, {SCATTER};
\t@%p0 bra SCATTERS;
\tshl.b64 %d9, %d9, 3;
\tadd.u64 %d9, %d9, %d2;
GATHER:
\tld.global.u64 %d10, [%d6];
\tst.global.u64 [%d9], %d10;
\tadd.u64 %d6, %d6, %d7;
\tadd.u64 %d9, %d9, 8;
\tsub.u64 %d8, %d8, 1;
\tsetp.ne.u64 %p1, %d8, 0;
\t@%p1 bra GATHER;
\tret;
SCATTERS:
\tshl.b64 %d9, %d9, 4;
\tadd.u64 %d9, %d9, %d2;
SCATTER:
\tld.global.v2.u64 {{%d10, %d11}}, [%d9];
\tld.global.u64 %d12, [%d6];
\tand.b64 %d10, %d10, %d11;
\tnot.b64 %d11, %d11;
\tand.b64 %d12, %d12, %d11;
\tor.b64 %d12, %d12, %d10;
\tst.global.u64 [%d6], %d12;
\tadd.u64 %d6, %d6, %d7;
\tadd.u64 %d9, %d9, 16;
\tsub.u64 %d8, %d8, 1;
\tsetp.ne.u64 %p1, %d8, 0;
\t@%p1 bra SCATTER;
\tret;
COPIES:
\tand.b32 %r4, %r3, 31;
\tshr.u32 %r5, %r3, 5;
\tcvt.u64.u32 %d4, %r5;
\tsetp.ge.u64 %p1, %d4, %d1;
\t@%p1 ret;
\tmad.wide.u32 %d5, %r5, {each}, %d0;
\tld.global.v2.u64 {{%d6, %d7}}, [%d5];
\tmad.wide.u32 %d6, %r4, 8, %d6;
\tmad.wide.u32 %d7, %r4, {STRIDE}, %d7;
COPY:
\tld.global.u64 %d10, [%d6];
\tst.global.u64 [%d7], %d10;
\tadd.u64 %d6, %d6, 256;
\tadd.u64 %d7, %d7, {warp};
\tadd.u32 %r4, %r4, 32;
\tsetp.lt.u32 %p1, %r4, {PAGE_WORDS};
\t@%p1 bra COPY;
\tret;
}}
",
        bytes = size_of::<MoveArguments>(),
        each = size_of::<Move>(),
        warp = 32 * STRIDE,
    );
    out
}

/// The kernel, and room for what it is given.
#[derive(Default)]
pub(crate) struct Mover {
    kernel: Option<Kernel>,
    moves: Option<Buffer>,
    words: Option<Buffer>,
}

impl Mover {
    /// Moves `words` there, or back from there.
    fn launch<T: Plain>(
        &mut self,
        guest: &Guest,
        (kind, threads): (u64, u32),
        moves: &[Move],
        words: &mut [T],
    ) -> Result<(), CudaError> {
        let device = &guest.device;
        let kernel = match self.kernel.take() {
            Some(kernel) => kernel,
            None => Kernel::load(device, &kernel())?.0,
        };
        let list = room(guest, &mut self.moves, size_of_val(moves))?;
        list.write(0, moves)?;
        let data = room(guest, &mut self.words, size_of_val(words))?;
        if kind == SCATTER {
            data.write(0, words)?;
        }
        let count = moves.len() as u64;
        let arguments = MoveArguments { moves: list.address, count, words: data.address, kind };
        let blocks = (moves.len() as u32 * threads).div_ceil(BLOCK);
        kernel.launch(blocks, BLOCK, &arguments)?;
        if kind == GATHER {
            data.read(0, words)?;
        }
        kernel.wait()?;
        self.kernel = Some(kernel);
        Ok(())
    }
}

/// A buffer with at least so much room, more each time.
fn room<'a>(
    guest: &Guest,
    buffer: &'a mut Option<Buffer>,
    bytes: usize,
) -> Result<&'a Buffer, CudaError> {
    let bytes = bytes as u64;
    if buffer.as_ref().is_none_or(|buffer| buffer.len < bytes) {
        *buffer = None;
        *buffer = Some(Buffer::new(&guest.device, bytes.next_power_of_two(), |_| TOO_MUCH.into())?);
    }
    Ok(buffer.as_ref().expect("just made"))
}

impl Guest {
    /// Where a lane's first word is in a frame.
    fn seat(&self, frame: u32, seat: usize) -> u64 {
        self.frames_base() + u64::from(frame) * FRAME_BYTES + 8 * seat as u64
    }

    /// Runs as moves.
    fn moves(&self, runs: &[Run]) -> Vec<Move> {
        let mut first = 0;
        let each = |run: &Run| {
            let (at, stride) = match run.frame {
                Some((frame, seat)) => (self.seat(frame, seat) + run.word * STRIDE, STRIDE),
                None => (self.flat.address + 8 * run.word, 8),
            };
            let made = Move { at, stride, len: run.len as u64, first };
            first += run.len as u64;
            made
        };
        runs.iter().map(each).collect()
    }

    /// Reads words, run after run.
    pub(crate) fn gather_words(&self, runs: &[Run]) -> Result<Vec<u64>, EngineError> {
        let mut words = vec![0u64; runs.iter().map(|run| run.len).sum()];
        if !words.is_empty() {
            let moves = self.moves(runs);
            self.mover.borrow_mut().launch(self, (GATHER, 1), &moves, &mut words)?;
        }
        Ok(words)
    }

    /// Changes words, run after run.
    pub(crate) fn scatter_words(&self, runs: &[Run], words: &[Masked]) -> Result<(), EngineError> {
        if words.is_empty() {
            return Ok(());
        }
        let moves = self.moves(runs);
        let mut words: Vec<_> = words.iter().map(|(value, mask)| NewWord(*value, *mask)).collect();
        Ok(self.mover.borrow_mut().launch(self, (SCATTER, 1), &moves, &mut words)?)
    }

    /// Copies pages of the image to lanes.
    pub(crate) fn copy_to_lanes(&self, copies: &[PageCopy]) -> Result<(), EngineError> {
        if copies.is_empty() {
            return Ok(());
        }
        let each = |PageCopy { slot, frame, seat }: &PageCopy| Move {
            at: self.flat.address + u64::from(*slot) * PAGE,
            stride: self.seat(*frame, *seat),
            len: 0,
            first: 0,
        };
        let moves: Vec<Move> = copies.iter().map(each).collect();
        Ok(self.mover.borrow_mut().launch::<u64>(self, (COPY, 32), &moves, &mut [])?)
    }
}
