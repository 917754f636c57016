//! The host's standard input.

/// Where the host tells whether there is input, it is asked, and read no further than the guest reads: then a guest does the
/// same each time with input that is there from the beginning, such as a file, and what it leaves is for whoever reads next.
#[cfg(target_os = "linux")]
mod asked {
    use std::io;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::{Errno, ioctl_fionread, read};
    use rustix::stdio::stdin;

    use crate::console::Got;

    /// The host's standard input.
    #[derive(Default)]
    pub struct HostInput(());

    impl HostInput {
        /// Reads what is there.
        pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<Got> {
            if !self.wait(Duration::ZERO) {
                return Ok(Got::NotYet);
            }
            match read(stdin(), bytes) {
                Err(Errno::INTR) => Ok(Got::NotYet),
                read => Ok(Got::Bytes(read?)),
            }
        }

        /// Waits so long for input or its end; true if there is some.
        pub(crate) fn wait(&mut self, time: Duration) -> bool {
            let time = Timespec::try_from(time).ok();
            let mut fds = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
            // A signal ends the waiting; then somebody looks for signals, and waits again.
            poll(&mut fds, time.as_ref()).is_ok_and(|count| count > 0)
        }

        /// Bytes that could be read at once.
        pub(crate) fn available(&self) -> usize {
            ioctl_fionread(stdin()).map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX))
        }
    }
}

/// Elsewhere, a thread reads it when the guest first asks for it, one piece ahead of what the guest has taken.
#[cfg(not(target_os = "linux"))]
mod threaded {
    use std::collections::VecDeque;
    use std::io::{self, Read};
    use std::sync::mpsc;
    use std::time::Duration;

    use crate::console::Got;

    /// The host's standard input.
    #[derive(Default)]
    pub struct HostInput {
        /// What was read and not taken.
        buffer: VecDeque<u8>,
        reader: Option<mpsc::Receiver<io::Result<Vec<u8>>>>,
        ended: bool,
    }

    impl HostInput {
        /// Reads what is there.
        pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<Got> {
            match self.wait(Duration::ZERO) {
                true => self.buffer.read(bytes).map(Got::Bytes),
                false => Ok(Got::NotYet),
            }
        }

        /// Waits so long for input or its end; true if there is some.
        pub(crate) fn wait(&mut self, time: Duration) -> bool {
            if !self.buffer.is_empty() || self.ended {
                return true;
            }
            let reader = self.reader.get_or_insert_with(read_in_background);
            match reader.recv_timeout(time) {
                Ok(Ok(bytes)) => self.buffer.extend(bytes),
                Err(mpsc::RecvTimeoutError::Timeout) => return false,
                Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => self.ended = true,
            }
            true
        }

        /// Bytes that could be read at once.
        pub(crate) fn available(&self) -> usize {
            self.buffer.len()
        }
    }

    fn read_in_background() -> mpsc::Receiver<io::Result<Vec<u8>>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let read = move || {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let piece = match io::stdin().lock().read(&mut bytes) {
                    Ok(0) => break,
                    Ok(len) => Ok(bytes[..len].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = piece.is_err();
                if sender.send(piece).is_err() || failed {
                    break;
                }
            }
        };
        // Without the thread, input has ended.
        let _ = std::thread::Builder::new().name("kvrm-stdin".into()).spawn(read);
        receiver
    }
}

#[cfg(target_os = "linux")]
pub use asked::HostInput;
#[cfg(not(target_os = "linux"))]
pub use threaded::HostInput;
