//! The records that travel between client and oracle. All integers are
//! little-endian.
//!
//! Request: u32 number of code words, u32 instruction limit, u32 code address,
//! u32 flags, u64 X0 to X30, u64 SP, u64 NZCV, u64 TPIDR_EL0, the vectors, the
//! window, the code words.
//!
//! Result: u32 outcome, u32 the request's flags, u64 detail, u64 PC, u64 X0 to
//! X30, u64 SP, u64 NZCV, u64 TPIDR_EL0, the vectors, the window.
//!
//! Flag 0 says that there are vectors: 16 bytes for each of V0 to V31, u64 FPCR,
//! u64 FPSR. They are more than everything else together, so cases that do not
//! need them are sent and answered without.

use crate::{CODE_END, CODE_START, Case, Outcome, OutcomeKind, State, WINDOW_LEN};

/// The flag of records with vectors.
const VECTORS: u32 = 1;
/// The number of numbers at the start of a result.
const NUMBERS: usize = 3 + 34;
/// The number of bytes in the vectors.
const VECTORS_LEN: usize = 32 * 16 + 2 * 8;

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
    } else if (case.state.fpcr | case.state.fpsr) >> 32 != 0 {
        Some("FPCR or FPSR has bits set above 31")
    } else if !case.vectors && case.state != case.state.without_vectors() {
        Some("it has vectors and does not say so")
    } else {
        None
    }
}

/// Appends a case's request.
pub(crate) fn encode(case: &Case, out: &mut Vec<u8>) {
    let small = |number: u64| u32::try_from(number).expect("the code fits the code area");
    let flags = if case.vectors { VECTORS } else { 0 };
    let words = small(case.code.len() as u64);
    for number in [words, case.max_instructions, small(case.code_address), flags] {
        out.extend(number.to_le_bytes());
    }
    let State { x, sp, nzcv, tpidr_el0, v, fpcr, fpsr } = &case.state;
    for value in x.iter().chain([sp, nzcv, tpidr_el0]) {
        out.extend(value.to_le_bytes());
    }
    if case.vectors {
        out.extend(v.iter().flat_map(|v| v.to_le_bytes()));
        out.extend([fpcr, fpsr].into_iter().flat_map(|value| value.to_le_bytes()));
    }
    out.extend(case.window);
    for word in &case.code {
        out.extend(word.to_le_bytes());
    }
}

/// A result with an outcome that there is not.
pub(crate) struct UnknownOutcome;

/// Decodes the result that these bytes begin with; returns it and its number of
/// bytes, or `None` if some of it has yet to come.
pub(crate) fn decode(bytes: &[u8]) -> Option<Result<(Outcome, usize), UnknownOutcome>> {
    let mut rest = Bytes(bytes);
    let numbers = rest.numbers::<NUMBERS>()?;
    let mut state = State {
        x: std::array::from_fn(|i| numbers[3 + i]),
        sp: numbers[34],
        nzcv: numbers[35],
        tpidr_el0: numbers[36],
        ..State::default()
    };
    let (kind, flags) = (numbers[0] as u32, (numbers[0] >> 32) as u32);
    if flags & VECTORS != 0 {
        let vectors = rest.numbers::<{ VECTORS_LEN / 8 }>()?;
        let whole = |i: usize| u128::from(vectors[2 * i + 1]) << 64 | u128::from(vectors[2 * i]);
        (state.v, state.fpcr, state.fpsr) = (std::array::from_fn(whole), vectors[64], vectors[65]);
    }
    let window = *rest.take::<WINDOW_LEN>()?;
    let Some(kind) = decode_kind(kind) else { return Some(Err(UnknownOutcome)) };
    let [_, detail, pc, ..] = numbers;
    let outcome = Outcome { kind, detail, pc, state, window };
    Some(Ok((outcome, bytes.len() - rest.0.len())))
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let bytes = self.0.get(..8 * N)?;
        self.0 = &self.0[8 * N..];
        let (numbers, _) = bytes.as_chunks::<8>();
        Some(std::array::from_fn(|i| u64::from_le_bytes(numbers[i])))
    }
}

fn decode_kind(number: u32) -> Option<OutcomeKind> {
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
