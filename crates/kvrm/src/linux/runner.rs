//! Runs one lane of a program after the other, on any thread.
//!
//! What lanes have in common is done once. Lanes whose arguments and variables have the same lengths find these at the same
//! addresses, so they do the same until one of them uses something of its own. The first of them is a *scout*: it is watched, and
//! tells when it first used each thing. For a lane that differs from it in some of them, the program is run up to the first use of
//! any of these, and no further; this *prefix* is copied for the lane, and given what the lane has of its own. So
//! every lane goes on as if it had run alone from the beginning, to the last instruction.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kvrm_engine::RunControl;
use kvrm_linux::{CannotFork, Console, Ending, FirstUses, HostSignals, Input, Kernel, Sink};

use super::outcome::Outcome;
use super::plan::{Machines, Placed, Plan};
use super::process::outcome;
use super::rows::Row;
use super::trails::{Trail, Way};
use crate::{EngineKind, Error, Result};

/// Prefixes that are kept, of all shapes together: each has a program's memory.
const MOST_PREFIXES: usize = 32;
/// Shapes that are known, at the most; then all are forgotten.
const MOST_SHAPES: usize = 4096;
/// Bytes of what scouts were given and of their outcomes, at the most; then all are forgotten, too.
const MOST_HELD: usize = 64 << 20;
/// The same of one scout, for it to be kept.
const MOST_KEPT: usize = 1 << 20;

/// What all lanes of a program have in common.
pub(super) struct Runner {
    placed: Placed,
    machines: Machines,
    /// What lanes go on from on the host, if the program does not begin.
    resumed: Option<Prefix>,
    stdin: Vec<u8>,
    /// Instructions from a prefix on, before it is found out how far lanes go together.
    patience: u64,
    shapes: Mutex<Shapes>,
}

/// What a lane begins with.
pub(super) struct Given {
    placed: Placed,
    pub(super) args: Vec<Vec<u8>>,
    pub(super) env: Vec<Vec<u8>>,
    pub(super) stdin: Vec<u8>,
}

/// What lanes must agree on to have a prefix in common: how long their arguments and variables are, and the files that are
/// their own.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shape {
    args: Vec<usize>,
    env: Vec<usize>,
    files: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What is known of shapes.
#[derive(Default)]
struct Shapes {
    /// None while the scout is under way, or if there can be none.
    scouts: HashMap<Shape, Option<Arc<Scout>>>,
    /// Bytes of what they were given and of their outcomes.
    held: usize,
    /// Hashes of shapes with files of their own that were seen once. Most are not seen again.
    seen: HashSet<u64>,
    /// The one that was used last comes last.
    prefixes: VecDeque<Arc<Prefix>>,
}

/// A lane that was watched.
struct Scout {
    given: Given,
    uses: FirstUses,
    outcome: Outcome,
    /// By how many instructions were executed.
    prefixes: Mutex<HashMap<u64, Slot>>,
    /// What lanes do from there on, in the same way.
    ways: Mutex<HashMap<u64, Way>>,
}

/// Where a prefix is.
enum Slot {
    /// It is being made.
    UnderWay,
    /// There, or gone because others were used more recently.
    Made(Weak<Prefix>),
}

/// A program that was run to where lanes begin to differ. It never goes on itself.
struct Prefix(Mutex<Kernel>);

/// What a lane has in common with a scout.
enum Common {
    /// All that either of them uses.
    All,
    /// All until so many instructions were executed.
    Until(u64),
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Given {
    fn size(&self) -> usize {
        self.stdin.len() + self.args.iter().chain(&self.env).map(Vec::len).sum::<usize>()
    }

    pub(super) fn load(&self, machines: &Machines) -> Result<Kernel> {
        let outputs = [Sink::Captured(Vec::new()), Sink::Captured(Vec::new())];
        let input = Input::Bytes(self.stdin.clone().into());
        let console = Console::new(input, outputs, HostSignals::default());
        self.placed.clone().load(machines, console, None, None)
    }
}

impl Scout {
    /// What they have in common but for strings that `ignores`, by their place among arguments and variables.
    fn has_in_common(&self, other: &Given, ignores: impl Fn(usize) -> bool) -> Common {
        let Scout { given, uses, .. } = self;
        let own = given.args.iter().chain(&given.env);
        let pairs = own.zip(other.args.iter().chain(&other.env)).enumerate();
        let differs = pairs.map(|(place, (own, other))| own != other && !ignores(place));
        let uses_of_strings = uses.args.iter().chain(&uses.env).copied();
        let first =
            differs.zip(uses_of_strings).filter_map(|(differs, first)| first.filter(|_| differs));
        let input = uses.input.filter(|_| given.stdin != other.stdin);
        first.chain(input).min().map_or(Common::All, Common::Until)
    }
}

impl Scout {
    /// Notes that a lane has executed so many instructions from a prefix on; false if that is enough to find out how many of
    /// them others would have executed in the same way, which the caller does then.
    fn has_patience(&self, prefix: u64, instructions: u64, patience: u64) -> bool {
        let ways = &mut lock(&self.ways);
        let way = ways.entry(prefix).or_insert(Way::Alone(0));
        let Way::Alone(executed) = way else { return true };
        *executed += instructions;
        let is_spent = *executed >= patience;
        if is_spent {
            *way = Way::Exploring;
        }
        !is_spent
    }
}

impl Runner {
    /// What is wrong for every lane is an error here, and not a result of each of them.
    pub(super) fn new(plan: Plan, stdin: Vec<u8>, patience: u64) -> Result<Runner> {
        let mut placed = plan.place()?;
        let has_many = placed.snapshot().is_some_and(|snapshot| !snapshot.state.about().is_single);
        if placed.engine().is_gpu() && has_many {
            // Lanes of a GPU have one thread.
            placed.plan_mut().engine = EngineKind::Cpu;
        }
        let machines = placed.machines();
        let tried = if placed.engine().is_gpu() { &machines.on_host() } else { &machines };
        let mut kernel = placed.clone().load(tried, Console::captured(Vec::new()), None, None)?;
        let mut resumed = None;
        if placed.snapshot().is_some() && !placed.engine().is_gpu() {
            kernel.freeze()?;
            resumed = Some(Prefix(Mutex::new(kernel)));
        }
        Ok(Runner { placed, machines, resumed, stdin, patience, shapes: Mutex::default() })
    }

    /// The engine that lanes begin on.
    pub(super) fn engine(&self) -> EngineKind {
        self.placed.engine()
    }

    /// The machines of programs.
    pub(super) fn machines(&self) -> &Machines {
        &self.machines
    }

    /// How many arguments all lanes have in common, at the beginning.
    pub(super) fn common_args(&self) -> usize {
        self.placed.strings().0.len()
    }

    /// What a lane begins with because of its row.
    pub(super) fn given(&self, mut row: Row) -> Result<Given> {
        let mut placed = self.placed.clone();
        let stdin = row.stdin.take().unwrap_or_else(|| self.stdin.clone());
        if placed.snapshot().is_some() && !row.files.is_empty() {
            let why = "a lane that goes on from a snapshot has no files of its own";
            return Err(Error::Program(why.into()));
        }
        row.apply(placed.plan_mut());
        if let Some(why) = placed.refused_strings() {
            return Err(Error::Program(why));
        }
        let (args, env) = placed.strings();
        Ok(Given { placed, args, env, stdin })
    }

    /// The program with what a lane is given.
    fn load(&self, given: &Given) -> Result<Kernel> {
        match &self.resumed {
            Some(resumed) => fork(resumed, given),
            None => given.load(&self.machines),
        }
    }

    /// Runs the program with a row, until its end or until the control says so. Files that it has written are put into `keep`.
    pub(super) fn run(
        &self,
        row: Row,
        keep: Option<PathBuf>,
        control: &RunControl,
    ) -> Result<Outcome> {
        let files = row.files.clone();
        let given = self.given(row)?;
        let lengths = |strings: &[Vec<u8>]| strings.iter().map(Vec::len).collect();
        let shape = Shape { args: lengths(&given.args), env: lengths(&given.env), files };
        let scout = match self.scout(&shape) {
            Ok(scout) => scout,
            Err(NoScout::Yet) => return self.run_watched(given, shape, keep, control),
            Err(NoScout::UnderWay | NoScout::NotWorthIt) => {
                return self.run_alone(&given, keep, control);
            }
        };
        match scout.has_in_common(&given, |_| false) {
            Common::All if keep.is_none() => Ok(scout.outcome.clone()),
            Common::All => self.run_alone(&given, keep, control),
            Common::Until(instructions) => {
                self.run_from(&scout, instructions, &given, keep, control)
            }
        }
    }

    /// Runs a lane that does the same as a scout until so many instructions were executed, or longer.
    fn run_from(
        &self,
        scout: &Scout,
        instructions: u64,
        given: &Given,
        keep: Option<PathBuf>,
        control: &RunControl,
    ) -> Result<Outcome> {
        if let Some(kernel) = self.on_trail(scout, instructions, given, control)? {
            return finish(kernel, keep, control);
        }
        let Some(prefix) = self.prefix(scout, instructions, control)? else {
            return self.run_alone(given, keep, control);
        };
        let outcome = finish(fork(&prefix, given)?, keep, control)?;
        let more = outcome.instructions.saturating_sub(instructions);
        if scout.has_patience(instructions, more, self.patience) {
            return Ok(outcome);
        }
        let way = self.explore(scout, &prefix, given, control)?;
        lock(&scout.ways).insert(instructions, way);
        Ok(outcome)
    }

    fn run_alone(
        &self,
        given: &Given,
        keep: Option<PathBuf>,
        control: &RunControl,
    ) -> Result<Outcome> {
        finish(self.load(given)?, keep, control)
    }

    // Scouts.

    /// The scout of a shape, if there is one. Whoever is told that there is none yet makes one.
    fn scout(&self, shape: &Shape) -> std::result::Result<Arc<Scout>, NoScout> {
        let shapes = &mut lock(&self.shapes);
        match shapes.scouts.get(shape) {
            Some(Some(scout)) => return Ok(Arc::clone(scout)),
            Some(None) => return Err(NoScout::UnderWay),
            None => {}
        }
        if shapes.is_new(shape) {
            return Err(NoScout::NotWorthIt);
        }
        if shapes.scouts.len() >= MOST_SHAPES || shapes.held >= MOST_HELD {
            shapes.scouts.clear();
            shapes.held = 0;
        }
        shapes.scouts.insert(shape.clone(), None);
        Err(NoScout::Yet)
    }

    /// Runs a lane alone, and finds out when it uses what it is given.
    fn run_watched(
        &self,
        given: Given,
        shape: Shape,
        keep: Option<PathBuf>,
        control: &RunControl,
    ) -> Result<Outcome> {
        let mut uses = None;
        let run = || {
            let mut kernel = self.load(&given)?;
            // What depends on the host cannot be repeated.
            let may_repeat = !self.placed.is_realtime();
            let is_watched = may_repeat && kernel.watch()?;
            let outcome = finish_with(&mut kernel, keep, control)?;
            uses = kernel.first_uses().filter(|_| is_watched);
            Ok(outcome)
        };
        let result = run();
        match (&result, uses) {
            (Ok(outcome), Some(uses)) if outcome.ending != Ending::Cancelled => {
                let size = given.size() + shape.size() + outcome.size();
                if size <= MOST_KEPT {
                    let outcome = outcome.clone();
                    let (prefixes, ways) = (Mutex::default(), Mutex::default());
                    let scout = Arc::new(Scout { given, uses, outcome, prefixes, ways });
                    let mut shapes = lock(&self.shapes);
                    shapes.scouts.insert(shape, Some(scout));
                    shapes.held += size;
                }
            }
            // Another may have more luck.
            (Ok(outcome), _) if outcome.ending == Ending::Cancelled => {
                lock(&self.shapes).scouts.remove(&shape);
            }
            _ => {}
        }
        result
    }

    // Trails.

    /// A lane that has gone on from a prefix as far as others do, too; `None` if it does not, or nobody knows.
    fn on_trail(
        &self,
        scout: &Scout,
        instructions: u64,
        given: &Given,
        control: &RunControl,
    ) -> Result<Option<Kernel>> {
        let trail = match lock(&scout.ways).get(&instructions) {
            Some(Way::Trail(trail)) => Arc::clone(trail),
            _ => return Ok(None),
        };
        let Some(start) = trail.start(given) else { return Ok(None) };
        match scout.has_in_common(given, |string| trail.may_differ(string)) {
            Common::Until(others) if others < start.instructions => return Ok(None),
            Common::Until(_) | Common::All => {}
        }
        let Some(prefix) = self.prefix(scout, start.instructions, control)? else {
            return Ok(None);
        };
        let mut kernel = copy(&prefix, given)?;
        trail.give(&mut kernel, given, &start)?;
        Ok(Some(kernel))
    }

    /// Finds out how far lanes go on from a prefix in the same way.
    fn explore(
        &self,
        scout: &Scout,
        prefix: &Prefix,
        given: &Given,
        control: &RunControl,
    ) -> Result<Way> {
        let Some(trail) = Trail::new(fork(prefix, &scout.given)?, given, control)? else {
            return Ok(Way::Alone(0));
        };
        if !trail.is_worth_keeping() {
            return Ok(Way::Apart);
        }
        lock(&self.shapes).held += trail.size();
        Ok(Way::Trail(Arc::new(trail)))
    }

    // Prefixes.

    /// The prefix of so many instructions, made now if nobody else is about to; `None` if it is not there.
    fn prefix(
        &self,
        scout: &Scout,
        instructions: u64,
        control: &RunControl,
    ) -> Result<Option<Arc<Prefix>>> {
        match lock(&scout.prefixes).get(&instructions) {
            // Whoever comes meanwhile runs alone rather than wait.
            Some(Slot::UnderWay) => return Ok(None),
            Some(Slot::Made(prefix)) => {
                if let Some(prefix) = prefix.upgrade() {
                    lock(&self.shapes).use_prefix(&prefix);
                    return Ok(Some(prefix));
                }
            }
            None => {}
        }
        lock(&scout.prefixes).insert(instructions, Slot::UnderWay);
        let made = self.make_prefix(scout, instructions, control);
        let prefixes = &mut lock(&scout.prefixes);
        let Ok(Some(prefix)) = &made else {
            prefixes.remove(&instructions);
            return made;
        };
        prefixes.retain(|_, slot| match slot {
            Slot::UnderWay => true,
            Slot::Made(prefix) => prefix.strong_count() > 0,
        });
        prefixes.insert(instructions, Slot::Made(Arc::downgrade(prefix)));
        lock(&self.shapes).use_prefix(prefix);
        made
    }

    /// Runs what a scout was given; `None` if that was cancelled.
    fn make_prefix(
        &self,
        scout: &Scout,
        instructions: u64,
        control: &RunControl,
    ) -> Result<Option<Arc<Prefix>>> {
        let mut kernel = self.load(&scout.given)?;
        if kernel.run_until(instructions, control)?.is_some() {
            return Ok(None);
        }
        kernel.freeze()?;
        Ok(Some(Arc::new(Prefix(Mutex::new(kernel)))))
    }
}

/// Why there is no scout of a shape.
enum NoScout {
    /// It is to be made.
    Yet,
    UnderWay,
    /// It would hardly be of use.
    NotWorthIt,
}

impl Shape {
    fn size(&self) -> usize {
        self.files.iter().map(|(path, contents)| path.len() + contents.len()).sum()
    }
}

impl Shapes {
    /// True if a shape has files of its own and was not seen before, as far as is remembered.
    fn is_new(&mut self, shape: &Shape) -> bool {
        if shape.files.is_empty() {
            return false;
        }
        if self.seen.len() >= MOST_SHAPES {
            self.seen.clear();
        }
        let mut hasher = DefaultHasher::new();
        shape.hash(&mut hasher);
        self.seen.insert(hasher.finish())
    }

    /// Notes that a prefix is used, and forgets the one that was not for the longest time if there are too many.
    fn use_prefix(&mut self, prefix: &Arc<Prefix>) {
        let is_it = |other: &Arc<Prefix>| Arc::ptr_eq(other, prefix);
        if self.prefixes.back().is_some_and(is_it) {
            return;
        }
        self.prefixes.retain(|other| !is_it(other));
        self.prefixes.push_back(Arc::clone(prefix));
        if self.prefixes.len() > MOST_PREFIXES {
            self.prefixes.pop_front();
        }
    }
}

/// Copies a prefix.
fn copy(prefix: &Prefix, given: &Given) -> Result<Kernel> {
    let forked = lock(&prefix.0).fork(given.stdin.clone());
    forked.map_err(|error| match error {
        CannotFork::Host(error) => Error::Engine(error),
        CannotFork::HostStreams | CannotFork::HostDirectories | CannotFork::HostTime => {
            unreachable!("nobody makes a prefix of what the host has a part in")
        }
    })
}

/// Copies a prefix, and gives it what a lane has of its own.
fn fork(prefix: &Prefix, given: &Given) -> Result<Kernel> {
    let mut kernel = copy(prefix, given)?;
    kernel.give_strings(&given.args, &given.env)?;
    Ok(kernel)
}

fn finish(mut kernel: Kernel, keep: Option<PathBuf>, control: &RunControl) -> Result<Outcome> {
    finish_with(&mut kernel, keep, control)
}

fn finish_with(
    kernel: &mut Kernel,
    keep: Option<PathBuf>,
    control: &RunControl,
) -> Result<Outcome> {
    let ending = kernel.run(control)?;
    ended(kernel, ending, keep)
}

/// What a program did that has come to its end.
pub(super) fn ended(kernel: &mut Kernel, ending: Ending, keep: Option<PathBuf>) -> Result<Outcome> {
    if let Some(directory) = keep {
        kernel.keep(&directory).map_err(|error| Error::Keep { directory, error })?;
    }
    outcome(kernel, ending)
}
