//! Failures of the host; each message says what to do.

use std::path::PathBuf;

use kvrm_engine::EngineError;

/// A result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong outside the guest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that cannot be assembled.
    #[error(transparent)]
    Assembly(#[from] kvrm_asm::Error),
    /// A Linux program cannot be run.
    #[error("{0}")]
    Program(String),
    /// A Linux program is not there.
    #[error("{0}")]
    NoProgram(String),
    /// A program's files cannot be set up.
    #[error("{0}")]
    Sandbox(String),
    /// The files that a program has written cannot be put into a directory.
    #[error("cannot put what was written into {}: {error}", .directory.display())]
    Keep {
        /// The directory.
        directory: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// Lanes of a Linux program cannot do or share something.
    #[error("in many lanes, {0}: run one lane, or leave that out")]
    NotOfMany(&'static str),
    /// There is no snapshot of a Linux program, or none that it can go on from.
    #[error("{0}")]
    Snapshot(String),
    /// What is asked for goes not together with a snapshot of a Linux program.
    #[error("no snapshot can be made where {0}: leave that out")]
    NotOfSnapshot(&'static str),
    /// A Linux program that goes on from a snapshot is told something that belongs to its beginning.
    #[error(
        "{0} belongs to the beginning of a program, and not to going on from a snapshot: leave that out"
    )]
    BeforeSnapshot(&'static str),
    /// There is no row for a lane of a Linux program.
    #[error("{0}")]
    Rows(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A lane number is too large.
    #[error("lane {lane} does not exist: the machine has {lanes} (numbered from 0)")]
    NoSuchLane {
        /// The lane asked for.
        lane: usize,
        /// Number of lanes.
        lanes: usize,
    },
    /// Zero lanes were asked for.
    #[error("a machine needs at least one lane")]
    NoLanes,
    /// More lanes than can be numbered.
    #[error("{0} lanes are too many: the limit is 16,777,216")]
    TooManyLanes(usize),
    /// A memory of this size cannot be built.
    #[error("a memory of {0} bytes cannot be built: use a multiple of 4096 from 4096 to 1 TiB")]
    MemorySize(u64),
    /// So little memory for translated code would be spent at once.
    #[error("{0} bytes for translated code are too few: give at least 4K")]
    CodeMemory(u64),
    /// Text is not a size.
    #[error(
        "\"{0}\" is not a size: write bytes (65536, 0x10000) or use K, M, G or T (64K, 4M, 4MiB; 4MB for powers of 1000)"
    )]
    NotASize(String),
    /// An array has the wrong length for the lanes.
    #[error("{len} values were given where all lanes together need {wanted}")]
    WrongLength {
        /// Its length.
        len: usize,
        /// The length it should have.
        wanted: usize,
    },
    /// Bytes cannot be divided evenly among lanes.
    #[error("{len} bytes cannot be dealt evenly to {lanes} lanes: every lane gets as many")]
    Uneven {
        /// Number of bytes.
        len: usize,
        /// Number of lanes.
        lanes: usize,
    },
    /// Lanes of one memory cannot have different contents.
    #[error(
        "all lanes have one memory, so they cannot be given bytes of their own: write it once, or use private memory"
    )]
    OneMemory,
    /// An address range leaves the guest's memory.
    #[error(
        "{len} bytes at {address:#x} do not fit: memory ends at {size:#x}; use a larger memory or a lower address"
    )]
    OutsideMemory {
        /// First address.
        address: u64,
        /// Number of bytes.
        len: u64,
        /// Size of the memory.
        size: u64,
    },
    /// A program counter that is not a multiple of four.
    #[error("{0:#x} is not an instruction address: it must be a multiple of 4")]
    MisalignedPc(u64),
    /// No engine has that name.
    #[error(
        "there is no engine \"{0}\": choose one of auto, cpu, cuda, wgpu (for Metal, Vulkan and DX12), eval"
    )]
    UnknownEngine(String),
    /// No memory model has that name.
    #[error(
        "there is no memory model \"{0}\": choose one of private, shared, read-only, double-buffered"
    )]
    UnknownModel(String),
    /// Devices were chosen for an engine that has none.
    #[error(
        "the {0} engine has no devices to choose from: only cuda and wgpu have; leave the device out, or use one of these"
    )]
    NoDevices(&'static str),
    /// No register has that name.
    #[error(
        "there is no register \"{0}\": use x0 to x30, w0 to w30, sp, pc, nzcv, tpidr_el0, v0 to v31 (and q, d, s, h, b), fpcr or fpsr"
    )]
    UnknownRegister(String),
    /// A vector register where there is room for 64 bits.
    #[error(
        "v{0} has 128 bits, and this takes 64: use vector, set_vector, read_vectors or write_vectors, or d{0} for the lower half"
    )]
    WideRegister(u8),
    /// There is nothing to compare a machine with.
    #[error("comparing takes at least two engines: name another, as in cpu,eval")]
    NothingToCompare,
    /// Machines that are to be compared were built differently.
    #[error("machines that are compared must have the same lanes and the same memory")]
    UnlikeMachines,
    /// Lanes of one memory cannot be compared.
    #[error(
        "lanes that share memory race, so that engines may differ and all be right: compare one lane, or lanes with private memory"
    )]
    RacingLanes,
    /// The machine is running on another thread.
    #[error("the machine is running: wait for it, or cancel the run, and then try again")]
    Running,
    /// The machine belongs to the process that this one was forked from.
    #[error(
        "the machine was made before this process was forked, and belongs to the process that made it: build machines after the fork"
    )]
    Forked,
    /// There is no run to wait for.
    #[error("no run was started, or its result has been given already: start one first")]
    NotStarted,
    /// A thread that ran the lanes has panicked.
    #[error(
        "the machine is lost, because running it panicked: build another, and please report this as a bug"
    )]
    Lost,
    /// The operating system refused a thread.
    #[error("cannot start a thread to run on: {0}; end other programs or threads, and try again")]
    NoThread(std::io::Error),
    /// Batches of no instructions would never end.
    #[error("a batch needs at least one instruction")]
    EmptyBatches,
    /// The host has not enough memory for the copy that double buffering keeps.
    #[error(
        "there is no room for a copy of {0} bytes of guest memory: use a smaller memory, or one that is not double-buffered"
    )]
    NoRoomForCopy(u64),
    /// The host has not enough memory for this many lanes.
    #[error("there is no room for {0} lanes in this computer's memory: use fewer")]
    NoRoomForLanes(usize),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
