use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::record;
use crate::{Case, CaseFailure, Error, Outcome};

/// How many cases are sent before their results are awaited.
const BATCH: usize = 4096;
/// How long a process may stay silent. An oracle's own limit for one case is
/// about a second, and it answers at the latest after a few hundred cases.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// A running process. Separate threads read and write, so that full pipes
/// cannot make both sides wait for each other. They end with the process.
struct Link {
    child: Child,
    requests: Sender<Vec<u8>>,
    results: Receiver<Vec<u8>>,
}

impl Link {
    fn open(mut command: Command) -> io::Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (requests, to_write) = mpsc::channel();
        let (read, results) = mpsc::channel();
        thread::spawn(move || write_requests(stdin, &to_write));
        thread::spawn(move || read_results(stdout, &read));
        Ok(Self { child, requests, results })
    }

    /// Ends the process; returns how it ended and what it printed.
    fn close(&mut self, cause: RecvTimeoutError) -> String {
        let mut reason = String::new();
        if cause == RecvTimeoutError::Timeout {
            reason = format!("no answer for {} s; ", SILENCE_LIMIT.as_secs());
            // If it cannot be killed, it has ended in the meantime.
            let _ = self.child.kill();
        }
        match self.child.wait() {
            Ok(status) => reason += &format!("the process ended with {status}"),
            Err(error) => reason += &format!("the process cannot be awaited: {error}"),
        }
        let mut printed = Vec::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            // What was read before an error is still worth showing.
            let _ = stderr.read_to_end(&mut printed);
        }
        let printed = String::from_utf8_lossy(&printed);
        match printed.trim() {
            "" => reason,
            text => format!("{reason}; it printed: {text}"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_requests(mut stdin: ChildStdin, requests: &Receiver<Vec<u8>>) {
    for bytes in requests {
        // The reader notices when the process is gone.
        if stdin.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn read_results(mut stdout: ChildStdout, results: &Sender<Vec<u8>>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stdout.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(len) if results.send(buffer[..len].to_vec()).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// A process that answers cases, started again whenever it fails.
pub(crate) struct Session {
    name: &'static str,
    program: OsString,
    arguments: Vec<OsString>,
    install_advice: &'static str,
    link: Link,
}

impl Session {
    /// Starts the process and checks that it answers.
    pub(crate) fn start(
        name: &'static str,
        program: OsString,
        arguments: Vec<OsString>,
        install_advice: &'static str,
    ) -> Result<Self, Error> {
        let link = open(&program, &arguments, install_advice)?;
        let mut session = Self { name, program, arguments, install_advice, link };
        session.exchange(&[trivial_case()]).map_err(|(_, reason)| Error::Start {
            oracle: name,
            reason,
            advice: install_advice,
        })?;
        Ok(session)
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    pub(crate) fn run(&mut self, cases: &[Case]) -> Result<Vec<Outcome>, Error> {
        for (index, case) in cases.iter().enumerate() {
            if let Some(reason) = record::broken_rule(case) {
                return Err(Error::InvalidCase { index, reason });
            }
        }
        let (outcomes, failures) = self.run_all(cases)?;
        if failures.is_empty() {
            return Ok(outcomes.into_iter().flatten().collect());
        }
        Err(Error::Cases { oracle: self.name, failures, outcomes })
    }

    /// Runs the cases in batches. If a process fails, the results that it had
    /// not sent are lost, so the rest of the batch is repeated one by one to
    /// find the case that it failed on.
    fn run_all(
        &mut self,
        cases: &[Case],
    ) -> Result<(Vec<Option<Outcome>>, Vec<CaseFailure>), Error> {
        let mut outcomes = Vec::with_capacity(cases.len());
        let mut failures = Vec::new();
        let mut one_by_one_until = 0;
        while outcomes.len() < cases.len() {
            let start = outcomes.len();
            let batch = if start < one_by_one_until { 1 } else { BATCH };
            let end = cases.len().min(start + batch);
            let (answers, failure) = match self.exchange(&cases[start..end]) {
                Ok(answers) => (answers, None),
                Err((answers, reason)) => (answers, Some(reason)),
            };
            outcomes.extend(answers.into_iter().map(Some));
            let Some(reason) = failure else { continue };
            self.link = open(&self.program, &self.arguments, self.install_advice)?;
            one_by_one_until = end;
            if end - start == 1 {
                failures.push(CaseFailure {
                    index: start,
                    words: cases[start].code.clone(),
                    reason,
                });
                outcomes.push(None);
            }
        }
        Ok((outcomes, failures))
    }

    /// Sends cases and awaits their results. On failure, returns the results
    /// that did come and how the process ended.
    fn exchange(&mut self, cases: &[Case]) -> Result<Vec<Outcome>, (Vec<Outcome>, String)> {
        let mut bytes = Vec::new();
        for case in cases {
            record::encode(case, &mut bytes);
        }
        // Sending fails when the writer is gone; receiving then fails too.
        let _ = self.link.requests.send(bytes);
        let mut outcomes = Vec::with_capacity(cases.len());
        let mut pending = Vec::new();
        while outcomes.len() < cases.len() {
            match self.link.results.recv_timeout(SILENCE_LIMIT) {
                Ok(bytes) => pending.extend(bytes),
                Err(cause) => return Err((outcomes, self.link.close(cause))),
            }
            if !take_results(&mut pending, &mut outcomes) {
                return Err((outcomes, "the process sent an unknown outcome".to_owned()));
            }
        }
        Ok(outcomes)
    }
}

/// Moves the complete results from `pending` to `outcomes`; false if one is malformed.
fn take_results(pending: &mut Vec<u8>, outcomes: &mut Vec<Outcome>) -> bool {
    let mut taken = 0;
    while let Some(result) = record::decode(&pending[taken..]) {
        let Ok((outcome, len)) = result else { return false };
        outcomes.push(outcome);
        taken += len;
    }
    pending.drain(..taken);
    true
}

fn open(program: &OsString, arguments: &[OsString], advice: &'static str) -> Result<Link, Error> {
    let mut command = Command::new(program);
    command.args(arguments);
    Link::open(command).map_err(|error| spawn_error(program, advice, error))
}

/// Returns the error for a program that could not be started.
pub(crate) fn spawn_error(program: &OsString, advice: &'static str, source: io::Error) -> Error {
    let program = program.to_string_lossy().into_owned();
    match source.kind() {
        io::ErrorKind::NotFound => Error::ProgramNotFound { program, advice },
        _ => Error::Io { action: format!("start {program}"), source },
    }
}

fn trivial_case() -> Case {
    const NOP: u32 = 0xD503_201F;
    Case {
        code: vec![NOP],
        max_instructions: 1,
        code_address: crate::CODE_START,
        state: crate::State::default(),
        vectors: false,
        window: [0; crate::WINDOW_LEN],
    }
}
