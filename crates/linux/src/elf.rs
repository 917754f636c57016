//! Loading programs.

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::Errno;
use crate::answer::Answer;
use crate::memory::{
    Area, Backing, Memory, PAGE, PROGRAM, Permissions, Placement, TOP, page_down, page_up,
};
use crate::vfs::NodeId;

/// Program headers that are looked at, at the most.
const MOST_HEADERS: usize = 1024;

/// A program's file, as far as loading needs it.
pub(crate) struct Image<'d> {
    bytes: &'d [u8],
    header: &'d FileHeader64<LittleEndian>,
    segments: &'d [ProgramHeader64<LittleEndian>],
}

/// Where a program was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Where it begins to run.
    pub entry: u64,
    /// What was added to the addresses in its file.
    pub bias: u64,
    /// Where its program headers are; 0 if they are not loaded.
    pub headers: u64,
    /// How many there are.
    pub header_count: u64,
    /// The address behind its last segment.
    pub end: u64,
}

impl<'d> Image<'d> {
    /// Looks at a file; `ENOEXEC` if it is none for this machine.
    pub(crate) fn parse(bytes: &'d [u8]) -> Result<Image<'d>, Errno> {
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(|_| Errno::NOEXEC)?;
        let endian = LittleEndian;
        let kind = header.e_type(endian);
        let fits = header.e_machine(endian) == elf::EM_AARCH64
            && (kind == elf::ET_EXEC || kind == elf::ET_DYN)
            && header.e_ident().data == elf::ELFDATA2LSB;
        let segments = header.program_headers(endian, bytes).map_err(|_| Errno::NOEXEC)?;
        if !fits || segments.is_empty() || segments.len() > MOST_HEADERS {
            return Err(Errno::NOEXEC);
        }
        Ok(Image { bytes, header, segments })
    }

    /// The path of the program that loads it, if it asks for one.
    pub(crate) fn interpreter(&self) -> Result<Option<&'d [u8]>, Errno> {
        let found = self.segments.iter().find(|s| s.p_type(LittleEndian) == elf::PT_INTERP);
        let Some(segment) = found else { return Ok(None) };
        let path = segment.data(LittleEndian, self.bytes).map_err(|_| Errno::NOEXEC)?;
        let path =
            path.strip_suffix(&[0]).filter(|path| !path.is_empty() && path.len() < PAGE as usize);
        path.ok_or(Errno::NOEXEC).map(Some)
    }

    fn is_anywhere(&self) -> bool {
        self.header.e_type(LittleEndian) == elf::ET_DYN
    }

    fn loads(&self) -> impl Iterator<Item = &'d ProgramHeader64<LittleEndian>> {
        self.segments.iter().filter(|segment| segment.p_type(LittleEndian) == elf::PT_LOAD)
    }

    /// First and last address of all segments, in whole pages.
    fn extent(&self) -> Option<(u64, u64)> {
        let mut extent: Option<(u64, u64)> = None;
        for segment in self.loads() {
            let start = page_down(segment.p_vaddr(LittleEndian));
            let end = segment.p_vaddr(LittleEndian).checked_add(segment.p_memsz(LittleEndian))?;
            let end = page_up(end)?;
            extent =
                Some(extent.map_or((start, end), |(low, high)| (low.min(start), high.max(end))));
        }
        extent.filter(|(start, end)| start < end)
    }

    /// Maps the segments. A program goes to its own addresses or to [`PROGRAM`], its interpreter to where there is room.
    pub(crate) fn load(
        &self,
        memory: &mut Memory,
        node: NodeId,
        as_interpreter: bool,
    ) -> Answer<Loaded> {
        let (low, high) = self.extent().ok_or(Errno::NOEXEC)?;
        let bias = match self.is_anywhere() {
            false => 0,
            true => self.room(memory, high - low, as_interpreter)?.wrapping_sub(low),
        };
        for segment in self.loads() {
            self.map(memory, node, segment, bias)?;
        }
        let count = self.segments.len() as u64;
        let entry = self.header.e_entry(LittleEndian).wrapping_add(bias);
        let (headers, end) = (self.headers_at(bias), high.wrapping_add(bias));
        Ok(Loaded { entry, bias, headers, header_count: count, end })
    }

    /// Reserves addresses for a program that can be anywhere.
    fn room(&self, memory: &mut Memory, len: u64, as_interpreter: bool) -> Answer {
        let area = Area {
            end: 0,
            access: Permissions::NONE,
            backing: Backing::Anonymous,
            beyond: false,
            label: "",
        };
        let hint = if as_interpreter { 0 } else { PROGRAM };
        memory.map(Placement::Anywhere(hint), len, area)
    }

    fn headers_at(&self, bias: u64) -> u64 {
        let at = self.header.e_phoff(LittleEndian);
        let has = |s: &&ProgramHeader64<LittleEndian>| {
            let (offset, len) = (s.p_offset(LittleEndian), s.p_filesz(LittleEndian));
            offset <= at && at - offset < len
        };
        let found = self.loads().find(has);
        found.map_or(0, |s| {
            (s.p_vaddr(LittleEndian) + (at - s.p_offset(LittleEndian))).wrapping_add(bias)
        })
    }

    fn map(
        &self,
        memory: &mut Memory,
        node: NodeId,
        segment: &ProgramHeader64<LittleEndian>,
        bias: u64,
    ) -> Answer<()> {
        let at = segment.p_vaddr(LittleEndian).wrapping_add(bias);
        let (len, file_len) = (segment.p_memsz(LittleEndian), segment.p_filesz(LittleEndian));
        let start = page_down(at);
        let end = at.checked_add(len).and_then(page_up).filter(|end| *end <= TOP);
        let end = end.ok_or(Errno::NOEXEC)?;
        let data = segment.data(LittleEndian, self.bytes).map_err(|_| Errno::NOEXEC)?;
        let offset = segment.p_offset(LittleEndian);
        if len == 0 || file_len > len || start >= end || offset % PAGE != at % PAGE {
            return if len == 0 { Ok(()) } else { Err(Errno::NOEXEC.into()) };
        }
        let split = at.checked_add(file_len).and_then(page_up).ok_or(Errno::NOEXEC)?;
        let file = Backing::File { node, offset: page_down(offset), shared: false };
        let parts = [(start, split.min(end), file), (split.min(end), end, Backing::Anonymous)];
        for (start, end, backing) in parts {
            if start < end {
                let area = Area { end, access: access(segment), backing, beyond: false, label: "" };
                memory.map(Placement::Fixed(start), end - start, area)?;
            }
        }
        // The page's bytes before the segment are the file's, too.
        let before = at.saturating_sub(start).min(offset) as usize;
        let first = offset as usize - before;
        let bytes = self.bytes.get(first..offset as usize + data.len()).ok_or(Errno::NOEXEC)?;
        Ok(memory.guest.write(at - before as u64, bytes)?)
    }
}

fn access(segment: &ProgramHeader64<LittleEndian>) -> Permissions {
    let flags = segment.p_flags(LittleEndian);
    let pairs = [
        (elf::PF_R, Permissions::READ),
        (elf::PF_W, Permissions::WRITE),
        (elf::PF_X, Permissions::EXECUTE),
    ];
    let granted = pairs.into_iter().filter(|(flag, _)| flags.contains(*flag));
    granted.fold(Permissions::NONE, |access, (_, one)| access | one)
}
