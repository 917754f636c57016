//! Programs' files, as far as the kernel looks at them.

/// `ET_EXEC`.
pub const EXECUTABLE: u16 = 2;
/// `ET_DYN`.
pub const ANYWHERE: u16 = 3;
/// `PT_LOAD`.
pub const LOAD: u32 = 1;
/// `PT_INTERP`.
pub const INTERPRETER: u32 = 3;
/// `PF_R | PF_X`.
pub const CODE: u32 = 5;
/// `PF_R | PF_W`.
pub const DATA: u32 = 6;

/// Bytes of the file's header.
pub const HEADER: usize = 64;
/// Bytes of a program header.
pub const SEGMENT: usize = 56;

/// A segment, and its program header.
#[derive(Clone)]
pub struct Segment {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// `p_vaddr`.
    pub addr: u64,
    /// What the file has of it.
    pub bytes: Vec<u8>,
    /// `p_memsz`.
    pub memory: u64,
}

impl Segment {
    /// A segment that is loaded.
    pub fn load(flags: u32, addr: u64, bytes: Vec<u8>) -> Segment {
        let memory = bytes.len() as u64;
        Segment { kind: LOAD, flags, addr, bytes, memory }
    }

    /// The path of an interpreter.
    pub fn interpreter(path: &[u8]) -> Segment {
        let bytes = [path, &[0]].concat();
        Segment { kind: INTERPRETER, ..Segment::load(4, 0, bytes) }
    }
}

/// A file with these segments, each of which begins a page of it.
pub fn file(kind: u16, entry: u64, segments: &[Segment]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([kind, 183].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([entry, HEADER as u64, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(0u32.to_le_bytes());
    let counts = [HEADER as u16, SEGMENT as u16, segments.len() as u16, 64, 0, 0];
    bytes.extend(counts.iter().flat_map(|half| half.to_le_bytes()));
    let mut offset = 4096;
    for segment in segments {
        bytes.extend([segment.kind, segment.flags].iter().flat_map(|word| word.to_le_bytes()));
        let len = segment.bytes.len() as u64;
        let words = [offset, segment.addr, segment.addr, len, segment.memory, 4096];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        offset += len.next_multiple_of(4096);
    }
    for segment in segments {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(&segment.bytes);
    }
    bytes
}
