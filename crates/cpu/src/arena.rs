//! Memory for host code: one piece after the other in large chunks, which are given back together.
//!
//! No address is both writable and executable. Where the system lets the same bytes be mapped twice, one mapping is
//! for writing and the other for running, so that code can be added beside code that other threads run. Elsewhere every
//! piece has pages of its own, which become executable once it is written.

use std::ffi::c_void;
use std::io;

use memmap2::{Mmap, MmapMut};
use wasmtime_internal_jit_icache_coherence::{clear_cache, pipeline_flush_mt};

/// Bytes of a chunk. They take no memory before they are written.
const CHUNK: usize = 1 << 20;
/// Where code may begin: good for every host.
const ALIGN: usize = 16;
const HOST_PAGE: usize = 4096;

/// Pieces of host code.
#[derive(Default)]
pub(crate) struct Arena {
    /// The last is being filled.
    chunks: Vec<Chunk>,
    /// Pieces that are alone.
    sealed: Vec<Mmap>,
    /// Bytes that are taken of the last chunk.
    taken: usize,
    used: usize,
}

struct Chunk {
    writable: MmapMut,
    executable: Mmap,
}

impl Arena {
    /// Bytes that a piece of code takes.
    pub(crate) fn size_of(code: &[u8]) -> usize {
        code.len().next_multiple_of(ALIGN)
    }

    /// Bytes that all pieces take.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Adds a piece of code; where it is to be run.
    pub(crate) fn add(&mut self, code: &[u8]) -> io::Result<*const u8> {
        let size = Arena::size_of(code);
        let is_room = self.chunks.last().is_some_and(|c| c.executable.len() - self.taken >= size);
        if !is_room {
            match Chunk::new(size.next_multiple_of(HOST_PAGE).max(CHUNK)) {
                Ok(chunk) => self.chunks.push(chunk),
                Err(_) => return self.add_sealed(code),
            }
            self.taken = 0;
        }
        let chunk = self.chunks.last_mut().expect("there is one with room");
        chunk.writable[self.taken..self.taken + code.len()].copy_from_slice(code);
        let place = chunk.executable[self.taken..].as_ptr();
        self.taken += size;
        self.used += size;
        make_visible(place, code.len())?;
        Ok(place)
    }

    /// Adds code on pages of its own.
    fn add_sealed(&mut self, code: &[u8]) -> io::Result<*const u8> {
        let mut pages = MmapMut::map_anon(code.len())?;
        pages[..code.len()].copy_from_slice(code);
        let pages = pages.make_exec()?;
        let place = pages.as_ptr();
        self.used += code.len().next_multiple_of(HOST_PAGE);
        self.sealed.push(pages);
        make_visible(place, code.len())?;
        Ok(place)
    }

    /// Gives everything back, but for a chunk to begin with.
    ///
    /// # Safety
    /// Nothing may run in the code any more, nor later.
    pub(crate) unsafe fn clear(&mut self) {
        self.chunks.truncate(1);
        self.sealed.clear();
        (self.taken, self.used) = (0, 0);
    }
}

/// Makes code that was just written what all threads run.
fn make_visible(code: *const u8, len: usize) -> io::Result<()> {
    // SAFETY: the bytes are those of a piece of code that was just written.
    let cleared = unsafe { clear_cache(code.cast::<c_void>(), len) };
    cleared.and_then(|()| pipeline_flush_mt()).map_err(|error| io::Error::other(error.to_string()))
}

impl Chunk {
    #[cfg(target_os = "linux")]
    fn new(size: usize) -> io::Result<Chunk> {
        use memmap2::MmapOptions;
        use rustix::fs::{MemfdFlags, memfd_create};
        let file = std::fs::File::from(memfd_create("kvrm-code", MemfdFlags::CLOEXEC)?);
        file.set_len(size as u64)?;
        // SAFETY: nobody else has the file, which is never truncated.
        let writable = unsafe { MmapOptions::new().map_mut(&file)? };
        // SAFETY: as above; bytes change here only before they are code.
        let executable = unsafe { MmapOptions::new().map_exec(&file)? };
        Ok(Chunk { writable, executable })
    }

    #[cfg(not(target_os = "linux"))]
    fn new(_: usize) -> io::Result<Chunk> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that returns a number.
    fn returns(number: u8) -> Vec<u8> {
        if cfg!(target_arch = "x86_64") {
            vec![0xb8, number, 0, 0, 0, 0xc3] // mov eax, number; ret
        } else {
            // mov w0, #number; ret
            let words = [0x5280_0000 | u32::from(number) << 5, 0xd65f_03c0];
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        }
    }

    fn call(code: *const u8) -> i32 {
        // SAFETY: `returns` made it.
        unsafe { std::mem::transmute::<*const u8, extern "C" fn() -> i32>(code)() }
    }

    #[test]
    fn code_that_is_added_runs() {
        let mut arena = Arena::default();
        let pieces: Vec<_> = (0..200).map(|n| arena.add(&returns(n)).unwrap()).collect();
        for (number, code) in (0..).zip(pieces) {
            assert_eq!(call(code), number);
        }
        assert!(arena.used() >= 200 * returns(0).len());
    }

    #[test]
    fn cleared_memory_is_used_again() {
        let mut arena = Arena::default();
        let large = vec![0; CHUNK - 64];
        for round in 0..3 {
            for _ in 0..3 {
                arena.add(&large).unwrap();
            }
            assert_eq!(call(arena.add(&returns(round)).unwrap()), round.into());
            // SAFETY: nothing runs in it.
            unsafe { arena.clear() };
            assert_eq!((arena.used(), arena.chunks.len() <= 1), (0, true));
        }
    }

    #[test]
    fn code_can_have_pages_of_its_own() {
        let mut arena = Arena::default();
        let [one, two] = [1, 2].map(|number| arena.add_sealed(&returns(number)).unwrap());
        assert_eq!((call(one), call(two), arena.used()), (1, 2, 2 * HOST_PAGE));
    }
}
