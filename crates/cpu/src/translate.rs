//! From a region to a function of the host: blocks, fuel and jumps. What the instructions between them do is in `emit`, and
//! how control leaves in `leaving`.
//!
//! A translated function has the arguments (lane context, record, end of the fuel, guest memory) and returns nothing. The
//! fuel is the distance from the record to its end, in records. It leaves by a tail call to the code of another record,
//! without returning to the engine, or by storing why in the lane context and returning.

use std::mem::offset_of;

use cranelift::codegen::ir::{self, MemFlagsData};
use cranelift::codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift::prelude::*;
use kvrm_a64::state::CpuState;
use kvrm_ir::legalise::{Calls, Lacks};
use kvrm_ir::{Op, Routine, Type as IrType};
use kvrm_mem::GRANULE;
use kvrm_translate::{
    Block as GuestBlock, End, ExitFlags, FLAG_OPERANDS, Goto, Region, slot_number,
};

use crate::compiler::record_at;
use crate::context::{ExitKind, FUNCTION_VALUES, LaneContext};
use crate::handlers::{Decoding, Step};
use crate::library::Addresses;
use crate::packed::Forms;
use crate::record::{self, LOG_FOLDER, LOG_RECORD, SHEET, SLACK, UNCOUNTED};
use crate::registers::Registers;

/// What all host code has to know of guest memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryKind {
    /// Other threads may use it at the same time.
    pub(crate) atomic: bool,
    /// Its pages have permissions.
    pub(crate) mapped: bool,
}

/// What all translations for a machine have in common.
pub(crate) struct HostTarget {
    pub(crate) isa: OwnedTargetIsa,
    pub(crate) kind: MemoryKind,
    pub(crate) memory_size: u64,
    /// All lanes have the same guest memory.
    pub(crate) shared: bool,
    /// Stores fault.
    pub(crate) read_only: bool,
    /// Translations count the instructions that are executed in them.
    pub(crate) profile: bool,
    /// The host can add a product with one rounding.
    pub(crate) has_fma: bool,
    /// It is an x86 that can look up bytes.
    pub(crate) has_pshufb: bool,
}

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

/// The signature of the code of records.
pub(crate) fn function_signature() -> Signature {
    let mut signature = Signature::new(CallConv::Tail);
    signature.params.extend([AbiParam::new(types::I64); 4]);
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

/// Translates one region, function or handler.
pub(crate) struct Translator<'a> {
    pub(crate) b: FunctionBuilder<'a>,
    pub(crate) target: &'a HostTarget,
    pub(crate) region: &'a Region,
    /// Where functions are.
    pub(crate) functions: &'a Addresses,
    /// Blocks of the host, by the region's numbers.
    blocks: Vec<Block>,
    /// Host values of the region's values.
    pub(crate) values: Vec<Option<Value>>,
    /// What else is known of some of them.
    pub(crate) forms: Forms,
    /// Host addresses of the region's places.
    pub(crate) places: Vec<Option<Value>>,
    pub(crate) registers: Registers,
    operand_vars: [[Variable; 2]; 2],
    pub(crate) fuel: Variable,
    pub(crate) context: Value,
    /// Where guest memory starts.
    pub(crate) memory: Value,
    /// Where the granules' state bytes start, if that is known everywhere.
    granules: Option<Value>,
    // Of the current instruction.
    pub(crate) flags: ExitFlags,
    pub(crate) pc: u64,
    /// Instructions of the block from this one on.
    pub(crate) unexecuted: i64,
    /// In a handler, the instruction that it executes.
    pub(crate) step: Option<Step>,
    /// In what makes records, the instruction that is decoded.
    pub(crate) decoding: Option<Decoding>,
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
    functions: &'a Addresses,
) {
    let b = FunctionBuilder::new(function, scratch);
    let mut translator = Translator::new(b, target, region, functions);
    let [record, end] = [1, 2].map(|index| translator.argument(index));
    let fuel = translator.fuel_left(record, end);
    translator.b.def_var(translator.fuel, fuel);
    translator.count_executed(fuel, true);
    translator.memory = translator.argument(3);
    let mut probes = false;
    region.for_each_stmt(&mut |stmt| probes |= matches!(stmt.op, Op::Probe { .. }));
    translator.granules = probes.then(|| translator.granules());
    translator.pc = entry;
    translator.load_registers();
    translator.check_not_stale(stale_granules);
    if region.is_small && region.blocks.iter().any(GuestBlock::tests_flags) {
        translator.settle_flags();
    }
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
    let region = Region { values, ..Region::default() };
    let functions = Addresses::new();
    let b = FunctionBuilder::new(function, scratch);
    let mut translator = Translator::new(b, target, &region, &functions);
    translator.stmts(&body.stmts);
    for (index, result) in body.yields.iter().enumerate() {
        let result = translator.value(*result);
        translator.store_context(function_value(index), result);
    }
    translator.b.ins().return_(&[]);
    translator.finish();
}

/// Offset of a state variable in the lane context.
pub(crate) fn var_offset(var: kvrm_ir::Var) -> i32 {
    let (_, offset) = kvrm_a64::state::VARS[usize::from(var.id)];
    (offset_of!(LaneContext, state) + offset) as i32
}

/// Offset of a flag in the lane context.
pub(crate) fn flag_offset(index: usize) -> usize {
    offset_of!(LaneContext, state) + offset_of!(CpuState, flags) + index
}

/// Offset of an argument or result of a function in the lane context.
pub(crate) fn function_value(index: usize) -> usize {
    assert!(index < FUNCTION_VALUES, "a function has so many values");
    offset_of!(LaneContext, function) + 8 * index
}

impl<'a> Translator<'a> {
    pub(crate) fn new(
        mut b: FunctionBuilder<'a>,
        target: &'a HostTarget,
        region: &'a Region,
        functions: &'a Addresses,
    ) -> Self {
        let start = b.create_block();
        b.append_block_params_for_function_params(start);
        b.switch_to_block(start);
        b.seal_block(start);
        let context = b.block_params(start)[0];
        let operand_vars =
            FLAG_OPERANDS.map(|pair| pair.map(|var| b.declare_var(host_type(var.ty))));
        let fuel = b.declare_var(types::I64);
        let blocks = region.blocks.iter().map(|_| b.create_block()).collect();
        Translator {
            b,
            target,
            region,
            functions,
            blocks,
            values: vec![None; region.values.len()],
            forms: Forms::default(),
            places: vec![None; region.places.len()],
            registers: Registers::of(region),
            operand_vars,
            fuel,
            context,
            memory: context,
            granules: None,
            flags: ExitFlags::Stored,
            pc: 0,
            unexecuted: 0,
            step: None,
            decoding: None,
        }
    }

    /// An argument of the host's function, asked for in its first block.
    pub(crate) fn argument(&self, index: usize) -> Value {
        let start = self.b.current_block().expect("the first block is being filled");
        self.b.block_params(start)[index]
    }

    pub(crate) fn finish(mut self) {
        self.b.seal_all_blocks();
        self.b.finalize(self.target.isa.frontend_config());
    }
}

impl Translator<'_> {
    // Entering.

    fn check_not_stale(&mut self, addresses: &[u64]) {
        let Some(any_open) = addresses
            .iter()
            .map(|addr| {
                let granules = self.granules();
                let at = self.b.ins().iadd_imm_u(granules, (addr / GRANULE) as i64);
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
        self.begin_registers(number, block.dirty);
        if !self.region.is_small && block.tests_flags() {
            self.settle_flags();
        }
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
        self.end_registers(number);
        if block.leaves_flags {
            self.leave_flags(block.flags_after);
        }
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
        if !matches!(block.end, End::Stop { .. } | End::Undefined(_)) {
            let are_left = block.leaves_flags;
            self.flags = if are_left { ExitFlags::Stored } else { block.flags_after };
        }
        match &block.end {
            End::Jump(Goto::Block(next)) => {
                self.b.ins().jump(self.blocks[*next], &[]);
            }
            End::Jump(Goto::Leave(pc)) => self.go_to(*pc),
            End::Branch { cond, taken, otherwise } => self.branch(*cond, [*taken, *otherwise]),
            End::Indirect { target, sites } => {
                let target = self.value(*target);
                for (pc, site) in sites {
                    let hit = self.b.ins().icmp_imm_u(IntCC::Equal, target, *pc as i64);
                    let next = self.b.create_block();
                    self.b.ins().brif(hit, self.blocks[*site], &[], next, &[]);
                    self.b.switch_to_block(next);
                    self.b.seal_block(next);
                }
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
            End::Done(pc) => self.leave(ExitKind::Fuel, *pc, 0),
        }
    }

    // Jumping.

    fn branch(&mut self, cond: kvrm_ir::Value, ways: [Goto; 2]) {
        let cond = self.value(cond);
        let goes_back = |way: &Goto| match way {
            Goto::Block(next) => self.region.blocks[*next].pc <= self.pc,
            Goto::Leave(_) => false,
        };
        // Where nobody has gone yet, few will; but the end of a loop is best put behind it.
        let is_cold = !ways.iter().any(goes_back);
        let mut outside = Vec::new();
        let [then, otherwise] = ways.map(|way| match way {
            Goto::Block(next) => self.blocks[next],
            Goto::Leave(pc) => {
                let block = self.b.create_block();
                if is_cold {
                    self.b.set_cold_block(block);
                }
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
        self.store_dirty();
        let record = record_at(&mut self.b, pc);
        let pc = self.b.ins().iconst(types::I64, pc as i64);
        self.enter(record, pc);
    }

    /// Continues at a computed guest address.
    fn go_to_computed(&mut self, target: Value) {
        self.store_dirty();
        let miss = self.b.create_block();
        self.b.set_cold_block(miss);
        let record = self.find_record(target, miss);
        self.count_at(record, target);
        self.enter(record, target);
        self.b.switch_to_block(miss);
        self.b.seal_block(miss);
        self.return_with(ExitKind::Chain, target, 0);
    }

    /// Counts that a record is reached whose code is not translated, and leaves if that is often enough.
    fn count_at(&mut self, record: Value, pc: Value) {
        let [count, go_on] = std::array::from_fn(|_| self.b.create_block());
        self.b.set_cold_block(count);
        let heat = self.b.ins().load(types::I16, context_flags(), record, record::HEAT);
        self.b.ins().brif(heat, count, &[], go_on, &[]);
        self.b.switch_to_block(count);
        self.b.seal_block(count);
        let heat = self.b.ins().iadd_imm_s(heat, -1);
        self.b.ins().store(context_flags(), heat, record, record::HEAT);
        let is_hot = self.b.ins().icmp_imm_u(IntCC::Equal, heat, i64::from(UNCOUNTED));
        self.leave_if(is_hot, |t| t.return_with(ExitKind::Hot, pc, 0));
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// Continues with a record, whose address is `pc`, if there is fuel enough for what may be interpreted.
    fn enter(&mut self, record: Value, pc: Value) {
        let fuel = self.b.use_var(self.fuel);
        let short = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, fuel, SLACK as i64);
        self.leave_if(short, |t| t.return_with(ExitKind::Fuel, pc, 0));
        self.count_executed(fuel, false);
        let distance = self.b.ins().ishl_imm_u(fuel, LOG_RECORD);
        let end = self.b.ins().iadd(record, distance);
        self.dispatch(record, end);
    }

    /// Goes on with the code of a record. Another thread may have just written that, after the rest of the record: hosts
    /// that load in any order are told to load it first.
    pub(crate) fn dispatch(&mut self, record: Value, end: Value) {
        let code = match cfg!(target_arch = "x86_64") {
            true => self.b.ins().load(types::I64, context_flags(), record, record::CODE),
            false => {
                let at = self.b.ins().iadd_imm_u(record, i64::from(record::CODE));
                self.b.ins().atomic_load(types::I64, context_flags(), at)
            }
        };
        self.tail_call(code, record, end);
    }

    pub(crate) fn tail_call(&mut self, code: Value, record: Value, end: Value) {
        let signature = self.b.import_signature(function_signature());
        let arguments = [self.context, record, end, self.memory];
        self.b.ins().return_call_indirect(signature, code, &arguments);
    }

    /// The record of an address, if there is one; goes to `miss` if not.
    pub(crate) fn find_record(&mut self, target: Value, miss: Block) -> Value {
        let log_sheet = i64::from(SHEET.trailing_zeros());
        // Misplaced low bits become high ones.
        let unit = self.b.ins().rotr_imm_u(target, 2);
        let units = self.memory_units(2);
        let is_inside = self.b.ins().icmp(IntCC::UnsignedLessThan, unit, units);
        self.or_else(is_inside, miss);
        let sheets_at = offset_of!(LaneContext, sheets) as i32;
        let table = self.b.ins().load(types::I64, context_flags(), self.context, sheets_at);
        let number = self.b.ins().ushr_imm_u(unit, log_sheet + i64::from(LOG_FOLDER));
        let folder = self.pointer_at(table, number);
        self.or_else(folder, miss);
        let number = self.b.ins().ushr_imm_u(unit, log_sheet);
        let number = self.b.ins().band_imm_u(number, (1 << LOG_FOLDER) - 1);
        let sheet = self.pointer_at(folder, number);
        self.or_else(sheet, miss);
        let number = self.b.ins().band_imm_u(unit, SHEET as i64 - 1);
        let offset = self.b.ins().ishl_imm_u(number, LOG_RECORD);
        self.b.ins().iadd(sheet, offset)
    }

    /// Goes on if `cond` is true, and to another block if not.
    fn or_else(&mut self, cond: Value, otherwise: Block) {
        let next = self.b.create_block();
        self.b.ins().brif(cond, next, &[], otherwise, &[]);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    fn pointer_at(&mut self, table: Value, index: Value) -> Value {
        let offset = self.b.ins().ishl_imm_u(index, 3);
        let at = self.b.ins().iadd(table, offset);
        self.b.ins().load(types::I64, context_flags(), at, 0)
    }

    /// Instructions that may still be executed, that of the record included.
    pub(crate) fn fuel_left(&mut self, record: Value, end: Value) -> Value {
        let distance = self.b.ins().isub(end, record);
        self.b.ins().ushr_imm_u(distance, LOG_RECORD)
    }

    // State.

    pub(crate) fn slot(&self, file: kvrm_ir::File, index: kvrm_ir::Value) -> usize {
        let slot = self.region.values[index.0 as usize].constant;
        slot_number(file, slot.expect("register numbers are known in translated code"))
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
        let left = match self.step {
            Some(step) => self.fuel_left(step.record, step.end),
            None => {
                let fuel = self.b.use_var(self.fuel);
                self.b.ins().iadd_imm_s(fuel, self.unexecuted)
            }
        };
        self.b.ins().isub(base, left)
    }

    /// Where the granules' state bytes start. Loads that nobody needs are not removed, so most handlers do without.
    pub(crate) fn granules(&mut self) -> Value {
        let at = offset_of!(LaneContext, granules) as i32;
        let flags = context_flags().with_readonly();
        self.granules.unwrap_or_else(|| self.b.ins().load(types::I64, flags, self.context, at))
    }

    /// Units of so many bytes, a power of two, that guest memory has. Handlers serve memories of all sizes.
    pub(crate) fn memory_units(&mut self, log_bytes: i64) -> Value {
        if self.step.is_none() {
            let units = self.target.memory_size >> log_bytes;
            return self.b.ins().iconst(types::I64, units as i64);
        }
        let size_at = offset_of!(LaneContext, memory_size) as i32;
        let flags = context_flags().with_readonly();
        let size = self.b.ins().load(types::I64, flags, self.context, size_at);
        self.b.ins().ushr_imm_u(size, log_bytes)
    }
}
