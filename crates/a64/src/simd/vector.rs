//! Vectors under construction.

use kvrm_ir::{Type, Val};

use super::arrangement::{Arrangement, Lane, Part};
use crate::Sign;
use crate::context::Context;
use crate::state::{FPSR, V};

/// What a vector register holds, or will hold: its lower and upper 64 bits.
#[derive(Clone, Copy)]
pub(crate) struct Vector<'b>(pub(crate) [Val<'b>; 2]);

impl<'b> Vector<'b> {
    /// The same bitwise operation on both halves.
    pub(crate) fn bitwise(self, other: Self, f: impl Fn(Val<'b>, Val<'b>) -> Val<'b>) -> Self {
        Vector(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    /// Bits of `a` where this has ones, bits of `b` where it has zeros.
    pub(crate) fn choose(self, a: Self, b: Self) -> Self {
        Vector(std::array::from_fn(|i| b.0[i] ^ ((a.0[i] ^ b.0[i]) & self.0[i])))
    }

    /// Sums of the elements.
    pub(crate) fn add(self, lane: Lane, other: Self) -> Self {
        let top = lane.repeated(1 << (lane.bits() - 1));
        self.bitwise(other, |x, y| match lane {
            Lane::D => x + y,
            // The top bits are added without a carry, so that none gets into the next element.
            _ => ((x & !top) + (y & !top)) ^ ((x ^ y) & top),
        })
    }

    /// Differences of the elements.
    pub(crate) fn sub(self, lane: Lane, other: Self) -> Self {
        let top = lane.repeated(1 << (lane.bits() - 1));
        self.bitwise(other, |x, y| match lane {
            Lane::D => x - y,
            _ => ((x | top) - (y & !top)) ^ ((x ^ !y) & top),
        })
    }

    /// The first elements of an arrangement, each extended to the type that it is [computed](Lane::value_type) with.
    pub(crate) fn elements(self, t: Arrangement, sign: Sign) -> Vec<Val<'b>> {
        (0..t.count()).map(|i| self.element(t.lane, i, sign)).collect()
    }

    /// The elements that instructions lengthen: the first one, those of the lower half, or where the arrangement is a
    /// whole register, those of the upper half.
    pub(crate) fn half_elements(self, t: Arrangement, sign: Sign) -> Vec<Val<'b>> {
        match t.part {
            Part::Element | Part::Half => self.elements(t, sign),
            Part::Whole => self.elements(t, sign).split_off(t.count() / 2),
        }
    }

    /// One element.
    pub(crate) fn element(self, lane: Lane, index: usize, sign: Sign) -> Val<'b> {
        let per_half = 64 / lane.bits() as usize;
        let (half, low) = (self.0[index / per_half], (index % per_half) as u32 * lane.bits());
        let low = half >> low;
        match (lane, sign) {
            (Lane::D, _) => low,
            (Lane::S, _) => low.trunc(Type::U32),
            (_, Sign::Unsigned) => low.trunc(lane.ty()).zext(Type::U32),
            (_, Sign::Signed) => low.trunc(lane.ty()).sext(Type::U32),
        }
    }

    /// A vector of these elements, of which only the low bits count; what they do not reach is zero.
    pub(crate) fn from_elements(cx: &Context<'b>, lane: Lane, elements: &[Val<'b>]) -> Self {
        let per_half = 64 / lane.bits() as usize;
        let half = |half: usize| {
            let first = (half * per_half).min(elements.len());
            let own = &elements[first..elements.len().min(first + per_half)];
            let placed = (0..).zip(own).map(|(i, element)| {
                let element = element.zext(Type::U64);
                let element = if lane < Lane::S { element & lane.mask() } else { element };
                element << (i * lane.bits())
            });
            placed.reduce(|a, b| a | b).unwrap_or_else(|| cx.b.u64(0))
        };
        Vector([half(0), half(1)])
    }
}

impl<'b> Context<'b> {
    /// A vector register.
    pub(crate) fn vector(&self, r: Val<'b>) -> Vector<'b> {
        Vector([0, 1].map(|half| self.b.read_reg(V, half_slot(r, half))))
    }

    /// The vector register named by a field.
    pub(crate) fn vector_of(&self, field: &str) -> Vector<'b> {
        self.vector(self.field(field))
    }

    /// Sets a vector register.
    pub(crate) fn set_vector(&self, r: Val<'b>, vector: Vector<'b>) {
        for (half, value) in (0..).zip(vector.0) {
            self.b.write_reg(V, half_slot(r, half), value);
        }
    }

    /// Sets the vector register named by a field.
    pub(crate) fn set_vector_of(&self, field: &str, vector: Vector<'b>) {
        self.set_vector(self.field(field), vector);
    }

    /// Sets the part of the register `Rd` that an arrangement takes, and clears the rest.
    pub(crate) fn set_result(&self, t: Arrangement, vector: Vector<'b>) {
        let [low, high] = vector.0;
        let zero = self.b.u64(0);
        self.set_vector_of(
            "Rd",
            Vector(match t.part {
                Part::Element if t.lane < Lane::D => [low & t.lane.mask(), zero],
                Part::Element | Part::Half => [low, zero],
                Part::Whole => [low, high],
            }),
        );
    }

    /// Sets the register `Rd` to elements.
    pub(crate) fn set_elements(&self, t: Arrangement, elements: &[Val<'b>]) {
        self.set_vector_of("Rd", Vector::from_elements(self, t.lane, elements));
    }

    /// The element with that number of a register.
    pub(crate) fn element_of(&self, r: Val<'b>, lane: Lane, index: Val<'b>, sign: Sign) -> Val<'b> {
        let (slot, low) = element_place(r, lane, index);
        let word = self.b.read_reg(V, slot).shr_by(low);
        Vector([word, word]).element(lane, 0, sign)
    }

    /// The element with that number of the register named by a field.
    pub(crate) fn element_at(
        &self,
        field: &str,
        lane: Lane,
        index: Val<'b>,
        sign: Sign,
    ) -> Val<'b> {
        self.element_of(self.field(field), lane, index, sign)
    }

    /// Sets the element with that number of a register to the low bits of a `u64`.
    pub(crate) fn set_element_of(&self, r: Val<'b>, lane: Lane, index: Val<'b>, element: Val<'b>) {
        let (slot, low) = element_place(r, lane, index);
        let old = self.b.read_reg(V, slot);
        let mask = self.b.u64(lane.mask()).shl_by(low);
        self.b.write_reg(V, slot, (old & !mask) | (element.shl_by(low) & mask));
    }

    /// Sets QC if one of these holds.
    pub(crate) fn set_saturation(&self, saturated: impl IntoIterator<Item = Val<'b>>) {
        const QC: u32 = 27;
        let any = saturated.into_iter().reduce(|a, b| a | b).expect("there are elements");
        self.b.write_var(FPSR, self.b.read_var(FPSR) | any.zext(Type::U64) << QC);
    }
}

/// The slot of half a register.
fn half_slot(r: Val<'_>, half: u64) -> Val<'_> {
    (r << 1) + half
}

/// The slot that holds an element of a register, and its lowest bit there.
fn element_place<'b>(r: Val<'b>, lane: Lane, index: Val<'b>) -> (Val<'b>, Val<'b>) {
    let per_half = 64 / lane.bits();
    let slot = (r << 1) + (index >> per_half.ilog2());
    (slot, (index & u64::from(per_half - 1)) << lane.bits().ilog2())
}
