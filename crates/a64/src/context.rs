//! What semantics functions work with: the word's fields, registers, flags, memory, and the Arm
//! manual's shared pseudocode.

use kvrm_ir::{Access, Builder, Checked, Cond, Exit, Flags, Hint, Order, Type, Val};

use crate::row::{Field, Pattern};
use crate::state::{self, PC, SINK, SP, X, ZR};
use crate::stop;

/// The building site of one instruction.
pub struct Context<'b> {
    /// For operations that have no helper here.
    pub b: &'b Builder,
    pattern: &'b Pattern,
    pc: Option<u64>,
}

impl<'b> Context<'b> {
    pub(crate) fn new(b: &'b Builder, pattern: &'b Pattern, pc: Option<u64>) -> Self {
        Context { b, pattern, pc }
    }

    /// A field of the word, as a `u32`.
    pub(crate) fn field(&self, name: &str) -> Val<'b> {
        let field = self.field_of(name);
        self.b.word_bits(field.low, field.len)
    }

    fn field_of(&self, name: &str) -> Field {
        self.pattern.field(name).unwrap_or_else(|| panic!("no field {name}"))
    }

    /// A field that decides what kind of work it is.
    pub(crate) fn shape(&self, name: &str) -> u32 {
        let field = self.field_of(name);
        assert!(field.is_shape, "{name} is not marked as part of the shape");
        self.b.known_bits(field.low, field.len).expect("the shape is known in every form")
    }

    /// A one-bit field, as a `bool`.
    pub(crate) fn flag(&self, name: &str) -> Val<'b> {
        self.field(name).ne(0u64)
    }

    /// A field as a signed number, times `scale`.
    pub(crate) fn signed_field(&self, name: &str, scale: u32) -> Val<'b> {
        let field = self.field_of(name);
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

    /// Continues at a known address; `call` if the link register has been set.
    pub(crate) fn jump(&self, target: Val<'b>, call: bool) {
        self.b.jump(target, call);
    }

    /// Continues at a known address if `cond`.
    pub(crate) fn branch_if(&self, cond: Val<'b>, target: Val<'b>) {
        self.b.branch_if(cond, target);
    }

    /// Continues at a computed address.
    pub(crate) fn branch_to(&self, target: Val<'b>, hint: Hint) {
        self.b.indirect(target, hint);
    }

    // Flags.

    /// N, Z, C and V as they are.
    pub(crate) fn flags(&self) -> [Val<'b>; 4] {
        Cond::FLAGS.map(|flag| self.b.test(flag))
    }

    /// Sets all four flags.
    pub(crate) fn set_flags(&self, flags: Flags<Val<'b>>) {
        self.b.set_flags(flags);
    }

    /// The flags in bits 3 to 0 of a `u32`, as CCMP has them.
    pub(crate) fn flags_from_bits(&self, nzcv: Val<'b>) -> [Val<'b>; 4] {
        [3, 2, 1, 0].map(|bit| nzcv.bit(bit))
    }

    /// `ConditionHolds` of the field `cond`.
    pub(crate) fn condition_holds(&self) -> Val<'b> {
        match Cond::from_code(self.shape("cond")) {
            Some(cond) => self.b.test(cond),
            None => self.b.bool(true),
        }
    }

    /// `AddWithCarry` in full: sum of three and flags.
    pub(crate) fn add_with_carry(
        &self,
        x: Val<'b>,
        y: Val<'b>,
        carry: Val<'b>,
    ) -> (Val<'b>, Flags<Val<'b>>) {
        let partial = x + y;
        let sum = partial + carry.zext(x.ty());
        let c = partial.ult(x) | sum.ult(partial);
        let v = ((x ^ sum) & (y ^ sum)).sign();
        (sum, Flags::Bits([sum.sign(), sum.eq(0u64), c, v]))
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

    /// Checks `count` elements of type `ty` from `addr` on.
    pub(crate) fn probe(&self, access: Access, addr: Val<'b>, ty: Type, count: u32) -> Checked<'b> {
        self.b.probe(access, addr, ty, count)
    }

    /// Loads the value at `addr`.
    pub(crate) fn load(&self, ty: Type, order: Order, addr: Val<'b>) -> Val<'b> {
        self.probe(Access::Read, addr, ty, 1).load(order, 0)
    }

    /// Stores a value at `addr`.
    pub(crate) fn store(&self, order: Order, addr: Val<'b>, value: Val<'b>) {
        self.probe(Access::Write, addr, value.ty(), 1).store(order, 0, value);
    }

    /// Forgets what the exclusive monitor has marked.
    pub(crate) fn clear_exclusive(&self) {
        self.b.write_var(state::EXCLUSIVE_LEN, self.b.u32(0));
    }
}
