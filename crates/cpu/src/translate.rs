//! From a region to a function of the host: blocks, fuel, jumps and exits. What the instructions between them
//! do is in `emit`.
//!
//! A translated function has the arguments (lane context, fuel, guest address) and returns nothing. It
//! leaves by a tail call to the code of the next guest address, without returning to the engine, or
//! by storing why in the lane context and returning.

use std::mem::offset_of;
use std::sync::atomic::AtomicPtr;

use cranelift::codegen::ir::{self, MemFlagsData};
use cranelift::codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift::prelude::*;
use kvrm_a64::state::{CpuState, X_SLOTS};
use kvrm_ir::legalise::{Calls, Lacks};
use kvrm_ir::{Op, Routine, Type as IrType};
use kvrm_mem::GRANULE;
use kvrm_translate::{
    Block as GuestBlock, End, ExitFlags, FLAG_OPERANDS, Goto, Region, SLOTS, Slots, Source,
    slot_number,
};

use crate::context::{ExitKind, FUNCTION_VALUES, JUMP_ENTRIES, JumpEntry, LaneContext};
use crate::flags;
use crate::functions::Addresses;
use crate::packed::Forms;

/// What all translations for a machine have in common.
pub(crate) struct HostTarget {
    pub(crate) isa: OwnedTargetIsa,
    pub(crate) memory_size: u64,
    /// Whether other threads use the same guest memory.
    pub(crate) shared: bool,
    /// Stores fault.
    pub(crate) read_only: bool,
    /// The host can add a product with one rounding.
    pub(crate) has_fma: bool,
    /// It is an x86 that can look up bytes.
    pub(crate) has_pshufb: bool,
}

/// Where code for a guest address will be found, once there is some.
pub(crate) type LinkCell = AtomicPtr<u8>;

/// Cranelift's division traps where the IR's does not, and it has no test for overflow.
pub(crate) const LACKS: Lacks = Lacks {
    total_division: true,
    overflow: true,
    wide_bit_order: false,
    byte_order: false,
    rotation: None,
    upper_products: false,
    signed_division: false,
    wide_shifts: false,
    wholes: true,
    calls: Calls::Shortened,
    flag_operands: false,
};

/// The signature of translated functions.
pub(crate) fn function_signature() -> Signature {
    let mut signature = Signature::new(CallConv::Tail);
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature
}

/// The signature of the slow-path stubs, which get the lane context and leave every register alone.
pub(crate) fn stub_signature() -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.push(AbiParam::new(types::I64));
    signature
}

/// The host's type for a value of the IR.
pub(crate) fn host_type(ty: IrType) -> Type {
    match ty {
        IrType::Bool | IrType::U8 => types::I8,
        IrType::U16 => types::I16,
        IrType::U32 => types::I32,
        IrType::U64 => types::I64,
        IrType::U128 => types::I8X16,
    }
}

/// Memory that belongs to the lane context: always there, never the guest's.
pub(crate) fn context_flags() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// What translated code refers to.
pub(crate) struct Outside<'a> {
    /// Where functions are.
    pub(crate) functions: &'a Addresses,
    /// Gives the cell for a guest address.
    pub(crate) link_cell: &'a mut dyn FnMut(u64) -> *const LinkCell,
}

/// Translates one region.
pub(crate) struct Translator<'a> {
    pub(crate) b: FunctionBuilder<'a>,
    pub(crate) target: &'a HostTarget,
    pub(crate) region: &'a Region,
    pub(crate) outside: Outside<'a>,
    /// Blocks of the host, by the region's numbers.
    blocks: Vec<Block>,
    /// Host values of the region's values.
    pub(crate) values: Vec<Option<Value>>,
    /// What else is known of some of them.
    pub(crate) forms: Forms,
    /// Host addresses of the region's places.
    pub(crate) places: Vec<Option<Value>>,
    regs: [Option<Variable>; SLOTS],
    pub(crate) flag_vars: [Variable; 4],
    operand_vars: [[Variable; 2]; 2],
    uses_flags: bool,
    fuel: Variable,
    pub(crate) context: Value,
    pub(crate) memory: Value,
    pub(crate) granules: Value,
    // Of the current instruction.
    /// Registers whose values in the lane context are out of date.
    dirty: Slots,
    pub(crate) flags: ExitFlags,
    pub(crate) pc: u64,
    /// Instructions of the block from this one on.
    pub(crate) unexecuted: i64,
}

/// Fills `function` with the translation of a region that is entered at `entry`. `stale_granules` are
/// addresses whose granules must be closed on entry, or the lane has changed the code.
pub(crate) fn translate<'a>(
    function: &'a mut ir::Function,
    scratch: &'a mut FunctionBuilderContext,
    target: &'a HostTarget,
    entry: u64,
    region: &'a Region,
    stale_granules: &[u64],
    outside: Outside<'a>,
) {
    let b = FunctionBuilder::new(function, scratch);
    let mut translator = Translator::new(b, target, region, outside);
    let fuel = translator.argument(1);
    translator.b.def_var(translator.fuel, fuel);
    translator.pc = entry;
    translator.load_state();
    translator.check_not_stale(stale_granules);
    let first = translator.blocks[0];
    translator.b.ins().jump(first, &[]);
    for (number, block) in region.blocks.iter().enumerate() {
        translator.block(number, block);
    }
    translator.finish();
}

/// Fills `function` with what a function of the IR does: it finds its arguments in the lane context, which is its only
/// parameter, and leaves its results there.
pub(crate) fn translate_function(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    routine: Routine,
) {
    let Routine { body, values, .. } = routine;
    let region = Region { blocks: Vec::new(), values, places: Vec::new() };
    let outside = Outside {
        functions: &Addresses::new(),
        link_cell: &mut |_| unreachable!("a function goes nowhere"),
    };
    let b = FunctionBuilder::new(function, scratch);
    let mut translator = Translator::new(b, target, &region, outside);
    translator.stmts(&body.stmts);
    for (index, result) in body.yields.iter().enumerate() {
        let result = translator.value(*result);
        translator.store_context(function_value(index), result);
    }
    translator.b.ins().return_(&[]);
    translator.finish();
}

/// Offset of a register slot in the lane context.
fn slot_offset(slot: usize) -> i32 {
    let offset = match slot.checked_sub(X_SLOTS) {
        None => offset_of!(LaneContext, state) + offset_of!(CpuState, x) + 8 * slot,
        Some(vector) => offset_of!(LaneContext, vectors) + 16 * vector,
    };
    offset as i32
}

/// The host's type of a register slot.
fn slot_type(slot: usize) -> Type {
    if slot < X_SLOTS { types::I64 } else { types::I8X16 }
}

/// Offset of a state variable in the lane context.
pub(crate) fn var_offset(var: kvrm_ir::Var) -> i32 {
    let (_, offset) = kvrm_a64::state::VARS[usize::from(var.id)];
    (offset_of!(LaneContext, state) + offset) as i32
}

/// Offset of a flag in the lane context.
fn flag_offset(index: usize) -> usize {
    offset_of!(LaneContext, state) + offset_of!(CpuState, flags) + index
}

/// Offset of an argument or result of a function in the lane context.
pub(crate) fn function_value(index: usize) -> usize {
    assert!(index < FUNCTION_VALUES, "a function has so many values");
    offset_of!(LaneContext, function) + 8 * index
}

impl<'a> Translator<'a> {
    fn new(
        mut b: FunctionBuilder<'a>,
        target: &'a HostTarget,
        region: &'a Region,
        outside: Outside<'a>,
    ) -> Self {
        let start = b.create_block();
        b.append_block_params_for_function_params(start);
        b.switch_to_block(start);
        b.seal_block(start);
        let context = b.block_params(start)[0];
        let pointer = |b: &mut FunctionBuilder<'_>, offset: usize| {
            b.ins().load(types::I64, context_flags().with_readonly(), context, offset as i32)
        };
        let memory = pointer(&mut b, offset_of!(LaneContext, memory));
        let granules = pointer(&mut b, offset_of!(LaneContext, granules));
        let flag_vars = [(); 4].map(|()| b.declare_var(types::I8));
        let operand_vars =
            FLAG_OPERANDS.map(|pair| pair.map(|var| b.declare_var(host_type(var.ty))));
        let fuel = b.declare_var(types::I64);
        let blocks = region.blocks.iter().map(|_| b.create_block()).collect();
        Translator {
            b,
            target,
            region,
            outside,
            blocks,
            values: vec![None; region.values.len()],
            forms: Forms::default(),
            places: vec![None; region.places.len()],
            regs: [None; SLOTS],
            flag_vars,
            operand_vars,
            uses_flags: false,
            fuel,
            context,
            memory,
            granules,
            dirty: 0,
            flags: ExitFlags::Stored,
            pc: 0,
            unexecuted: 0,
        }
    }

    /// An argument of the host's function, asked for in its first block.
    fn argument(&self, index: usize) -> Value {
        let start = self.b.current_block().expect("the first block is being filled");
        self.b.block_params(start)[index]
    }

    fn finish(mut self) {
        self.b.seal_all_blocks();
        self.b.finalize(self.target.isa.frontend_config());
    }
}

impl Translator<'_> {
    // Entering.

    /// Loads the registers and flags that occur in the region.
    fn load_state(&mut self) {
        let mut slots: Slots = 0;
        let region = self.region;
        region.for_each_stmt(&mut |stmt| match stmt.op {
            Op::ReadReg(file, index) | Op::WriteReg(file, index, _) => {
                slots |= 1 << self.slot(file, index);
            }
            Op::Test(_) | Op::SetFlags(_) => self.uses_flags = true,
            _ => {}
        });
        for slot in (0..SLOTS).filter(|slot| slots >> slot & 1 != 0) {
            let var = self.b.declare_var(slot_type(slot));
            let at = slot_offset(slot);
            let value = self.b.ins().load(slot_type(slot), context_flags(), self.context, at);
            self.b.def_var(var, value);
            self.regs[slot] = Some(var);
        }
        if self.uses_flags {
            for (index, var) in self.flag_vars.into_iter().enumerate() {
                let offset = flag_offset(index) as i32;
                let value = self.b.ins().load(types::I8, context_flags(), self.context, offset);
                self.b.def_var(var, value);
            }
        }
    }

    fn check_not_stale(&mut self, addresses: &[u64]) {
        let Some(any_open) = addresses
            .iter()
            .map(|addr| {
                let at = self.b.ins().iadd_imm_u(self.granules, (addr / GRANULE) as i64);
                self.b.ins().load(types::I8, context_flags(), at, 0)
            })
            .collect::<Vec<_>>()
            .into_iter()
            .reduce(|a, b| self.b.ins().bor(a, b))
        else {
            return;
        };
        self.leave_if(any_open, |t| t.leave(ExitKind::Stale, t.pc, 0));
    }

    // Blocks.

    fn block(&mut self, number: usize, block: &GuestBlock) {
        self.b.switch_to_block(self.blocks[number]);
        self.dirty = block.dirty;
        self.stmts(&block.head);
        if !block.insns.is_empty() {
            self.charge(block);
        }
        for (i, insn) in block.insns.iter().enumerate() {
            (self.pc, self.flags) = (insn.pc, insn.flags);
            self.unexecuted = block.unexecuted(i) as i64;
            self.stmts(&insn.stmts);
        }
        self.stmts(&block.tail);
        self.end(block);
    }

    /// Takes the block's instructions from the fuel, or leaves if there is not enough.
    fn charge(&mut self, block: &GuestBlock) {
        let len = block.unexecuted(0) as i64;
        let fuel = self.b.use_var(self.fuel);
        let short = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, fuel, len);
        self.flags = block.insns[0].flags;
        self.leave_if(short, |t| t.leave(ExitKind::Fuel, block.pc, 0));
        let left = self.b.ins().iadd_imm_s(fuel, -len);
        self.b.def_var(self.fuel, left);
    }

    fn end(&mut self, block: &GuestBlock) {
        match &block.end {
            End::Jump(Goto::Block(next)) => {
                self.b.ins().jump(self.blocks[*next], &[]);
            }
            End::Jump(Goto::Leave(pc)) => self.go_to(*pc),
            End::Branch { cond, taken, otherwise } => self.branch(*cond, [*taken, *otherwise]),
            End::Indirect { target, sites, leave } => {
                let target = self.value(*target);
                for (pc, site) in sites {
                    let hit = self.b.ins().icmp_imm_u(IntCC::Equal, target, *pc as i64);
                    let next = self.b.create_block();
                    self.b.ins().brif(hit, self.blocks[*site], &[], next, &[]);
                    self.b.switch_to_block(next);
                    self.b.seal_block(next);
                }
                self.stmts(leave);
                self.go_to_computed(target);
            }
            End::Stop { exit, detail } => {
                let detail = self.value(*detail);
                self.exit(*exit, detail);
            }
            End::Undefined(word) => {
                let word = self.b.ins().iconst(types::I64, i64::from(*word));
                self.store_context(offset_of!(LaneContext, detail), word);
                self.leave(ExitKind::Undefined, self.pc, self.unexecuted);
            }
            End::Done(pc) => {
                self.flags = block.flags_after;
                self.leave(ExitKind::Fuel, *pc, 0);
            }
        }
    }

    // Jumping.

    fn branch(&mut self, cond: kvrm_ir::Value, ways: [Goto; 2]) {
        let cond = self.value(cond);
        let mut outside = Vec::new();
        let [then, otherwise] = ways.map(|way| match way {
            Goto::Block(next) => self.blocks[next],
            Goto::Leave(pc) => {
                let block = self.b.create_block();
                outside.push((block, pc));
                block
            }
        });
        self.b.ins().brif(cond, then, &[], otherwise, &[]);
        for (block, pc) in outside {
            self.b.switch_to_block(block);
            self.b.seal_block(block);
            self.go_to(pc);
        }
    }

    /// Continues at a guest address outside the region.
    fn go_to(&mut self, pc: u64) {
        let cell = (self.outside.link_cell)(pc);
        let cell = self.b.ins().iconst(types::I64, cell as i64);
        let code = self.b.ins().load(types::I64, context_flags(), cell, 0);
        let pc = self.b.ins().iconst(types::I64, pc as i64);
        self.store_dirty();
        self.tail_call(code, pc);
    }

    fn tail_call(&mut self, code: Value, pc: Value) {
        let signature = self.b.import_signature(function_signature());
        let fuel = self.b.use_var(self.fuel);
        self.b.ins().return_call_indirect(signature, code, &[self.context, fuel, pc]);
    }

    /// Continues at a computed guest address, through the jump cache or by asking the engine.
    fn go_to_computed(&mut self, target: Value) {
        self.store_dirty();
        let cache_at = offset_of!(LaneContext, jump_cache) as i32;
        let cache = self.b.ins().load(types::I64, context_flags(), self.context, cache_at);
        let index = self.b.ins().ushr_imm_u(target, 2);
        let index = self.b.ins().band_imm_u(index, JUMP_ENTRIES as i64 - 1);
        let offset = self.b.ins().imul_imm_u(index, size_of::<JumpEntry>() as i64);
        let entry = self.b.ins().iadd(cache, offset);
        let pc_at = offset_of!(JumpEntry, pc) as i32;
        let found = self.b.ins().load(types::I64, context_flags(), entry, pc_at);
        let hit = self.b.ins().icmp(IntCC::Equal, found, target);
        let [jump, miss] = [self.b.create_block(), self.b.create_block()];
        self.b.set_cold_block(miss);
        self.b.ins().brif(hit, jump, &[], miss, &[]);
        self.b.switch_to_block(miss);
        self.b.seal_block(miss);
        self.return_with(ExitKind::Chain, target, 0);
        self.b.switch_to_block(jump);
        self.b.seal_block(jump);
        let code_at = offset_of!(JumpEntry, code) as i32;
        let code = self.b.ins().load(types::I64, context_flags(), entry, code_at);
        self.tail_call(code, target);
    }

    // Leaving.

    /// Runs `leave` in a block of its own, off the hot path, if `cond` is true.
    pub(crate) fn leave_if(&mut self, cond: Value, leave: impl FnOnce(&mut Self)) {
        let [out, stay] = [self.b.create_block(), self.b.create_block()];
        self.b.set_cold_block(out);
        self.b.ins().brif(cond, out, &[], stay, &[]);
        self.b.switch_to_block(out);
        self.b.seal_block(out);
        leave(self);
        self.b.switch_to_block(stay);
        self.b.seal_block(stay);
    }

    /// Returns to the engine because the current instruction stops the lane.
    pub(crate) fn exit(&mut self, exit: kvrm_ir::Exit, detail: Value) {
        let reason = self.b.ins().iconst(types::I32, i64::from(exit.reason));
        self.store_context(offset_of!(LaneContext, reason), reason);
        self.store_context(offset_of!(LaneContext, detail), detail);
        let done = i64::from(exit.completes);
        let pc = self.pc.wrapping_add(4 * done as u64);
        self.leave(ExitKind::Exit, pc, self.unexecuted - done);
    }

    /// Returns to the engine with the lane at `pc`, giving back the fuel of `unexecuted` instructions.
    pub(crate) fn leave(&mut self, kind: ExitKind, pc: u64, unexecuted: i64) {
        self.store_dirty_registers();
        match self.flags {
            ExitFlags::Stored => self.store_flags(),
            ExitFlags::Lazy { kind, ty, operands } => {
                let code = self.b.ins().iconst(types::I32, i64::from(flags::code(kind, ty)));
                self.store_context(offset_of!(LaneContext, flags.code), code);
                let places = [offset_of!(LaneContext, flags.x), offset_of!(LaneContext, flags.y)];
                for (offset, operand) in places.into_iter().zip(operands) {
                    let value = self.flag_operand(ty, operand);
                    self.store_context(offset, value);
                }
            }
        }
        let pc = self.b.ins().iconst(types::I64, pc as i64);
        self.return_with(kind, pc, unexecuted);
    }

    fn flag_operand(&mut self, ty: IrType, operand: Source) -> Value {
        match operand {
            Source::Const(bits) => self.b.ins().iconst(host_type(ty), bits as i64),
            Source::Value(v) => self.value(v),
            Source::Sum(v, plus) => {
                let value = self.value(v);
                let plus = self.b.ins().iconst(host_type(ty), (plus & ty.mask()) as i64);
                self.b.ins().iadd(value, plus)
            }
        }
    }

    fn return_with(&mut self, kind: ExitKind, pc: Value, unexecuted: i64) {
        let fuel = self.b.use_var(self.fuel);
        let fuel = self.b.ins().iadd_imm_s(fuel, unexecuted);
        let kind = self.b.ins().iconst(types::I32, kind as i64);
        self.store_context(offset_of!(LaneContext, state.pc), pc);
        self.store_context(offset_of!(LaneContext, fuel), fuel);
        self.store_context(offset_of!(LaneContext, exit), kind);
        self.b.ins().return_(&[]);
    }

    pub(crate) fn store_context(&mut self, offset: usize, value: Value) {
        self.b.ins().store(context_flags(), value, self.context, offset as i32);
    }

    /// Brings the lane context up to date.
    fn store_dirty(&mut self) {
        self.store_dirty_registers();
        self.store_flags();
    }

    fn store_dirty_registers(&mut self) {
        let dirty = self.dirty;
        for slot in (0..SLOTS).filter(|slot| dirty >> slot & 1 != 0) {
            let value = self.read_register(slot);
            self.store_context(slot_offset(slot) as usize, value);
        }
    }

    fn store_flags(&mut self) {
        if self.uses_flags {
            for (index, var) in self.flag_vars.into_iter().enumerate() {
                let value = self.b.use_var(var);
                self.store_context(flag_offset(index), value);
            }
        }
    }

    // State.

    pub(crate) fn slot(&self, file: kvrm_ir::File, index: kvrm_ir::Value) -> usize {
        let slot = self.region.values[index.0 as usize].constant;
        slot_number(file, slot.expect("register numbers are known in translated code"))
    }

    pub(crate) fn read_register(&mut self, slot: usize) -> Value {
        let var = self.regs[slot].expect("registers of the region are loaded");
        self.b.use_var(var)
    }

    pub(crate) fn write_register(&mut self, slot: usize, value: Value) {
        let var = self.regs[slot].expect("registers of the region are loaded");
        self.b.def_var(var, value);
        self.dirty |= 1 << slot;
    }

    /// The host's variable for an operand of the flags.
    pub(crate) fn operand_var(&self, var: kvrm_ir::Var) -> Option<Variable> {
        let all = FLAG_OPERANDS.as_flattened().iter().zip(self.operand_vars.as_flattened());
        all.into_iter().find_map(|(operand, host)| (operand.id == var.id).then_some(*host))
    }

    /// Instructions the lane has completed before the current one.
    pub(crate) fn count(&mut self) -> Value {
        let offset = offset_of!(LaneContext, count_base) as i32;
        let base = self.b.ins().load(types::I64, context_flags(), self.context, offset);
        let fuel = self.b.use_var(self.fuel);
        let left = self.b.ins().iadd_imm_s(fuel, self.unexecuted);
        self.b.ins().isub(base, left)
    }
}
