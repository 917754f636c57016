//! Work on a thread of its own that nobody has to wait for.
//!
//! A driver's compiler cannot be interrupted, and takes seconds. Whoever does not want the result any more drops the
//! [`Task`], which takes no time: the thread owns all that it uses, and goes on until the work is done. Threads of a process
//! that is ending are waited for, because drivers take themselves apart then; a program that has nothing left to do can
//! [end](end_process) without that.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kvrm_mem::ProcessMark;

/// Work that has been begun, and its result.
///
/// ```
/// use kvrm_engine::task::Task;
/// use std::time::Duration;
///
/// let task = Task::begin(|| 6 * 7).unwrap();
/// assert_eq!(task.result_within(Duration::from_secs(60)), Some(42));
/// ```
pub struct Task<T>(Receiver<thread::Result<T>>);

impl<T: Send + 'static> Task<T> {
    /// Begins some work.
    pub fn begin(work: impl FnOnce() -> T + Send + 'static) -> io::Result<Task<T>> {
        let (sender, receiver) = channel();
        let work = move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            // Perhaps nobody wants it any more.
            let _ = sender.send(result);
        };
        let thread = thread::Builder::new().name("compiling".to_string()).spawn(work)?;
        static AT_EXIT: Once = Once::new();
        // SAFETY: the function is there as long as the process.
        AT_EXIT.call_once(|| _ = unsafe { libc::atexit(wait_for_all) });
        let mut threads = lock();
        threads.retain(|(_, thread)| !thread.is_finished());
        threads.push((ProcessMark::here(), thread));
        Ok(Task(receiver))
    }

    /// The result, once, if it is there within some time. If the work has panicked, so does this.
    pub fn result_within(&self, time: Duration) -> Option<T> {
        match self.0.recv_timeout(time) {
            Ok(Ok(result)) => Some(result),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("a result is asked for once"),
        }
    }
}

/// Threads of this process, and of those that it was forked from.
static THREADS: Mutex<Vec<(ProcessMark, JoinHandle<()>)>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<(ProcessMark, JoinHandle<()>)>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if some work of this process is not done, whether anybody wants it or not.
fn is_busy() -> bool {
    lock().iter().any(|(process, thread)| process.is_here() && !thread.is_finished())
}

/// Ends the process at once if some work is not done, and otherwise as usual. What it has to print must be flushed.
pub fn end_process(code: u8) -> ! {
    if is_busy() {
        // SAFETY: nothing of this process is used after it.
        unsafe { libc::_exit(code.into()) }
    }
    std::process::exit(code.into())
}

extern "C" fn wait_for_all() {
    for (process, thread) in std::mem::take(&mut *lock()) {
        match process.is_here() {
            // What became of the work is of no interest.
            true => drop(thread.join()),
            // It is not in this process.
            false => std::mem::forget(thread),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_that_nobody_wants_is_not_waited_for() {
        let (go_on, wait) = channel::<()>();
        let (done, is_done) = channel();
        let task = Task::begin(move || {
            wait.recv().unwrap();
            done.send(()).unwrap();
        })
        .unwrap();
        assert_eq!(task.result_within(Duration::ZERO), None);
        drop(task);
        assert!(is_busy());
        go_on.send(()).unwrap();
        is_done.recv().unwrap();
    }

    #[test]
    #[should_panic(expected = "a broken compiler")]
    fn a_panic_comes_to_whoever_asks() {
        let task = Task::begin(|| -> u32 { panic!("a broken compiler") }).unwrap();
        task.result_within(Duration::from_secs(60));
    }
}
