//! Programs of system calls.

use super::elf::{self, CODE, DATA, EXECUTABLE, Segment};

/// Where code is.
pub const TEXT: u64 = 0x40_0000;
/// A handler of signals that only returns.
pub const HANDLER: u64 = TEXT;
/// Where the calls of a [`list`] are.
pub const LIST: u64 = 0x50_0000;
/// Memory that can be read and written, with nothing behind it.
pub const BUFFER: u64 = 0x60_0000;
/// Bytes of it.
pub const BUFFER_LEN: u64 = 0x1_0000;

/// The folder that a program is in, in place of a descriptor.
pub const AT_FDCWD: u64 = -100i64 as u64;

/// Numbers of system calls.
#[expect(missing_docs, reason = "they are called as in Linux")]
pub mod number {
    pub const EVENTFD2: u64 = 19;
    pub const EPOLL_CREATE1: u64 = 20;
    pub const EPOLL_CTL: u64 = 21;
    pub const EPOLL_PWAIT: u64 = 22;
    pub const MKNODAT: u64 = 33;
    pub const MKDIRAT: u64 = 34;
    pub const UNLINKAT: u64 = 35;
    pub const SYMLINKAT: u64 = 36;
    pub const FTRUNCATE: u64 = 46;
    pub const CHDIR: u64 = 49;
    pub const OPENAT: u64 = 56;
    pub const CLOSE: u64 = 57;
    pub const PIPE2: u64 = 59;
    pub const READ: u64 = 63;
    pub const WRITE: u64 = 64;
    pub const READV: u64 = 65;
    pub const SENDFILE: u64 = 71;
    pub const PSELECT6: u64 = 72;
    pub const PPOLL: u64 = 73;
    pub const TIMERFD_CREATE: u64 = 85;
    pub const TIMERFD_SETTIME: u64 = 86;
    pub const EXIT: u64 = 93;
    pub const EXIT_GROUP: u64 = 94;
    pub const NANOSLEEP: u64 = 101;
    pub const SETITIMER: u64 = 103;
    pub const TIMER_CREATE: u64 = 107;
    pub const TIMER_SETTIME: u64 = 110;
    pub const CLOCK_NANOSLEEP: u64 = 115;
    pub const KILL: u64 = 129;
    pub const SIGALTSTACK: u64 = 132;
    pub const RT_SIGACTION: u64 = 134;
    pub const RT_SIGPROCMASK: u64 = 135;
    pub const RT_SIGQUEUEINFO: u64 = 138;
    pub const GETPID: u64 = 172;
    pub const BRK: u64 = 214;
    pub const MUNMAP: u64 = 215;
    pub const MREMAP: u64 = 216;
    pub const CLONE: u64 = 220;
    pub const EXECVE: u64 = 221;
    pub const MMAP: u64 = 222;
    pub const MPROTECT: u64 = 226;
    pub const WAIT4: u64 = 260;
}

/// A system call: its number, and what its arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub args: [u64; 6],
}

/// A call with the arguments that are given, and zeros.
pub fn request<const N: usize>(number: u64, args: [u64; N]) -> Request {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&args);
    Request { number, args: all }
}

/// Code that is being written.
pub struct Code(Vec<u32>);

impl Default for Code {
    /// Begins with the handler, which is not the beginning of the program.
    fn default() -> Code {
        const RET: u32 = 0xd65f_03c0;
        Code(vec![RET, 0])
    }
}

impl Code {
    /// Any instruction.
    pub fn word(&mut self, word: u32) {
        self.0.push(word);
    }

    /// Where the next instruction will be.
    pub fn here(&self) -> usize {
        self.0.len()
    }

    /// `mov`: a register gets a number.
    pub fn set(&mut self, register: u32, value: u64) {
        for (part, opcode) in (0..4).zip([0xd280_0000, 0xf280_0000, 0xf280_0000, 0xf280_0000]) {
            let half = (value >> (16 * part)) as u32 & 0xffff;
            self.word(opcode | part << 21 | half << 5 | register);
        }
    }

    /// A call with constant arguments.
    pub fn call(&mut self, request: Request) {
        (0..).zip(request.args).for_each(|(register, value)| self.set(register, value));
        self.svc(request.number);
    }

    /// A call, one of whose arguments is in `x20`.
    pub fn call_with(&mut self, request: Request, argument: u32) {
        (0..).zip(request.args).for_each(|(register, value)| self.set(register, value));
        self.copy(argument, 20);
        self.svc(request.number);
    }

    /// A call whose arguments are in registers.
    pub fn svc(&mut self, number: u64) {
        self.set(8, number);
        self.word(0xd400_0001);
    }

    /// `b`: goes on elsewhere.
    pub fn branch(&mut self, to: usize) {
        let by = to as i64 - self.here() as i64;
        self.word(0x1400_0000 | by as u32 & 0x3ff_ffff);
    }

    /// `cbnz`: goes on elsewhere if a register is not zero.
    pub fn branch_unless_zero(&mut self, register: u32, to: usize) {
        let by = to as i64 - self.here() as i64;
        self.word(0xb500_0000 | (by as u32 & 0x7_ffff) << 5 | register);
    }

    /// `tbz` of the sign: goes on elsewhere if a register is not negative.
    pub fn branch_unless_negative(&mut self, register: u32, to: usize) {
        let by = to as i64 - self.here() as i64;
        self.word(0xb6f8_0000 | (by as u32 & 0x3fff) << 5 | register);
    }

    /// `add` of a register and a number below 4096, or a multiple of it below 2^24.
    pub fn add(&mut self, to: u32, from: u32, number: u32) {
        let (shift, number) = if number < 4096 { (0, number) } else { (1 << 22, number >> 12) };
        self.word(0x9100_0000 | shift | number << 10 | from << 5 | to);
    }

    /// `mov` between registers.
    pub fn copy(&mut self, to: u32, from: u32) {
        self.word(0xaa00_03e0 | from << 16 | to);
    }

    /// `str` of a doubleword.
    pub fn store(&mut self, register: u32, at: u32) {
        self.word(0xf900_0000 | at << 5 | register);
    }

    /// Ends with the low byte of what is in `x0`, or with an error's number.
    pub fn exit_with_result(&mut self) {
        let positive = self.here() + 2;
        self.branch_unless_negative(0, positive);
        self.word(0xcb00_03e0);
        self.svc(number::EXIT_GROUP);
    }

    /// Ends with an error's number if `x0` is one.
    pub fn exit_on_error(&mut self) {
        let skip = self.here() + 7;
        self.branch_unless_negative(0, skip);
        self.word(0xcb00_03e0);
        self.svc(number::EXIT_GROUP);
    }

    /// The program's file, with a buffer that begins with these bytes.
    pub fn file(self, buffer: &[u8]) -> Vec<u8> {
        self.file_with(buffer, Vec::new())
    }

    fn file_with(self, buffer: &[u8], list: Vec<u8>) -> Vec<u8> {
        let text = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut segments = vec![
            Segment::load(CODE, TEXT, text),
            Segment { memory: BUFFER_LEN, ..Segment::load(DATA, BUFFER, buffer.to_vec()) },
        ];
        if !list.is_empty() {
            segments.push(Segment::load(DATA, LIST, list));
        }
        elf::file(EXECUTABLE, TEXT + 8, &segments)
    }
}

/// Code that makes calls and ends with what the last one gives.
pub fn steps(requests: &[Request]) -> Code {
    let mut code = Code::default();
    requests.iter().for_each(|request| code.call(*request));
    code.exit_with_result();
    code
}

/// Goes on with something again and again until it fails, and ends with the error's number. `x20` grows by `step` each time.
pub fn until_error(
    mut code: Code,
    buffer: &[u8],
    (from, step): (u64, u32),
    each: impl Fn(&mut Code),
) -> Vec<u8> {
    code.set(20, from);
    let again = code.here();
    code.add(20, 20, step);
    each(&mut code);
    code.exit_on_error();
    code.branch(again);
    code.file(buffer)
}

/// A program that makes calls one after another and keeps what they give, behind their arguments. Its children and threads
/// go on in the same list.
pub fn list(requests: &[Request], buffer: &[u8]) -> Vec<u8> {
    let words = requests.iter().flat_map(|request| {
        let Request { number, args: [a, b, c, d, e, f] } = *request;
        [a, b, c, d, e, f, number, 0]
    });
    let list = words.flat_map(|word| word.to_le_bytes()).collect();
    let mut code = Code::default();
    code.set(19, LIST);
    let again = code.here();
    // ldp x0, x1, [x19]; ldp x2, x3, [x19, #16]; ldp x4, x5, [x19, #32]; ldr x8, [x19, #48]
    [0xa940_0660, 0xa941_0e62, 0xa942_1664, 0xf940_1a68]
        .into_iter()
        .for_each(|word| code.word(word));
    // svc #0; str x0, [x19, #56]
    [0xd400_0001, 0xf900_1e60].into_iter().for_each(|word| code.word(word));
    code.add(19, 19, 64);
    code.branch(again);
    code.file_with(buffer, list)
}
