//! Handlers: what one instruction does, as host code that serves all instructions of its shape.
//!
//! They are those of the kernels for GPUs ([`kvrm_engine::kernel`]). A handler finds its parameters in the record that
//! it is entered with and the registers in the lane context, and goes on with the next record by a tail call. Nothing
//! of it depends on the guest or its memory, except on what kind of memory that is.
//!
//! The fuel is looked at where control branches or a sheet of records ends. Branches also count how often their target
//! is reached.

use std::mem::offset_of;

use cranelift::codegen::ir;
use cranelift::prelude::*;
use kvrm_a64::state::{Q, V, X};
use kvrm_engine::kernel::{self, NOT_DECODED, small_param_position};
use kvrm_ir::cut::WIDE_PARAM;
use kvrm_ir::legalise::{Lacks, legalise};
use kvrm_ir::{File, Op, Routine, Terminator, Value as IrValue};
use kvrm_mem::GRANULE;
use kvrm_translate::Region;

use crate::context::{ExitKind, LaneContext, Tables};
use crate::library::Addresses;
use crate::record::{self, LOG_RECORD, SLACK};
use crate::translate::{HostTarget, LACKS, Translator, context_flags, host_type};

/// What handlers do without beside what translations do: wholes need a word that is known.
const HANDLER_LACKS: Lacks = Lacks { flag_operands: true, wholes: false, ..LACKS };

/// The instruction that a handler executes.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) record: Value,
    /// Where the fuel ends: as many records further as instructions may be executed.
    pub(crate) end: Value,
}

/// The instruction that a record is made for.
#[derive(Clone, Copy)]
pub(crate) struct Decoding {
    pub(crate) pc: Value,
    pub(crate) word: Value,
}

/// Makes the parameters of a record: record, address and word. The handler's number is not touched.
pub(crate) type Maker = unsafe extern "C" fn(*mut kernel::Record, u64, u64);

/// What a handler does, in operations that it can have.
pub(crate) fn handler_routine(routine: &Routine) -> Routine {
    legalise(routine, HANDLER_LACKS)
}

/// Fills `function` with a handler for such a routine, which calls `functions`.
pub(crate) fn translate_handler(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    routine: Routine,
    functions: &Addresses,
) {
    let Routine { body, end, values, places } = routine;
    let region = Region { values, places, ..Region::default() };
    let mut tests = false;
    body.for_each_stmt(&mut |stmt| tests |= matches!(stmt.op, Op::Test(_)));
    fill(function, scratch, target, &region, functions, |t, step| {
        if tests {
            t.settle_flags();
        }
        t.stmts(&body.stmts);
        t.go_on(step, &end);
    });
}

/// Fills `function` with a [`Maker`], which computes the parameters as `before` does, of which so many are small.
pub(crate) fn translate_maker(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    before: &Routine,
    small: usize,
) {
    let Routine { body, values, .. } = handler_routine(before);
    let region = Region { values, ..Region::default() };
    let (b, functions) = (FunctionBuilder::new(function, scratch), Addresses::new());
    let mut t = Translator::new(b, target, &region, &functions);
    let [pc, word] = [1, 2].map(|index| t.argument(index));
    t.decoding = Some(Decoding { pc, word });
    t.stmts(&body.stmts);
    for (index, parameter) in body.yields.iter().enumerate() {
        let value = t.value(*parameter);
        if index < small {
            t.store_small(index as u8, value);
        } else {
            t.store_wide(value);
        }
    }
    t.b.ins().return_(&[]);
    t.finish();
}

/// Fills `function` with code for records that a lane may not run as they are: if `checks`, it leaves unless the lane has
/// the image's words there; if `counts`, it counts that the record was reached. Then it runs the record's handler.
pub(crate) fn translate_detour(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    checks: bool,
    counts: bool,
) {
    fill(function, scratch, target, &Region::default(), &Addresses::new(), |t, step| {
        if checks {
            t.check_granule(step);
        }
        if counts {
            t.count_reached(step.record, step.end);
        }
        t.run_handler(step);
    });
}

/// Fills `function` with code that runs the handler of a record, whatever the record runs. It leaves if there is none, or if
/// what comes after it could overrun.
pub(crate) fn translate_slow(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
) {
    fill(function, scratch, target, &Region::default(), &Addresses::new(), |t, step| {
        let left = t.b.ins().isub(step.end, step.record);
        let enough = (SLACK << LOG_RECORD) as i64;
        let short = t.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, left, enough);
        let number = t.b.ins().uload16(types::I64, context_flags(), step.record, record::NUMBER);
        let not_decoded = t.b.ins().icmp_imm_u(IntCC::Equal, number, i64::from(NOT_DECODED));
        let leaves = t.b.ins().bor(short, not_decoded);
        t.leave_if(leaves, |t| t.return_at(step, ExitKind::Slow));
        t.run_handler(step);
    });
}

/// Fills `function` with code that leaves at the record it is entered with.
pub(crate) fn translate_exit(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    kind: ExitKind,
) {
    fill(function, scratch, target, &Region::default(), &Addresses::new(), |t, step| {
        if kind == ExitKind::Undefined {
            let word = t.wide(step.record);
            t.store_context(offset_of!(LaneContext, detail), word);
        }
        t.return_at(step, kind);
    });
}

/// Fills `function` with code for the record at the end of a sheet, which is no instruction.
pub(crate) fn translate_next_sheet(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
) {
    fill(function, scratch, target, &Region::default(), &Addresses::new(), |t, step| {
        let next = t.wide(step.record);
        let distance = t.b.ins().isub(next, step.record);
        let end = t.b.ins().iadd(step.end, distance);
        t.check_fuel(next, end);
        t.dispatch(next, end);
    });
}

fn fill(
    function: &mut ir::Function,
    scratch: &mut FunctionBuilderContext,
    target: &HostTarget,
    region: &Region,
    functions: &Addresses,
    body: impl FnOnce(&mut Translator<'_>, Step),
) {
    let b = FunctionBuilder::new(function, scratch);
    let mut translator = Translator::new(b, target, region, functions);
    let [record, end] = [1, 2].map(|index| translator.argument(index));
    translator.memory = translator.argument(3);
    let step = Step { record, end };
    translator.step = Some(step);
    body(&mut translator, step);
    translator.finish();
}

impl Translator<'_> {
    // Parameters and registers.

    /// A parameter from the record, the value `result`.
    pub(crate) fn parameter(&mut self, step: Step, index: u8, result: IrValue) -> Value {
        let ty = host_type(self.ty(result));
        if index == WIDE_PARAM {
            return self.b.ins().load(ty, context_flags(), step.record, record::WIDE);
        }
        let at = record::SMALL + i32::from(index);
        let number = self.b.ins().uload8(types::I64, context_flags(), step.record, at);
        self.forms.parameter(result, number);
        if ty == types::I64 { number } else { self.b.ins().ireduce(ty, number) }
    }

    fn wide(&mut self, record: Value) -> Value {
        self.b.ins().load(types::I64, context_flags(), record, record::WIDE)
    }

    /// The address of a record.
    fn place(&mut self, record: Value) -> Value {
        let place = self.b.ins().load(types::I64, context_flags(), record, record::PLACE);
        let place = self.b.ins().ishl_imm_u(place, record::HEAT_BITS);
        self.b.ins().sshr_imm_u(place, record::HEAT_BITS)
    }

    /// Stores a small parameter of the record that is made.
    fn store_small(&mut self, index: u8, value: Value) {
        let is_byte = self.b.func.dfg.value_type(value) == types::I8;
        let byte = if is_byte { value } else { self.b.ins().ireduce(types::I8, value) };
        let (word, shift) = small_param_position(index);
        self.store_context(4 * word + shift as usize / 8, byte);
    }

    /// Stores its wide parameter.
    fn store_wide(&mut self, value: Value) {
        let is_wide = self.b.func.dfg.value_type(value) == types::I64;
        let wide = if is_wide { value } else { self.b.ins().uextend(types::I64, value) };
        self.store_context(record::WIDE as usize, wide);
    }

    /// The address of the instruction.
    pub(crate) fn address(&mut self) -> Value {
        if let Some(decoding) = self.decoding {
            return decoding.pc;
        }
        let step = self.step.expect("translations know addresses");
        self.place(step.record)
    }

    /// Where a register is: what to add to the lane context, a value and a constant.
    fn register_place(&mut self, file: File, index: IrValue) -> (Value, i32) {
        let (start, log_size) = match file {
            X => (offset_of!(LaneContext, state.x), 3),
            V => (offset_of!(LaneContext, vectors), 3),
            Q => unreachable!("handlers have no wholes"),
            _ => unreachable!("there is no such file"),
        };
        let data = self.region.values[index.0 as usize];
        if let Some(number) = data.constant {
            return (self.context, (start + ((number as usize) << log_size)) as i32);
        }
        let number = match self.forms.zero_extended(index) {
            Some(number) => number,
            None => {
                let number = self.value(index);
                self.b.ins().uextend(types::I64, number)
            }
        };
        let offset = self.b.ins().ishl_imm_u(number, log_size);
        (self.b.ins().iadd(self.context, offset), start as i32)
    }

    pub(crate) fn load_register(&mut self, file: File, index: IrValue) -> Value {
        let (at, offset) = self.register_place(file, index);
        self.b.ins().load(types::I64, context_flags(), at, offset)
    }

    pub(crate) fn store_register(&mut self, file: File, index: IrValue, value: Value) {
        let (at, offset) = self.register_place(file, index);
        self.b.ins().store(context_flags(), value, at, offset);
    }

    // Going on.

    fn go_on(&mut self, step: Step, end: &Terminator) {
        match end {
            Terminator::Next => {
                let next = self.next(step);
                self.dispatch(next, step.end);
            }
            // The wide parameter is the record that a direct branch goes to.
            Terminator::Jump { .. } => {
                let target = self.wide(step.record);
                self.branch_to_record(step, target);
            }
            Terminator::Branch { cond, .. } => {
                let [taken, next] = std::array::from_fn(|_| self.b.create_block());
                let cond = self.value(*cond);
                self.b.ins().brif(cond, taken, &[], next, &[]);
                self.b.switch_to_block(taken);
                self.b.seal_block(taken);
                let target = self.wide(step.record);
                self.branch_to_record(step, target);
                self.b.switch_to_block(next);
                self.b.seal_block(next);
                let next = self.next(step);
                self.dispatch(next, step.end);
            }
            Terminator::Indirect { target, .. } => {
                let target = self.value(*target);
                self.branch_to_address(step, target);
            }
            Terminator::Stop { exit, detail } => {
                let detail = self.value(*detail);
                self.exit(*exit, detail);
            }
        }
    }

    fn next(&mut self, step: Step) -> Value {
        self.b.ins().iadd_imm_u(step.record, 1 << LOG_RECORD)
    }

    /// Completes the instruction and goes on elsewhere.
    fn branch_to_record(&mut self, step: Step, target: Value) {
        let distance = self.b.ins().isub(target, step.record);
        let end = self.b.ins().iadd(step.end, distance);
        let end = self.b.ins().iadd_imm_s(end, -(1 << LOG_RECORD));
        self.count_reached(target, end);
        self.check_fuel(target, end);
        self.dispatch(target, end);
    }

    fn branch_to_address(&mut self, step: Step, target: Value) {
        let miss = self.b.create_block();
        self.b.set_cold_block(miss);
        let record = self.find_record(target, miss);
        self.branch_to_record(step, record);
        self.b.switch_to_block(miss);
        self.b.seal_block(miss);
        let left = self.fuel_left(step.record, step.end);
        let left = self.b.ins().iadd_imm_s(left, -1);
        let kind = self.b.ins().iconst(types::I32, ExitKind::Chain as i64);
        self.store_context(offset_of!(LaneContext, state.pc), target);
        self.store_context(offset_of!(LaneContext, fuel), left);
        self.store_context(offset_of!(LaneContext, exit), kind);
        self.b.ins().return_(&[]);
    }

    /// Counts that a record is reached, and leaves if that is often enough.
    fn count_reached(&mut self, record: Value, end: Value) {
        let heat = self.b.ins().load(types::I16, context_flags(), record, record::HEAT);
        let heat = self.b.ins().iadd_imm_s(heat, -1);
        self.b.ins().store(context_flags(), heat, record, record::HEAT);
        let is_hot = self.b.ins().icmp_imm_u(IntCC::Equal, heat, 0);
        self.leave_if(is_hot, |t| t.leave_at(ExitKind::Hot, record, end));
    }

    /// Leaves if less fuel is left than may be used before the next look.
    fn check_fuel(&mut self, record: Value, end: Value) {
        let left = self.b.ins().isub(end, record);
        let enough = (SLACK << LOG_RECORD) as i64;
        let short = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, left, enough);
        self.leave_if(short, |t| t.leave_at(ExitKind::Fuel, record, end));
    }

    /// Leaves if the lane has written the words of the record's granule.
    fn check_granule(&mut self, step: Step) {
        let pc = self.place(step.record);
        let granule = self.b.ins().ushr_imm_u(pc, i64::from(GRANULE.trailing_zeros()));
        let is_open = self.granule_state(granule);
        self.leave_if(is_open, |t| t.leave_at(ExitKind::Stale, step.record, step.end));
    }

    /// Goes on with the handler of a record, whatever the record runs.
    fn run_handler(&mut self, step: Step) {
        let tables = self.tables();
        let at = offset_of!(Tables, handlers) as i32;
        let handlers = self.b.ins().load(types::I64, context_flags(), tables, at);
        let number = self.b.ins().uload16(types::I64, context_flags(), step.record, record::NUMBER);
        let offset = self.b.ins().ishl_imm_u(number, 3);
        let at = self.b.ins().iadd(handlers, offset);
        let code = self.b.ins().load(types::I64, context_flags(), at, 0);
        self.tail_call(code, step.record, step.end);
    }

    // Leaving.

    /// Returns to the engine at the instruction, or after it if it is done.
    pub(crate) fn leave_step(&mut self, step: Step, kind: ExitKind, done: i64) {
        let record = self.b.ins().iadd_imm_s(step.record, done << LOG_RECORD);
        self.leave_at(kind, record, step.end);
    }

    /// Returns to the engine at a record.
    pub(crate) fn leave_at(&mut self, kind: ExitKind, record: Value, end: Value) {
        let tables = self.tables();
        let at = offset_of!(Tables, exits) + 8 * kind as usize;
        let code = self.b.ins().load(types::I64, context_flags(), tables, at as i32);
        self.tail_call(code, record, end);
    }

    /// Returns to the engine at a record, without any other code.
    fn return_at(&mut self, step: Step, kind: ExitKind) {
        let pc = self.place(step.record);
        let fuel = self.fuel_left(step.record, step.end);
        let kind = self.b.ins().iconst(types::I32, kind as i64);
        self.store_context(offset_of!(LaneContext, state.pc), pc);
        self.store_context(offset_of!(LaneContext, fuel), fuel);
        self.store_context(offset_of!(LaneContext, exit), kind);
        self.b.ins().return_(&[]);
    }

    fn tables(&mut self) -> Value {
        let at = offset_of!(LaneContext, tables) as i32;
        self.b.ins().load(types::I64, context_flags().with_readonly(), self.context, at)
    }
}

const _: () = assert!(NOT_DECODED == 0, "records that are zero are not decoded");
