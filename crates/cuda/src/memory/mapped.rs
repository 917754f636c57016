//! Mapped memory in PTX: the map of pages, what lanes may do with them, code anywhere.

use std::fmt::Write;
use std::mem::offset_of;

use kvrm_a64::state::CALLER;
use kvrm_engine::code::BLOCK_STRIDE;
use kvrm_engine::kernel::stop;
use kvrm_engine::memory::{LEAF_PAGES, Masks, RIGHTS_BITS, VARIES};
use kvrm_ir::Access;
use kvrm_mem::{GRANULE, PAGE};

use super::{BLOCK_BITS, FRAME_LANES, PageEntry};
use crate::emit::{Emitter, ptx, var_offset};
use crate::kernel::Arguments;

impl Emitter<'_> {
    /// The address of data in mapped memory: without its tag, if it is a user's.
    pub(super) fn untagged(&mut self, addr: &str) -> String {
        if !self.memory.mapped {
            return addr.to_string();
        }
        let bare = self.temp_d();
        ptx!(self, "shl.b64 {bare}, {addr}, 8;");
        ptx!(self, "shr.s64 {bare}, {bare}, 8;");
        ptx!(self, "and.b64 {bare}, {addr}, {bare};");
        bare
    }

    /// Looks a page of mapped memory up, that of the byte at `byte`; stops, or leaves, if the map does not allow the access,
    /// which starts at `addr`.
    pub(super) fn mapped_entry(&mut self, access: Access, addr: &str, byte: &str) -> PageEntry {
        let refused = self.elsewhere(|e| {
            ptx!(e, "mov.b64 %detail, {addr};");
            ptx!(e, "mov.b32 %stop, {};", stop::no_page(access));
            ptx!(e, "bra STOP;");
        });
        let (outside, rights, missing) = (self.temp_p(), self.temp_r(), self.temp_p());
        ptx!(self, "setp.ge.u64 {outside}, {byte}, 0x{:x};", self.memory.size);
        ptx!(self, "@{outside} bra {refused};");
        let (found, back) = (self.map_entry(byte), self.label());
        let look = self.cold(|e| e.look_in_column(access, byte, &found, [&refused, &back]));
        let needed = stop::no_page(access) - stop::NO_PAGE;
        ptx!(self, "and.b32 {rights}, {found}, {needed};");
        ptx!(self, "setp.ne.u32 {missing}, {rights}, {needed};");
        ptx!(self, "@{missing} bra {look};");
        let _ = writeln!(self.out, "{back}:");
        self.table_entry(&found)
    }

    /// Looks up whether the lane may make an access where lanes differ, as the map's entry has to say.
    fn look_in_column(
        &mut self,
        access: Access,
        byte: &str,
        found: &str,
        [refused, back]: [&str; 2],
    ) {
        let refused = &match self.memory.has_supervisors() {
            true => self.elsewhere(|e| e.look_for_supervisor(byte, [refused, back])),
            false => refused.to_string(),
        };
        let (varies, missing, slot) = (self.temp_p(), self.temp_p(), self.temp_r());
        let (column, height, at) = (self.temp_d(), self.temp_d(), self.temp_d());
        let (readable, writable, group) = (self.temp_r(), self.temp_r(), self.temp_r());
        ptx!(self, "and.b32 {slot}, {found}, {VARIES};");
        ptx!(self, "setp.eq.u32 {varies}, {slot}, 0;");
        ptx!(self, "@{varies} bra {refused};");
        ptx!(self, "shr.u32 {slot}, {found}, {RIGHTS_BITS};");
        ptx!(self, "cvt.u64.u32 {at}, {slot};");
        ptx!(self, "ld.param.u64 {column}, [args+{}];", offset_of!(Arguments, page_columns));
        ptx!(self, "ld.param.u64 {height}, [args+{}];", offset_of!(Arguments, column_bytes));
        ptx!(self, "mad.lo.u64 {column}, {at}, {height}, {column};");
        ptx!(self, "shr.u32 {group}, %lane, {};", FRAME_LANES.ilog2());
        ptx!(self, "mad.wide.u32 {column}, {group}, {}, {column};", size_of::<Masks>());
        ptx!(self, "ld.global.v2.u32 {{{readable}, {writable}}}, [{column}];");
        let mask = match access {
            Access::Read => readable,
            Access::Write => writable,
            Access::ReadWrite => {
                ptx!(self, "and.b32 {readable}, {readable}, {writable};");
                readable
            }
        };
        ptx!(self, "and.b32 {mask}, {mask}, %lane_bit;");
        ptx!(self, "setp.eq.u32 {missing}, {mask}, 0;");
        ptx!(self, "@{missing} bra {refused};");
        ptx!(self, "bra {back};");
    }

    /// Allows an access that the map does not allow to the lane's supervisor, if it is to what is the supervisors'.
    fn look_for_supervisor(&mut self, byte: &str, [refused, back]: [&str; 2]) {
        let (is_program, caller) = (self.temp_p(), self.temp_d());
        ptx!(self, "setp.lt.u64 {is_program}, {byte}, 0x{:x};", self.memory.program);
        ptx!(self, "@{is_program} bra {refused};");
        ptx!(self, "ld.global.u64 {caller}, [%state+{}];", var_offset(CALLER));
        ptx!(self, "setp.eq.u64 {is_program}, {caller}, 0;");
        ptx!(self, "@{is_program} bra {refused};");
        ptx!(self, "bra {back};");
    }

    /// What the map of pages says of an address within memory.
    pub(super) fn map_entry(&mut self, addr: &str) -> String {
        let (wide, at, page) = (self.temp_d(), self.temp_d(), self.temp_r());
        let (part, leaf, found) = (self.temp_r(), self.temp_r(), self.temp_r());
        ptx!(self, "shr.u64 {wide}, {addr}, {};", PAGE.ilog2());
        ptx!(self, "cvt.u32.u64 {page}, {wide};");
        ptx!(self, "shr.u32 {part}, {page}, {};", LEAF_PAGES.ilog2());
        ptx!(self, "mad.wide.u32 {at}, {part}, 4, %page_map;");
        ptx!(self, "ld.global.u32 {leaf}, [{at}];");
        ptx!(self, "and.b32 {page}, {page}, {};", LEAF_PAGES - 1);
        ptx!(self, "add.u32 {leaf}, {leaf}, {page};");
        ptx!(self, "mad.wide.u32 {at}, {leaf}, 4, %page_map;");
        ptx!(self, "ld.global.u32 {found}, [{at}];");
        found
    }

    /// Looks the slot up that an entry of the map has.
    pub(super) fn table_entry(&mut self, found: &str) -> PageEntry {
        let slot = self.temp_r();
        ptx!(self, "shr.u32 {slot}, {found}, {RIGHTS_BITS};");
        self.entry_of(slot)
    }

    /// Stops before a write to a granule of mapped memory with decoded words. The last byte counts if it is in the page of
    /// the first, which starts at `addr`.
    pub(super) fn check_mapped_code(&mut self, addr: &str, byte: &str, len: u32) {
        let (block, at) = (self.temp_d(), self.temp_d());
        let (part, has_code, back) = (self.temp_r(), self.temp_p(), self.label());
        ptx!(self, "shr.u64 {block}, {byte}, {};", BLOCK_BITS);
        ptx!(self, "shl.b64 {block}, {block}, 2;");
        ptx!(self, "add.u64 {at}, {block}, %code_blocks;");
        ptx!(self, "ld.global.u32 {part}, [{at}];");
        ptx!(self, "setp.ne.u32 {has_code}, {part}, 0;");
        let look = self.cold(|e| e.look_for_mapped_code(addr, byte, len, [&part, &back]));
        ptx!(self, "@{has_code} bra {look};");
        let _ = writeln!(self.out, "{back}:");
    }

    /// Looks bytes that are about to be written up in the map of granules: the first and the last of them, in a block with
    /// code.
    fn look_for_mapped_code(
        &mut self,
        addr: &str,
        byte: &str,
        len: u32,
        [part, back]: [&String; 2],
    ) {
        let (low, first, at) = (self.temp_r(), self.temp_r(), self.temp_d());
        let (state, other, hit) = (self.temp_r(), self.temp_r(), self.temp_p());
        let granules = (PAGE / GRANULE) as u32;
        ptx!(self, "sub.u32 {first}, {part}, 1;");
        ptx!(self, "mul.lo.u32 {first}, {first}, {};", BLOCK_STRIDE as u32 * granules);
        // The map begins with the page before the code.
        ptx!(self, "add.u32 {first}, {first}, {granules};");
        for (state, plus) in [(&state, 0), (&other, len - 1)] {
            // One that is beyond the block counts as the first in it: the host looks more closely.
            ptx!(self, "cvt.u32.u64 {low}, {byte};");
            ptx!(self, "add.u32 {low}, {low}, {plus};");
            ptx!(self, "and.b32 {low}, {low}, {};", (1 << BLOCK_BITS) - 1);
            ptx!(self, "shr.u32 {low}, {low}, {};", GRANULE.ilog2());
            ptx!(self, "add.u32 {low}, {low}, {first};");
            ptx!(self, "mad.wide.u32 {at}, {low}, 1, %code_map;");
            ptx!(self, "ld.global.u8 {state}, [{at}];");
        }
        ptx!(self, "or.b32 {state}, {state}, {other};");
        ptx!(self, "setp.ne.u32 {hit}, {state}, 0;");
        ptx!(self, "@!{hit} bra {back};");
        self.stop_for_code(addr);
    }

    /// Where the byte at `addr` is in a slot of the image.
    pub(super) fn in_slot(&mut self, addr: &str, slot: &str) -> String {
        let (low, flat) = (self.temp_d(), self.temp_d());
        ptx!(self, "and.b64 {low}, {addr}, {};", PAGE - 1);
        ptx!(self, "mad.wide.u32 {flat}, {slot}, {PAGE}, %memory;");
        ptx!(self, "add.u64 {flat}, {flat}, {low};");
        flat
    }
}
