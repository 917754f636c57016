//! Loading programs. Of a file, only the headers and the segments are read, which may be a small part of it.

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::pod::slice_from_bytes;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::Errno;
use crate::answer::Answer;
use crate::memory::{
    Area, Backing, Label, Memory, PAGE, PROGRAM, Permissions, Placement, TOP, page_down, page_up,
};
use crate::vfs::NodeId;

/// Program headers that are looked at, at the most.
const MOST_HEADERS: usize = 1024;

/// Bytes of a segment that are read at a time.
const PIECE: u64 = 1 << 20;

/// A program's file.
pub(crate) trait File {
    /// Its bytes.
    fn size(&mut self) -> Answer;

    /// Reads bytes at an offset; how many there were.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Answer<usize>;

    /// Reads all bytes; `ENOEXEC` if there are not so many.
    fn read_all(&mut self, offset: u64, mut bytes: &mut [u8]) -> Answer<()> {
        let mut at = offset;
        while !bytes.is_empty() {
            let got = self.read(at, bytes)?;
            if got == 0 {
                return Err(Errno::NOEXEC.into());
            }
            (at, bytes) = (at + got as u64, &mut bytes[got..]);
        }
        Ok(())
    }
}

/// A program's headers.
pub(crate) struct Image {
    header: FileHeader64<LittleEndian>,
    segments: Vec<ProgramHeader64<LittleEndian>>,
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

impl Image {
    /// Looks at a file, which begins with `start`; `ENOEXEC` if it is none for this machine.
    pub(crate) fn parse(start: &[u8], file: &mut impl File) -> Answer<Image> {
        let header = *FileHeader64::<LittleEndian>::parse(start).map_err(|_| Errno::NOEXEC)?;
        let endian = LittleEndian;
        let kind = header.e_type(endian);
        let count = usize::from(header.e_phnum(endian));
        let size = size_of::<ProgramHeader64<LittleEndian>>();
        let fits = header.e_machine(endian) == elf::EM_AARCH64
            && (kind == elf::ET_EXEC || kind == elf::ET_DYN)
            && header.e_ident().data == elf::ELFDATA2LSB
            && usize::from(header.e_phentsize(endian)) == size
            && (1..=MOST_HEADERS).contains(&count);
        if !fits {
            return Err(Errno::NOEXEC.into());
        }
        let mut bytes = vec![0; count * size];
        file.read_all(header.e_phoff(endian), &mut bytes)?;
        let (segments, _) = slice_from_bytes(&bytes, count).map_err(|()| Errno::NOEXEC)?;
        Ok(Image { header, segments: segments.to_vec() })
    }

    /// The path of the program that loads it, if it asks for one.
    pub(crate) fn interpreter(&self, file: &mut impl File) -> Answer<Option<Vec<u8>>> {
        let found = self.segments.iter().find(|s| s.p_type(LittleEndian) == elf::PT_INTERP);
        let Some(segment) = found else { return Ok(None) };
        let len = segment.p_filesz(LittleEndian);
        if !(2..=PAGE).contains(&len) {
            return Err(Errno::NOEXEC.into());
        }
        let mut path = vec![0; len as usize];
        file.read_all(segment.p_offset(LittleEndian), &mut path)?;
        if path.pop() != Some(0) {
            return Err(Errno::NOEXEC.into());
        }
        Ok(Some(path))
    }

    fn is_anywhere(&self) -> bool {
        self.header.e_type(LittleEndian) == elf::ET_DYN
    }

    fn loads(&self) -> impl Iterator<Item = &ProgramHeader64<LittleEndian>> {
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
        (node, file): (NodeId, &mut impl File),
        as_interpreter: bool,
    ) -> Answer<Loaded> {
        let (low, high) = self.extent().ok_or(Errno::NOEXEC)?;
        let bias = match self.is_anywhere() {
            false => 0,
            true => self.room(memory, high - low, as_interpreter)?.wrapping_sub(low),
        };
        for segment in self.loads() {
            map(memory, (node, file), segment, bias)?;
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
            label: Label::None,
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
}

/// Maps a segment, and reads its bytes.
fn map(
    memory: &mut Memory,
    (node, file): (NodeId, &mut impl File),
    segment: &ProgramHeader64<LittleEndian>,
    bias: u64,
) -> Answer<()> {
    let at = segment.p_vaddr(LittleEndian).wrapping_add(bias);
    let (len, file_len) = (segment.p_memsz(LittleEndian), segment.p_filesz(LittleEndian));
    let start = page_down(at);
    let end = at.checked_add(len).and_then(page_up).filter(|end| *end <= TOP);
    let end = end.ok_or(Errno::NOEXEC)?;
    let offset = segment.p_offset(LittleEndian);
    if len == 0 || file_len > len || start >= end || offset % PAGE != at % PAGE {
        return if len == 0 { Ok(()) } else { Err(Errno::NOEXEC.into()) };
    }
    let size = file.size()?;
    if offset.checked_add(file_len).is_none_or(|end| end > size) {
        return Err(Errno::NOEXEC.into());
    }
    let split = at.checked_add(file_len).and_then(page_up).ok_or(Errno::NOEXEC)?;
    let backing = Backing::File { node, offset: page_down(offset), shared: false };
    let parts = [(start, split.min(end), backing), (split.min(end), end, Backing::Anonymous)];
    for (start, end, backing) in parts {
        if start < end {
            let area =
                Area { end, access: access(segment), backing, beyond: false, label: Label::None };
            memory.map(Placement::Fixed(start), end - start, area)?;
        }
    }
    // The page's bytes before the segment are the file's, too.
    let before = at - start;
    let (mut offset, mut at, mut left) = (offset - before, start, file_len + before);
    let mut piece = vec![0; left.min(PIECE) as usize];
    while left > 0 {
        let bytes = &mut piece[..left.min(PIECE) as usize];
        file.read_all(offset, bytes)?;
        memory.guest.write(at, bytes)?;
        let done = bytes.len() as u64;
        (offset, at, left) = (offset + done, at + done, left - done);
    }
    Ok(())
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
