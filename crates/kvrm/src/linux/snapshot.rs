//! Keeping a program as it is at some point, and going on from there.

mod own;

use std::path::{Path, PathBuf};

use kvrm_engine::RunControl;
use kvrm_linux::{
    Console, Crash, Ending, Input, Kernel, Point, Reached, SnapshotError, Status, Stream,
};

use super::process::Process;
use crate::{EngineKind, Error, Result};

/// A program as it was at some point, from where it can go on any number of times, on any engine.
///
/// What the program does from there is what it would have done in one run: its output has what it has printed before, its
/// instructions are counted from its beginning, and its files are as they were. Standard input is given when it goes on; so are
/// limits. Files in memory are in the snapshot; folders and files of the host are not, and must be as they were.
///
/// ```
/// use kvrm::linux::{Many, Point, Process, Row, Snapshot};
///
/// # std::env::set_current_dir("../..").expect("the folder of the repository");
/// let program = Process::new("guests/linux/collatz").args(["27", "1"]);
/// let start = program.boot_until(&Point::Address(0x4001a0))?;
/// let folder = tempfile::tempdir().expect("a folder");
/// let file = folder.path().join("start.snap");
/// std::fs::write(&file, start.bytes()).expect("room for it");
///
/// let start = Snapshot::open(&file)?;
/// let outcome = Process::of(&start).run()?;
/// assert_eq!((outcome.stdout, outcome.instructions), (b"000000000000006f\n".to_vec(), 1140));
///
/// // It has not used its arguments yet, so lanes may have others of the same lengths.
/// let mut lanes = Many::new(Process::of(&start)).run([Row::new().args(["97", "1"])])?;
/// let outcome = lanes.next().expect("a lane")?.result?;
/// assert_eq!(outcome.stdout, b"0000000000000076\n");
/// # Ok::<(), kvrm::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(super) state: kvrm_linux::Snapshot,
    /// It may say which files of the host the program sees.
    is_trusted: bool,
}

impl Snapshot {
    /// True if a file begins as snapshots do.
    pub fn is_one(path: impl AsRef<Path>) -> bool {
        kvrm_linux::Snapshot::is_one(path.as_ref())
    }

    /// Reads one from a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Snapshot> {
        kvrm_linux::Snapshot::open(path.as_ref()).map(Snapshot::read).map_err(cannot_resume)
    }

    /// A snapshot of its [bytes](Snapshot::bytes).
    pub fn of(bytes: impl Into<Vec<u8>>) -> Result<Snapshot> {
        kvrm_linux::Snapshot::of(bytes.into()).map(Snapshot::read).map_err(cannot_resume)
    }

    /// One that was read, from anybody.
    fn read(state: kvrm_linux::Snapshot) -> Snapshot {
        let is_trusted = own::has_made(state.checksum());
        Snapshot { state, is_trusted }
    }

    /// Lets it show the program the files of the host that it [names](Snapshot::host_files), though somebody else may have made
    /// it. Those that this user has made on this computer may, as long as their names are in the cache.
    pub fn trusted(self) -> Snapshot {
        Snapshot { is_trusted: true, ..self }
    }

    /// Its bytes, for a file.
    pub fn bytes(&self) -> &[u8] {
        self.state.bytes()
    }

    /// The program, as it was called.
    pub fn program(&self) -> &Path {
        use std::os::unix::ffi::OsStrExt;
        Path::new(std::ffi::OsStr::from_bytes(&self.state.about().program))
    }

    /// Instructions that it had executed.
    pub fn instructions(&self) -> u64 {
        self.state.about().instructions
    }

    /// Pages of its memory that are not zero.
    pub fn pages(&self) -> u64 {
        self.state.about().pages
    }

    /// Folders and files of the host that the program sees, each by its path in the guest; that of a root is `/`. A program
    /// that goes on may have others instead, with the same contents, by [`Process::root`] and [`Process::bind`].
    pub fn host_files(&self) -> impl Iterator<Item = (&[u8], &Path)> {
        self.state.about().given.iter().map(|given| (&given.guest[..], given.path()))
    }

    /// What is wrong with going on with other arguments and variables, in words.
    pub(super) fn refuses(&self, args: &[Vec<u8>], env: &[Vec<u8>]) -> Option<String> {
        let about = self.state.about();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if args.len() != about.args.len() {
            return Some(format!(
                "the snapshot was made with {}, so it goes on with as many, and not with {}",
                arguments(about.args.len() - 1),
                args.len() - 1
            ));
        }
        let name_of = |variable: &[u8]| text(variable.split(|b| *b == b'=').next().unwrap_or(b""));
        if let Some(variable) = env.get(about.env.len()) {
            let name = name_of(variable);
            return Some(format!("the snapshot was made without the variable {name}"));
        }
        let named = args.iter().zip(&about.args).enumerate();
        let named = named.map(|(at, pair)| (pair, format!("argument {at}")));
        let variables = env.iter().zip(&about.env);
        let variables =
            variables.map(|pair| (pair, format!("the variable {}", name_of(&pair.1.0))));
        for ((new, (old, was_used)), what) in named.chain(variables) {
            if new == old {
                continue;
            }
            if new.len() != old.len() {
                let (new, old) = (text(new), text(old));
                return Some(format!(
                    "{what} was \"{old}\" when the snapshot was made, and can only be another one of that length, not \"{new}\""
                ));
            }
            if *was_used {
                return Some(format!(
                    "{what} was used before the snapshot was made, so it stays \"{}\"",
                    text(old)
                ));
            }
        }
        None
    }
}

fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".into(),
        1 => "one argument".into(),
        count => format!("{count} arguments"),
    }
}

/// The error for a snapshot that a program cannot go on from.
pub(super) fn cannot_resume(error: SnapshotError) -> Error {
    match error {
        SnapshotError::Host(error) => Error::Engine(error),
        error => Error::Snapshot(format!("cannot go on from the snapshot: {error}")),
    }
}

/// The error for a program of which there is no snapshot.
fn cannot_keep(why: impl std::fmt::Display) -> Error {
    Error::Snapshot(format!("cannot make a snapshot: {why}"))
}

impl Process {
    /// A program that goes on from a snapshot. It may be given arguments and variables of the same lengths as those that it had
    /// and instead of these, as long as it has not used them. Folders of the host that it saw may be elsewhere now.
    pub fn of(snapshot: &Snapshot) -> Process {
        let mut process = Process::new(snapshot.program());
        process.plan.snapshot = Some(snapshot.clone());
        process
    }

    /// Runs it on the CPU until it reaches a point, and keeps it as it is just before that. It must not use its standard input
    /// before, which is no part of a snapshot.
    pub fn boot_until(self, point: &Point) -> Result<Snapshot> {
        self.boot_until_with(point, &RunControl::new())
    }

    /// The same, but gives up when the control says so.
    pub fn boot_until_with(self, point: &Point, control: &RunControl) -> Result<Snapshot> {
        self.check_for_snapshot()?;
        let mut placed = self.plan.place()?;
        if placed.engine() != EngineKind::Eval {
            placed.plan_mut().engine = EngineKind::Cpu;
        }
        let machines = placed.machines();
        let mut strace = self.strace;
        let mut load = |is_last: bool| -> Result<Kernel> {
            let strace = strace.take_if(|_| is_last);
            let console = Console::captured(Vec::new());
            let mut kernel = placed.clone().load(&machines, console, strace, None)?;
            kernel.watch()?;
            Ok(kernel)
        };
        let mut kernel;
        match point {
            // What reads has read when that is noticed; so another run is paused in time.
            Point::FirstRead => {
                let mut scout = load(false)?;
                let first = match scout.first_read(control)? {
                    Ok(first) => first,
                    Err(ending) => return Err(ended_before(&mut scout, ending, point)),
                };
                kernel = load(true)?;
                if let Some(ending) = kernel.run_until(first, control)? {
                    return Err(ended_before(&mut kernel, ending, point));
                }
            }
            Point::Function(_) | Point::Address(_) => {
                kernel = load(true)?;
                match kernel.run_to(point, control)? {
                    Reached::Point => {}
                    Reached::End(ending) => {
                        return Err(ended_before(&mut kernel, ending, point));
                    }
                    Reached::NoSuchFunction => {
                        return Err(cannot_keep(format!(
                            "neither {} nor anything that it has loaded has a function {point}",
                            placed.program().display()
                        )));
                    }
                    Reached::Input => {
                        return Err(cannot_keep(format!(
                            "the program uses its standard input before it reaches {point}: first-read is the latest point"
                        )));
                    }
                }
            }
        }
        let (args, env) = placed.strings();
        use std::os::unix::ffi::OsStrExt;
        let program = placed.program().as_os_str().as_bytes();
        let kept = kernel.save(program, &args, &env);
        let made = kept.map(|state| {
            own::note(state.checksum());
            Snapshot { state, is_trusted: true }
        });
        made.map_err(|error| match error {
            SnapshotError::Host(error) => Error::Engine(error),
            error => cannot_keep(error),
        })
    }

    /// Refuses what cannot be in a snapshot, or would be forgotten.
    fn check_for_snapshot(&self) -> Result<()> {
        let Process { plan, hook, input, keep, .. } = self;
        let refused = [
            (plan.realtime, "the program would see the real time"),
            (plan.binds.iter().any(|bind| bind.writable), "it could write folders of the host"),
            (matches!(input, Input::Host(_)), "it would have the host's standard input"),
            (hook.is_some(), "somebody decides about its system calls"),
            (keep.is_some(), "files are kept at the end of a run"),
        ];
        match refused.iter().find(|(is_asked, _)| *is_asked) {
            Some((_, what)) => Err(Error::NotOfSnapshot(what)),
            None => Ok(()),
        }
    }
}

/// The error for a program that has ended too early.
fn ended_before(kernel: &mut Kernel, ending: Ending, point: &Point) -> Error {
    let status = kernel.status();
    let crash = kernel.report().crash.as_ref().filter(|crash: &&Crash| crash.signal.dumps());
    let how = match (status, ending) {
        (Some(Status::Exited(code)), _) => format!("it exited with code {code}"),
        (Some(Status::Killed(signal)), _) => match crash {
            Some(crash) => format!("it was killed by {crash}"),
            None => format!("it was killed by SIG{}", signal.name()),
        },
        (None, Ending::Limited(limit)) => format!("the limit of {limit} was reached"),
        (None, Ending::Deadlock) => "every thread waits for ever".into(),
        (None, Ending::Cancelled | Ending::Finished) => "the run was cancelled".into(),
    };
    let said = kernel.console().take_output(Stream::Error);
    let said = String::from_utf8_lossy(&said);
    let said = said.trim().lines().last().map_or(String::new(), |line| format!(" ({line})"));
    cannot_keep(format!("the program ended before {}: {how}{said}", before(point)))
}

fn before(point: &Point) -> String {
    match point {
        Point::FirstRead => "it used its standard input".into(),
        point => format!("it reached {point}"),
    }
}

/// Where something of the host is now that a snapshot has by its path in the guest.
pub(super) fn given_now(
    snapshot: &Snapshot,
    root: Option<&PathBuf>,
    binds: &[kvrm_linux::vfs::Bind],
) -> Result<Vec<kvrm_linux::vfs::Given>> {
    use std::os::unix::ffi::OsStrExt;
    let mut given = snapshot.state.about().given.clone();
    let mut named = vec![false; given.len()];
    let root = root.map(|root| (&b"/"[..], root));
    let binds = binds.iter().map(|bind| (&bind.guest[..], &bind.host));
    for (guest, host) in root.into_iter().chain(binds) {
        let Some(known) = given.iter().position(|given| given.guest == guest) else {
            let guest = String::from_utf8_lossy(guest);
            return Err(Error::Snapshot(format!(
                "cannot go on from the snapshot: it was made without anything of the host as {guest}"
            )));
        };
        given[known].host = host.as_os_str().as_bytes().to_vec();
        named[known] = true;
    }
    let unnamed = given.iter().zip(named).filter(|(_, is_named)| !is_named);
    let shown = |(given, _): (&kvrm_linux::vfs::Given, bool)| {
        let guest = String::from_utf8_lossy(&given.guest);
        format!("{} as {guest}", given.path().display())
    };
    let shown: Vec<String> = unnamed.map(shown).collect();
    if !snapshot.is_trusted && !shown.is_empty() {
        return Err(Error::Snapshot(format!(
            "somebody else has made the snapshot, as far as is known here, and it would show the program {}: if the program may see that, give it the root (--root) and binds (--bind) again",
            shown.join(", ")
        )));
    }
    Ok(given)
}
