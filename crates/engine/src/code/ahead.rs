//! What is decoded before lanes get there.

use std::collections::{HashMap, VecDeque};
use std::sync::{LazyLock, OnceLock};

use kvrm_a64::state::PC;
use kvrm_a64::{Instruction, decode, kernel_form, table, translated_form};
use kvrm_ir::Op;
use kvrm_mem::PAGE;

use crate::flow::{flow, is_call};

/// The code that is reached from `entry` by direct branches, through calls and after stops the lane may
/// resume from, as addresses and words: what is nearest first, and no more than `most` instructions. `fetch` gives
/// the words, or `None` where there are none or none are wanted.
pub fn reachable(
    entry: u64,
    most: usize,
    mut fetch: impl FnMut(u64) -> Option<u32>,
) -> Vec<(u64, u32)> {
    let (mut seen, mut pending, mut code) = (Seen::default(), VecDeque::from([entry]), Vec::new());
    while let Some(pc) = pending.pop_front().filter(|_| code.len() < most) {
        if !seen.insert(pc) {
            continue;
        }
        let Some(word) = fetch(pc) else { continue };
        code.push((pc, word));
        match decode(word) {
            Some(row) if goes_on(row) => pending.push_back(pc.wrapping_add(4)),
            Some(row) => pending.extend(successors(row, word, pc)),
            None => {}
        }
    }
    code
}

/// Where a lane may be after an instruction, as far as that is known.
fn successors(row: &'static Instruction, word: u32, pc: u64) -> Vec<u64> {
    let routine = translated_form(row, word, pc);
    let flow = flow(&routine);
    let mut successors = flow.successors(pc);
    let resumes = routine.body.stmts.iter().any(|s| match s.op {
        Op::Exit { exit, .. } => exit.completes,
        _ => false,
    });
    if resumes || is_call(&routine, &flow, pc) {
        successors.push(pc.wrapping_add(4));
    }
    successors
}

/// True for rows whose instructions are never branches or stops, whatever their fields: no routine has to be made to
/// know that the next one follows.
fn goes_on(row: &Instruction) -> bool {
    static ROWS: LazyLock<Vec<OnceLock<bool>>> =
        LazyLock::new(|| table().iter().map(|_| OnceLock::new()).collect());
    *ROWS[row.index].get_or_init(|| {
        let routine = kernel_form(row);
        let exits = routine.body.stmts.iter().any(|s| match s.op {
            Op::Exit { cond, exit, .. } => exit.completes || routine.constant(cond).is_some(),
            _ => false,
        });
        !exits && !routine.writes_var(PC)
    })
}

/// Addresses of words, a bit for each.
#[derive(Default)]
struct Seen {
    pages: HashMap<u64, [u64; (PAGE / 4 / 64) as usize]>,
}

impl Seen {
    /// False if it was there before. Addresses that are no multiple of four are nobody's.
    fn insert(&mut self, pc: u64) -> bool {
        let (word, bit) = ((pc % PAGE / 4 / 64) as usize, 1 << (pc / 4 % 64));
        let words = &mut self.pages.entry(pc / PAGE).or_default()[word];
        let new = *words & bit == 0;
        *words |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;

    #[test]
    fn no_more_is_found_than_asked_for_and_the_nearest_first() {
        // A branch to 0x4000, and no-operations everywhere else.
        let fetch = |at| Some(if at == 0 { 0x1400_1000 } else { NOP });
        let found = reachable(0, 100, fetch);
        assert_eq!(found.len(), 100);
        assert_eq!(found[1].0, 0x4000);
        assert!(found[1..].iter().zip(0x4000 / 4..).all(|((at, _), n)| *at == 4 * n));
    }

    #[test]
    fn calls_return_and_system_calls_resume() {
        // bl 0x100; svc #0; b.eq 0x200; hlt #0; and a return at the two other places.
        let code = [0x9400_0040, 0xd400_0001, 0x5400_0fc0, 0xd440_0000];
        let fetch = |at: u64| match at {
            0x100 | 0x200 => Some(0xd65f_03c0),
            _ => code.get(at as usize / 4).copied(),
        };
        let mut found: Vec<u64> = reachable(0, 100, fetch).into_iter().map(|(at, _)| at).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 4, 8, 12, 0x100, 0x200]);
    }

    /// What is asked of the row alone is what its routines say.
    #[test]
    fn rows_that_go_on_have_one_successor() {
        for row in table() {
            let word = row.pattern.value;
            if row.matches(word) && goes_on(row) {
                assert_eq!(successors(row, word, 0x1000), [0x1004], "{}", row.name);
            }
        }
    }
}
