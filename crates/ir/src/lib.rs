//! The small scalar intermediate representation every engine consumes.
//!
//! A [`Routine`] describes what **one guest instruction** does to the state of one machine
//! ("lane"): it computes on scalar values, reads and writes registers, variables and guest memory,
//! and may stop the lane. This page is its specification; the evaluator ([`eval`]) is its reference
//! implementation, and [`verify`] checks what can be checked statically.
//!
//! # Values and types
//!
//! Every value is defined once and has one [`Type`]: `bool`, `u8`, `u16`, `u32` or `u64`. Integers
//! are bit patterns without a sign; operations say how they read them. Arithmetic exists on `u32`
//! and `u64` alone, bitwise logic on `bool` too; `u8` and `u16` occur only as memory contents and in
//! conversions. A value is visible in the block that defines it and in the blocks nested in it.
//!
//! Constants are values without a defining statement.
//!
//! # Pure operations
//!
//! | operation | result |
//! |---|---|
//! | `add` `sub` `mul` `neg` | modulo 2^width |
//! | `umulh` `smulh` | the upper half of the unsigned or signed double-width product |
//! | `udiv` `sdiv` | quotient rounded towards zero; **x / 0 = 0**; **sdiv(MIN, -1) = MIN** |
//! | `and` `or` `xor` `not` | bitwise; on `bool` the logical operation |
//! | `shl` `shr` `sar` `rotr` | left, logical right, arithmetic right, rotate right; **the amount (a `u32`) is taken modulo the width** |
//! | `clz` | leading zero bits; **clz(0) = width** |
//! | `rbit` `bswap` | bits, bytes in reverse order |
//! | `eq` `ne` `ult` `ule` `slt` `sle` | a `bool`; `u…` compares unsigned, `s…` signed |
//! | `saddo` `ssubo` | a `bool`: whether the sum or difference, read as signed, does not fit the type |
//! | `select` | the second operand if the first (a `bool`) is true, else the third; both are values already computed |
//! | `trunc` | the low bits, to a narrower type |
//! | `zext` `sext` | to a wider type, filled with zeros or copies of the sign bit; `zext` of a `bool` is 0 or 1 |
//! | `float` | arithmetic on floating-point numbers ([`FloatOp`]) |
//! | `packed` | the same on all elements of a `u128` ([`PackedOp`]) |
//! | `pair` `half` | a `u128` of two `u64`, and one of them: 0 is the lower |
//!
//! Pure operations have no effect, cannot fail and may be removed or repeated. `call` is one, too: it gives the
//! results of a [`Function`], whose routine has only pure operations and `if`s. It can have several sets of arguments,
//! one after the other; then it gives the results for each of them.
//!
//! # Inputs
//!
//! `word` is the instruction word (`u32`) and exists only in a routine built with the word unknown.
//! `param` is an input that was computed beforehand, in a routine that [`cut`] has taken apart.
//! `count` is the number of instructions the lane has completed before this one (`u64`).
//!
//! # State
//!
//! A *register file* ([`File`]) is an array of `u64` or `u128` slots indexed by a `u32` value. One slot may be
//! declared to read as zero, one to be a sink for writes nobody reads; an index outside the file does
//! not occur (the verifier checks constants, the producer guarantees the rest). A *variable*
//! ([`Var`]) is a single typed cell. Reads see earlier writes of the same routine.
//!
//! There are four *flags*: N (negative), Z (zero), C (carry) and V (overflow). `set flags` says what they
//! are the flags of ([`Flags`]): a sum, a difference, a logical result, or four given bits. `test` asks
//! whether a condition holds ([`Cond`]). So an engine may compute the four bits at once, or keep the
//! operands and compute what is asked for.
//!
//! # Memory
//!
//! `probe` is the only operation that sees a guest address, a `u64`. It asks for a number of elements
//! of one type from that address on: if any byte of them (computed without wrap-around) may not be
//! accessed as asked, the routine ends there with a fault of the lane; the fault address is the first
//! such byte. Otherwise it makes a *place* ([`Place`]), through which all other operations reach memory,
//! element by element; they cannot fail. Memory is little-endian; `load` and `store` need no alignment.
//!
//! `rmw` and `cas` are single-copy atomic with respect to other lanes and return the old contents;
//! the producer has checked their alignment. `cas128` compares and exchanges two consecutive `u64`.
//! An acquiring `load` is ordered before, a releasing `store` after, the lane's other accesses;
//! `fence` orders all of them; `rmw`, `cas` and `cas128` are sequentially consistent.
//!
//! # Leaving
//!
//! `exit` ends the routine if its condition holds: the lane stops with a reason code the producer
//! chose and a `u64` detail. An exit that *completes* counts the instruction as executed and moves
//! to the next one; any other leaves the machine as if the instruction had not begun, so it must come
//! before every write (the verifier insists, for probes too).
//!
//! # Control flow
//!
//! `if` runs one of two nested blocks; each yields as many values as the statement has results. There
//! are no loops: an instruction's work is bounded.
//!
//! A routine ends with a [`Terminator`], which says where control goes: to the next instruction, to an
//! address that is known when the instruction is decoded (always, or if a condition holds), to a
//! computed address, or nowhere, because the lane stops. Calls and returns are told apart from other
//! branches. Only the terminator changes the program counter.

mod arith;
mod builder;
pub mod cut;
mod dce;
pub mod derive;
pub mod eval;
mod flags;
mod fold;
mod function;
pub mod legalise;
mod numbers;
mod op;
pub mod pieces;
mod print;
mod sink;
mod val;
pub mod verify;

pub use builder::Builder;
pub use dce::remove_dead_stmts;
pub use function::{Body, Function};
pub use op::{
    Access, BinOp, Block, CmpOp, Cond, ConvOp, Exit, File, Flags, FloatOp, Hint, Op, Order,
    PackedOp, Place, PlaceData, RmwOp, Routine, Stmt, Terminator, Type, UnOp, Value, ValueData,
    Var,
};
pub use val::{Checked, IntoVal, Val};
