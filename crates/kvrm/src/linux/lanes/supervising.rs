//! Lanes whose [supervisors](kvrm_linux::supervisor) serve system calls: what they have done when a lane stops.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kvrm_a64::state::CpuState;
use kvrm_engine::{Engine, EngineError, LaneStatus, Piece, Stop};
use kvrm_linux::Kernel;
use kvrm_linux::supervisor::{self, Given, Stopped};

/// Calls of each program, on average, from which on supervisors are worth what they cost: a larger kernel, and more to bring
/// along each time that a lane stops.
const WORTH: u64 = 8;

/// How many calls supervisors could have served, and how many programs have begun.
#[derive(Default)]
pub(super) struct Calls {
    made: AtomicU64,
    begun: AtomicU64,
    worth: AtomicBool,
}

impl Calls {
    /// Notes that a program has begun.
    pub(super) fn begun(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a program makes the call in its registers.
    pub(super) fn made(&self, kernel: &Kernel, state: &CpuState) {
        if kernel.could_leave(state.x[8], state.x[0]) {
            let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
            if made > WORTH * self.begun.load(Ordering::Relaxed) {
                self.worth.store(true, Ordering::Relaxed);
            }
        }
    }

    /// True from when there were so many that supervisors should serve them.
    pub(super) fn are_worth_supervising(&self) -> bool {
        self.worth.load(Ordering::Relaxed)
    }
}

/// Reads what the supervisors of lanes that have stopped say, of those that were given something.
pub(super) fn heads(
    engine: &dyn Engine,
    lanes: &[(usize, Option<&Given>)],
) -> Result<Vec<Option<Stopped>>, EngineError> {
    let supervised = lanes.iter().filter(|(_, given)| given.is_some());
    let (addr, len) = (supervisor::DESK, supervisor::HEAD_BYTES);
    let pieces: Vec<Piece> = supervised.map(|(lane, _)| Piece { lane: *lane, addr, len }).collect();
    let mut heads = engine.read_pieces(&pieces)?.into_iter();
    let mut stopped = |given| Stopped::new(given, &heads.next().expect("one for each"));
    Ok(lanes.iter().map(|(_, given)| given.map(&mut stopped)).collect())
}

/// Makes a lane that its supervisor has stopped one that has stopped at the call; but one that has only used up its
/// instructions is left as it is. Why the lane has stopped, and its counter there.
pub(super) fn go_back(
    state: &mut CpuState,
    status: LaneStatus,
    head: Option<&Stopped>,
) -> (Option<Stop>, u64) {
    let counter = match state.caller {
        0 => status.count.wrapping_add(state.counter),
        _ => state.called_at,
    };
    let stop = match head.filter(|_| state.caller != 0) {
        Some(_) if status.stop == Some(Stop::MaxCycles) => return (status.stop, counter),
        Some(head) => {
            head.give_back(state);
            // What the supervisor has executed is not the program's.
            state.counter = counter.wrapping_sub(status.count);
            Some(Stop::Syscall { imm: 0 })
        }
        None => status.stop,
    };
    // The kernel knows nothing of it.
    [state.supervisor, state.caller_x16, state.caller_x17, state.called_at] = [0; 4];
    (stop, counter)
}

/// Where output is that a lane's kernel has not got yet.
pub(super) fn outputs(lane: usize, head: &Stopped) -> impl Iterator<Item = Piece> {
    let some = head.outputs().filter(|(_, len)| *len > 0);
    some.map(move |(addr, len)| Piece { lane, addr, len })
}

/// What a supervisor has done that the lane's kernel has to know.
pub(super) struct Served {
    stopped: Stopped,
    outputs: [Vec<u8>; 2],
}

impl Served {
    pub(super) fn new(stopped: Stopped) -> Served {
        Served { stopped, outputs: [const { Vec::new() }; 2] }
    }

    /// Takes what was written from what is known of memory.
    pub(super) fn take_outputs<'k>(&mut self, known: impl Fn(u64) -> &'k [u8]) {
        for (output, (addr, len)) in self.outputs.iter_mut().zip(self.stopped.outputs()) {
            if len > 0 {
                *output = known(addr)[..len].to_vec();
            }
        }
    }

    /// Tells the kernel. How many calls there were.
    pub(super) fn tell(&self, kernel: &mut Kernel) -> Result<u64, EngineError> {
        kernel.served(&self.stopped, self.outputs.each_ref().map(Vec::as_slice))
    }
}
