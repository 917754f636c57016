//! Compares a lane with a lane of the reference.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kvrm::{Machine, Reg, Stop};

use crate::program::CODE;

/// Returns the difference that `compare` finds; errors and panics are differences too.
pub(crate) fn found(compare: impl FnOnce() -> kvrm::Result<Option<String>>) -> Option<String> {
    let compare = || compare().unwrap_or_else(|e| Some(format!("error: {e}")));
    catch_unwind(AssertUnwindSafe(compare)).unwrap_or_else(|_| Some("panic".to_string()))
}

/// Returns how the stop or the count of a lane differs from that of the reference's only lane.
pub(crate) fn stops_differ(
    machine: &Machine,
    lane: usize,
    reference: &Machine,
) -> kvrm::Result<Option<String>> {
    let stops = [machine.stop(lane)?, reference.stop(0)?];
    let counts = [machine.total_cycles(lane)?, reference.total_cycles(0)?];
    let same = stops[0] == stops[1] && counts[0] == counts[1];
    Ok((!same).then(|| format!("stops {stops:?} after {counts:?} instructions")))
}

/// Returns how the registers or the memory of a lane differ from those of the reference's only lane.
pub(crate) fn lanes_differ(
    machine: &Machine,
    lane: usize,
    reference: &Machine,
) -> kvrm::Result<Option<String>> {
    if let Some(difference) = registers_differ(machine, lane, reference)? {
        return Ok(Some(difference));
    }
    Ok(bytes_differ(&memory(machine, lane)?, &memory(reference, 0)?))
}

/// Returns how the registers of a lane differ from those of the reference's only lane.
pub(crate) fn registers_differ(
    machine: &Machine,
    lane: usize,
    reference: &Machine,
) -> kvrm::Result<Option<String>> {
    let [found, expected] = [machine.registers(lane)?, reference.registers(0)?];
    let wrong = Reg::all().find(|reg| found.get(*reg) != expected.get(*reg));
    Ok(wrong.map(|reg| format!("{reg} is {:#x}, not {:#x}", found.get(reg), expected.get(reg))))
}

/// Returns all of a lane's memory.
pub(crate) fn memory(machine: &Machine, lane: usize) -> kvrm::Result<Vec<u8>> {
    let mut memory = vec![0; machine.memory_size() as usize];
    machine.read_memory(lane, 0, &mut memory)?;
    Ok(memory)
}

/// Returns the first byte that differs.
pub(crate) fn bytes_differ(found: &[u8], expected: &[u8]) -> Option<String> {
    let at = found.iter().zip(expected).position(|(x, y)| x != y)?;
    Some(format!("byte {at:#x} is {:#04x}, not {:#04x}", found[at], expected[at]))
}

/// Moves a lane past what stopped it for good, in a program of this many words.
pub(crate) fn go_on(machine: &mut Machine, lane: usize, words: usize) -> kvrm::Result<()> {
    match machine.stop(lane)? {
        None | Some(Stop::MaxCycles | Stop::Syscall { .. }) => return Ok(()),
        Some(_) => {}
    }
    let words = words.max(1) as u64;
    let next = machine.pc(lane)?.wrapping_add(4) & !3;
    let inside = (CODE..CODE + 4 * words).contains(&next);
    let somewhere = CODE + machine.total_cycles(lane)? % words * 4;
    machine.set_pc(lane, if inside { next } else { somewhere })
}
