//! Guest memory in translated code: checks, the slow path, atomics.

use std::mem::offset_of;

use cranelift::codegen::ir::{AtomicRmwOp, MemFlagsData};
use cranelift::prelude::*;
use kvrm_ir::{Access, Place, PlaceData, RmwOp};
use kvrm_mem::{GRANULE, HOLDS_READABLE, OPEN, READABLE};

use crate::context::{LaneContext, READS};
use crate::translate::{Translator, context_flags, stub_signature};

// The first and the last byte of a place are in neighbouring granules at the most.
const _: () = assert!(kvrm_ir::verify::MAX_PLACE as u64 <= GRANULE);

/// Guest memory: the address has been checked, and need not be aligned.
pub(crate) fn guest_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Translator<'_> {
    /// Where an element of a place is: an address of the host, and what to add.
    pub(crate) fn element(&mut self, place: Place, index: u32) -> (Value, i32) {
        let at = self.places[place.0 as usize].expect("places are made before they are used");
        let size = self.region.places[place.0 as usize].ty.bytes();
        (at, (index * size) as i32)
    }

    /// Leaves unless the access is allowed; the host's address of the place.
    pub(crate) fn probe(&mut self, place: PlaceData, addr: Value) -> Value {
        match place.access {
            Access::Read => self.check_read(addr, place.len()),
            Access::Write | Access::ReadWrite => self.check_write(addr, place.len()),
        }
        self.b.ins().iadd(self.memory, addr)
    }

    /// Tells the engine of an access. Stored rather than passed, so that nothing has to be kept in registers
    /// for it.
    fn tell(&mut self, addr: Value, len: u64) {
        let len = self.b.ins().iconst(types::I64, len as i64);
        self.store_context(offset_of!(LaneContext, detail), addr);
        self.store_context(offset_of!(LaneContext, len), len);
    }

    fn check_read(&mut self, addr: Value, len: u32) {
        if self.target.kind.mapped {
            self.check_mapped_read(addr, len);
            return;
        }
        let last = self.last_place(len);
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThan, addr, last);
        self.leave_if(outside, |t| t.refuse());
    }

    /// The granule of the first byte tells whether the place may be read, wherever it ends. At the end of readable memory,
    /// that of the last byte does, too.
    fn check_mapped_read(&mut self, addr: Value, len: u32) {
        let [inside, slow, slower, go_on] = std::array::from_fn(|_| self.b.create_block());
        [slow, slower].into_iter().for_each(|block| self.b.set_cold_block(block));
        let log_granule = i64::from(GRANULE.trailing_zeros());
        let granule = self.b.ins().ushr_imm_u(addr, log_granule);
        let granules = self.memory_units(log_granule);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, granule, granules);
        self.b.ins().brif(fits, inside, &[], slow, &[]);
        self.b.switch_to_block(inside);
        self.b.seal_block(inside);
        let state = self.granule_state(granule);
        let readable = self.has(state, READABLE);
        self.b.ins().brif(readable, go_on, &[], slow, &[]);
        self.b.switch_to_block(slow);
        self.b.seal_block(slow);
        self.check_any(addr, len, HOLDS_READABLE, go_on, slower);
        self.b.switch_to_block(slower);
        self.b.seal_block(slower);
        self.ask(addr, u64::from(len) | READS, go_on);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// The last address where a place of that length fits.
    fn last_place(&mut self, len: u32) -> Value {
        let size = self.memory_units(0);
        self.b.ins().iadd_imm_s(size, -i64::from(len))
    }

    fn check_write(&mut self, addr: Value, len: u32) {
        let [slow, slower, go_on] = std::array::from_fn(|_| self.b.create_block());
        [slow, slower].into_iter().for_each(|block| self.b.set_cold_block(block));
        if len.is_power_of_two() {
            self.check_aligned_write(addr, len, go_on, slow);
        } else {
            self.b.ins().jump(slow, &[]);
        }
        self.b.switch_to_block(slow);
        self.b.seal_block(slow);
        self.check_any(addr, len, OPEN, go_on, slower);
        self.b.switch_to_block(slower);
        self.b.seal_block(slower);
        self.ask(addr, len.into(), go_on);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// Has the engine decide: goes on, or leaves.
    fn ask(&mut self, addr: Value, len: u64, go_on: Block) {
        let out = self.b.create_block();
        self.b.set_cold_block(out);
        self.tell(addr, len);
        self.call_stub(offset_of!(LaneContext, probe_stub));
        let allowed_at = offset_of!(LaneContext, allowed) as i32;
        let allowed = self.b.ins().load(types::I64, context_flags(), self.context, allowed_at);
        self.b.ins().brif(allowed, go_on, &[], out, &[]);
        self.b.switch_to_block(out);
        self.b.seal_block(out);
        self.refuse();
    }

    /// The usual case: an aligned address in an open granule. Rotating the address makes one comparison
    /// of the bounds and the alignment: misplaced low bits become high ones.
    fn check_aligned_write(&mut self, addr: Value, len: u32, go_on: Block, otherwise: Block) {
        let log_len = i64::from(len.trailing_zeros());
        let log_granule = i64::from(GRANULE.trailing_zeros());
        let units = self.memory_units(log_len);
        let unit = self.b.ins().rotr_imm_u(addr, log_len);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, unit, units);
        let aligned = self.b.create_block();
        self.b.ins().brif(fits, aligned, &[], otherwise, &[]);
        self.b.switch_to_block(aligned);
        self.b.seal_block(aligned);
        let granule = self.b.ins().ushr_imm_u(unit, log_granule - log_len);
        let state = self.granule_state(granule);
        let open = self.has(state, OPEN);
        self.b.ins().brif(open, go_on, &[], otherwise, &[]);
    }

    /// Any address: the first and the last byte must lie in granules with a bit in their states. Places are not larger
    /// than one.
    fn check_any(&mut self, addr: Value, len: u32, bit: u8, go_on: Block, otherwise: Block) {
        let log_granule = i64::from(GRANULE.trailing_zeros());
        let last = self.last_place(len);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, addr, last);
        let inside = self.b.create_block();
        self.b.set_cold_block(inside);
        self.b.ins().brif(fits, inside, &[], otherwise, &[]);
        self.b.switch_to_block(inside);
        self.b.seal_block(inside);
        let end = self.b.ins().iadd_imm_u(addr, i64::from(len) - 1);
        let [first, second] = [addr, end].map(|at| {
            let granule = self.b.ins().ushr_imm_u(at, log_granule);
            self.granule_state(granule)
        });
        let both = self.b.ins().band(first, second);
        let has = self.has(both, bit);
        self.b.ins().brif(has, go_on, &[], otherwise, &[]);
    }

    /// Whether a state has a bit: only mapped memory has others than open and closed.
    fn has(&mut self, state: Value, bit: u8) -> Value {
        match self.target.kind.mapped {
            true => self.b.ins().band_imm_u(state, i64::from(bit)),
            false => state,
        }
    }

    pub(crate) fn granule_state(&mut self, granule: Value) -> Value {
        let at = self.b.ins().iadd(self.granules, granule);
        self.b.ins().load(types::I8, guest_flags(), at, 0)
    }

    /// Calls the stub whose address the lane context has at `offset`.
    pub(crate) fn call_stub(&mut self, offset: usize) {
        let signature = self.b.import_signature(stub_signature());
        let stub = self.b.ins().load(types::I64, context_flags(), self.context, offset as i32);
        self.b.ins().call_indirect(signature, stub, &[self.context]);
    }

    pub(crate) fn rmw(&mut self, op: RmwOp, at: Value, value: Value) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        if self.target.kind.atomic {
            let op = match op {
                RmwOp::Add => AtomicRmwOp::Add,
                RmwOp::And => AtomicRmwOp::And,
                RmwOp::Or => AtomicRmwOp::Or,
                RmwOp::Xor => AtomicRmwOp::Xor,
                RmwOp::Swap => AtomicRmwOp::Xchg,
                RmwOp::SMax => AtomicRmwOp::Smax,
                RmwOp::SMin => AtomicRmwOp::Smin,
                RmwOp::UMax => AtomicRmwOp::Umax,
                RmwOp::UMin => AtomicRmwOp::Umin,
            };
            return self.b.ins().atomic_rmw(ty, guest_flags(), op, at, value);
        }
        let old = self.b.ins().load(ty, guest_flags(), at, 0);
        let new = match op {
            RmwOp::Add => self.b.ins().iadd(old, value),
            RmwOp::And => self.b.ins().band(old, value),
            RmwOp::Or => self.b.ins().bor(old, value),
            RmwOp::Xor => self.b.ins().bxor(old, value),
            RmwOp::Swap => value,
            RmwOp::SMax => self.b.ins().smax(old, value),
            RmwOp::SMin => self.b.ins().smin(old, value),
            RmwOp::UMax => self.b.ins().umax(old, value),
            RmwOp::UMin => self.b.ins().umin(old, value),
        };
        self.b.ins().store(guest_flags(), new, at, 0);
        old
    }

    pub(crate) fn cas(&mut self, at: Value, expected: Value, new: Value) -> Value {
        if self.target.kind.atomic {
            return self.b.ins().atomic_cas(guest_flags(), at, expected, new);
        }
        let ty = self.b.func.dfg.value_type(new);
        let old = self.b.ins().load(ty, guest_flags(), at, 0);
        let same = self.b.ins().icmp(IntCC::Equal, old, expected);
        let stored = self.b.ins().select(same, new, old);
        self.b.ins().store(guest_flags(), stored, at, 0);
        old
    }

    pub(crate) fn cas128(&mut self, at: Value, operands: [[Value; 2]; 2]) -> Vec<Value> {
        let offset = |i: usize| offset_of!(LaneContext, cas) + 8 * i;
        let addr = self.b.ins().isub(at, self.memory);
        let [[low, high], [new_low, new_high]] = operands;
        for (i, value) in [addr, low, high, new_low, new_high].into_iter().enumerate() {
            self.store_context(offset(i), value);
        }
        self.call_stub(offset_of!(LaneContext, cas_stub));
        [1, 2]
            .map(|i| {
                let at = offset(i) as i32;
                self.b.ins().load(types::I64, context_flags(), self.context, at)
            })
            .to_vec()
    }
}
