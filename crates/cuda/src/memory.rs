//! Guest memory in PTX: bounds, the page table of private memory, alignment, atomics.
//!
//! **Shared** memory is one flat buffer. Loads go past the first-level caches, which are not coherent
//! between multiprocessors.
//!
//! **Private** memory starts as the image, which is shared. A page that a lane writes gets a *frame*: room
//! for that page of the 32 lanes of a warp, interleaved by 8-byte word, so that lanes in step touch
//! one cache line. A warp's page table has for each page the frame and a bit per lane that has copied
//! the page; other lanes go on reading the image. A store to a page the lane has not copied jumps to
//! `OWN_PAGE`, which makes the copy and starts the instruction again.
//!
//! The device wants aligned accesses, the guest does not: unaligned ones are put together from aligned
//! words.

use std::fmt::Write;

use kvrm_engine::MemoryModel;
use kvrm_ir::{Access, Order, RmwOp, Type};
use kvrm_mem::PAGE;

use crate::emit::{Emitter, ptx};

/// What the code for memory accesses depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) model: MemoryModel,
    pub(crate) size: u64,
    /// Every write faults.
    pub(crate) read_only: bool,
}

/// Lanes that share a frame.
pub(crate) const FRAME_LANES: u64 = 32;
/// Bytes in a frame.
pub(crate) const FRAME_BYTES: u64 = FRAME_LANES * PAGE;

/// Suffix of a load or store of a type.
fn access_type(ty: Type) -> &'static str {
    match ty {
        Type::Bool => unreachable!("booleans are not memory contents"),
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "b32",
        Type::U64 => "b64",
    }
}

impl Emitter<'_> {
    fn private(&self) -> bool {
        self.memory.model == MemoryModel::Private
    }

    /// How ordinary loads are made. Stores need no such care: they go through the first-level cache.
    fn space(&self) -> &'static str {
        if self.private() { "global" } else { "relaxed.gpu.global" }
    }

    pub(crate) fn probe(&mut self, access: Access, addr: &str, len: u32) {
        if self.memory.read_only && access != Access::Read {
            ptx!(self, "mov.b64 %detail, {addr};");
            ptx!(self, "mov.b32 %stop, {};", kvrm_engine::kernel::stop::fault(access));
            ptx!(self, "bra STOP;");
            return;
        }
        let (outside, size) = (self.temp_p(), self.memory.size);
        let fault = self.cold(|e| {
            ptx!(e, "max.u64 %detail, {addr}, 0x{size:x};");
            ptx!(e, "mov.b32 %stop, {};", kvrm_engine::kernel::stop::fault(access));
            ptx!(e, "bra STOP;");
        });
        ptx!(self, "setp.gt.u64 {outside}, {addr}, 0x{:x};", size - u64::from(len));
        ptx!(self, "@{outside} bra {fault};");
        if access == Access::Read {
            return;
        }
        self.check_code(addr, len);
        if self.private() {
            self.check_owned(addr, len);
        }
    }

    /// Stops before a write to a granule with decoded words.
    fn check_code(&mut self, addr: &str, len: u32) {
        let (near, back) = (self.temp_p(), self.label());
        // The upper half of an address within a small memory is zero.
        let (bits, offset) = match self.memory.size >> 32 {
            0 => (32, self.temp_r()),
            _ => (64, self.temp_d()),
        };
        let look = self.cold(|e| e.look_for_code(addr, len, &back));
        match bits {
            32 => {
                let low = self.temp_r();
                ptx!(self, "cvt.u32.u64 {low}, {addr};");
                ptx!(self, "sub.u32 {offset}, {low}, %code_near_low;");
                ptx!(self, "setp.lt.u32 {near}, {offset}, %code_span_low;");
            }
            _ => {
                ptx!(self, "sub.u64 {offset}, {addr}, %code_near;");
                ptx!(self, "setp.lt.u64 {near}, {offset}, %code_span;");
            }
        }
        ptx!(self, "@{near} bra {look};");
        let _ = writeln!(self.out, "{back}:");
    }

    /// Looks a write near the code up in the map of granules.
    fn look_for_code(&mut self, addr: &str, len: u32, back: &str) {
        let (offset, hit) = (self.temp_d(), self.temp_p());
        let (state, other, at) = (self.temp_r(), self.temp_r(), self.temp_d());
        ptx!(self, "sub.u64 {offset}, {addr}, %code_near;");
        for (state, plus) in [(&state, 0), (&other, len - 1)] {
            ptx!(self, "add.u64 {at}, {offset}, {plus};");
            ptx!(self, "shr.u64 {at}, {at}, 6;");
            ptx!(self, "add.u64 {at}, {at}, %code_map;");
            ptx!(self, "ld.global.u8 {state}, [{at}];");
        }
        ptx!(self, "or.b32 {state}, {state}, {other};");
        ptx!(self, "setp.ne.u32 {hit}, {state}, 0;");
        ptx!(self, "@!{hit} bra {back};");
        ptx!(self, "mov.b64 %detail, {addr};");
        ptx!(self, "mov.b32 %stop, {};", kvrm_engine::kernel::stop::CODE_WRITE);
        ptx!(self, "bra STOP;");
    }

    /// Goes to make copies of the pages that are about to be written, unless the lane has them.
    fn check_owned(&mut self, addr: &str, len: u32) {
        let (page, frame, owned) = self.page_entry(addr);
        let copy = self.cold(|e| {
            ptx!(e, "mov.b32 %want, {page};");
            ptx!(e, "bra OWN_PAGE;");
        });
        ptx!(self, "@!{owned} bra {copy};");
        self.probed = Some((addr.to_string(), frame));
        if len == 1 {
            return;
        }
        let (low, crosses, back) = (self.temp_r(), self.temp_p(), self.label());
        let second = self.cold(|e| {
            let last = e.temp_d();
            ptx!(e, "add.u64 {last}, {addr}, {};", len - 1);
            let (page, _, owned) = e.page_entry(&last);
            ptx!(e, "@{owned} bra {back};");
            ptx!(e, "mov.b32 %want, {page};");
            ptx!(e, "bra OWN_PAGE;");
        });
        ptx!(self, "cvt.u32.u64 {low}, {addr};");
        ptx!(self, "and.b32 {low}, {low}, {};", PAGE - 1);
        ptx!(self, "setp.gt.u32 {crosses}, {low}, {};", PAGE - u64::from(len));
        ptx!(self, "@{crosses} bra {second};");
        let _ = writeln!(self.out, "{back}:");
    }

    /// The page of an address, its frame in the page table, and whether the lane has copied it.
    fn page_entry(&mut self, addr: &str) -> (String, String, String) {
        let (wide, page, entry) = (self.temp_d(), self.temp_r(), self.temp_d());
        let (frame, lanes, owned) = (self.temp_r(), self.temp_r(), self.temp_p());
        ptx!(self, "shr.u64 {wide}, {addr}, 12;");
        ptx!(self, "cvt.u32.u64 {page}, {wide};");
        ptx!(self, "mad.wide.u32 {entry}, {page}, 8, %page_table;");
        ptx!(self, "ld.global.v2.u32 {{{frame}, {lanes}}}, [{entry}];");
        ptx!(self, "and.b32 {lanes}, {lanes}, %lane_bit;");
        ptx!(self, "setp.ne.u32 {owned}, {lanes}, 0;");
        (page, frame, owned)
    }

    /// Where the byte at `addr` is in a frame, with those after it in its 8-byte word.
    fn in_frame(&mut self, addr: &str, frame: &str) -> String {
        let (low, word, byte) = (self.temp_r(), self.temp_r(), self.temp_r());
        let own = self.temp_d();
        ptx!(self, "cvt.u32.u64 {low}, {addr};");
        ptx!(self, "and.b32 {word}, {low}, {};", PAGE - 8);
        ptx!(self, "and.b32 {byte}, {low}, 7;");
        ptx!(self, "mad.lo.u32 {word}, {word}, {FRAME_LANES}, {byte};");
        ptx!(self, "mad.wide.u32 {own}, {frame}, {FRAME_BYTES}, %frames;");
        ptx!(self, "mad.wide.u32 {own}, {word}, 1, {own};");
        own
    }

    /// Where to read the byte at `addr`.
    fn pointer(&mut self, addr: &str) -> String {
        let flat = self.temp_d();
        ptx!(self, "add.u64 {flat}, {addr}, %memory;");
        if self.private() {
            let (_, frame, owned) = self.page_entry(addr);
            let own = self.in_frame(addr, &frame);
            ptx!(self, "selp.b64 {flat}, {own}, {flat}, {owned};");
        }
        flat
    }

    /// Where to write the byte at `addr`, which was probed: the lane has its own copy.
    fn own_pointer(&mut self, addr: &str) -> String {
        if !self.private() {
            return self.pointer(addr);
        }
        let frame = match &self.probed {
            Some((probed, frame)) if probed == addr => frame.clone(),
            _ => self.page_entry(addr).1,
        };
        self.in_frame(addr, &frame)
    }

    /// Branches to the label if the address is not a multiple of the size.
    fn branch_if_unaligned(&mut self, ty: Type, addr: &str, label: &str) {
        let (low, off) = (self.temp_r(), self.temp_p());
        ptx!(self, "cvt.u32.u64 {low}, {addr};");
        ptx!(self, "and.b32 {low}, {low}, {};", ty.bytes() - 1);
        ptx!(self, "setp.ne.u32 {off}, {low}, 0;");
        ptx!(self, "@{off} bra {label};");
    }

    pub(crate) fn load(&mut self, order: Order, ty: Type, d: &str, addr: &str) {
        let back = self.label();
        if ty != Type::U8 {
            let slow = self.cold(|e| {
                e.load_unaligned(ty, d, addr);
                ptx!(e, "bra {back};");
            });
            self.branch_if_unaligned(ty, addr, &slow);
        }
        let at = self.pointer(addr);
        ptx!(self, "ld.{}.{} {d}, [{at}];", self.space(), access_type(ty));
        let _ = writeln!(self.out, "{back}:");
        if order == Order::AcquireRelease {
            self.fence();
        }
    }

    /// The 8-byte words that hold an unaligned value, by address: the second may be the first again.
    fn words(&mut self, ty: Type, addr: &str) -> [String; 2] {
        let (first, last) = (self.temp_d(), self.temp_d());
        ptx!(self, "and.b64 {first}, {addr}, 0xfffffffffffffff8;");
        ptx!(self, "add.u64 {last}, {addr}, {};", ty.bytes() - 1);
        ptx!(self, "and.b64 {last}, {last}, 0xfffffffffffffff8;");
        [first, last]
    }

    fn load_unaligned(&mut self, ty: Type, d: &str, addr: &str) {
        let [first, last] = self.words(ty, addr).map(|word| self.pointer(&word));
        let (low, high, bits, back) = (self.temp_d(), self.temp_d(), self.temp_r(), self.temp_r());
        ptx!(self, "ld.{}.b64 {low}, [{first}];", self.space());
        ptx!(self, "ld.{}.b64 {high}, [{last}];", self.space());
        ptx!(self, "cvt.u32.u64 {bits}, {addr};");
        ptx!(self, "and.b32 {bits}, {bits}, 7;");
        ptx!(self, "shl.b32 {bits}, {bits}, 3;");
        ptx!(self, "sub.u32 {back}, 64, {bits};");
        ptx!(self, "shr.u64 {low}, {low}, {bits};");
        // Where both words are the same, the bits shifted in are above the value and masked off.
        ptx!(self, "shl.b64 {high}, {high}, {back};");
        ptx!(self, "or.b64 {low}, {low}, {high};");
        match ty {
            Type::U64 => ptx!(self, "mov.b64 {d}, {low};"),
            _ => {
                ptx!(self, "cvt.u32.u64 {d}, {low};");
                ptx!(self, "and.b32 {d}, {d}, 0x{:x};", ty.mask());
            }
        }
    }

    pub(crate) fn store(&mut self, order: Order, ty: Type, addr: &str, value: &str) {
        if order == Order::AcquireRelease {
            self.fence();
        }
        let back = self.label();
        if ty != Type::U8 {
            let slow = self.cold(|e| {
                e.store_unaligned(ty, addr, value);
                ptx!(e, "bra {back};");
            });
            self.branch_if_unaligned(ty, addr, &slow);
        }
        let at = self.own_pointer(addr);
        ptx!(self, "st.global.{} [{at}], {value};", access_type(ty));
        let _ = writeln!(self.out, "{back}:");
        if order == Order::AcquireRelease {
            self.fence();
        }
    }

    /// Byte by byte: other lanes may be writing the rest of the words.
    fn store_unaligned(&mut self, ty: Type, addr: &str, value: &str) {
        let [first, last] = self.words(ty, addr).map(|word| self.own_pointer(&word));
        let (wide, byte, at, position) =
            (self.temp_d(), self.temp_r(), self.temp_d(), self.temp_d());
        let (in_first, offset) = (self.temp_p(), self.temp_d());
        match ty {
            Type::U64 => ptx!(self, "mov.b64 {wide}, {value};"),
            _ => ptx!(self, "cvt.u64.u32 {wide}, {value};"),
        }
        ptx!(self, "and.b64 {position}, {addr}, 7;");
        for i in 0..ty.bytes() {
            ptx!(self, "add.u64 {offset}, {position}, {i};");
            ptx!(self, "setp.lt.u64 {in_first}, {offset}, 8;");
            ptx!(self, "and.b64 {offset}, {offset}, 7;");
            ptx!(self, "selp.b64 {at}, {first}, {last}, {in_first};");
            ptx!(self, "add.u64 {at}, {at}, {offset};");
            ptx!(self, "cvt.u32.u64 {byte}, {wide};");
            ptx!(self, "st.global.u8 [{at}], {byte};");
            ptx!(self, "shr.u64 {wide}, {wide}, 8;");
        }
    }

    pub(crate) fn fence(&mut self) {
        if !self.private() {
            ptx!(self, "fence.sc.gpu;");
        }
    }

    // Atomics: the address is aligned.

    pub(crate) fn rmw(&mut self, op: RmwOp, ty: Type, d: &str, addr: &str, value: &str) {
        let at = self.own_pointer(addr);
        if self.private() {
            ptx!(self, "ld.global.{} {d}, [{at}];", access_type(ty));
            let new = self.temp(ty);
            self.modify(op, ty, &new, d, value);
            ptx!(self, "st.global.{} [{at}], {new};", access_type(ty));
            return;
        }
        self.fence();
        match ty {
            Type::U32 | Type::U64 => {
                let name = atomic_name(op, ty.bits());
                ptx!(self, "atom.global.{name} {d}, [{at}], {value};");
            }
            _ => self.narrow_exchange(ty, d, &at, |e, new, old| e.modify(op, ty, new, old, value)),
        }
        self.fence();
    }

    /// What a read-modify-write stores.
    fn modify(&mut self, op: RmwOp, ty: Type, new: &str, old: &str, value: &str) {
        let bits = ty.bits().max(32);
        match op {
            RmwOp::Add => ptx!(self, "add.u{bits} {new}, {old}, {value};"),
            RmwOp::And => ptx!(self, "and.b{bits} {new}, {old}, {value};"),
            RmwOp::Or => ptx!(self, "or.b{bits} {new}, {old}, {value};"),
            RmwOp::Xor => ptx!(self, "xor.b{bits} {new}, {old}, {value};"),
            RmwOp::Swap => ptx!(self, "mov.b{bits} {new}, {value};"),
            RmwOp::UMax => ptx!(self, "max.u{bits} {new}, {old}, {value};"),
            RmwOp::UMin => ptx!(self, "min.u{bits} {new}, {old}, {value};"),
            RmwOp::SMax | RmwOp::SMin => {
                let name = if op == RmwOp::SMax { "max" } else { "min" };
                if ty.bits() < 32 {
                    let (a, b) = (self.temp_r(), self.temp_r());
                    ptx!(self, "bfe.s32 {a}, {old}, 0, {};", ty.bits());
                    ptx!(self, "bfe.s32 {b}, {value}, 0, {};", ty.bits());
                    ptx!(self, "{name}.s32 {new}, {a}, {b};");
                } else {
                    ptx!(self, "{name}.s{bits} {new}, {old}, {value};");
                }
            }
        }
        if ty.bits() < 32 {
            ptx!(self, "and.b32 {new}, {new}, 0x{:x};", ty.mask());
        }
    }

    /// Replaces 8 or 16 bits atomically, through the 32-bit word around them.
    fn narrow_exchange(
        &mut self,
        ty: Type,
        d: &str,
        at: &str,
        new_value: impl FnOnce(&mut Self, &str, &str),
    ) {
        let (word, position, low) = (self.temp_d(), self.temp_r(), self.temp_r());
        let (seen, new, whole, mask) = (self.temp_r(), self.temp_r(), self.temp_r(), self.temp_r());
        let (again, lost) = (self.label(), self.temp_p());
        ptx!(self, "and.b64 {word}, {at}, 0xfffffffffffffffc;");
        ptx!(self, "cvt.u32.u64 {position}, {at};");
        ptx!(self, "and.b32 {position}, {position}, 3;");
        ptx!(self, "shl.b32 {position}, {position}, 3;");
        ptx!(self, "mov.b32 {mask}, 0x{:x};", ty.mask());
        ptx!(self, "shl.b32 {mask}, {mask}, {position};");
        ptx!(self, "not.b32 {mask}, {mask};");
        ptx!(self, "ld.relaxed.gpu.global.b32 {seen}, [{word}];");
        let _ = writeln!(self.out, "{again}:");
        ptx!(self, "mov.b32 {low}, {seen};");
        ptx!(self, "shr.u32 {d}, {seen}, {position};");
        ptx!(self, "and.b32 {d}, {d}, 0x{:x};", ty.mask());
        new_value(self, &new, d);
        ptx!(self, "shl.b32 {new}, {new}, {position};");
        ptx!(self, "and.b32 {whole}, {low}, {mask};");
        ptx!(self, "or.b32 {whole}, {whole}, {new};");
        ptx!(self, "atom.global.cas.b32 {seen}, [{word}], {low}, {whole};");
        ptx!(self, "setp.ne.u32 {lost}, {seen}, {low};");
        ptx!(self, "@{lost} bra {again};");
    }

    pub(crate) fn cas(&mut self, ty: Type, d: &str, addr: &str, expected: &str, new: &str) {
        let at = self.own_pointer(addr);
        let (bits, same) = (ty.bits().max(32), self.temp_p());
        if self.private() {
            let stored = self.temp(ty);
            ptx!(self, "ld.global.{} {d}, [{at}];", access_type(ty));
            ptx!(self, "setp.eq.u{bits} {same}, {d}, {expected};");
            ptx!(self, "selp.b{bits} {stored}, {new}, {d}, {same};");
            ptx!(self, "st.global.{} [{at}], {stored};", access_type(ty));
            return;
        }
        self.fence();
        match ty {
            Type::U32 | Type::U64 => {
                ptx!(self, "atom.global.cas.b{bits} {d}, [{at}], {expected}, {new};");
            }
            _ => self.narrow_exchange(ty, d, &at, |e, stored, old| {
                ptx!(e, "setp.eq.u32 {same}, {old}, {expected};");
                ptx!(e, "selp.b32 {stored}, {new}, {old}, {same};");
            }),
        }
        self.fence();
    }

    /// No instruction before compute capability 9.0 does this at once, so a lock makes it one: other
    /// 128-bit exchanges see all of it or nothing.
    pub(crate) fn cas128(
        &mut self,
        old: &[String; 2],
        addr: &str,
        expected: &[String; 2],
        new: &[String; 2],
    ) {
        let at = self.own_pointer(addr);
        let high = match self.private() {
            true => {
                let next = self.temp_d();
                ptx!(self, "add.u64 {next}, {addr}, 8;");
                self.own_pointer(&next)
            }
            false => {
                let next = self.temp_d();
                ptx!(self, "add.u64 {next}, {at}, 8;");
                next
            }
        };
        let (taken, was, end) = (self.temp_p(), self.temp_r(), self.label());
        let again = self.label();
        if !self.private() {
            let _ = writeln!(self.out, "{again}:");
            ptx!(self, "atom.global.cas.b32 {was}, [%lock], 0, 1;");
            ptx!(self, "setp.ne.u32 {taken}, {was}, 0;");
            ptx!(self, "@{taken} bra {again};");
            self.fence();
        }
        ptx!(self, "ld.{}.b64 {}, [{at}];", self.space(), old[0]);
        ptx!(self, "ld.{}.b64 {}, [{high}];", self.space(), old[1]);
        let (low_same, high_same) = (self.temp_p(), self.temp_p());
        ptx!(self, "setp.eq.u64 {low_same}, {}, {};", old[0], expected[0]);
        ptx!(self, "setp.eq.u64 {high_same}, {}, {};", old[1], expected[1]);
        ptx!(self, "and.pred {low_same}, {low_same}, {high_same};");
        ptx!(self, "@!{low_same} bra {end};");
        ptx!(self, "st.{}.b64 [{at}], {};", self.space(), new[0]);
        ptx!(self, "st.{}.b64 [{high}], {};", self.space(), new[1]);
        let _ = writeln!(self.out, "{end}:");
        if !self.private() {
            self.fence();
            ptx!(self, "st.relaxed.gpu.global.b32 [%lock], 0;");
        }
    }
}

fn atomic_name(op: RmwOp, bits: u32) -> String {
    match op {
        RmwOp::Add => format!("add.u{bits}"),
        RmwOp::And => format!("and.b{bits}"),
        RmwOp::Or => format!("or.b{bits}"),
        RmwOp::Xor => format!("xor.b{bits}"),
        RmwOp::Swap => format!("exch.b{bits}"),
        RmwOp::SMax => format!("max.s{bits}"),
        RmwOp::SMin => format!("min.s{bits}"),
        RmwOp::UMax => format!("max.u{bits}"),
        RmwOp::UMin => format!("min.u{bits}"),
    }
}
