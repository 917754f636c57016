//! Recognises forked processes.
//!
//! A forked process gets a copy of everything except the memory of images, which both processes share, and threads and
//! drivers, which it does not get. So a machine has to stay with the process that built it. A mark tells whether it did
//! with a single load; asking for the process ID takes a system call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

/// Remembers the process that made it.
///
/// ```
/// let mark = kvrm_mem::ProcessMark::here();
/// assert!(mark.is_here());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMark(u64);

impl ProcessMark {
    /// Makes a mark of this process.
    pub fn here() -> ProcessMark {
        ProcessMark(number())
    }

    /// True in the process that made the mark, false in those forked from it.
    pub fn is_here(self) -> bool {
        self.0 == number()
    }
}

/// Returns a number that differs from those of the processes this one was forked from.
fn number() -> u64 {
    static PAGE: OnceLock<Option<MmapMut>> = OnceLock::new();
    /// Survives a fork, unlike the page.
    static LAST: AtomicU64 = AtomicU64::new(0);
    let Some(page) = PAGE.get_or_init(wiped_page) else { return std::process::id().into() };
    // SAFETY: the page is never unmapped, is aligned, and is only ever used as this one number.
    let here = unsafe { AtomicU64::from_ptr(page.as_ptr().cast_mut().cast()) };
    match here.load(Ordering::Relaxed) {
        0 => {
            let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            // If two threads find it empty, the first one's number counts.
            let first = here.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
            first.map_or_else(|first| first, |_| new)
        }
        number => number,
    }
}

/// Maps a page that is zero again in a forked process; returns `None` if the system has no such pages.
#[cfg(target_os = "linux")]
fn wiped_page() -> Option<MmapMut> {
    let mut page = MmapMut::map_anon(crate::PAGE as usize).ok()?;
    let start = page.as_mut_ptr().cast();
    let wipe = rustix::mm::Advice::LinuxWipeOnFork;
    // SAFETY: the page is this function's alone, and stays as it is in this process.
    unsafe { rustix::mm::madvise(start, page.len(), wipe) }.ok()?;
    Some(page)
}

#[cfg(not(target_os = "linux"))]
fn wiped_page() -> Option<MmapMut> {
    None
}
