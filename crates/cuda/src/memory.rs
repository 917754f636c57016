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
//! **Mapped** memory is private memory whose pages are anywhere, and stored in slots: image and page tables have slots
//! instead of pages, which the map of pages leads to ([`PageMap`](kvrm_engine::memory::PageMap)). An access to a page that the
//! map does not have, or does not allow, stops the lane for the host to look. Where lanes differ in what they may do with a
//! page, the map sends them to the column of its slot.
//!
//! A *place* is looked up once, when it is made: where its first byte is, and how far apart its words are. The
//! device wants aligned accesses, the guest does not: elements of a *slow* place, one that is not aligned or
//! crosses a page, are put together from words that are looked up one by one. A handler is written in two
//! versions from there on, so that the usual one need not ask again.

mod mapped;

use std::fmt::Write;

use kvrm_engine::MemoryModel;
use kvrm_engine::code::BLOCK_PAGES;
use kvrm_engine::kernel::stop;
use kvrm_ir::{Access, Op, Order, Place, PlaceData, RmwOp, Type};
use kvrm_mem::PAGE;

use crate::emit::{Emitter, ptx};

/// What the code for memory accesses depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemorySpec {
    pub(crate) model: MemoryModel,
    pub(crate) size: u64,
    /// Every write faults.
    pub(crate) read_only: bool,
    /// Pages are anywhere, and have permissions; memory is private.
    pub(crate) mapped: bool,
    /// What programs may access of it; what is behind that is their supervisors'.
    pub(crate) program: u64,
}

impl MemorySpec {
    /// True if lanes may have supervisors.
    pub(crate) fn has_supervisors(&self) -> bool {
        self.program < self.size
    }
}

/// Registers that say where a place is.
#[derive(Clone)]
pub(crate) struct PlaceRegisters {
    /// The guest's address.
    addr: String,
    /// Where its bytes are, unless it is slow.
    found: Option<Found>,
}

/// Registers of a place that is looked up as a whole.
#[derive(Clone)]
struct Found {
    /// The device's address of the first byte.
    base: String,
    /// Its page, in private memory.
    in_page: Option<PageEntry>,
}

/// Registers of what the page table says: number of the page or slot, its frame, and whether the lane has copied it.
#[derive(Clone)]
struct PageEntry {
    page: String,
    frame: String,
    owned: String,
}

/// Bits of an address within a block of code.
pub(crate) const BLOCK_BITS: u32 = (BLOCK_PAGES * PAGE).ilog2();
/// Lanes that share a frame.
pub(crate) const FRAME_LANES: u64 = 32;
/// Bytes in a frame.
pub(crate) const FRAME_BYTES: u64 = FRAME_LANES * PAGE;

/// Suffix of a load or store of a type.
fn access_type(ty: Type) -> &'static str {
    match ty {
        Type::Bool | Type::U128 => unreachable!("accesses are of one to eight bytes"),
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

    /// True if a place may be slow, and it matters: atomic operations are always aligned.
    pub(crate) fn may_be_slow(&self, place: Place) -> bool {
        let PlaceData { ty, count, .. } = self.routine.place(place);
        // There are no atomic operations in translated code.
        let mut is_used = self.position.is_some();
        self.routine.body.for_each_stmt(&mut |stmt| {
            is_used |= matches!(stmt.op, Op::Load { place: p, .. } | Op::Store { place: p, .. } if p == place);
        });
        is_used && (ty.bytes() > 1 || self.private() && count > 1)
    }

    /// Checks a place that is not slow, and finds out where it is.
    pub(crate) fn probe(&mut self, place: Place, addr: &str) {
        let addr = &self.untagged(addr);
        let in_page = self.check(place, addr);
        self.find(place, addr, in_page);
    }

    /// The same for one that may be slow. If it is, the handler goes on with `rest`, which is written elsewhere.
    pub(crate) fn probe_or_leave(
        &mut self,
        place: Place,
        addr: &str,
        rest: impl FnOnce(&mut Self),
    ) {
        let addr = &self.untagged(addr);
        let in_page = self.check(place, addr);
        let data = self.routine.place(place);
        let slow = self.is_slow(data, addr);
        let elsewhere = self.elsewhere(|e| {
            let writes = data.access != Access::Read;
            if e.private() && (writes || e.memory.mapped) {
                let last = e.element_address(addr, data.len() - 1);
                let second = match e.memory.mapped {
                    true => e.mapped_entry(data.access, addr, &last),
                    false => e.page_entry(&last),
                };
                if writes && e.memory.mapped {
                    // It may be in another page.
                    e.check_mapped_code(addr, &last, 1);
                }
                if writes {
                    e.check_owned(&second);
                }
            }
            e.places[place.0 as usize] =
                Some(PlaceRegisters { addr: addr.to_string(), found: None });
            rest(e);
        });
        ptx!(self, "@{slow} bra {elsewhere};");
        self.find(place, addr, in_page);
    }

    /// Checks bounds and code, and in private memory that a page to be written is the lane's: the page of the first
    /// byte.
    fn check(&mut self, place: Place, addr: &str) -> Option<PageEntry> {
        let place = self.routine.place(place);
        let (access, len) = (place.access, place.len());
        let writes = access != Access::Read;
        if self.memory.mapped {
            let entry = self.mapped_entry(access, addr, addr);
            if writes {
                self.check_mapped_code(addr, addr, len);
                self.check_owned(&entry);
            }
            return Some(entry);
        }
        let (outside, size) = (self.temp_p(), self.memory.size);
        let fault = self.elsewhere(|e| {
            ptx!(e, "mov.b64 %detail, {addr};");
            ptx!(e, "mov.b32 %stop, {};", stop::fault(access));
            ptx!(e, "bra STOP;");
        });
        if self.memory.read_only && writes {
            ptx!(self, "bra {fault};");
        }
        ptx!(self, "setp.gt.u64 {outside}, {addr}, 0x{:x};", size - u64::from(len));
        ptx!(self, "@{outside} bra {fault};");
        if writes {
            self.check_code(addr, len);
        }
        let entry = self.private().then(|| self.page_entry(addr))?;
        if writes {
            self.check_owned(&entry);
        }
        Some(entry)
    }

    fn find(&mut self, place: Place, addr: &str, in_page: Option<PageEntry>) {
        let data = self.routine.place(place);
        let base = match &in_page {
            None => self.flat(addr),
            Some(entry) if data.access == Access::Read => self.owned_or_flat(data.ty, addr, entry),
            Some(entry) => self.in_frame(data.ty, addr, &entry.frame),
        };
        let found = Some(Found { base, in_page });
        self.places[place.0 as usize] = Some(PlaceRegisters { addr: addr.to_string(), found });
    }

    /// A predicate for a place that is not aligned or crosses a page.
    fn is_slow(&mut self, place: PlaceData, addr: &str) -> String {
        let (low, slow) = (self.temp_r(), self.temp_p());
        let address = self.temp_r();
        ptx!(self, "cvt.u32.u64 {address}, {addr};");
        ptx!(self, "and.b32 {low}, {address}, {};", place.ty.bytes() - 1);
        ptx!(self, "setp.ne.u32 {slow}, {low}, 0;");
        if self.private() && place.count > 1 {
            let last = PAGE - u64::from(place.len());
            ptx!(self, "and.b32 {low}, {address}, {};", PAGE - 1);
            ptx!(self, "setp.gt.or.u32 {slow}, {low}, {last}, {slow};");
        }
        slow
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
        self.stop_for_code(addr);
    }

    /// Stops before a write to code, at an address.
    fn stop_for_code(&mut self, addr: &str) {
        if self.position.is_some() {
            let label = self.leave();
            ptx!(self, "bra {label};");
            return;
        }
        ptx!(self, "mov.b64 %detail, {addr};");
        ptx!(self, "mov.b32 %stop, {};", stop::CODE_WRITE);
        ptx!(self, "bra STOP;");
    }

    /// Goes to make a copy of a page that is about to be written, unless the lane has one.
    fn check_owned(&mut self, entry: &PageEntry) {
        let copy = self.elsewhere(|e| {
            ptx!(e, "mov.b32 %want, {};", entry.page);
            ptx!(e, "bra OWN_PAGE;");
        });
        ptx!(self, "@!{} bra {copy};", entry.owned);
    }

    /// Looks the page of an address up in the page table.
    fn page_entry(&mut self, addr: &str) -> PageEntry {
        if self.memory.mapped {
            let found = self.map_entry(addr);
            return self.table_entry(&found);
        }
        let (wide, page) = (self.temp_d(), self.temp_r());
        ptx!(self, "shr.u64 {wide}, {addr}, 12;");
        ptx!(self, "cvt.u32.u64 {page}, {wide};");
        self.entry_of(page)
    }

    /// Looks a page or slot up in the page table.
    fn entry_of(&mut self, page: String) -> PageEntry {
        let (entry, frame) = (self.temp_d(), self.temp_r());
        let (lanes, owned) = (self.temp_r(), self.temp_p());
        ptx!(self, "mad.wide.u32 {entry}, {page}, 8, %page_table;");
        ptx!(self, "ld.global.v2.u32 {{{frame}, {lanes}}}, [{entry}];");
        ptx!(self, "and.b32 {lanes}, {lanes}, %lane_bit;");
        ptx!(self, "setp.ne.u32 {owned}, {lanes}, 0;");
        PageEntry { page, frame, owned }
    }

    /// Where the aligned element at `addr` is in a frame, with the bytes after it in its 8-byte word.
    fn in_frame(&mut self, ty: Type, addr: &str, frame: &str) -> String {
        let (low, word, own) = (self.temp_r(), self.temp_r(), self.temp_d());
        ptx!(self, "cvt.u32.u64 {low}, {addr};");
        ptx!(self, "and.b32 {word}, {low}, {};", PAGE - 8);
        if ty == Type::U64 {
            ptx!(self, "mul.lo.u32 {word}, {word}, {FRAME_LANES};");
        } else {
            let byte = self.temp_r();
            ptx!(self, "and.b32 {byte}, {low}, 7;");
            ptx!(self, "mad.lo.u32 {word}, {word}, {FRAME_LANES}, {byte};");
        }
        ptx!(self, "mad.wide.u32 {own}, {frame}, {FRAME_BYTES}, %frames;");
        ptx!(self, "mad.wide.u32 {own}, {word}, 1, {own};");
        own
    }

    /// Where the byte at `addr` is in shared memory, or in the image.
    fn flat(&mut self, addr: &str) -> String {
        let flat = self.temp_d();
        ptx!(self, "add.u64 {flat}, {addr}, %memory;");
        flat
    }

    /// Where to read the aligned element at `addr`: in the lane's copy of the page, if it has one, or in the image.
    fn owned_or_flat(&mut self, ty: Type, addr: &str, entry: &PageEntry) -> String {
        let flat = match self.memory.mapped {
            true => self.in_slot(addr, &entry.page),
            false => self.flat(addr),
        };
        let own = self.in_frame(ty, addr, &entry.frame);
        ptx!(self, "selp.b64 {flat}, {own}, {flat}, {};", entry.owned);
        flat
    }

    /// Where the 8-byte word at `addr` is, which was checked for that access, looked up anew.
    fn word(&mut self, access: Access, addr: &str) -> String {
        if !self.private() {
            return self.flat(addr);
        }
        let entry = self.page_entry(addr);
        match access {
            Access::Read => self.owned_or_flat(Type::U64, addr, &entry),
            Access::Write | Access::ReadWrite => self.in_frame(Type::U64, addr, &entry.frame),
        }
    }

    /// An operand for an element of a place that is not slow.
    fn element(&mut self, place: Place, index: u32) -> String {
        let PlaceData { access, ty, .. } = self.routine.place(place);
        let (addr, Found { base, in_page }) = (self.place(place).addr, self.found(place));
        let offset = index * ty.bytes();
        let Some(entry) = in_page.filter(|_| index > 0) else {
            return format!("[{base}+{offset}]");
        };
        if ty == Type::U64 && access != Access::Read {
            return format!("[{base}+{}]", u64::from(offset) * FRAME_LANES);
        }
        let addr = self.element_address(&addr, offset);
        match access {
            Access::Read => format!("[{}]", self.owned_or_flat(ty, &addr, &entry)),
            Access::Write | Access::ReadWrite => {
                format!("[{}]", self.in_frame(ty, &addr, &entry.frame))
            }
        }
    }

    fn element_address(&mut self, addr: &str, offset: u32) -> String {
        if offset == 0 {
            return addr.to_string();
        }
        let sum = self.temp_d();
        ptx!(self, "add.u64 {sum}, {addr}, {offset};");
        sum
    }

    fn place(&self, place: Place) -> PlaceRegisters {
        self.places[place.0 as usize].clone().expect("places are made before they are used")
    }

    fn found(&self, place: Place) -> Found {
        self.place(place).found.expect("it is not slow")
    }

    /// The address of an element of a slow place.
    fn slow_element(&mut self, place: Place, index: u32) -> Option<String> {
        let PlaceRegisters { addr, found } = self.place(place);
        let offset = index * self.routine.place(place).ty.bytes();
        found.is_none().then(|| self.element_address(&addr, offset))
    }

    pub(crate) fn load(&mut self, order: Order, place: Place, index: u32, d: &str) {
        let ty = self.routine.place(place).ty;
        match self.slow_element(place, index) {
            Some(addr) => self.load_unaligned(ty, d, &addr),
            None => {
                let at = self.element(place, index);
                ptx!(self, "ld.{}.{} {d}, {at};", self.space(), access_type(ty));
            }
        }
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
        let [first, last] = self.words(ty, addr).map(|word| self.word(Access::Read, &word));
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

    pub(crate) fn store(&mut self, order: Order, place: Place, index: u32, value: &str) {
        if order == Order::AcquireRelease {
            self.fence();
        }
        let ty = self.routine.place(place).ty;
        match self.slow_element(place, index) {
            Some(addr) => self.store_unaligned(ty, &addr, value),
            None => {
                let at = self.element(place, index);
                ptx!(self, "st.global.{} {at}, {value};", access_type(ty));
            }
        }
        if order == Order::AcquireRelease {
            self.fence();
        }
    }

    /// Byte by byte: other lanes may be writing the rest of the words.
    fn store_unaligned(&mut self, ty: Type, addr: &str, value: &str) {
        let [first, last] = self.words(ty, addr).map(|word| self.word(Access::Write, &word));
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

    pub(crate) fn rmw(&mut self, op: RmwOp, place: Place, d: &str, value: &str) {
        let (ty, at) = (self.routine.place(place).ty, self.found(place).base);
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

    pub(crate) fn cas(&mut self, place: Place, d: &str, expected: &str, new: &str) {
        let (ty, at) = (self.routine.place(place).ty, self.found(place).base);
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
        place: Place,
        old: &[String; 2],
        expected: &[String; 2],
        new: &[String; 2],
    ) {
        let [low, high] = [0, 1].map(|index| self.element(place, index));
        let (taken, was, end) = (self.temp_p(), self.temp_r(), self.label());
        let again = self.label();
        if !self.private() {
            let _ = writeln!(self.out, "{again}:");
            ptx!(self, "atom.global.cas.b32 {was}, [%lock], 0, 1;");
            ptx!(self, "setp.ne.u32 {taken}, {was}, 0;");
            ptx!(self, "@{taken} bra {again};");
            self.fence();
        }
        ptx!(self, "ld.{}.b64 {}, {low};", self.space(), old[0]);
        ptx!(self, "ld.{}.b64 {}, {high};", self.space(), old[1]);
        let (low_same, high_same) = (self.temp_p(), self.temp_p());
        ptx!(self, "setp.eq.u64 {low_same}, {}, {};", old[0], expected[0]);
        ptx!(self, "setp.eq.u64 {high_same}, {}, {};", old[1], expected[1]);
        ptx!(self, "and.pred {low_same}, {low_same}, {high_same};");
        ptx!(self, "@!{low_same} bra {end};");
        ptx!(self, "st.{}.b64 {low}, {};", self.space(), new[0]);
        ptx!(self, "st.{}.b64 {high}, {};", self.space(), new[1]);
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
