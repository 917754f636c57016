//! The records that travel between client and oracle. All integers are
//! little-endian.
//!
//! Request: u32 number of code words, u32 instruction limit, u64 code address,
//! u64 X0 to X30, u64 SP, u64 NZCV, u64 TPIDR_EL0, the window, the code words.
//!
//! Result: u32 outcome, u32 zero, u64 detail, u64 PC, u64 X0 to X30, u64 SP,
//! u64 NZCV, u64 TPIDR_EL0, the window.

use crate::{CODE_END, CODE_START, Case, Outcome, OutcomeKind, State, WINDOW_LEN};

/// The number of bytes in a result.
pub(crate) const RESULT_LEN: usize = 3 * 8 + 34 * 8 + WINDOW_LEN;

/// Returns the rule that a case breaks, if any.
pub(crate) fn broken_rule(case: &Case) -> Option<&'static str> {
    let words = case.code.len() as u64;
    // The end marker takes one more word.
    let room = CODE_END.saturating_sub(case.code_address) / 4;
    if words == 0 {
        Some("it has no code")
    } else if case.max_instructions == 0 {
        Some("its instruction limit is 0")
    } else if case.max_instructions == 1 && words != 1 {
        Some("an instruction limit of 1 needs exactly one instruction")
    } else if !case.code_address.is_multiple_of(4) {
        Some("its code address is not a multiple of 4")
    } else if case.code_address < CODE_START || words >= room {
        Some("its code and one more word do not fit the code area")
    } else if case.state.nzcv & !0xF000_0000 != 0 {
        Some("NZCV has bits set other than 31 to 28")
    } else {
        None
    }
}

/// Appends a case's request.
pub(crate) fn encode(case: &Case, out: &mut Vec<u8>) {
    let words = u32::try_from(case.code.len()).expect("the code fits the code area");
    out.extend(words.to_le_bytes());
    out.extend(case.max_instructions.to_le_bytes());
    out.extend(case.code_address.to_le_bytes());
    let State { x, sp, nzcv, tpidr_el0 } = &case.state;
    for value in x.iter().chain([sp, nzcv, tpidr_el0]) {
        out.extend(value.to_le_bytes());
    }
    out.extend(case.window);
    for word in &case.code {
        out.extend(word.to_le_bytes());
    }
}

/// Decodes a result; `None` if it has an unknown outcome.
pub(crate) fn decode(record: &[u8; RESULT_LEN]) -> Option<Outcome> {
    let (numbers, window) = record.split_at(RESULT_LEN - WINDOW_LEN);
    let (numbers, _) = numbers.as_chunks::<8>();
    let number = |index: usize| u64::from_le_bytes(numbers[index]);
    Some(Outcome {
        kind: decode_kind(number(0))?,
        detail: number(1),
        pc: number(2),
        state: State {
            x: std::array::from_fn(|i| number(3 + i)),
            sp: number(34),
            nzcv: number(35),
            tpidr_el0: number(36),
        },
        window: window.try_into().ok()?,
    })
}

fn decode_kind(number: u64) -> Option<OutcomeKind> {
    Some(match number {
        0 => OutcomeKind::Done,
        1 => OutcomeKind::Undefined,
        2 => OutcomeKind::MemoryFault,
        3 => OutcomeKind::AlignmentFault,
        4 => OutcomeKind::Svc,
        5 => OutcomeKind::Brk,
        6 => OutcomeKind::Limit,
        7 => OutcomeKind::Other,
        _ => return None,
    })
}
