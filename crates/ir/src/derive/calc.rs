//! How values are computed from others.

use super::Id;
use crate::arith;
use crate::eval::{call, flags_of, holds};
use crate::function::Function;
use crate::op::*;

/// An operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    /// It is the same in all runs.
    Same(u64),
    Derived(Id),
}

/// How a value is computed.
#[derive(Clone, Debug)]
pub(super) enum Calc {
    /// The byte that was given with that number.
    Given(usize),
    /// These bits, but for some bytes, which are bytes of others: which one, of whom, and where there.
    Bytes(u64, Vec<(u8, Id, u8)>),
    Unary(UnOp, Type, Arg),
    Binary(BinOp, Type, [Arg; 2]),
    Compare(CmpOp, Type, [Arg; 2]),
    Select([Arg; 3]),
    Convert(ConvOp, Type, Type, Arg),
    Float(FloatOp, Type, Type, Vec<Arg>),
    /// One of the results.
    Call(&'static Function, Vec<Arg>, usize),
    /// N, Z, C and V, a bit each.
    Flags(Type, Flags<Arg>),
    Test(Cond, Arg),
}

/// A byte of a value.
pub(super) fn byte_of(value: u64, byte: u8) -> u8 {
    value.to_le_bytes()[usize::from(byte)]
}

/// Computes a value from others.
pub(super) fn evaluate(calc: &Calc, given: &[u8], get: impl Fn(Id) -> u64) -> u64 {
    let arg = |arg: Arg| match arg {
        Arg::Same(bits) => bits,
        Arg::Derived(id) => get(id),
    };
    match calc {
        Calc::Given(number) => given[*number].into(),
        Calc::Bytes(bits, parts) => {
            let mut bytes = bits.to_le_bytes();
            for (at, id, byte) in parts {
                bytes[usize::from(*at)] = byte_of(get(*id), *byte);
            }
            u64::from_le_bytes(bytes)
        }
        Calc::Unary(op, ty, a) => arith::unary(*op, *ty, arg(*a)),
        Calc::Binary(op, ty, [a, b]) => arith::binary(*op, *ty, arg(*a), arg(*b)),
        Calc::Compare(op, ty, [a, b]) => arith::compare(*op, *ty, arg(*a), arg(*b)).into(),
        Calc::Select([c, a, b]) => arg(if arg(*c) != 0 { *a } else { *b }),
        Calc::Convert(op, from, to, a) => arith::convert(*op, *from, *to, arg(*a)),
        Calc::Float(op, from, to, args) => {
            let args: Vec<u64> = args.iter().map(|a| arg(*a)).collect();
            arith::float(*op, *from, *to, &args)
        }
        Calc::Call(function, args, index) => {
            let args: Vec<u64> = args.iter().map(|a| arg(*a)).collect();
            let calls = args.chunks(function.params.len());
            let results: Vec<u64> = calls.flat_map(|args| call(function, args)).collect();
            results[*index]
        }
        Calc::Flags(ty, flags) => {
            let flags = flags_of(*ty, flags.map(arg));
            flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag))
        }
        Calc::Test(cond, flags) => {
            let flags = arg(*flags);
            holds(*cond, [0, 1, 2, 3].map(|bit| flags >> bit & 1 != 0)).into()
        }
    }
}
