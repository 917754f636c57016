//! Ways out of translated code: to the engine, or to handlers.

use std::mem::offset_of;

use cranelift::prelude::*;
use kvrm_ir::Type as IrType;
use kvrm_translate::{ExitFlags, Source};

use crate::compiler::record_at;
use crate::context::{ExitKind, LaneContext};
use crate::flags;
use crate::record::LOG_RECORD;
use crate::translate::{Translator, context_flags, host_type};

impl Translator<'_> {
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

    /// Returns to the engine because the current instruction cannot be executed here.
    pub(crate) fn refuse(&mut self) {
        match self.step {
            Some(step) => self.leave_step(step, ExitKind::Probe, 0),
            None => self.leave(ExitKind::Probe, self.pc, self.unexecuted),
        }
    }

    /// Leaves the current instruction, and what follows it, to handlers.
    pub(crate) fn interpret(&mut self) {
        self.store_dirty();
        let fuel = self.b.use_var(self.fuel);
        let fuel = self.b.ins().iadd_imm_s(fuel, self.unexecuted);
        self.count_executed(fuel, false);
        let record = record_at(&mut self.b, self.pc);
        let distance = self.b.ins().ishl_imm_u(fuel, LOG_RECORD);
        let end = self.b.ins().iadd(record, distance);
        self.leave_at(ExitKind::Slow, record, end);
    }

    /// Returns to the engine because the current instruction stops the lane.
    pub(crate) fn exit(&mut self, exit: kvrm_ir::Exit, detail: Value) {
        let reason = self.b.ins().iconst(types::I32, i64::from(exit.reason));
        self.store_context(offset_of!(LaneContext, reason), reason);
        self.store_context(offset_of!(LaneContext, detail), detail);
        let done = i64::from(exit.completes);
        if let Some(step) = self.step {
            self.leave_step(step, ExitKind::Exit, done);
            return;
        }
        let pc = self.pc.wrapping_add(4 * done as u64);
        self.leave(ExitKind::Exit, pc, self.unexecuted - done);
    }

    /// Returns to the engine with the lane at `pc`, giving back the fuel of `unexecuted` instructions.
    pub(crate) fn leave(&mut self, kind: ExitKind, pc: u64, unexecuted: i64) {
        self.store_dirty();
        let pc = self.b.ins().iconst(types::I64, pc as i64);
        self.return_with(kind, pc, unexecuted);
    }

    /// Brings the lane context up to date. Flags are left to be computed by who needs them: few do.
    pub(crate) fn store_dirty(&mut self) {
        self.store_dirty_registers();
        self.leave_flags(self.flags);
    }

    pub(crate) fn leave_flags(&mut self, flags: ExitFlags) {
        match flags {
            ExitFlags::Stored => {}
            ExitFlags::Lazy { kind, ty, operands } => {
                let is_result = matches!(operands[0], Source::Result(_));
                let code = flags::code(kind, ty) | if is_result { flags::RESULT } else { 0 };
                let code = self.b.ins().iconst(types::I32, i64::from(code));
                self.store_context(offset_of!(LaneContext, flags.code), code);
                let places = [offset_of!(LaneContext, flags.x), offset_of!(LaneContext, flags.y)];
                for (offset, operand) in places.into_iter().zip(operands) {
                    let value = self.flag_operand(ty, operand);
                    self.store_context(offset, value);
                }
            }
        }
    }

    /// Computes the flags that other code has left to be computed.
    pub(crate) fn settle_flags(&mut self) {
        let at = offset_of!(LaneContext, flags.code) as i32;
        let left = self.b.ins().load(types::I32, context_flags(), self.context, at);
        let [settle, go_on] = [self.b.create_block(), self.b.create_block()];
        self.b.set_cold_block(settle);
        self.b.ins().brif(left, settle, &[], go_on, &[]);
        self.b.switch_to_block(settle);
        self.b.seal_block(settle);
        self.call_stub(offset_of!(LaneContext, settle_stub));
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    fn flag_operand(&mut self, ty: IrType, operand: Source) -> Value {
        match operand {
            Source::Const(bits) => self.b.ins().iconst(host_type(ty), bits as i64),
            Source::Value(v) | Source::Result(v) => self.value(v),
        }
    }

    pub(crate) fn return_with(&mut self, kind: ExitKind, pc: Value, unexecuted: i64) {
        let fuel = self.b.use_var(self.fuel);
        let fuel = self.b.ins().iadd_imm_s(fuel, unexecuted);
        self.count_executed(fuel, false);
        let kind = self.b.ins().iconst(types::I32, kind as i64);
        self.store_context(offset_of!(LaneContext, state.pc), pc);
        self.store_context(offset_of!(LaneContext, fuel), fuel);
        self.store_context(offset_of!(LaneContext, exit), kind);
        self.b.ins().return_(&[]);
    }

    pub(crate) fn store_context(&mut self, offset: usize, value: Value) {
        self.b.ins().store(context_flags(), value, self.context, offset as i32);
    }

    // Counting.

    /// Counts what is executed here, if that is wanted: the fuel on entry less what is left when control leaves.
    pub(crate) fn count_executed(&mut self, fuel: Value, enters: bool) {
        if !self.target.profile {
            return;
        }
        let at = offset_of!(LaneContext, executed);
        let count = self.b.ins().load(types::I64, context_flags(), self.context, at as i32);
        let count = match enters {
            true => self.b.ins().iadd(count, fuel),
            false => self.b.ins().isub(count, fuel),
        };
        self.store_context(at, count);
    }
}
