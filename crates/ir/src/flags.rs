//! What conditions mean, by what the flags are the flags of.

use crate::builder::Builder;
use crate::op::{Cond, Flags};
use crate::val::Val;

/// N, Z, C and V, as `bool`s.
pub(crate) fn bits<'b>(b: &'b Builder, flags: Flags<Val<'b>>) -> [Val<'b>; 4] {
    match flags {
        Flags::Add(x, y) => {
            let sum = x + y;
            [sum.sign(), sum.eq(0u64), sum.ult(x), x.saddo(y)]
        }
        Flags::Sub(x, y) => {
            let difference = x - y;
            [difference.sign(), difference.eq(0u64), y.ule(x), x.ssubo(y)]
        }
        Flags::Logic(x) => [x.sign(), x.eq(0u64), b.bool(false), b.bool(false)],
        Flags::Bits(bits) => bits,
    }
}

/// Whether a condition holds. After a subtraction or a logical operation most are one comparison.
pub(crate) fn test<'b>(b: &'b Builder, flags: Flags<Val<'b>>, cond: Cond) -> Val<'b> {
    let difference = match flags {
        Flags::Sub(x, y) => (x, y),
        // Without carry or overflow, the signed conditions are those of a comparison with zero.
        Flags::Logic(x) => match cond {
            Cond::Cs | Cond::Hi | Cond::Vs => return b.bool(false),
            Cond::Cc | Cond::Ls | Cond::Vc => return b.bool(true),
            _ => (x, b.konst(x.ty(), 0)),
        },
        Flags::Add(..) | Flags::Bits(_) => return of_bits(bits(b, flags), cond),
    };
    let (x, y) = difference;
    match cond {
        Cond::Eq => x.eq(y),
        Cond::Ne => x.ne(y),
        Cond::Cs => y.ule(x),
        Cond::Cc => x.ult(y),
        Cond::Mi => (x - y).sign(),
        Cond::Pl => !(x - y).sign(),
        Cond::Vs => x.ssubo(y),
        Cond::Vc => !x.ssubo(y),
        Cond::Hi => y.ult(x),
        Cond::Ls => x.ule(y),
        Cond::Ge => y.sle(x),
        Cond::Lt => x.slt(y),
        Cond::Gt => y.slt(x),
        Cond::Le => x.sle(y),
    }
}

/// Whether a condition holds, by the four flags.
pub(crate) fn of_bits([n, z, c, v]: [Val<'_>; 4], cond: Cond) -> Val<'_> {
    match cond {
        Cond::Eq => z,
        Cond::Ne => !z,
        Cond::Cs => c,
        Cond::Cc => !c,
        Cond::Mi => n,
        Cond::Pl => !n,
        Cond::Vs => v,
        Cond::Vc => !v,
        Cond::Hi => c & !z,
        Cond::Ls => !c | z,
        Cond::Ge => n.eq(v),
        Cond::Lt => n.ne(v),
        Cond::Gt => n.eq(v) & !z,
        Cond::Le => n.ne(v) | z,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Type;

    fn constant(v: Val<'_>) -> bool {
        v.constant().expect("operands are known") != 0
    }

    /// Short ways to a condition agree with the four flags.
    #[test]
    fn conditions_agree_with_the_flags() {
        const EDGES: [u64; 7] = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff];
        for (x, y) in EDGES.into_iter().flat_map(|x| EDGES.map(|y| (x, y))) {
            let b = Builder::new(None);
            let (x, y) = (b.konst(Type::U32, x), b.konst(Type::U32, y));
            for flags in [Flags::Add(x, y), Flags::Sub(x, y), Flags::Logic(x)] {
                for cond in (0..14).filter_map(Cond::from_code) {
                    let direct = constant(test(&b, flags, cond));
                    let by_bits = constant(of_bits(bits(&b, flags), cond));
                    let name = flags.map(|v| v.constant());
                    assert_eq!(direct, by_bits, "{cond:?} of {name:x?}");
                }
            }
        }
    }

    /// The carry of a subtraction is the complement of a borrow; overflow is signed.
    #[test]
    fn flags_of_a_difference() {
        let b = Builder::new(None);
        let of = |x, y| {
            let flags = Flags::Sub(b.konst(Type::U32, x), b.konst(Type::U32, y));
            bits(&b, flags).map(constant)
        };
        assert_eq!(of(1, 1), [false, true, true, false]);
        assert_eq!(of(0, 1), [true, false, false, false]);
        assert_eq!(of(0x8000_0000, 1), [false, false, true, true]);
    }
}
