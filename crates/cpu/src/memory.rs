//! Guest memory in translated code: checks, the slow path, atomics.
//!
//! **Flat memory.** Loads are compared with the size. Stores look at the states of granules, too, and ask the engine if one
//! is closed.
//!
//! **Mapped memory.** The state of the first granule tells whether accesses that begin there may proceed, up to some length
//! ([`kvrm_mem::OPEN_NEAR`] and its siblings). If it does not, handlers ask the engine; translations leave the instruction to
//! its handler, with a tail call as everywhere. That is rare: the first access to a page, accesses where memory ends, stores
//! next to code. A way back would cost more, because at its end values must be where the usual case has them.
//!
//! **One check for several accesses** ([`Check`]) is exact for that reason: if it fails, the first of the instructions is
//! executed by itself, and so are those behind it up to the next translation.
//!
//! It stays true until the last of them is executed, because nothing that was allowed is forbidden while a lane is in a
//! translation:
//! - Permissions change, and pages are reset or discarded, only while no lane runs.
//! - Granules are closed when their words are decoded or translated. The lane itself does so between two entries of code.
//!   The engine, when it is asked, only opens some.
//! - Other lanes may do so at any time, if they share memory. Then stores are not covered by the checks of others
//!   ([`HostTarget::limits`]): as long as each is checked right before it is done, none can slip through much later, when
//!   the words have long been translated. Loads are, because closing refuses only stores.
//! - In private memory, lanes that run the same image close nothing of each other.

use std::mem::offset_of;

use cranelift::codegen::ir::{AtomicRmwOp, MemFlagsData};
use cranelift::prelude::*;
use kvrm_ir::{Access, Place, PlaceData, RmwOp};
use kvrm_mem::{FAR, GRANULE, HOLDS_READABLE, OPEN, OPEN_FAR, OPEN_NEAR, READABLE, READABLE_FAR};
use kvrm_translate::{Check, Limits};

use crate::context::{LaneContext, READS};
use crate::translate::{HostTarget, Translator, context_flags, stub_signature};

// The first and the last byte of a place are in neighbouring granules at the most.
const _: () = assert!(kvrm_ir::verify::MAX_PLACE as u64 <= GRANULE);

/// Guest memory: the address has been checked, and need not be aligned.
pub(crate) fn guest_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Bytes that one check of loads from flat memory may be for: what is further apart is rarely used together.
const MERGED_READS: u32 = 1 << 12;

impl HostTarget {
    /// What one check may be for.
    pub(crate) fn limits(&self) -> Limits {
        let [reads, writes] = match self.kind.mapped {
            true => [FAR as u32; 2],
            false => [MERGED_READS, GRANULE as u32],
        };
        // Another thread may close a granule at any time.
        Limits { reads, writes: if self.kind.atomic { 0 } else { writes } }
    }
}

impl Translator<'_> {
    /// Where an element of a place is: an address of the host, and what to add.
    pub(crate) fn element(&mut self, place: Place, index: u32) -> (Value, i32) {
        let at = self.places[place.0 as usize].expect("places are made before they are used");
        let size = self.region.places[place.0 as usize].ty.bytes();
        (at, (index * size) as i32)
    }

    /// Leaves unless the access is allowed; the host's address of the place.
    pub(crate) fn probe(&mut self, place: Place, data: PlaceData, addr: Value) -> Value {
        match self.region.check(place) {
            Check::Own => self.check(data.access, addr, data.len()),
            Check::Span { before, len, access } => {
                let start = self.b.ins().iadd_imm_s(addr, -(before as i64));
                self.check(access, start, len);
            }
            Check::Covered => {}
        }
        self.b.ins().iadd(self.memory, addr)
    }

    /// Leaves unless so many bytes may be accessed.
    fn check(&mut self, access: Access, addr: Value, len: u32) {
        let reads = access == Access::Read;
        match self.target.kind.mapped {
            true if self.step.is_some() => self.check_mapped_or_ask(addr, len, reads),
            true => self.check_mapped(addr, len, reads),
            false if reads => {
                let last = self.last_place(len);
                let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThan, addr, last);
                self.leave_if(outside, |t| t.refuse());
            }
            false => self.check_write(addr, len),
        }
    }

    /// Mapped memory: the state of the first granule tells of accesses to the next few, too. At the ends of what is
    /// allowed it does not, and the access is left to a handler: so there is no way back here, for which values would have to
    /// be where they are without it.
    fn check_mapped(&mut self, addr: Value, len: u32, reads: bool) {
        let out = self.b.create_block();
        self.b.set_cold_block(out);
        let has = self.mapped_state(addr, len, reads, out);
        self.go_on_if(has, out);
        let here = self.b.current_block().expect("a block is being filled");
        self.b.switch_to_block(out);
        self.b.seal_block(out);
        self.interpret();
        self.b.switch_to_block(here);
    }

    /// The same in a handler, which is the last that can do something.
    fn check_mapped_or_ask(&mut self, addr: Value, len: u32, reads: bool) {
        let [slow, slower, go_on] = std::array::from_fn(|_| self.b.create_block());
        [slow, slower].into_iter().for_each(|block| self.b.set_cold_block(block));
        let has = self.mapped_state(addr, len, reads, slow);
        self.b.ins().brif(has, go_on, &[], slow, &[]);
        self.b.switch_to_block(slow);
        self.b.seal_block(slow);
        self.check_any(addr, len, if reads { HOLDS_READABLE } else { OPEN }, go_on, slower);
        self.b.switch_to_block(slower);
        self.b.seal_block(slower);
        self.ask(addr, u64::from(len) | if reads { READS } else { 0 }, go_on);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// Not zero if so many bytes of mapped memory may be accessed; goes elsewhere if there are none.
    fn mapped_state(&mut self, addr: Value, len: u32, reads: bool, otherwise: Block) -> Value {
        assert!(u64::from(len) <= FAR, "there is a state for so many bytes");
        let bit = match (reads, u64::from(len) <= GRANULE) {
            (true, true) => READABLE,
            (true, false) => READABLE_FAR,
            (false, true) => OPEN_NEAR,
            (false, false) => OPEN_FAR,
        };
        let log_granule = i64::from(GRANULE.trailing_zeros());
        let granule = self.b.ins().ushr_imm_u(addr, log_granule);
        let granules = self.memory_units(log_granule);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, granule, granules);
        self.go_on_if(fits, otherwise);
        let state = self.granule_state(granule);
        self.b.ins().band_imm_u(state, i64::from(bit))
    }

    /// The last address where a place of that length fits.
    fn last_place(&mut self, len: u32) -> Value {
        let size = self.memory_units(0);
        self.b.ins().iadd_imm_s(size, -i64::from(len))
    }

    /// Flat memory.
    fn check_write(&mut self, addr: Value, len: u32) {
        let go_on = self.create_block();
        let [slow, slower] = std::array::from_fn(|_| self.b.create_block());
        [slow, slower].into_iter().for_each(|block| self.b.set_cold_block(block));
        if len.is_power_of_two() {
            self.check_aligned_write(addr, len, go_on, slow);
            self.b.switch_to_block(slow);
            self.b.seal_block(slow);
        }
        self.check_any(addr, len, OPEN, go_on, slower);
        self.b.switch_to_block(slower);
        self.b.seal_block(slower);
        self.ask(addr, len.into(), go_on);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// The usual case: an aligned address in an open granule. Rotating the address makes one comparison
    /// of the bounds and the alignment: misplaced low bits become high ones.
    fn check_aligned_write(&mut self, addr: Value, len: u32, go_on: Block, otherwise: Block) {
        let log_len = i64::from(len.trailing_zeros());
        let log_granule = i64::from(GRANULE.trailing_zeros());
        let units = self.memory_units(log_len);
        let unit = self.b.ins().rotr_imm_u(addr, log_len);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, unit, units);
        self.go_on_if(fits, otherwise);
        let granule = self.b.ins().ushr_imm_u(unit, log_granule - log_len);
        let state = self.granule_state(granule);
        self.b.ins().brif(state, go_on, &[], otherwise, &[]);
    }

    /// Any address: the first and the last byte must lie in granules with a bit in their states. Places are not larger
    /// than one.
    fn check_any(&mut self, addr: Value, len: u32, bit: u8, go_on: Block, otherwise: Block) {
        assert!(u64::from(len) <= GRANULE, "accesses reach two granules at the most");
        let log_granule = i64::from(GRANULE.trailing_zeros());
        let last = self.last_place(len);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, addr, last);
        self.go_on_if(fits, otherwise);
        let end = self.b.ins().iadd_imm_u(addr, i64::from(len) - 1);
        let [first, second] = [addr, end].map(|at| {
            let granule = self.b.ins().ushr_imm_u(at, log_granule);
            self.granule_state(granule)
        });
        let both = self.b.ins().band(first, second);
        // Only mapped memory has other states than open and closed.
        let has = match self.target.kind.mapped {
            true => self.b.ins().band_imm_u(both, i64::from(bit)),
            false => both,
        };
        self.b.ins().brif(has, go_on, &[], otherwise, &[]);
    }

    /// Goes on in a block that is as rarely reached as this one if `cond` is true, and elsewhere if not.
    fn go_on_if(&mut self, cond: Value, otherwise: Block) {
        let next = self.create_block();
        self.b.ins().brif(cond, next, &[], otherwise, &[]);
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    /// Has the engine decide: goes on, or leaves. What it is told is stored rather than passed, so that nothing has to be
    /// kept in registers for it.
    fn ask(&mut self, addr: Value, len: u64, go_on: Block) {
        let out = self.b.create_block();
        self.b.set_cold_block(out);
        let len = self.b.ins().iconst(types::I64, len as i64);
        self.store_context(offset_of!(LaneContext, detail), addr);
        self.store_context(offset_of!(LaneContext, len), len);
        self.call_stub(offset_of!(LaneContext, probe_stub));
        let allowed_at = offset_of!(LaneContext, allowed) as i32;
        let allowed = self.b.ins().load(types::I64, context_flags(), self.context, allowed_at);
        self.b.ins().brif(allowed, go_on, &[], out, &[]);
        self.b.switch_to_block(out);
        self.b.seal_block(out);
        self.refuse();
    }

    pub(crate) fn granule_state(&mut self, granule: Value) -> Value {
        let granules = self.granules();
        let at = self.b.ins().iadd(granules, granule);
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
