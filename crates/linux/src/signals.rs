//! Signals: their numbers, what processes do about them, and what handlers are told.

use serde::{Deserialize, Serialize};

mod delivery;
mod frame;

pub(crate) use frame::stack_flags;

/// The number of a signal, 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Signal(u8);

impl From<Signal> for u8 {
    fn from(signal: Signal) -> u8 {
        signal.0
    }
}

impl TryFrom<u8> for Signal {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Signal, &'static str> {
        Signal::from_number(number.into()).ok_or("there is no such signal")
    }
}

macro_rules! signals {
    ($($name:ident = $number:literal $default:ident,)*) => {
        impl Signal {
            $(#[doc = concat!("SIG", stringify!($name), ".")]
            pub const $name: Signal = Signal($number);)*

            /// The name without SIG, or the number.
            pub fn name(self) -> String {
                match self.0 {
                    $($number => stringify!($name).into(),)*
                    number => format!("RT{}", i32::from(number) - 32),
                }
            }

            /// What a process does that has said nothing.
            pub fn by_default(self) -> ByDefault {
                match self.0 {
                    $($number => ByDefault::$default,)*
                    _ => ByDefault::Terminate,
                }
            }
        }
    };
}

signals! {
    HUP = 1 Terminate, INT = 2 Terminate, QUIT = 3 Dump, ILL = 4 Dump, TRAP = 5 Dump, ABRT = 6 Dump,
    BUS = 7 Dump, FPE = 8 Dump, KILL = 9 Terminate, USR1 = 10 Terminate, SEGV = 11 Dump,
    USR2 = 12 Terminate, PIPE = 13 Terminate, ALRM = 14 Terminate, TERM = 15 Terminate,
    STKFLT = 16 Terminate, CHLD = 17 Ignore, CONT = 18 Continue, STOP = 19 Stop, TSTP = 20 Stop,
    TTIN = 21 Stop, TTOU = 22 Stop, URG = 23 Ignore, XCPU = 24 Dump, XFSZ = 25 Dump,
    VTALRM = 26 Terminate, PROF = 27 Terminate, WINCH = 28 Ignore, IO = 29 Terminate,
    PWR = 30 Terminate, SYS = 31 Dump,
}

/// What a signal does by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByDefault {
    /// Ends the process.
    Terminate,
    /// The same, and Linux would write a core file.
    Dump,
    /// Nothing.
    Ignore,
    /// Stops the process.
    Stop,
    /// Lets it go on.
    Continue,
}

impl Signal {
    /// The signal of a number, if it is one.
    pub fn from_number(number: u64) -> Option<Signal> {
        (1..=64).contains(&number).then_some(Signal(number as u8))
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// True if Linux would write a core file.
    pub fn dumps(self) -> bool {
        self.by_default() == ByDefault::Dump
    }

    /// Where it is in arrays.
    fn index(self) -> usize {
        usize::from(self.0) - 1
    }

    /// True for those of which several may be pending.
    fn is_queued(self) -> bool {
        self.0 >= 32
    }

    /// True for those that nobody can catch, block or ignore.
    pub fn is_absolute(self) -> bool {
        self == Signal::KILL || self == Signal::STOP
    }
}

/// A set of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signals(u64);

impl Signals {
    /// No signals.
    pub(crate) const NONE: Signals = Signals(0);

    /// A set from a guest's bits, without those that nobody can block.
    pub(crate) fn blockable(bits: u64) -> Signals {
        Signals(bits & !Signals::of(&[Signal::KILL, Signal::STOP]).0)
    }

    /// The set of some.
    pub(crate) const fn of(signals: &[Signal]) -> Signals {
        let (mut bits, mut i) = (0, 0);
        while i < signals.len() {
            bits |= 1 << (signals[i].0 - 1);
            i += 1;
        }
        Signals(bits)
    }

    /// As guests have it.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// True if it is one of them.
    pub(crate) fn has(self, signal: Signal) -> bool {
        self.0 >> signal.index() & 1 != 0
    }

    /// Those of either.
    pub(crate) fn or(self, other: Signals) -> Signals {
        Signals(self.0 | other.0)
    }

    /// Those that are not of the other.
    pub(crate) fn without(self, other: Signals) -> Signals {
        Signals(self.0 & !other.0)
    }

    /// Adds one.
    pub(crate) fn insert(&mut self, signal: Signal) {
        self.0 |= 1 << signal.index();
    }
}

/// What a process does about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Action {
    /// The address of the handler, [`DEFAULT`](Action::DEFAULT) or [`IGNORE`](Action::IGNORE).
    pub handler: u64,
    /// `SA_…`.
    pub flags: u64,
    /// What the handler returns to, with `SA_RESTORER`.
    pub restorer: u64,
    /// What is blocked meanwhile.
    pub mask: Signals,
}

impl Action {
    /// `SIG_DFL`.
    pub(crate) const DEFAULT: u64 = 0;
    /// `SIG_IGN`.
    pub(crate) const IGNORE: u64 = 1;

    const fn none() -> Action {
        Action { handler: Action::DEFAULT, flags: 0, restorer: 0, mask: Signals::NONE }
    }

    /// True if it has a flag.
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & u64::from(flag) != 0
    }
}

/// What a process does about every signal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<Action>", into = "Vec<Action>")]
pub(crate) struct Actions([Action; 64]);

impl From<Actions> for Vec<Action> {
    fn from(actions: Actions) -> Vec<Action> {
        actions.0.to_vec()
    }
}

impl TryFrom<Vec<Action>> for Actions {
    type Error = &'static str;

    fn try_from(actions: Vec<Action>) -> Result<Actions, &'static str> {
        actions.try_into().map(Actions).map_err(|_| "there is an action for each of 64 signals")
    }
}

impl Actions {
    /// What Linux does by itself.
    pub(crate) fn new() -> Actions {
        Actions([Action::none(); 64])
    }

    /// What is done about one.
    pub(crate) fn get(&self, signal: Signal) -> Action {
        self.0[signal.index()]
    }

    /// Sets what is done about one.
    pub(crate) fn set(&mut self, signal: Signal, action: Action) {
        self.0[signal.index()] = action;
    }

    /// A new program has no handlers, but ignores what was ignored.
    pub(crate) fn forget_handlers(&mut self) {
        for action in self.0.iter_mut().filter(|action| action.handler != Action::IGNORE) {
            *action = Action::none();
        }
    }

    /// True if the signal would have no effect.
    pub(crate) fn ignores(&self, signal: Signal) -> bool {
        match self.get(signal).handler {
            Action::DEFAULT => signal.by_default() == ByDefault::Ignore,
            handler => handler == Action::IGNORE,
        }
    }
}

/// A signal that was sent, and what its handler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Info {
    /// Which.
    pub signal: Signal,
    /// `si_code`.
    pub code: i32,
    /// What came with it.
    pub cause: Cause,
}

/// Where a signal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// A process sent it.
    Sent {
        /// Its number.
        pid: u32,
    },
    /// A process sent it with a value.
    Queued {
        /// Its number.
        pid: u32,
        /// The value.
        value: u64,
    },
    /// An instruction at fault.
    Fault {
        /// The address that it accessed, or its own.
        address: u64,
    },
    /// A child has ended or stopped.
    Child {
        /// Its number.
        pid: u32,
        /// Its exit status or signal.
        status: i32,
    },
    /// A timer.
    Timer {
        /// Its number.
        id: u32,
        /// How often it went off since the last signal.
        overrun: u32,
        /// The value that it was made with.
        value: u64,
    },
}

impl Info {
    /// Sent by `kill`.
    pub(crate) fn sent(signal: Signal, pid: u32) -> Info {
        Info { signal, code: linux_raw_sys::general::SI_USER as i32, cause: Cause::Sent { pid } }
    }

    /// Sent by the kernel.
    pub(crate) fn kernel(signal: Signal) -> Info {
        const SI_KERNEL: i32 = 0x80;
        Info { signal, code: SI_KERNEL, cause: Cause::Sent { pid: 0 } }
    }

    /// A `siginfo_t`.
    pub(crate) fn bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &i32::from(self.signal.0).to_le_bytes());
        put(8, &self.code.to_le_bytes());
        match self.cause {
            Cause::Sent { pid } => put(16, &pid.to_le_bytes()),
            Cause::Queued { pid, value } => {
                put(16, &pid.to_le_bytes());
                put(24, &value.to_le_bytes());
            }
            Cause::Fault { address } => put(16, &address.to_le_bytes()),
            Cause::Child { pid, status } => {
                put(16, &pid.to_le_bytes());
                put(24, &status.to_le_bytes());
            }
            Cause::Timer { id, overrun, value } => {
                put(16, &id.to_le_bytes());
                put(20, &overrun.to_le_bytes());
                put(24, &value.to_le_bytes());
            }
        }
        bytes
    }
}

/// Signals that have not been delivered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pending(Vec<Info>);

impl Pending {
    /// Adds a signal, unless one that is not queued is there already. Queued ones are limited as by `RLIMIT_SIGPENDING`.
    pub(crate) fn add(&mut self, info: Info) -> bool {
        const MOST: usize = 4096;
        let is_there = self.0.iter().any(|other| other.signal == info.signal);
        if info.signal.is_queued() && self.0.len() >= MOST {
            return false;
        }
        if info.signal.is_queued() || !is_there {
            self.0.push(info);
        }
        true
    }

    /// Which there are.
    pub(crate) fn signals(&self) -> Signals {
        let mut signals = Signals::NONE;
        self.0.iter().for_each(|info| signals.insert(info.signal));
        signals
    }

    /// Takes out the lowest of a set; those of the same number in the order they came.
    pub(crate) fn take(&mut self, among: Signals) -> Option<Info> {
        let candidates = self.0.iter().enumerate().filter(|(_, info)| among.has(info.signal));
        let (index, _) = candidates.min_by_key(|(index, info)| (priority(info), *index))?;
        Some(self.0.remove(index))
    }

    /// Forgets one.
    pub(crate) fn remove(&mut self, signals: Signals) {
        self.0.retain(|info| !signals.has(info.signal));
    }
}

/// Signals of faults come first.
fn priority(info: &Info) -> (bool, Signal) {
    (!matches!(info.cause, Cause::Fault { .. }), info.signal)
}

/// A stack for handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignalStack {
    /// Its lowest address.
    pub start: u64,
    /// Its bytes; none if there is no such stack.
    pub len: u64,
    /// `SS_AUTODISARM`.
    pub disarms: bool,
}

impl SignalStack {
    /// True if it is there and has the address.
    pub(crate) fn has(&self, addr: u64) -> bool {
        self.len > 0 && addr > self.start && addr - self.start <= self.len
    }
}
