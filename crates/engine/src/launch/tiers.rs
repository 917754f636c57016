//! When code is translated, and whether that pays.
//!
//! Lanes are interpreted at first. Kernels note where lanes are, now and then; when lanes have run for a while, what they
//! spend their time in is [translated](crate::hot), and the device compiles a kernel with it while they go on. Between two
//! launches that kernel takes over. If it is not faster, by what the launches before and after take, the one without takes
//! over again. Where lanes have been seen is kept on disk, if it was worth it, with the handlers of the kernel: the next time,
//! the same is translated at once, and the kernel with it is in the cache.
//!
//! Nobody waits for a kernel with translated code, and it gives way to one that lanes wait for. In mapped memory, kernels are
//! extended again and again at first; there, code is translated once that has not happened for a while.

use std::sync::Arc;
use std::time::Duration;

use kvrm_mem::PAGE;
use sha2::{Digest, Sha256};

use super::kernels::Contents;
use super::{LaunchEngine, Launcher};
use crate::code::AHEAD;
use crate::hot::{self, Samples};
use crate::memory::DeviceMemory;
use crate::translation::{Means, Translation};
use crate::{Config, EngineError, RunControl};

/// What a device does so that code can be translated.
pub trait Translator {
    /// What kernels can have translated.
    fn means(&self) -> Means;

    /// Where lanes have been since this was last asked: addresses, once for each time.
    fn samples(&mut self) -> Result<Vec<u64>, EngineError>;
}

/// If code is to be translated before it was executed so often, lanes wait for it: in tests.
const SOON: u32 = 1000;
/// Instructions that a lane executes for each time that a usual loop does.
const LOOP: u64 = 4;
/// How long lanes run before it is worth the time of a compiler.
const WORTH: Duration = Duration::from_millis(300);
/// Kernels for mapped memory are extended again and again at first. It is worth translating once lanes have run for so many
/// times of what a kernel costs without that.
const QUIET: u32 = 2;
/// Places where lanes have been, at the least.
const SAMPLES: u32 = 64;
/// How long launches are measured.
const MEASURED: Duration = Duration::from_millis(60);
/// What is clearly faster, or slower. In between, it is measured again.
const CLEAR: f64 = 0.1;
/// How often code that was translated may change before no more is translated.
const SETBACKS: u32 = 8;
/// Pages whose contents tell programs apart.
const TELLING_PAGES: usize = 64;

/// What was executed in some launches.
#[derive(Clone, Copy, Default)]
struct Work {
    instructions: u64,
    time: Duration,
    /// Lanes that ran in the last of them.
    lanes: usize,
}

impl Work {
    fn rate(&self) -> f64 {
        self.instructions as f64 / self.time.as_secs_f64()
    }

    fn is_enough(&self) -> bool {
        self.time >= MEASURED
    }

    fn add(&mut self, other: Work) {
        self.instructions += other.instructions;
        self.time += other.time;
        self.lanes = other.lanes;
    }
}

/// Launches that are compared: before code was translated, with it; if that is not clear, without it again, and with it
/// again.
struct Trial {
    translation: Arc<Translation>,
    work: [Work; 4],
    phase: usize,
}

impl Trial {
    fn is_translated(&self) -> bool {
        self.phase % 2 == 1
    }

    /// Whether translated code is faster, as soon as there are launches enough to tell.
    fn verdict(&mut self) -> Option<bool> {
        if !self.work[self.phase].is_enough() {
            return None;
        }
        let [before, with, without, again] = &self.work;
        // Where lanes have ended meanwhile, the rest may be slower for that.
        if 4 * self.work[self.phase].lanes < 3 * before.lanes {
            return Some(true);
        }
        let gain = match self.phase {
            1 => with.rate() / before.rate(),
            2 => 1.0,
            _ => (with.rate() + again.rate()) / (before.rate() + without.rate()),
        };
        if self.phase < 3 && (gain - 1.0).abs() < CLEAR {
            self.phase += 1;
            return None;
        }
        Some(gain > 1.0)
    }
}

/// How far it is with what lanes spend their time in.
#[derive(Default)]
enum Tier {
    /// It is interpreted.
    #[default]
    Interpreted,
    /// A kernel is being compiled.
    Prepared(Arc<Translation>),
    /// It is translated, and launches are compared.
    Tried(Trial),
    /// That is how it stays.
    Settled,
}

/// What is known of where lanes spend their time.
#[derive(Default)]
pub(super) struct Tiers {
    tier: Tier,
    samples: Samples,
    /// Where lanes were seen in an earlier run of the program.
    known: bool,
    /// It was looked for that.
    was_sought: bool,
    /// Words that want the handlers of its kernel, until that is chosen.
    words: Vec<u32>,
    /// What the program is called in the cache.
    name: String,
    /// Instructions that lanes could execute in launches so far, each, and the time these took.
    each: u64,
    time: Duration,
    /// What they took since the kernel was last extended, to so many handlers.
    quiet: Duration,
    extended_to: usize,
    /// The latest launches.
    latest: Work,
    /// What the code was like when it was last translated: how much was decoded, the handlers, and how often all was
    /// forgotten.
    decoded: u64,
    handlers: usize,
    forgotten: u64,
    setbacks: u32,
}

impl Tiers {
    /// The most instructions that a lane may execute in the next launch.
    pub(super) fn share(&self, config: &Config, share: u64) -> u64 {
        match self.tier {
            Tier::Interpreted if (1..SOON).contains(&config.translate_after) => {
                share.min(LOOP * u64::from(config.translate_after))
            }
            _ => share,
        }
    }

    /// Takes note of a launch.
    pub(super) fn launched(&mut self, share: u64, instructions: u64, time: Duration, lanes: usize) {
        self.each = self.each.saturating_add(share);
        self.time += time;
        self.quiet += time;
        let work = Work { instructions, time, lanes };
        match &mut self.tier {
            Tier::Tried(trial) => trial.work[trial.phase].add(work),
            Tier::Interpreted | Tier::Prepared(_) => {
                if self.latest.is_enough() {
                    self.latest = Work::default();
                }
                self.latest.add(work);
            }
            Tier::Settled => {}
        }
    }

    /// True if lanes have run for long enough, and for some time since the kernel was last extended.
    fn is_time(&self, after: u32, quiet: Duration) -> bool {
        let often = self.each >= LOOP * u64::from(after);
        often && (after < SOON || self.time >= WORTH && self.quiet >= quiet)
    }

    fn start_over(&mut self) {
        self.tier = Tier::Interpreted;
        self.latest = Work::default();
    }
}

impl<L: Launcher> LaunchEngine<L> {
    /// Translates what is worth it, and takes back what was not.
    pub(super) fn translate(&mut self, control: &RunControl) -> Result<(), EngineError> {
        let after = self.config.translate_after;
        if after == u32::MAX {
            return Ok(());
        }
        let Some(means) = self.launcher.translator().map(|translator| translator.means()) else {
            return Ok(());
        };
        match after {
            0 => self.translate_all(means),
            _ => self.step_tier(means, after, control),
        }
    }

    fn translate_all(&mut self, means: Means) -> Result<(), EngineError> {
        let more = self.code.decoded() - self.tiers.decoded;
        if more > 0 && !self.config.mapped {
            self.choose_all()?;
        }
        let is_wanted = match self.code.translation() {
            None => more > 0 || self.tiers.setbacks < SETBACKS,
            // Where there is too much for one kernel, not each time that there is a little more.
            Some(_) => more > 0 && (more >= self.tiers.decoded || !self.is_too_much(means)),
        };
        if is_wanted {
            self.tiers.setbacks += u32::from(more == 0);
            self.tiers.decoded = self.code.decoded();
            let made = hot::translate(&self.code, self.launcher.memory(), None, means)?;
            self.code.set_translation(made.map(Arc::new));
        }
        Ok(())
    }

    fn is_too_much(&self, means: Means) -> bool {
        self.tiers.decoded > means.most as u64
    }

    fn step_tier(
        &mut self,
        means: Means,
        after: u32,
        control: &RunControl,
    ) -> Result<(), EngineError> {
        let handlers = self.code.handlers.len();
        if std::mem::replace(&mut self.tiers.extended_to, handlers) != handlers {
            self.tiers.quiet = Duration::ZERO;
        }
        self.look_for_changes();
        match &self.tiers.tier {
            Tier::Interpreted => self.begin_to_translate(means, after, control),
            Tier::Prepared(_) => self.take_over(after, control),
            Tier::Tried(_) => {
                self.compare();
                Ok(())
            }
            Tier::Settled => Ok(()),
        }
    }

    /// Starts over if code that was translated has changed, or the kernel lacks handlers.
    fn look_for_changes(&mut self) {
        let (code, tiers) = (&self.code, &self.tiers);
        let has_grown = tiers.handlers != code.handlers.len();
        let is_same = !has_grown && tiers.forgotten == code.forgotten();
        let is_there = match &tiers.tier {
            Tier::Interpreted => return,
            Tier::Prepared(translation) => is_same && code.has_all_of(translation),
            Tier::Tried(trial) => is_same && code.translation().is_some() == trial.is_translated(),
            Tier::Settled => is_same && (code.translation().is_some() || !tiers.known),
        };
        if is_there {
            return;
        }
        self.code.set_translation(None);
        // There are only so many handlers.
        self.tiers.setbacks += u32::from(!has_grown);
        self.tiers.start_over();
        if self.tiers.setbacks >= SETBACKS {
            self.tiers.tier = Tier::Settled;
            self.tiers.known = false;
            self.note_code();
        }
    }

    fn note_code(&mut self) {
        self.tiers.handlers = self.code.handlers.len();
        self.tiers.forgotten = self.code.forgotten();
    }

    /// Begins to compile a kernel with what lanes spend their time in, if they have run for long enough.
    fn begin_to_translate(
        &mut self,
        means: Means,
        after: u32,
        control: &RunControl,
    ) -> Result<(), EngineError> {
        // Lanes do not wait for this kernel, but they do for others.
        if self.kernels.is_empty() || self.choosing.is_extending() {
            return Ok(());
        }
        let quiet = self.config.mapped.then_some(QUIET * self.choosing.kernel_cost);
        if !self.tiers.known && !self.tiers.is_time(after, quiet.unwrap_or_default()) {
            return Ok(());
        }
        // What is known is not changed, so that kernels are the same as in the run before.
        if let Some(translator) = self.launcher.translator().filter(|_| !self.tiers.known) {
            for pc in translator.samples()? {
                *self.tiers.samples.entry(pc).or_insert(0) += 1;
            }
        }
        let samples = self.tiers.samples.values().sum::<u32>();
        if samples == 0 || !self.tiers.known && samples < SAMPLES && after >= SOON {
            return Ok(());
        }
        if self.tiers.known {
            self.decode_samples()?;
        }
        self.note_code();
        let samples = Some(&self.tiers.samples);
        match hot::translate(&self.code, self.launcher.memory(), samples, means)? {
            None => self.tiers.tier = Tier::Settled,
            Some(translation) => {
                let translation = Arc::new(translation);
                let contents = self.contents_of(&translation);
                let compile = self.launcher.compiler(&self.code, Some(&translation));
                self.kernels.begin(contents, compile)?;
                self.tiers.tier = Tier::Prepared(translation);
                self.take_over(after, control)?;
            }
        }
        Ok(())
    }

    /// Decodes where lanes were seen in an earlier run, but have not been in this one.
    fn decode_samples(&mut self) -> Result<(), EngineError> {
        let mut ahead = AHEAD;
        for pc in self.tiers.samples.keys() {
            // If there is no code any more, it is not translated.
            self.code.find(self.launcher.memory_mut(), 0, *pc, &mut ahead)?;
        }
        Ok(())
    }

    /// What the kernel with a translation has.
    fn contents_of(&self, translation: &Translation) -> Contents<L::Target> {
        Contents::of(&self.code, Some(translation), self.launcher.target(&self.code))
    }

    /// Lets the kernel with translated code take over, if it is there.
    fn take_over(&mut self, after: u32, control: &RunControl) -> Result<(), EngineError> {
        let Tier::Prepared(translation) = &self.tiers.tier else { return Ok(()) };
        let translation = translation.clone();
        let contents = self.contents_of(&translation);
        match after < SOON {
            true => self.kernels.wait(&self.launcher, control)?,
            false => self.kernels.take(&self.launcher)?,
        };
        if !self.kernels.has(&contents) {
            if !self.kernels.is_compiling(&contents) {
                // Another was more urgent.
                self.tiers.start_over();
            }
            return Ok(());
        }
        let before = self.tiers.latest;
        self.code.set_translation(Some(translation.clone()));
        self.tiers.tier = match self.tiers.known || after < SOON || !before.is_enough() {
            true => Tier::Settled,
            false => {
                let nothing = Work::default();
                Tier::Tried(Trial {
                    translation,
                    work: [before, nothing, nothing, nothing],
                    phase: 1,
                })
            }
        };
        self.tiers.known = true;
        Ok(())
    }

    /// Compares launches with translated code and without.
    fn compare(&mut self) {
        let Tier::Tried(trial) = &mut self.tiers.tier else { return };
        match trial.verdict() {
            Some(pays) => self.settle(pays),
            None => {
                let translation = trial.is_translated().then(|| trial.translation.clone());
                if self.code.translation().is_some() != translation.is_some() {
                    self.code.set_translation(translation);
                }
            }
        }
    }

    fn settle(&mut self, pays: bool) {
        if !pays {
            self.code.set_translation(None);
            self.tiers.samples.clear();
        }
        self.tiers.known = pays;
        self.tiers.tier = Tier::Settled;
        self.keep_samples();
    }

    // What is kept on disk.

    /// Looks for what an earlier run of the program knew. Programs in mapped memory load most of their code themselves, and
    /// have no name at first.
    fn look_for_kept(&mut self) -> Result<(), EngineError> {
        let is_asked = (SOON..u32::MAX).contains(&self.config.translate_after);
        if self.tiers.was_sought || !is_asked || self.config.mapped {
            return Ok(());
        }
        self.tiers.was_sought = true;
        if self.launcher.translator().is_none() {
            return Ok(());
        }
        let name = self.name_of_code()?;
        let kept = self.launcher.cache().get(&self.launcher.key(&name)).unwrap_or_default();
        (self.tiers.words, self.tiers.samples) = read_kept(&kept);
        self.tiers.known = !self.tiers.samples.is_empty();
        self.tiers.name = name;
        Ok(())
    }

    /// Words that want the handlers of the kernel that an earlier run of the program has settled on.
    pub(super) fn known_handlers(&mut self) -> Result<Option<Vec<u32>>, EngineError> {
        self.look_for_kept()?;
        Ok(self.tiers.known.then(|| std::mem::take(&mut self.tiers.words)))
    }

    /// Keeps where lanes have been seen, and which handlers the kernel had.
    fn keep_samples(&mut self) {
        if self.config.mapped {
            return;
        }
        let words = match self.tiers.known {
            true => self.code.handlers.words(&self.code.handlers.selection()),
            false => Vec::new(),
        };
        let kept = write_kept(&words, &self.tiers.samples);
        self.launcher.cache().put(&self.launcher.key(&self.tiers.name), &kept);
    }

    /// What the program is called in the cache: its first pages with code tell it from others.
    fn name_of_code(&self) -> Result<String, EngineError> {
        let mut hash = Sha256::new();
        let mut bytes = vec![0; PAGE as usize];
        for page in self.code.pages_with_code().take(TELLING_PAGES) {
            self.launcher.memory().read_common_page(page, &mut bytes)?;
            hash.update(page.to_le_bytes());
            hash.update(&bytes);
        }
        let digits = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(format!("hot code of {digits}"))
    }
}

/// Words and samples, each with how often, as one entry: how many words there are, the words, the samples.
fn write_kept(words: &[u32], samples: &Samples) -> Vec<u8> {
    let mut samples: Vec<(u64, u32)> = samples.iter().map(|(pc, count)| (*pc, *count)).collect();
    samples.sort_unstable();
    let samples = samples
        .iter()
        .flat_map(|(pc, count)| pc.to_le_bytes().into_iter().chain(count.to_le_bytes()));
    let words = std::iter::once(words.len() as u32).chain(words.iter().copied());
    words.flat_map(u32::to_le_bytes).chain(samples).collect()
}

/// The same read again; nothing, if it is not such an entry.
fn read_kept(bytes: &[u8]) -> (Vec<u32>, Samples) {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let Some((len, rest)) = bytes.split_at_checked(4) else { return Default::default() };
    let Some((words, samples)) = rest.split_at_checked(4 * word(len) as usize) else {
        return Default::default();
    };
    let sample = |entry: &[u8]| {
        let (pc, count) = entry.split_at(8);
        (u64::from_le_bytes(pc.try_into().expect("eight bytes")), word(count))
    };
    (words.chunks_exact(4).map(word).collect(), samples.chunks_exact(12).map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let samples = Samples::from([(0x1_0000_1000, 7), (8, 1)]);
        let kept = write_kept(&[1, 2, 3], &samples);
        assert_eq!(read_kept(&kept), (vec![1, 2, 3], samples));
        for damaged in [&[][..], &[1, 0, 0], &[9, 0, 0, 0, 5]] {
            assert_eq!(read_kept(damaged), Default::default());
        }
    }

    fn work(rate: u64, lanes: usize) -> Work {
        Work { instructions: rate, time: Duration::from_secs(1), lanes }
    }

    /// The verdict on launches at such rates, and after how many phases it came.
    fn verdict(rates: [u64; 4]) -> (Option<bool>, usize) {
        let translation = Arc::new(Translation::new(Vec::new()));
        let work = rates.map(|rate| work(rate, 100));
        let mut trial = Trial { translation, work, phase: 1 };
        for _ in 0..3 {
            if let Some(verdict) = trial.verdict() {
                return (Some(verdict), trial.phase);
            }
        }
        (None, trial.phase)
    }

    #[test]
    fn what_is_clear_is_decided_at_once() {
        assert_eq!(verdict([100, 200, 0, 0]), (Some(true), 1));
        assert_eq!(verdict([100, 80, 0, 0]), (Some(false), 1));
    }

    #[test]
    fn what_is_not_clear_is_measured_again() {
        assert_eq!(verdict([100, 102, 99, 101]), (Some(true), 3));
        assert_eq!(verdict([100, 102, 103, 99]), (Some(false), 3));
    }

    #[test]
    fn too_little_and_fewer_lanes_say_nothing() {
        let translation = Arc::new(Translation::new(Vec::new()));
        let mut all = [work(100, 100), work(50, 70), Work::default(), Work::default()];
        let trial = |work: [Work; 4]| Trial { translation: translation.clone(), work, phase: 1 };
        assert_eq!(trial(all).verdict(), Some(true));
        all[1] = Work::default();
        assert_eq!(trial(all).verdict(), None);
    }
}
