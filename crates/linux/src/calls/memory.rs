//! Memory.

use linux_raw_sys::general as raw;

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::files::Kind;
use crate::memory::{Area, Backing, Label, PAGE, Permissions, Placement, Remap, TOP, page_up};
use crate::vfs::NodeId;

pub(super) fn brk(call: &mut Call<'_>) -> Answer {
    let end = call.args[0];
    call.memory().set_heap_end(end)
}

pub(super) fn mmap(call: &mut Call<'_>) -> Answer {
    let [addr, len, protection, flags, _, offset] = call.args;
    let flags = flags as u32;
    if len == 0 || !offset.is_multiple_of(PAGE) {
        return Err(Errno::INVAL.into());
    }
    let len = page_up(len).ok_or(Errno::NOMEM)?;
    if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
        return Err(Errno::OVERFLOW.into());
    }
    let placement = match flags {
        flags if flags & raw::MAP_FIXED_NOREPLACE != 0 => Placement::Free(addr),
        flags if flags & raw::MAP_FIXED != 0 => Placement::Fixed(addr),
        _ => Placement::Anywhere(addr),
    };
    let shared = match flags & raw::MAP_TYPE {
        raw::MAP_PRIVATE => false,
        raw::MAP_SHARED | raw::MAP_SHARED_VALIDATE => true,
        _ => return Err(Errno::INVAL.into()),
    };
    let access = access_of(protection);
    if flags & raw::MAP_ANONYMOUS != 0 {
        let backing = match shared {
            false => Backing::Anonymous,
            true => Backing::Shared { segment: call.kernel.segments.add(), offset: 0 },
        };
        let area = Area { end: 0, access, backing, beyond: false, label: Label::None };
        return map(call, placement, len, area);
    }
    let node = mappable(call, shared, access)?;
    map_file(call, placement, len, access, (node, offset, shared))
}

/// The file that is to be mapped, if its descriptor allows it.
fn mappable(call: &mut Call<'_>, shared: bool, access: Permissions) -> Answer<NodeId> {
    let file = call.file(4)?;
    let file = call.kernel.files.get(file);
    let Kind::Node(node) = file.kind else { return Err(Errno::NODEV.into()) };
    let (mode, node) = (file.mode, node);
    let writes = shared && access.contains(Permissions::WRITE);
    if !mode.reads || writes && !mode.writes {
        return Err(Errno::ACCES.into());
    }
    Ok(node)
}

fn map(call: &mut Call<'_>, placement: Placement, len: u64, area: Area) -> Answer {
    let number = call.process().memory;
    call.kernel.sync_shared(number);
    let part = match placement {
        Placement::Fixed(at) => at..at.saturating_add(page_up(len).unwrap_or(TOP)).min(TOP).max(at),
        Placement::Anywhere(_) | Placement::Free(_) => 0..0,
    };
    call.kernel.change_areas(number, part, |memory| memory.map(placement, len, area))
}

fn map_file(
    call: &mut Call<'_>,
    placement: Placement,
    len: u64,
    access: Permissions,
    (node, offset, shared): (NodeId, u64, bool),
) -> Answer {
    let size = call.kernel.node_size(call.tid, node)?;
    let there = page_up(size.saturating_sub(offset)).unwrap_or(TOP).min(len);
    let backing = Backing::File { node, offset, shared };
    let area = Area { end: 0, access, backing, beyond: false, label: Label::None };
    let at = map(call, placement, len, Area { access: Permissions::NONE, ..area })?;
    if there > 0 {
        // It counts, whatever may be done with it.
        let counted = call.memory().protect(at, there, Permissions::READ);
        if let Err(refusal) = counted {
            call.memory().unmap(at, len)?;
            return Err(refusal);
        }
        call.kernel.bring(call.tid, node, offset, at, there.min(size - offset))?;
        call.memory().protect(at, there, access)?;
    }
    let number = call.process().memory;
    call.kernel.retain_shown(number, node)?;
    if there < len {
        let backing = Backing::File { node, offset: offset + there, shared };
        let area = Area { access, backing, beyond: true, ..area };
        call.memory().map(Placement::Fixed(at + there), len - there, area)?;
    }
    Ok(at)
}

pub(super) fn munmap(call: &mut Call<'_>) -> Answer {
    let number = call.process().memory;
    call.kernel.sync_shared(number);
    let [addr, len, ..] = call.args;
    let part = addr.min(TOP)..addr.saturating_add(len).min(TOP);
    call.kernel.change_areas(number, part, |memory| memory.unmap(addr, len))
}

pub(super) fn mprotect(call: &mut Call<'_>) -> Answer {
    let [addr, len, protection, ..] = call.args;
    if !addr.is_multiple_of(PAGE) {
        return Err(Errno::INVAL.into());
    }
    call.memory().protect(addr, len, access_of(protection))
}

pub(super) fn mremap(call: &mut Call<'_>) -> Answer {
    let [addr, old, new, flags, to, _] = call.args;
    let flags = flags as u32;
    let (moves, fixed) = (flags & raw::MREMAP_MAYMOVE != 0, flags & raw::MREMAP_FIXED != 0);
    let known = raw::MREMAP_MAYMOVE | raw::MREMAP_FIXED;
    let sizes = page_up(old).zip(page_up(new)).filter(|(old, new)| *old > 0 && *new > 0);
    let (Some((old, new)), true) = (sizes, addr.is_multiple_of(PAGE) && flags & !known == 0) else {
        return Err(Errno::INVAL.into());
    };
    let overlaps = to < addr.saturating_add(old) && addr < to.saturating_add(new);
    let is_far = to.checked_add(new).is_none_or(|end| end > TOP);
    if fixed && (!moves || !to.is_multiple_of(PAGE) || overlaps || is_far) {
        return Err(Errno::INVAL.into());
    }
    let end = addr.checked_add(old).filter(|end| *end <= TOP).ok_or(Errno::INVAL)?;
    let how = match (fixed, moves) {
        (true, _) => Remap::Fixed(to),
        (false, true) => Remap::Move,
        (false, false) => Remap::Stay,
    };
    let number = call.process().memory;
    let at =
        call.kernel.change_areas(number, 0..TOP, |memory| memory.remap(addr..end, new, how))?;
    if new > old {
        call.kernel.show_more(call.tid, at + old)?;
    }
    Ok(at)
}

pub(super) fn madvise(call: &mut Call<'_>) -> Answer {
    let [addr, len, advice, ..] = call.args;
    if !addr.is_multiple_of(PAGE) {
        return Err(Errno::INVAL.into());
    }
    if len == 0 {
        return Ok(0);
    }
    match advice as u32 {
        raw::MADV_DONTNEED | raw::MADV_FREE => call.memory().forget(addr, len),
        0..=3 | 10..=25 => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn msync(call: &mut Call<'_>) -> Answer {
    let [addr, len, ..] = call.args;
    let end = addr.checked_add(len).and_then(page_up);
    let Some(end) = end.filter(|_| addr.is_multiple_of(PAGE)) else {
        return Err(Errno::INVAL.into());
    };
    let mut at = addr;
    while at < end {
        let found = call.memory().areas().find(at).map(|(_, area)| area.end);
        at = found.ok_or(Errno::NOMEM)?;
    }
    let memory = call.process().memory;
    call.kernel.sync_shared(memory);
    Ok(0)
}

/// All memory is always there.
pub(super) fn mincore(call: &mut Call<'_>) -> Answer {
    let [addr, len, to, ..] = call.args;
    let end = addr.checked_add(len).and_then(page_up).ok_or(Errno::NOMEM)?;
    if !addr.is_multiple_of(PAGE) {
        return Err(Errno::INVAL.into());
    }
    let mut at = addr;
    while at < end {
        let found = call.memory().areas().find(at).map(|(_, area)| area.end);
        at = found.ok_or(Errno::NOMEM)?;
    }
    let pages = (end - addr) / PAGE;
    for first in (0..pages).step_by(4096) {
        let ones = vec![1; (pages - first).min(4096) as usize];
        call.memory().write(to + first, &ones)?;
    }
    Ok(0)
}

/// Memory is never paged out, so locking has nothing to do.
pub(super) fn mlock(call: &mut Call<'_>) -> Answer {
    let [addr, len, ..] = call.args;
    let start = addr - addr % PAGE;
    let end = addr.checked_add(len).and_then(page_up).ok_or(Errno::INVAL)?;
    let mut at = start;
    while at < end {
        let found = call.memory().areas().find(at).map(|(_, area)| area.end);
        at = found.ok_or(Errno::NOMEM)?;
    }
    Ok(0)
}

pub(super) fn mlockall(_: &mut Call<'_>) -> Answer {
    Ok(0)
}

/// What may be done with memory, from `PROT_…`.
fn access_of(protection: u64) -> Permissions {
    let bits = [
        (raw::PROT_READ, Permissions::READ),
        (raw::PROT_WRITE, Permissions::WRITE),
        (raw::PROT_EXEC, Permissions::EXECUTE),
    ];
    let granted = bits.into_iter().filter(|(bit, _)| protection & u64::from(*bit) != 0);
    let access = granted.fold(Permissions::NONE, |access, (_, one)| access | one);
    // The processor has no pages that can be written or executed but not read.
    if access == Permissions::NONE { access } else { access | Permissions::READ }
}
