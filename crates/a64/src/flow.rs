//! Where control goes after an instruction.

use std::sync::{LazyLock, OnceLock};

use kvrm_ir::{Hint, Terminator};

use crate::{Instruction, decode, shaped_form, table, translated_form};

/// Where control goes after an instruction, as far as its word and address tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To a known address.
    Jump {
        /// Where to.
        target: u64,
        /// It is a call, from which the program may return.
        call: bool,
    },
    /// To a known address or to the next instruction.
    Branch {
        /// Where to if the condition holds.
        target: u64,
    },
    /// To a computed address.
    Indirect(Hint),
    /// The lane stops.
    Stop {
        /// It stops after the instruction, and can go on with the next.
        resumes: bool,
    },
}

impl Flow {
    /// True if control goes on with the next instruction and nowhere else.
    pub fn is_next(&self) -> bool {
        *self == Flow::Next
    }

    /// The addresses where control may go on after an instruction at `pc`, as far as they are known:
    /// after calls, where it returns to.
    pub fn successors(&self, pc: u64) -> impl Iterator<Item = u64> + use<> {
        let next = pc.wrapping_add(4);
        let (next, target) = match *self {
            Flow::Next | Flow::Indirect(Hint::Call) | Flow::Stop { resumes: true } => {
                (Some(next), None)
            }
            Flow::Jump { target, call } => (call.then_some(next), Some(target)),
            Flow::Branch { target } => (Some(next), Some(target)),
            Flow::Indirect(Hint::Jump | Hint::Return) | Flow::Stop { resumes: false } => {
                (None, None)
            }
        };
        next.into_iter().chain(target)
    }
}

/// Whether an instruction may do anything but go on with the next: no routine of a word has to be made to know
/// that it does not.
fn may_branch(instruction: &Instruction) -> bool {
    static ROWS: LazyLock<Vec<OnceLock<bool>>> =
        LazyLock::new(|| table().iter().map(|_| OnceLock::new()).collect());
    let end = || shaped_form(instruction, instruction.pattern.value).end;
    *ROWS[instruction.index].get_or_init(|| end() != Terminator::Next)
}

/// Where control goes after the word at `pc`.
///
/// ```
/// use kvrm_a64::{Flow, flow};
/// assert_eq!(flow(0x9400_0002, 0x1000), Flow::Jump { target: 0x1008, call: true }); // bl
/// assert_eq!(flow(0x9100_0420, 0x1000), Flow::Next); // add
/// ```
pub fn flow(word: u32, pc: u64) -> Flow {
    let Some(instruction) = decode(word) else {
        return Flow::Stop { resumes: false };
    };
    if !may_branch(instruction) {
        return Flow::Next;
    }
    let routine = translated_form(instruction, word, pc);
    let known =
        |target| routine.constant(target).expect("the word and its address give the target");
    match routine.end {
        Terminator::Next => Flow::Next,
        Terminator::Jump { target, call } => Flow::Jump { target: known(target), call },
        Terminator::Branch { target, .. } => Flow::Branch { target: known(target) },
        Terminator::Indirect { hint, .. } => Flow::Indirect(hint),
        Terminator::Stop { exit, .. } => Flow::Stop { resumes: exit.completes },
    }
}
