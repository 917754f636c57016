//! Runs on disk: the state of a run between two instructions, with which another goes on.
//!
//! ```text
//! "\x7fkvrmsnp"  8 bytes
//! format         4 bytes, the least significant first, as below
//! SHA-256        32 bytes, of everything behind it
//! about          its length, 8 bytes; what it is a snapshot of ([`About`])
//! state          the rest: all that a kernel has, its files, and its memory by compressed pages
//! ```
//!
//! Both parts are written by serde in the format of the crate postcard, so whatever a kernel has is there or does not
//! compile. That format says nothing of names or types: any change of the kernel's structures is another [`FORMAT`].
//!
//! A snapshot may come from anybody. What is read from it takes memory in proportion to its own size, except for pages, which
//! are limited as those of programs are; and it must be a state that a kernel can have (`check`). From there on, it is as
//! a hostile program is.

mod check;
mod state;
mod with;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvrm_engine::EngineError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Limits;
use crate::console::Console;
use crate::guest::MakeGuest;
use crate::hook::Hook;
use crate::strace::Strace;
use crate::vfs;

pub(crate) use with::{Bytes, Packed, permissions, plain};

/// The first bytes of every snapshot.
const MAGIC: &[u8; 8] = b"\x7fkvrmsnp";
/// The format that is read and written.
const FORMAT: u32 = 2;
/// Bytes before the part that the checksum is of.
const HEADER: usize = 8 + 4 + 32;

/// Why there is no snapshot of a run, or why a run cannot go on from it.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The run has the host's streams.
    #[error("a program with the host's standard input or output cannot be kept")]
    HostStreams,
    /// It may write directories of the host.
    #[error("a program that may write folders of the host (:rw) cannot be kept")]
    HostDirectories,
    /// It sees the host's time.
    #[error("a program that sees the real time cannot be kept")]
    HostTime,
    /// A file of the host is another one now.
    #[error("{} has changed since the program saw it, or is gone", .0.display())]
    Changed(PathBuf),
    /// Something that the run was given cannot be opened.
    #[error("the program needs {} as {guest}, which cannot be opened: {error}", host.display())]
    Given {
        /// Where it should be.
        host: PathBuf,
        /// Where it is in the guest.
        guest: String,
        /// Why not.
        error: std::io::Error,
    },
    /// There is no room for the memory of its processes.
    #[error("the program has more memory at that point than the limit of memory allows")]
    MemoryLimit,
    /// There is no room for its files.
    #[error("the program has more files at that point than the limits of files allow")]
    FileLimit,
    /// A process may open more files.
    #[error(
        "the program was told that it may have more files open than the limit of open files allows"
    )]
    OpenFileLimit,
    /// What it has printed cannot be printed.
    #[error("cannot print what the program has printed before that point: {0}")]
    Output(std::io::Error),
    /// It is something else.
    #[error("it is not a snapshot")]
    NotOne,
    /// It is of another version of kvrm.
    #[error("it has format {0}, and this version of kvrm has format {FORMAT}: make it again")]
    Format(u32),
    /// It is not as it was written.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(std::io::Error),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] EngineError),
}

/// What a snapshot is of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct About {
    /// The program, as it was called.
    pub program: Vec<u8>,
    /// Its arguments, the first of which is its name, and whether they may have been used.
    pub args: Vec<(Vec<u8>, bool)>,
    /// Its environment.
    pub env: Vec<(Vec<u8>, bool)>,
    /// Folders and files of the host that it sees.
    pub given: Vec<vfs::Given>,
    /// Instructions that it had executed.
    pub instructions: u64,
    /// Pages of memory that are not zero.
    pub pages: u64,
    /// It has one thread.
    pub is_single: bool,
}

/// The state of a run. Copies have it in common.
#[derive(Clone)]
pub struct Snapshot {
    about: Arc<About>,
    /// The file.
    bytes: Arc<[u8]>,
    /// Where the state begins.
    state: usize,
}

/// What a run goes on with.
pub struct Resume {
    /// Makes machines.
    pub make_guest: MakeGuest,
    /// Makes machines for a program that has one thread, as in [`Setup`](crate::Setup).
    pub make_first: Option<MakeGuest>,
    /// Standard input and output. What the program has printed before is printed at once.
    pub console: Console,
    /// Limits, which count from the program's beginning. Open files and processes are limited as they were, too.
    pub limits: Limits,
    /// What it is given of the host: that which [`About::given`] names, in the same order.
    pub given: Vec<vfs::Given>,
    /// Where system calls are printed.
    pub strace: Option<Strace>,
    /// Who is asked before a system call is served.
    pub hook: Option<Hook>,
}

impl Snapshot {
    /// True if a file begins as snapshots do.
    pub fn is_one(path: &Path) -> bool {
        // Nothing is taken from pipes and devices.
        if !path.is_file() {
            return false;
        }
        let mut start = [0; MAGIC.len()];
        let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *MAGIC
    }

    /// Reads one from a file.
    pub fn open(path: &Path) -> Result<Snapshot, SnapshotError> {
        Snapshot::of(std::fs::read(path).map_err(SnapshotError::Unreadable)?)
    }

    /// A snapshot of its bytes.
    pub fn of(bytes: impl Into<Arc<[u8]>>) -> Result<Snapshot, SnapshotError> {
        let bytes: Arc<[u8]> = bytes.into();
        if !bytes.starts_with(MAGIC) {
            return Err(SnapshotError::NotOne);
        }
        let short = SnapshotError::Damaged("its end is missing");
        let Some((header, contents)) = bytes.split_at_checked(HEADER) else { return Err(short) };
        let format = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        if format != FORMAT {
            return Err(SnapshotError::Format(format));
        }
        if Sha256::digest(contents)[..] != header[12..] {
            return Err(SnapshotError::Damaged("its checksum is wrong"));
        }
        let Some((len, rest)) = contents.split_first_chunk() else { return Err(short) };
        let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let about = rest.get(..len).ok_or(short)?;
        let (about, left) = postcard::take_from_bytes::<About>(about)
            .map_err(|_| SnapshotError::Damaged("what it is of"))?;
        if !left.is_empty() || about.args.is_empty() {
            return Err(SnapshotError::Damaged("what it is of"));
        }
        Ok(Snapshot { about: Arc::new(about), state: HEADER + 8 + len, bytes })
    }

    /// Its bytes, for a file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its checksum, of everything that is in it.
    pub fn checksum(&self) -> &[u8] {
        &self.bytes[12..HEADER]
    }

    /// What it is of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Joins the parts.
    fn new(about: About, state: &[u8]) -> Snapshot {
        let described = postcard::to_stdvec(&about).expect("memory takes everything");
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend([0; 32]);
        bytes.extend((described.len() as u64).to_le_bytes());
        bytes.extend(described);
        let start = bytes.len();
        bytes.extend(state);
        let digest = Sha256::digest(&bytes[HEADER..]);
        bytes[12..HEADER].copy_from_slice(&digest);
        Snapshot { about: Arc::new(about), bytes: bytes.into(), state: start }
    }
}
