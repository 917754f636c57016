//! Names of functions, for messages.

use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolKind};

use crate::kernel::Kernel;
use crate::memory::Backing;
use crate::thread::Tid;
use crate::vfs::NodeId;

/// Bytes of a file that symbols are looked for in, at the most.
const MOST_BYTES: u64 = 1 << 30;

impl Kernel {
    /// The function at an address, and how far the address is from its beginning.
    pub(crate) fn symbol_at(&mut self, tid: Tid, addr: u64) -> Option<(String, u64)> {
        let (start, area) = self.held_of(tid).memory.areas().find(addr)?;
        let Backing::File { node, offset, .. } = area.backing else { return None };
        let in_file = offset + (addr - start);
        function_at(&self.program_file(tid, node)?, in_file)
    }

    /// The bytes of a program or library, unless there are too many.
    pub(crate) fn program_file(&mut self, tid: Tid, node: NodeId) -> Option<Vec<u8>> {
        self.read_whole(tid, node, MOST_BYTES.min(self.limits.memory)).ok()
    }
}

/// Where functions of a name begin in a program's file.
pub(crate) fn offsets_of(bytes: &[u8], name: &str) -> Vec<u64> {
    let find = || -> object::Result<Vec<u64>> {
        let file = ElfFile64::<LittleEndian>::parse(bytes)?;
        let segments = file.elf_header().program_headers(LittleEndian, bytes)?;
        let in_file = |addr: u64| {
            segments.iter().find_map(|segment| {
                let behind = addr.checked_sub(segment.p_vaddr.get(LittleEndian))?;
                let is_in = segment.p_type.get(LittleEndian) == object::elf::PT_LOAD
                    && behind < segment.p_filesz.get(LittleEndian);
                segment.p_offset.get(LittleEndian).checked_add(behind).filter(|_| is_in)
            })
        };
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions = symbols.filter(|symbol| {
            let is_function = symbol.kind() == SymbolKind::Text && !symbol.is_undefined();
            is_function && symbol.name_bytes().is_ok_and(|found| found == name.as_bytes())
        });
        Ok(functions.filter_map(|symbol| in_file(symbol.address())).collect())
    };
    find().unwrap_or_default()
}

/// The function whose code is at an offset in a program's file.
fn function_at(bytes: &[u8], offset: u64) -> Option<(String, u64)> {
    let file = ElfFile64::<LittleEndian>::parse(bytes).ok()?;
    let segments = file.elf_header().program_headers(LittleEndian, bytes).ok()?;
    let addr = segments.iter().find_map(|segment| {
        let first = segment.p_offset.get(LittleEndian);
        let len = segment.p_filesz.get(LittleEndian);
        let is_in = first <= offset && offset - first < len;
        is_in.then(|| segment.p_vaddr.get(LittleEndian).wrapping_add(offset - first))
    })?;
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions =
        symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() <= addr);
    let nearest = functions.max_by_key(|symbol| symbol.address())?;
    let distance = addr - nearest.address();
    let is_in = nearest.size() == 0 || distance < nearest.size();
    is_in.then(|| (nearest.name().unwrap_or("?").to_owned(), distance))
}
