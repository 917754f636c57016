//! What translated code calls when it cannot go on by itself.

use std::sync::{Mutex, PoisonError};

use kvrm_ir::Access;
use kvrm_mem::{GuestMemory, HOLDS_READABLE, OPEN, PAGE, RawMemory, Space};

use crate::code::Translations;
use crate::context::{LaneContext, READS};

/// Which translations a lane runs in.
pub(crate) enum CodeView<'a> {
    /// Those of the image, together with other lanes.
    Image(&'a Mutex<Translations>),
    /// Its own, because it has changed its code.
    Own(&'a mut Translations),
    /// Those that machines share: they are of code that no machine can write.
    Fixed(&'a Mutex<Translations>),
}

impl CodeView<'_> {
    /// Runs `f` with the translations.
    pub(crate) fn with<T>(&mut self, f: impl FnOnce(&mut Translations) -> T) -> T {
        match self {
            CodeView::Image(code) | CodeView::Fixed(code) => {
                f(&mut code.lock().unwrap_or_else(PoisonError::into_inner))
            }
            CodeView::Own(code) => f(code),
        }
    }
}

/// What the slow paths need beside the lane context, for the time a lane runs.
pub(crate) struct SlowPath<'a> {
    /// The lane's private memory; `None` if memory is shared.
    pub(crate) space: Option<&'a mut Space>,
    pub(crate) memory: RawMemory<'a>,
    pub(crate) view: CodeView<'a>,
}

impl SlowPath<'_> {
    /// Opens granules of mapped memory for an access; true if it may proceed. What may be written, but not read, is left to
    /// the evaluator, as are addresses with tags.
    fn admit(&mut self, addr: u64, len: u64, reads: bool) -> bool {
        let access = if reads { Access::Read } else { Access::ReadWrite };
        if self.memory.probe(access, addr, len as u32).is_err() {
            return false;
        }
        // The evaluator notes what is touched.
        if self.memory.touched(addr, len).next().is_some() {
            return false;
        }
        if !reads {
            self.memory.note_written(addr, len);
        }
        // The first granule tells of accesses that begin there only if the longest may proceed.
        if self.memory.all_have(if reads { HOLDS_READABLE } else { OPEN }, addr, len) {
            return true;
        }
        let pages = addr / PAGE..=(addr + len - 1) / PAGE;
        if let CodeView::Fixed(_) = self.view {
            pages.into_iter().for_each(|page| self.memory.admit(page * PAGE, [0, 0]));
            return true;
        }
        // Locked, so that nobody decodes words of what is opened meanwhile.
        self.view.with(|code| {
            for page in pages {
                let closed = [page, page + 1].map(|page| code.granules_of_page(page));
                self.memory.admit(page * PAGE, closed);
            }
            reads || !code.overlaps(addr, len)
        })
    }
}

/// Opens granules for a write that is about to happen; true if no translation has to hear of it. For the image's that is
/// if all granules could be opened, because none holds translated words: a closed one tells that the lane has not
/// written there.
pub(crate) fn begin_write(space: &mut Space, view: &mut CodeView<'_>, addr: u64, len: u64) -> bool {
    let last = addr + len - 1;
    for page in addr / PAGE..=last / PAGE {
        if space.is_dirty(page * PAGE) {
            // Granules may be closed because of translations that are gone. Open ones stay open: the lane
            // may have written there before others had them translated.
            let closed = view.with(|code| code.granules_of_page(page));
            space.open_page_granules(page * PAGE, closed);
        } else {
            let closed = view.with(|code| {
                code.note_written(page);
                code.granules_of_page(page)
            });
            space.begin_writing(page * PAGE, closed);
        }
    }
    let granules = (addr / 64..=last / 64).map(|granule| granule * 64);
    granules.into_iter().all(|addr| space.granule(addr) == OPEN)
        || matches!(view, CodeView::Own(code) if !code.overlaps(addr, len))
}

/// An access that was not let through at once: decides in `allowed`.
pub(crate) unsafe extern "C" fn probe(context: *mut LaneContext) {
    // SAFETY: translated code passes the context it was entered with, whose `host` the engine has set
    // to a `SlowPath` that nobody else uses meanwhile.
    let (context, slow) = unsafe { (&mut *context, &mut *(*context).host.cast::<SlowPath<'_>>()) };
    let (addr, len, reads) = (context.detail, context.len & !READS, context.len & READS != 0);
    if slow.memory.is_mapped() {
        context.allowed = slow.admit(addr, len, reads).into();
        return;
    }
    let inside = slow.memory.probe(Access::Write, addr, len as u32).is_ok();
    context.allowed = match &mut slow.space {
        Some(space) if inside => begin_write(space, &mut slow.view, addr, len).into(),
        // In shared memory only translated words are closed.
        _ => 0,
    };
}

/// Compares and swaps 128 bits, operands and result in the context.
pub(crate) unsafe extern "C" fn cas128(context: *mut LaneContext) {
    // SAFETY: as in `probe`.
    let (context, slow) = unsafe { (&mut *context, &mut *(*context).host.cast::<SlowPath<'_>>()) };
    let [addr, low, high, new_low, new_high] = context.cas;
    let old = slow.memory.cas128(addr, [low, high], [new_low, new_high]);
    (context.cas[1], context.cas[2]) = (old[0], old[1]);
}

/// Computes the flags that were left to be computed.
pub(crate) unsafe extern "C" fn settle(context: *mut LaneContext) {
    // SAFETY: as in `probe`.
    let LaneContext { flags, state, .. } = unsafe { &mut *context };
    flags.settle(state);
}
