//! What semantics functions work with: the word's fields, registers, flags, memory, and the Arm
//! manual's shared pseudocode.

use kvrm_ir::{Access, Builder, Exit, Order, Type, Val};

use crate::row::Pattern;
use crate::state::{self, C, N, PC, SINK, SP, V, X, Z, ZR};
use crate::stop;

/// The building site of one instruction.
pub struct Context<'b> {
    /// For operations that have no helper here.
    pub b: &'b Builder,
    pattern: &'b Pattern,
    pc: Option<u64>,
}

/// Negative, zero, carry and overflow.
#[derive(Clone, Copy)]
pub(crate) struct Flags<'b> {
    pub(crate) n: Val<'b>,
    pub(crate) z: Val<'b>,
    pub(crate) c: Val<'b>,
    pub(crate) v: Val<'b>,
}

impl<'b> Context<'b> {
    pub(crate) fn new(b: &'b Builder, pattern: &'b Pattern, pc: Option<u64>) -> Self {
        Context { b, pattern, pc }
    }

    /// A field of the word, as a `u32`.
    pub(crate) fn field(&self, name: &str) -> Val<'b> {
        let field = self.pattern.field(name).unwrap_or_else(|| panic!("no field {name}"));
        self.b.word_bits(field.low, field.len)
    }

    /// A one-bit field, as a `bool`.
    pub(crate) fn flag(&self, name: &str) -> Val<'b> {
        self.field(name).ne(0u64)
    }

    /// A field as a signed number, times `scale`.
    pub(crate) fn signed_field(&self, name: &str, scale: u32) -> Val<'b> {
        let field = self.pattern.field(name).unwrap_or_else(|| panic!("no field {name}"));
        let unused = self.b.u32(64 - field.len);
        self.field(name).zext(Type::U64).shl_by(unused).sar_by(unused) << scale.trailing_zeros()
    }

    // Registers.

    /// Register `r`, or zero for 31; the low bits for a `u32`.
    pub(crate) fn reg(&self, ty: Type, r: Val<'b>) -> Val<'b> {
        self.b.read_reg(X, r).trunc(ty)
    }

    /// Register named by a field, or zero for 31.
    pub(crate) fn reg_of(&self, ty: Type, field: &str) -> Val<'b> {
        self.reg(ty, self.field(field))
    }

    /// Register named by a field, or the stack pointer for 31.
    pub(crate) fn reg_or_sp_of(&self, ty: Type, field: &str) -> Val<'b> {
        self.b.read_reg(X, self.sp_slot(self.field(field))).trunc(ty)
    }

    fn sp_slot(&self, r: Val<'b>) -> Val<'b> {
        r.eq(u64::from(ZR)).select(self.b.u32(SP), r)
    }

    /// Sets register `r`, unless it is 31; a narrower value clears the upper bits.
    pub(crate) fn set_reg(&self, r: Val<'b>, value: Val<'b>) {
        let slot = r.eq(u64::from(ZR)).select(self.b.u32(SINK), r);
        self.b.write_reg(X, slot, value.zext(Type::U64));
    }

    /// Sets the register named by a field, unless it is 31.
    pub(crate) fn set_reg_of(&self, field: &str, value: Val<'b>) {
        self.set_reg(self.field(field), value);
    }

    /// Sets the register named by a field, the stack pointer for 31.
    pub(crate) fn set_reg_or_sp_of(&self, field: &str, value: Val<'b>) {
        self.b.write_reg(X, self.sp_slot(self.field(field)), value.zext(Type::U64));
    }

    // Program counter.

    /// Address of this instruction.
    pub(crate) fn pc(&self) -> Val<'b> {
        match self.pc {
            Some(pc) => self.b.u64(pc),
            None => self.b.read_var(PC),
        }
    }

    /// Address of the next instruction.
    pub(crate) fn next_pc(&self) -> Val<'b> {
        self.pc() + 4u64
    }

    /// Continues at `target`.
    pub(crate) fn branch(&self, target: Val<'b>) {
        self.b.write_var(PC, target);
    }

    /// Continues at `target` if `cond`.
    pub(crate) fn branch_if(&self, cond: Val<'b>, target: Val<'b>) {
        self.b.write_var(PC, cond.select(target, self.next_pc()));
    }

    // Flags.

    /// The flags as they are.
    pub(crate) fn flags(&self) -> Flags<'b> {
        let read = |var| self.b.read_var(var);
        Flags { n: read(N), z: read(Z), c: read(C), v: read(V) }
    }

    /// Sets all four flags.
    pub(crate) fn set_flags(&self, flags: Flags<'b>) {
        for (var, value) in [(N, flags.n), (Z, flags.z), (C, flags.c), (V, flags.v)] {
            self.b.write_var(var, value);
        }
    }

    /// The flags in bits 3 to 0 of a `u32`, as CCMP has them.
    pub(crate) fn flags_from_bits(&self, nzcv: Val<'b>) -> Flags<'b> {
        Flags { n: nzcv.bit(3), z: nzcv.bit(2), c: nzcv.bit(1), v: nzcv.bit(0) }
    }

    /// Sign and zero of a result, with the carry and overflow of the logical instructions: none.
    pub(crate) fn logical_flags(&self, result: Val<'b>) -> Flags<'b> {
        let none = self.b.bool(false);
        Flags { n: result.sign(), z: result.eq(0u64), c: none, v: none }
    }

    /// `ConditionHolds`.
    pub(crate) fn condition_holds(&self, cond: Val<'b>) -> Val<'b> {
        let Flags { n, z, c, v } = self.flags();
        let base = cond >> 1;
        let ge = n.eq(v);
        let tests = [z, c, n, v, c & !z, ge, ge & !z];
        let result = tests
            .into_iter()
            .enumerate()
            .rfold(self.b.bool(true), |rest, (i, test)| base.eq(i as u64).select(test, rest));
        // AL (1110) and NV (1111) both mean always.
        let inverted = cond.bit(0) & base.ne(7u64);
        inverted.select(!result, result)
    }

    /// `AddWithCarry` for an addition: sum and flags.
    pub(crate) fn add(&self, x: Val<'b>, y: Val<'b>) -> (Val<'b>, Flags<'b>) {
        let sum = x + y;
        (sum, Flags { n: sum.sign(), z: sum.eq(0u64), c: sum.ult(x), v: x.saddo(y) })
    }

    /// `AddWithCarry` for a subtraction: difference and flags; carry means no borrow.
    pub(crate) fn sub(&self, x: Val<'b>, y: Val<'b>) -> (Val<'b>, Flags<'b>) {
        let diff = x - y;
        (diff, Flags { n: diff.sign(), z: diff.eq(0u64), c: y.ule(x), v: x.ssubo(y) })
    }

    /// `AddWithCarry` in full: sum of three and flags.
    pub(crate) fn add_with_carry(
        &self,
        x: Val<'b>,
        y: Val<'b>,
        carry: Val<'b>,
    ) -> (Val<'b>, Flags<'b>) {
        let partial = x + y;
        let sum = partial + carry.zext(x.ty());
        let c = partial.ult(x) | sum.ult(partial);
        let v = ((x ^ sum) & (y ^ sum)).sign();
        (sum, Flags { n: sum.sign(), z: sum.eq(0u64), c, v })
    }

    // Stops.

    /// Stops the lane with `reason` before the instruction has done anything.
    pub(crate) fn stop_if(&self, cond: Val<'b>, reason: u8, detail: Val<'b>) {
        self.b.exit_if(cond, Exit { reason, completes: false }, detail);
    }

    /// `CheckAlignment`: a fault unless `addr` is a multiple of `len`.
    pub(crate) fn check_aligned(&self, addr: Val<'b>, len: u32) {
        self.stop_if((addr & u64::from(len - 1)).ne(0u64), stop::UNALIGNED, addr);
    }

    // Memory.

    /// Checks `len` bytes from `addr` on; what they hold is reached through the [`Span`] alone.
    pub(crate) fn span(&self, access: Access, addr: Val<'b>, len: u32) -> Span<'b> {
        self.b.probe(access, addr, len);
        Span { b: self.b, addr }
    }

    /// Forgets what the exclusive monitor has marked.
    pub(crate) fn clear_exclusive(&self) {
        self.b.write_var(state::EXCLUSIVE_LEN, self.b.u32(0));
    }
}

/// A piece of guest memory that has been checked.
#[derive(Clone, Copy)]
pub(crate) struct Span<'b> {
    b: &'b Builder,
    pub(crate) addr: Val<'b>,
}

impl<'b> Span<'b> {
    /// Loads the value at `offset`.
    pub(crate) fn load(&self, ty: Type, order: Order, offset: u64) -> Val<'b> {
        self.b.load(ty, order, self.addr + offset)
    }

    /// Stores a value at `offset`.
    pub(crate) fn store(&self, order: Order, offset: u64, value: Val<'b>) {
        self.b.store(order, self.addr + offset, value);
    }
}
