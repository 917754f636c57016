//! Rows that touch the vector registers, FPCR or FPSR, and what their cases begin with.

use std::sync::{LazyLock, OnceLock};

use kvrm_a64::state::{FPCR, FPCR_MASK, FPSR, V};
use kvrm_a64::{Instruction, shaped_form, table};
use kvrm_ir::{Op, Routine, Stmt, Terminator};
use kvrm_oracles::State;
use kvrm_random::vectors::{Element, Format};

use crate::generate::random_word;
use crate::random::Random;

/// What a row's instructions do, as far as it matters for their cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// They read or write vector registers, FPCR or FPSR.
    pub vectors: bool,
    /// They read FPCR, so they compute with floating-point numbers.
    pub fpcr: bool,
    /// They access memory, branch or stop.
    pub more_than_registers: bool,
}

/// Words of a row that are looked at: what they touch hardly depends on their fields.
const LOOKED_AT: usize = 4;

/// Returns what a row's instructions do.
pub fn touches(row: &'static Instruction) -> Touches {
    static ROWS: LazyLock<Vec<OnceLock<Touches>>> =
        LazyLock::new(|| table().iter().map(|_| OnceLock::new()).collect());
    *ROWS[row.index].get_or_init(|| {
        let mut random = Random::new(row.index as u64);
        (0..LOOKED_AT).fold(Touches::default(), |touches, _| {
            let word = random_word(&mut random, row);
            touches.and(&shaped_form(row, word))
        })
    })
}

impl Touches {
    fn and(mut self, routine: &Routine) -> Touches {
        self.more_than_registers |= routine.end != Terminator::Next;
        routine.body.for_each_stmt(&mut |Stmt { op, .. }| {
            let on_registers = matches!(op, Op::ReadReg(V, _) | Op::WriteReg(V, ..));
            let on_controls = matches!(op, Op::ReadVar(FPCR | FPSR) | Op::WriteVar(FPCR | FPSR, _));
            self.vectors |= on_registers || on_controls;
            self.fpcr |= matches!(op, Op::ReadVar(FPCR));
            self.more_than_registers |= matches!(op, Op::Probe { .. } | Op::Exit { .. });
        });
        self
    }
}

/// Fills vector registers, FPCR and FPSR with hard values for a word of a row.
pub fn fill(random: &mut Random, row: &'static Instruction, word: u32, state: &mut State) {
    let likely = likely_elements(word, touches(row).fpcr);
    let is_other = random.once_in(8);
    let element = random.pick(if is_other { &Element::ALL } else { &likely });
    fill_all(random, element, state);
    relate_operands(random, row, word, element, state);
}

/// Fills vector registers, FPCR and FPSR with hard values, most of them of one kind.
pub fn fill_all(random: &mut Random, element: Element, state: &mut State) {
    state.v = std::array::from_fn(|_| {
        let is_other = random.once_in(8);
        let element = if is_other { random.pick(&Element::ALL) } else { element };
        random.hard_vector(element)
    });
    state.fpcr = random.hard_fpcr() & FPCR_MASK;
    state.fpsr = random.hard_fpsr();
}

/// Guesses what a word's vectors consist of, from the places where encodings mostly have the size (C4.1).
fn likely_elements(word: u32, is_float: bool) -> [Element; 8] {
    use Element::{Float, Integer};
    let size = word >> 22 & 3;
    let is_scalar_float = word & 0x5e00_0000 == 0x1e00_0000;
    let is_shift_by_immediate = word & 0x9f80_0400 == 0x0f00_0400;
    if is_scalar_float {
        let formats = [Format::SINGLE, Format::DOUBLE, Format::DOUBLE, Format::HALF];
        return [Float(formats[size as usize]); 8];
    }
    let of_size = Integer(8 << size);
    let twice = Integer((16 << size).min(64));
    let half = Integer((4 << size).max(8));
    let immh = word >> 19 & 15;
    if is_float {
        let (float, integer) = match size & 1 {
            0 => (Float(Format::SINGLE), Integer(32)),
            _ => (Float(Format::DOUBLE), Integer(64)),
        };
        let [half, bfloat] = [Float(Format::HALF), Float(Format::BFLOAT)];
        [float, float, float, half, half, half, integer, bfloat]
    } else if is_shift_by_immediate && immh != 0 {
        let of_shift = 8 << immh.ilog2();
        let twice = Integer((2 * of_shift).min(64));
        let of_shift = Integer(of_shift);
        [of_shift, of_shift, of_shift, of_shift, of_shift, twice, twice, twice]
    } else {
        [of_size, of_size, of_size, of_size, twice, half, Integer(8), Integer(64)]
    }
}

/// Makes operands equal or close to each other, and results of multiplications close to what is added to them, so that
/// all leading digits go.
fn relate_operands(
    random: &mut Random,
    row: &'static Instruction,
    word: u32,
    element: Element,
    state: &mut State,
) {
    let register = |name| row.pattern.field(name).map(|field| field.get(word) as usize & 31);
    let (Some(n), Some(m)) = (register("Rn"), register("Rm")) else { return };
    let addend = register("Ra").or(register("Rd"));
    match (random.below(8), element, addend) {
        (0..3, ..) => {
            let (near, old) = (state.v[n], state.v[m]);
            state.v[m] = element.fill(|i| match random.once_in(2) {
                true => random.related_element(element, element.get(near, i)),
                false => element.get(old, i),
            });
        }
        (3 | 4, Element::Float(format), Some(addend)) => {
            let product = product(format, state.v[n], state.v[m]);
            state.v[addend] =
                element.fill(|i| random.related_element(element, element.get(product, i)));
        }
        // A quotient or a root that comes out even, or almost.
        (5, Element::Float(format), _) => {
            let factor = random.pick(&[m, addend.unwrap_or(m)]);
            let product = product(format, state.v[factor], state.v[m]);
            state.v[n] = element.fill(|i| random.related_element(element, element.get(product, i)));
        }
        _ => {}
    }
}

/// Multiplies vectors, roughly.
fn product(format: Format, a: u128, b: u128) -> u128 {
    let element = Element::Float(format);
    element.fill(|i| {
        let [a, b] = [a, b].map(|vector| format.to_f64(element.get(vector, i)));
        format.from_f64(a * b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::row;

    #[test]
    fn what_rows_touch_is_known_from_their_routines() {
        let names = ["ADD_imm_X", "MRS_FPCR", "MSR_FPSR", "LDR_X_uimm", "B"];
        let found = names.map(|name| touches(row(name)));
        let nothing = Touches::default();
        let controls = Touches { vectors: true, ..nothing };
        let more = Touches { more_than_registers: true, ..nothing };
        assert_eq!(found, [nothing, Touches { fpcr: true, ..controls }, controls, more, more]);
    }

    #[test]
    fn elements_are_those_that_the_word_names() {
        let share = |word, is_float, element| {
            likely_elements(word, is_float).into_iter().filter(|e| *e == element).count()
        };
        // fadd s0, s1, s2 and its siblings of other sizes.
        assert_eq!(share(0x1e22_2820, true, Element::Float(Format::SINGLE)), 8);
        assert_eq!(share(0x1e62_2820, true, Element::Float(Format::DOUBLE)), 8);
        assert_eq!(share(0x1ee2_2820, true, Element::Float(Format::HALF)), 8);
        // fadd v0.2d, v1.2d, v2.2d; add v0.4s, v1.4s, v2.4s; sshr v0.8h, v1.8h, #1
        assert!(share(0x4e62_d420, true, Element::Float(Format::DOUBLE)) >= 3);
        assert!(share(0x4ea2_8420, false, Element::Integer(32)) >= 4);
        assert!(share(0x4f1f_0420, false, Element::Integer(16)) >= 4);
    }

    #[test]
    fn what_is_added_is_close_to_the_product() {
        let half = |value: f64| u128::from(Format::HALF.from_f64(value));
        let product =
            product(Format::HALF, half(-1.5) << 16 | half(3.0), half(2.0) << 16 | half(0.5));
        assert_eq!(product, half(-3.0) << 16 | half(1.5));
    }
}
