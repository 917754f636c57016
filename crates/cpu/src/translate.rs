//! From a region to a function of the host: blocks, fuel, jumps and exits.
//!
//! A translated function has the arguments (lane context, fuel, guest address) and returns nothing. It
//! leaves by a tail call to the code of the next guest address, without returning to the engine, or
//! by storing why in the lane context and returning.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::AtomicPtr;

use cranelift::codegen::ir::{self, MemFlagsData};
use cranelift::codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift::prelude::*;
use kvrm_a64::state::{CpuState, X_SLOTS};
use kvrm_engine::flow::Flow;
use kvrm_ir::Type as IrType;
use kvrm_mem::GRANULE;

use crate::context::{ExitKind, JUMP_ENTRIES, JumpEntry, LaneContext};
use crate::flags::{FLAGS, FlagState, Operand};
use crate::liveness::{Dirty, uses};
use crate::region::{Body, Insn, Region};

/// What all translations for a machine have in common.
pub(crate) struct Target {
    pub(crate) isa: OwnedTargetIsa,
    pub(crate) memory_size: u64,
    /// Whether other threads use the same guest memory.
    pub(crate) shared: bool,
    /// Stores fault.
    pub(crate) read_only: bool,
}

/// Where code for a guest address will be found, once there is some.
pub(crate) type LinkCell = AtomicPtr<u8>;

/// How a translation ends when its last block falls through to code outside the region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By jumping to the code there.
    Chain,
    /// By returning with [`ExitKind::Fuel`].
    Fuel,
}

/// Versions of one guest block, by where it finds the flags.
const VERSIONS: usize = 3;
/// Known return addresses that a return is compared with.
const RETURN_SITES: usize = 4;

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
    }
}

/// Memory that belongs to the lane context: always there, never the guest's.
pub(crate) fn context_flags() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Translates one region.
pub(crate) struct Translator<'a> {
    pub(crate) b: FunctionBuilder<'a>,
    pub(crate) target: &'a Target,
    region: &'a Region,
    link_cell: &'a mut dyn FnMut(u64) -> *const LinkCell,
    ending: Ending,
    dirty_at: Dirty,
    /// Registers whose values in the lane context are out of date here.
    dirty: u64,
    regs: [Option<Variable>; X_SLOTS],
    pub(crate) flag_vars: [Variable; 4],
    /// For kept operands of the flags, 32 and 64 bits wide.
    pub(crate) operand_vars: [[Variable; 2]; 2],
    fuel: Variable,
    pub(crate) context: Value,
    pub(crate) memory: Value,
    pub(crate) granules: Value,
    versions: HashMap<(u64, FlagState), Block>,
    pending: Vec<(u64, FlagState, Block)>,
    pub(crate) flags: FlagState,
    /// The current instruction sets all flags, so nobody needs the old ones any more.
    pub(crate) flags_overtaken: bool,
    uses_flags: bool,
    /// Address of the current instruction.
    pub(crate) pc: u64,
    /// Instructions of the block from the current one on.
    pub(crate) unexecuted: i64,
}

/// Fills `function` with the translation of a region. `stale_granules` are addresses whose granules
/// must be closed on entry, or the lane has changed the code.
pub(crate) fn translate(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &Target,
    region: &Region,
    ending: Ending,
    stale_granules: &[u64],
    link_cell: &mut dyn FnMut(u64) -> *const LinkCell,
) {
    let mut b = FunctionBuilder::new(function, scratch);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let [context, fuel] = [b.block_params(entry)[0], b.block_params(entry)[1]];
    let pointer = |b: &mut FunctionBuilder<'_>, offset: usize| {
        b.ins().load(types::I64, context_flags().with_readonly(), context, offset as i32)
    };
    let memory = pointer(&mut b, offset_of!(LaneContext, memory));
    let granules = pointer(&mut b, offset_of!(LaneContext, granules));
    let flag_vars = FLAGS.map(|_| b.declare_var(types::I8));
    let operand_vars = [types::I32, types::I64].map(|ty| [b.declare_var(ty), b.declare_var(ty)]);
    let fuel_var = b.declare_var(types::I64);
    b.def_var(fuel_var, fuel);
    let mut translator = Translator {
        b,
        target,
        region,
        link_cell,
        ending,
        dirty_at: Dirty::of(region),
        dirty: 0,
        regs: [None; X_SLOTS],
        flag_vars,
        operand_vars,
        fuel: fuel_var,
        context,
        memory,
        granules,
        versions: HashMap::new(),
        pending: Vec::new(),
        flags: FlagState::Stored,
        flags_overtaken: false,
        uses_flags: false,
        pc: region.entry,
        unexecuted: 0,
    };
    translator.load_registers();
    translator.check_not_stale(stale_granules);
    translator.go_to(region.entry);
    while let Some((pc, flags, block)) = translator.pending.pop() {
        translator.block(pc, flags, block);
    }
    translator.b.seal_all_blocks();
    translator.b.finalize(target.isa.frontend_config());
}

/// Offset of a register slot in the lane context.
fn slot_offset(slot: usize) -> i32 {
    (offset_of!(LaneContext, state) + offset_of!(CpuState, x) + 8 * slot) as i32
}

/// Offset of a state variable in the lane context.
pub(crate) fn var_offset(var: kvrm_ir::Var) -> i32 {
    let (_, offset) = kvrm_a64::state::VARS[usize::from(var.id)];
    (offset_of!(LaneContext, state) + offset) as i32
}

impl Translator<'_> {
    // Entering.

    fn load_registers(&mut self) {
        let used = uses(self.region);
        self.uses_flags = used.flags;
        for slot in (0..X_SLOTS).filter(|slot| used.registers >> slot & 1 != 0) {
            let var = self.b.declare_var(types::I64);
            let value =
                self.b.ins().load(types::I64, context_flags(), self.context, slot_offset(slot));
            self.b.def_var(var, value);
            self.regs[slot] = Some(var);
        }
        if used.flags {
            for (var, flag) in self.flag_vars.into_iter().zip(FLAGS) {
                let offset = var_offset(flag);
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
        let entry = self.region.entry;
        self.leave_if(any_open, |t| t.leave(ExitKind::Stale, entry, 0));
    }

    // Blocks.

    fn block(&mut self, pc: u64, flags: FlagState, block: Block) {
        self.b.switch_to_block(block);
        self.flags = flags;
        self.dirty = self.dirty_at.at_block(pc);
        let guest = &self.region.blocks[&pc];
        let len = guest.insns.len() as i64;
        let fuel = self.b.use_var(self.fuel);
        let short = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, fuel, len);
        self.leave_if(short, |t| t.leave(ExitKind::Fuel, pc, 0));
        let left = self.b.ins().iadd_imm_s(fuel, -len);
        self.b.def_var(self.fuel, left);
        for (i, insn) in guest.insns.iter().enumerate() {
            self.pc = insn.pc;
            self.unexecuted = len - i as i64;
            self.insn(insn);
            self.dirty |= self.dirty_at.written_by(insn.pc);
        }
        if guest.insns.last().is_none_or(|last| last.flow == Flow::Next) {
            match self.ending {
                Ending::Chain => self.go_to(guest.next),
                Ending::Fuel => self.leave(ExitKind::Fuel, guest.next, 0),
            }
        }
    }

    fn insn(&mut self, insn: &Insn) {
        let routine = match &insn.body {
            Body::Routine(routine) => routine,
            Body::Undefined(word) => {
                let word = self.b.ins().iconst(types::I64, i64::from(*word));
                self.store_context(offset_of!(LaneContext, detail), word);
                return self.leave(ExitKind::Undefined, insn.pc, self.unexecuted);
            }
        };
        let values = self.routine(routine);
        // What the branch itself writes (a link register) belongs to the state it leaves with.
        self.dirty |= self.dirty_at.written_by(insn.pc);
        match insn.flow {
            Flow::Next | Flow::Stop => {}
            Flow::Jump(target) => self.go_to(target),
            Flow::Branch { cond, taken, otherwise } => {
                let cond = self.value(routine, &values, cond);
                self.branch(cond, taken, otherwise);
            }
            Flow::Indirect(target) => {
                let target = self.value(routine, &values, target);
                self.go_to_computed(target);
            }
        }
    }

    // Jumping.

    /// Continues at a guest address, within the region or beyond it.
    fn go_to(&mut self, pc: u64) {
        match self.version(pc) {
            Some(block) => {
                self.b.ins().jump(block, &[]);
            }
            None => self.go_to_the_long_way(pc),
        }
    }

    /// The block to jump to directly, if nothing has to happen on the way.
    fn version(&mut self, pc: u64) -> Option<Block> {
        if !self.region.blocks.contains_key(&pc) {
            return None;
        }
        if let Some(block) = self.versions.get(&(pc, self.flags)) {
            return Some(*block);
        }
        let existing = self.versions.keys().filter(|(at, _)| *at == pc).count();
        if !self.flags_are_settled() && existing >= VERSIONS {
            return None;
        }
        let block = self.b.create_block();
        self.versions.insert((pc, self.flags), block);
        self.pending.push((pc, self.flags, block));
        Some(block)
    }

    /// Jumps where [`version`](Self::version) knows no block: out of the region, or into a block that
    /// has versions enough.
    fn go_to_the_long_way(&mut self, pc: u64) {
        if self.region.blocks.contains_key(&pc) {
            self.settle_flags();
            let block = self.version(pc).expect("settled flags have a version");
            self.b.ins().jump(block, &[]);
            return;
        }
        let cell = (self.link_cell)(pc);
        let cell = self.b.ins().iconst(types::I64, cell as i64);
        let code = self.b.ins().load(types::I64, context_flags(), cell, 0);
        let pc = self.b.ins().iconst(types::I64, pc as i64);
        self.store_dirty();
        self.tail_call(code, pc);
    }

    /// True if the flags are where a block with many predecessors wants them.
    fn flags_are_settled(&self) -> bool {
        match self.flags {
            FlagState::Stored => true,
            FlagState::Known(known) => known == known.kept(),
        }
    }

    /// Moves operands of the flags to variables.
    fn settle_flags(&mut self) {
        if let FlagState::Known(known) = self.flags {
            for index in 0..2 {
                let value = self.operand(known, index);
                self.keep_operand(known.ty, index, value);
            }
            self.flags = FlagState::Known(known.kept());
        }
    }

    fn tail_call(&mut self, code: Value, pc: Value) {
        let signature = self.b.import_signature(function_signature());
        let fuel = self.b.use_var(self.fuel);
        self.b.ins().return_call_indirect(signature, code, &[self.context, fuel, pc]);
    }

    fn branch(&mut self, cond: Value, taken: u64, otherwise: u64) {
        let mut detours = Vec::new();
        let [then, other] = [taken, otherwise].map(|pc| {
            self.version(pc).unwrap_or_else(|| {
                let detour = self.b.create_block();
                detours.push((detour, pc));
                detour
            })
        });
        self.b.ins().brif(cond, then, &[], other, &[]);
        let flags = self.flags;
        for (detour, pc) in detours {
            self.b.switch_to_block(detour);
            self.b.seal_block(detour);
            // What one detour does to the flags, the other has not done.
            self.flags = flags;
            self.go_to_the_long_way(pc);
        }
    }

    /// Continues at a computed guest address: at a known return site, through the jump cache, or by
    /// asking the engine.
    fn go_to_computed(&mut self, target: Value) {
        let flags = self.flags;
        for pc in self.region.return_sites.iter().take(RETURN_SITES) {
            let hit = self.b.ins().icmp_imm_u(IntCC::Equal, target, *pc as i64);
            let [then, next] = [self.b.create_block(), self.b.create_block()];
            self.b.ins().brif(hit, then, &[], next, &[]);
            self.b.switch_to_block(then);
            self.b.seal_block(then);
            self.go_to(*pc);
            self.b.switch_to_block(next);
            self.b.seal_block(next);
            // What was done to the flags on the way there has not been done here.
            self.flags = flags;
        }
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

    /// Returns to the engine with the lane at `pc`, giving back the fuel of `unexecuted` instructions.
    pub(crate) fn leave(&mut self, kind: ExitKind, pc: u64, unexecuted: i64) {
        self.store_dirty_registers();
        match self.flags {
            FlagState::Stored => self.store_flags(),
            // The engine computes them: there are many exits, and few are ever taken.
            FlagState::Known(known) => {
                let code = self.b.ins().iconst(types::I32, known.code());
                self.store_context(offset_of!(LaneContext, flags.code), code);
                for (index, offset) in
                    [offset_of!(LaneContext, flags.x), offset_of!(LaneContext, flags.y)]
                        .into_iter()
                        .enumerate()
                {
                    let value = self.operand(known, index);
                    self.store_context(offset, value);
                }
            }
        }
        let pc = self.b.ins().iconst(types::I64, pc as i64);
        self.return_with(kind, pc, unexecuted);
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
        for slot in (0..X_SLOTS).filter(|slot| dirty >> slot & 1 != 0) {
            let value = self.read_register(slot as u64);
            self.store_context(slot_offset(slot) as usize, value);
        }
    }

    fn store_flags(&mut self) {
        if self.uses_flags {
            let flags = self.flag_values();
            for (flag, value) in FLAGS.into_iter().zip(flags) {
                self.store_context(var_offset(flag) as usize, value);
            }
        }
    }

    pub(crate) fn store_flags_in_variables(&mut self) {
        let values = self.flag_values();
        for (var, value) in self.flag_vars.into_iter().zip(values) {
            self.b.def_var(var, value);
        }
        self.flags = FlagState::Stored;
    }

    /// The flags, wherever they are.
    pub(crate) fn flag_values(&mut self) -> [Value; 4] {
        std::array::from_fn(|index| self.read_flag(index))
    }

    // State.

    pub(crate) fn read_register(&mut self, slot: u64) -> Value {
        let var = self.regs[slot as usize].expect("registers of the region are loaded");
        self.b.use_var(var)
    }

    pub(crate) fn write_register(&mut self, slot: u64, value: Value) {
        if !self.flags_overtaken {
            self.keep_operands_in(slot);
        }
        let var = self.regs[slot as usize].expect("registers of the region are loaded");
        self.b.def_var(var, value);
    }

    /// A register is about to change: operands of the flags that it holds move to variables.
    fn keep_operands_in(&mut self, slot: u64) {
        let FlagState::Known(mut known) = self.flags else { return };
        for index in 0..2 {
            if matches!(known.operands[index], Operand::Reg(held, _) if held == slot) {
                let value = self.operand(known, index);
                self.keep_operand(known.ty, index, value);
                known.operands[index] = Operand::Kept;
            }
        }
        self.flags = FlagState::Known(known);
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
