//! `FPCompare` and its siblings, `FPMax`, `FPMin`, `FPMaxNum`, `FPMinNum`.

use kvrm_ir::{Type, Val};

use super::{Fp, IOC};

/// N, Z, C and V of a comparison.
pub(super) const EQUAL: u32 = 0b0110;
pub(super) const LESS: u32 = 0b1000;
pub(super) const GREATER: u32 = 0b0010;
const UNORDERED: u32 = 0b0011;

/// Which NaNs make a comparison invalid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nans {
    /// Signalling ones.
    Signalling,
    /// All.
    All,
}

/// What a comparison asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    GreaterOrEqual,
    Greater,
}

/// Which operand is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Max,
    Min,
}

/// Two operands after flushing.
struct Pair<'b> {
    ops: [Val<'b>; 2],
    /// Numbers with the same order, signed, unless one is a NaN.
    ordered: [Val<'b>; 2],
    unordered: Val<'b>,
    flags: Val<'b>,
}

impl<'b> Fp<'b> {
    fn pair(self, op1: Val<'b>, op2: Val<'b>) -> Pair<'b> {
        let [op1, op2, flags] = self.b.if_else(
            self.flushes(),
            || {
                let ([op1, op2], flags) = self.flush([op1, op2]);
                [op1, op2, flags]
            },
            || [op1, op2, self.b.u32(0)],
        );
        let ops = [op1, op2];
        let parts = ops.map(|x| (self.sign(x).ne(0u64), self.magnitude(x)));
        let infinity = self.k(self.format.infinity());
        Pair {
            ops,
            ordered: parts.map(|(negative, magnitude)| negative.select(-magnitude, magnitude)),
            unordered: self.any(parts.map(|(_, magnitude)| infinity.ult(magnitude))),
            flags,
        }
    }

    /// The exceptions of a comparison with a NaN.
    fn unordered_flags(self, ops: [Val<'b>; 2], invalid: Nans) -> Val<'b> {
        match invalid {
            Nans::All => self.b.u32(IOC),
            Nans::Signalling => self.process_nans(ops)[1],
        }
    }

    /// N, Z, C and V.
    pub(super) fn compare(self, op1: Val<'b>, op2: Val<'b>, invalid: Nans) -> [Val<'b>; 2] {
        let b = self.b;
        let Pair { ops, ordered: [x, y], unordered, flags } = self.pair(op1, op2);
        let [nzcv, more] = b.if_else(
            unordered,
            || [b.u32(UNORDERED), self.unordered_flags(ops, invalid)],
            || {
                let unequal = x.slt(y).select(b.u32(LESS), b.u32(GREATER));
                [x.eq(y).select(b.u32(EQUAL), unequal), b.u32(0)]
            },
        );
        [nzcv, flags | more]
    }

    /// Whether the relation holds, as 0 or 1.
    pub(super) fn compares(self, op1: Val<'b>, op2: Val<'b>, relation: Relation) -> [Val<'b>; 2] {
        let b = self.b;
        let Pair { ops, ordered: [x, y], unordered, flags } = self.pair(op1, op2);
        let (holds, invalid) = match relation {
            Relation::Equal => (x.eq(y), Nans::Signalling),
            Relation::GreaterOrEqual => (y.sle(x), Nans::All),
            Relation::Greater => (y.slt(x), Nans::All),
        };
        let [holds, more] = b.if_else(
            unordered,
            || [b.u32(0), self.unordered_flags(ops, invalid)],
            || [holds.zext(Type::U32), b.u32(0)],
        );
        [holds, flags | more]
    }

    pub(super) fn extreme(self, op1: Val<'b>, op2: Val<'b>, which: Extreme) -> [Val<'b>; 2] {
        self.extreme_or(op1, op2, which, |ops| self.process_nans(ops))
    }

    /// `FPMaxNum`, `FPMinNum`: a number comes before a quiet NaN.
    pub(super) fn extreme_number(self, op1: Val<'b>, op2: Val<'b>, which: Extreme) -> [Val<'b>; 2] {
        self.extreme_or(op1, op2, which, |ops| {
            let [x, y] = ops;
            let [(nan_x, quiet_x), (nan_y, quiet_y)] =
                ops.map(|v| (self.is_nan(v), (v & self.format.quiet()).ne(0u64)));
            let [picked, flags] = self.process_nans(ops);
            let is_number = (nan_x ^ nan_y) & nan_x.select(quiet_x, quiet_y);
            [is_number.select(nan_x.select(y, x), picked), flags]
        })
    }

    /// The greater or the lesser operand; of zeros, the positive or the negative one.
    fn extreme_or(
        self,
        op1: Val<'b>,
        op2: Val<'b>,
        which: Extreme,
        nan: impl FnOnce([Val<'b>; 2]) -> [Val<'b>; 2],
    ) -> [Val<'b>; 2] {
        let b = self.b;
        let Pair { ops, ordered: [x, y], unordered, flags } = self.pair(op1, op2);
        let [op1, op2] = ops;
        let [result, more] = b.if_else(
            unordered,
            || nan(ops),
            || {
                let (first, of_equal) = match which {
                    Extreme::Max => (y.slt(x), op1 & op2),
                    Extreme::Min => (x.slt(y), op1 | op2),
                };
                [x.eq(y).select(of_equal, first.select(op1, op2)), b.u32(0)]
            },
        );
        [result, flags | more]
    }
}
