//! Vectors under construction.
//!
//! A vector is its two halves. Engines that compute with [wholes](Builder::has_wholes) get operations on these where
//! there is one for all elements, and for all other engines the same is written as formulas: a few of them work on
//! all elements of a half at a time, most go element by element.

use kvrm_ir::{Builder, PackedOp, Type, Val};

use super::arrangement::{Arrangement, Lane, Part};
use super::elements;
use crate::Sign;
use crate::context::Context;
use crate::state::{FPSR, Q, V};

/// What a vector register holds, or will hold: its lower and upper 64 bits, and the whole if that is at hand.
#[derive(Clone, Copy)]
pub(crate) struct Vector<'b>(pub(crate) [Val<'b>; 2], Option<Val<'b>>);

/// Which of two operations, by the sign.
fn signed(sign: Sign, signed: PackedOp, unsigned: PackedOp) -> PackedOp {
    match sign {
        Sign::Signed => signed,
        Sign::Unsigned => unsigned,
    }
}

impl<'b> Vector<'b> {
    /// A vector of two halves.
    pub(crate) fn of(halves: [Val<'b>; 2]) -> Self {
        Vector(halves, None)
    }

    /// A vector from a whole.
    pub(crate) fn of_whole(b: &'b Builder, whole: Val<'b>) -> Self {
        Vector([0, 1].map(|half| b.half(whole, half)), Some(whole))
    }

    /// A vector with the same bits in both halves.
    pub(crate) fn both(half: Val<'b>) -> Self {
        Vector::of([half, half])
    }

    /// A number in all elements.
    pub(crate) fn constant(self, lane: Lane, element: u64) -> Self {
        Vector::both(self.b().u64(lane.repeated(element)))
    }

    fn b(self) -> &'b Builder {
        self.0[0].builder()
    }

    /// The whole, where engines compute with these.
    pub(crate) fn whole(self) -> Option<Val<'b>> {
        let whole = || self.1.unwrap_or_else(|| self.b().pair(self.0));
        self.b().has_wholes().then(whole)
    }

    /// An operation on this and other vectors as wholes.
    pub(crate) fn packed<const N: usize>(
        self,
        op: PackedOp,
        lane: Lane,
        others: [Self; N],
    ) -> Option<Self> {
        let args: Option<Vec<_>> =
            std::iter::once(self).chain(others).map(|vector| vector.whole()).collect();
        Some(Vector::of_whole(self.b(), self.b().packed(op, lane.ty(), &args?)))
    }

    /// An operation with a number.
    fn packed_by(self, op: PackedOp, lane: Lane, number: Val<'b>) -> Option<Self> {
        let whole = self.whole()?;
        Some(Vector::of_whole(self.b(), self.b().packed(op, lane.ty(), &[whole, number])))
    }

    /// A bitwise operation of two vectors.
    pub(crate) fn bits(self, other: Self, f: impl Fn(Val<'b>, Val<'b>) -> Val<'b>) -> Self {
        match (self.whole(), other.whole()) {
            (Some(n), Some(m)) => Vector::of_whole(self.b(), f(n, m)),
            _ => self.by_halves(other, f),
        }
    }

    /// The same operation on both halves.
    pub(crate) fn by_halves(self, other: Self, f: impl Fn(Val<'b>, Val<'b>) -> Val<'b>) -> Self {
        Vector::of(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    /// All bits inverted.
    pub(crate) fn inverted(self) -> Self {
        self.bits(self, |n, _| !n)
    }

    /// Bits of `a` where this has ones, bits of `b` where it has zeros.
    pub(crate) fn choose(self, a: Self, b: Self) -> Self {
        a.bits(b, |a, b| a ^ b)
            .bits(self, |differing, chosen| differing & chosen)
            .bits(b, |x, b| x ^ b)
    }

    /// The same operation on the elements of two vectors: an operation on wholes, or a formula.
    fn each(
        self,
        t: Arrangement,
        other: Self,
        sign: Sign,
        op: PackedOp,
        f: impl Fn(Val<'b>, Val<'b>) -> Val<'b>,
    ) -> Self {
        self.packed(op, t.lane, [other]).unwrap_or_else(|| {
            let [n, m] = [self, other].map(|vector| vector.elements(t, sign));
            let elements: Vec<_> = n.into_iter().zip(m).map(|(n, m)| f(n, m)).collect();
            Vector::from_elements(self.b(), t.lane, &elements)
        })
    }

    /// Sums of the elements.
    pub(crate) fn add(self, lane: Lane, other: Self) -> Self {
        let top = lane.repeated(1 << (lane.bits() - 1));
        let by_halves = || {
            self.by_halves(other, |x, y| match lane {
                Lane::D => x + y,
                // The top bits are added without a carry, so that none gets into the next element.
                _ => ((x & !top) + (y & !top)) ^ ((x ^ y) & top),
            })
        };
        self.packed(PackedOp::Add, lane, [other]).unwrap_or_else(by_halves)
    }

    /// Differences of the elements.
    pub(crate) fn sub(self, lane: Lane, other: Self) -> Self {
        let top = lane.repeated(1 << (lane.bits() - 1));
        let by_halves = || {
            self.by_halves(other, |x, y| match lane {
                Lane::D => x - y,
                _ => ((x | top) - (y & !top)) ^ ((x ^ !y) & top),
            })
        };
        self.packed(PackedOp::Sub, lane, [other]).unwrap_or_else(by_halves)
    }

    /// Products of the elements.
    pub(crate) fn mul(self, t: Arrangement, other: Self) -> Self {
        if t.lane == Lane::B && self.b().has_wholes() {
            return self.mul_bytes(other);
        }
        self.each(t, other, Sign::Unsigned, PackedOp::Mul, |n, m| n * m)
    }

    /// Products of bytes, by those of halfwords: hosts have none for bytes.
    fn mul_bytes(self, other: Self) -> Self {
        let halfwords = Arrangement { lane: Lane::H, part: Part::Whole };
        let products = |high| {
            let [n, m] = [self, other].map(|v| v.widened(Lane::B, Sign::Unsigned, high));
            n.mul(halfwords, m).narrowed(Lane::B).0[0]
        };
        Vector::of([products(false), products(true)])
    }

    /// The larger elements.
    pub(crate) fn max(self, t: Arrangement, sign: Sign, other: Self) -> Self {
        let op = signed(sign, PackedOp::SMax, PackedOp::UMax);
        self.each(t, other, sign, op, |n, m| elements::max(sign, n, m))
    }

    /// The lesser elements.
    pub(crate) fn min(self, t: Arrangement, sign: Sign, other: Self) -> Self {
        let op = signed(sign, PackedOp::SMin, PackedOp::UMin);
        self.each(t, other, sign, op, |n, m| elements::min(sign, n, m))
    }

    /// Ones where elements are equal.
    pub(crate) fn equal(self, t: Arrangement, other: Self) -> Self {
        let holds = |n: Val<'b>, m| elements::mask(t.lane, n.eq(m));
        self.each(t, other, Sign::Unsigned, PackedOp::Equal, holds)
    }

    /// Ones where elements of this are greater.
    pub(crate) fn greater(self, t: Arrangement, sign: Sign, other: Self) -> Self {
        let op = signed(sign, PackedOp::SGreater, PackedOp::UGreater);
        let holds = |n, m| elements::mask(t.lane, elements::less(sign, m, n));
        self.each(t, other, sign, op, holds)
    }

    /// Elements shifted left, by less than their size.
    pub(crate) fn shl(self, lane: Lane, amount: Val<'b>) -> Self {
        self.packed_by(PackedOp::Shl, lane, amount).unwrap_or_else(|| {
            let reached = reached(self.b(), lane, amount);
            Vector::of(self.0.map(|n| n.shl_by(amount) & reached))
        })
    }

    /// Elements shifted right, by one more than `less_one`, which is less than their size.
    pub(crate) fn shr(self, t: Arrangement, sign: Sign, less_one: Val<'b>) -> Self {
        let op = signed(sign, PackedOp::Sar, PackedOp::Shr);
        let by_wholes = || {
            let rest = self.packed_by(op, t.lane, less_one)?;
            rest.packed_by(op, t.lane, less_one.like(1))
        };
        by_wholes().unwrap_or_else(|| {
            let shifted = |n| {
                let rest = elements::shift_right(sign, n, less_one);
                elements::shift_right(sign, rest, less_one.like(1))
            };
            let elements: Vec<_> = self.elements(t, sign).into_iter().map(shifted).collect();
            Vector::from_elements(self.b(), t.lane, &elements)
        })
    }

    /// The elements of one half, extended to twice the size.
    pub(crate) fn widened(self, lane: Lane, sign: Sign, high: bool) -> Self {
        let op = match (sign, high) {
            (Sign::Signed, false) => PackedOp::SWidenLow,
            (Sign::Signed, true) => PackedOp::SWidenHigh,
            (Sign::Unsigned, false) => PackedOp::UWidenLow,
            (Sign::Unsigned, true) => PackedOp::UWidenHigh,
        };
        self.packed(op, lane, []).unwrap_or_else(|| {
            let half = self.0[usize::from(high)];
            let spread =
                Vector::of([half & u64::from(u32::MAX), half >> 32].map(|n| spread(lane, n)));
            match sign {
                Sign::Unsigned => spread,
                // The sign bit counts as minus what it is worth.
                Sign::Signed => {
                    let to = lane.doubled();
                    let sign_bits = Vector::both(self.b().u64(to.repeated(1 << (lane.bits() - 1))));
                    spread.by_halves(sign_bits, |n, bits| n ^ bits).sub(to, sign_bits)
                }
            }
        })
    }

    /// The low halves of elements of twice the size, in the lower half; the upper half is zero.
    pub(crate) fn narrowed(self, lane: Lane) -> Self {
        let bytes = lane.bits() as usize / 8;
        let from = |to: usize| if to < 8 { to / bytes * 2 * bytes + to % bytes } else { 16 };
        let order = std::array::from_fn(|to| from(to) as u8);
        let zero = Vector::both(self.b().u64(0));
        self.packed(PackedOp::Shuffle(order), Lane::B, [zero]).unwrap_or_else(|| {
            let [low, high] = self.0.map(|n| gathered(lane, n));
            Vector::of([low | (high << 32), self.b().u64(0)])
        })
    }

    /// Elements of this vector and another, in an order: those of the other have the numbers from `t.count()` on.
    pub(crate) fn permuted(
        self,
        t: Arrangement,
        other: Self,
        order: impl Fn(usize) -> usize,
    ) -> Self {
        let bytes = t.lane.bits() as usize / 8;
        let from = |to: usize| {
            let number = order(to / bytes % t.count());
            let (vector, number) = (number / t.count(), number % t.count());
            (16 * vector + number * bytes + to % bytes) as u8
        };
        self.packed(PackedOp::Shuffle(std::array::from_fn(from)), Lane::B, [other]).unwrap_or_else(
            || {
                let all = [self, other].map(|vector| vector.elements(t, Sign::Unsigned)).concat();
                let elements: Vec<_> = (0..t.count()).map(|to| all[order(to)]).collect();
                Vector::from_elements(self.b(), t.lane, &elements)
            },
        )
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
    pub(crate) fn from_elements(b: &'b Builder, lane: Lane, elements: &[Val<'b>]) -> Self {
        let per_half = 64 / lane.bits() as usize;
        let half = |half: usize| {
            let first = (half * per_half).min(elements.len());
            let own = &elements[first..elements.len().min(first + per_half)];
            let placed = (0..).zip(own).map(|(i, element)| {
                let element = element.zext(Type::U64);
                let element = if lane < Lane::S { element & lane.mask() } else { element };
                element << (i * lane.bits())
            });
            placed.reduce(|a, b| a | b).unwrap_or_else(|| b.u64(0))
        };
        Vector::of([half(0), half(1)])
    }
}

impl<'b> Context<'b> {
    /// A vector register.
    pub(crate) fn vector(&self, r: Val<'b>) -> Vector<'b> {
        match self.b.has_wholes() {
            true => Vector::of_whole(self.b, self.b.read_reg(Q, r)),
            false => Vector::of([0, 1].map(|half| self.b.read_reg(V, half_slot(r, half)))),
        }
    }

    /// The vector register named by a field.
    pub(crate) fn vector_of(&self, field: &str) -> Vector<'b> {
        self.vector(self.field(field))
    }

    /// Sets a vector register.
    pub(crate) fn set_vector(&self, r: Val<'b>, vector: Vector<'b>) {
        if let Some(whole) = vector.whole() {
            return self.b.write_reg(Q, r, whole);
        }
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
        let zero = self.b.u64(0);
        let [low, _] = vector.0;
        let result = match t.part {
            Part::Element if t.lane < Lane::D => Vector::of([low & t.lane.mask(), zero]),
            Part::Element | Part::Half => Vector::of([low, zero]),
            Part::Whole => vector,
        };
        self.set_vector_of("Rd", result);
    }

    /// Sets the register `Rd` to elements.
    pub(crate) fn set_elements(&self, t: Arrangement, elements: &[Val<'b>]) {
        self.set_vector_of("Rd", Vector::from_elements(self.b, t.lane, elements));
    }

    /// The element with that number of a register.
    pub(crate) fn element_of(&self, r: Val<'b>, lane: Lane, index: Val<'b>, sign: Sign) -> Val<'b> {
        if self.b.has_wholes() {
            return self.vector(r).element(lane, known(index), sign);
        }
        let (slot, low) = element_place(r, lane, index);
        let word = self.b.read_reg(V, slot).shr_by(low);
        Vector::both(word).element(lane, 0, sign)
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
        if let Some(whole) = self.vector(r).whole() {
            let op = PackedOp::Insert(known(index) as u8);
            let element = element.trunc(lane.value_type());
            return self.b.write_reg(Q, r, self.b.packed(op, lane.ty(), &[whole, element]));
        }
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

/// The number that a value is: engines with wholes know the word.
fn known(index: Val<'_>) -> usize {
    index.constant().expect("the word is known") as usize
}

/// The bits of each element that a shift to the left can reach, in a half.
pub(super) fn reached<'b>(b: &'b Builder, lane: Lane, amount: Val<'b>) -> Val<'b> {
    match lane {
        Lane::D => b.u64(u64::MAX).shl_by(amount),
        _ => (b.u64(lane.mask()).shl_by(amount) & lane.mask()) * lane.repeated(1),
    }
}

/// The elements in the lower 32 bits, each with zeros above it to twice its size.
fn spread<'b>(lane: Lane, n: Val<'b>) -> Val<'b> {
    let halfwords = |n: Val<'b>| (n | (n << 16)) & 0x0000_ffff_0000_ffff;
    match lane {
        Lane::B => {
            let n = halfwords(n);
            (n | (n << 8)) & 0x00ff_00ff_00ff_00ff
        }
        Lane::H => halfwords(n),
        Lane::S | Lane::D => n,
    }
}

/// The low halves of elements of twice the size, in the lower 32 bits.
fn gathered<'b>(lane: Lane, n: Val<'b>) -> Val<'b> {
    let words = |n: Val<'b>| {
        let n = n & 0x0000_ffff_0000_ffff;
        (n | (n >> 16)) & u64::from(u32::MAX)
    };
    match lane {
        Lane::B => {
            let n = n & 0x00ff_00ff_00ff_00ff;
            words(n | (n >> 8))
        }
        Lane::H => words(n),
        Lane::S | Lane::D => n & u64::from(u32::MAX),
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
