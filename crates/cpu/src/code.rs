//! Translated code of one view of memory: the image, the shared memory, or that of a lane that has
//! changed its own code.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use kvrm_engine::EngineError;
use kvrm_mem::{GRANULE, PAGE, PageSet};
use kvrm_translate::{GuestCode, Region};

use crate::index::{Index, Key, map_bytes};
use crate::stubs::Stubs;
use crate::translate::{LACKS, LinkCell, Outside, function_signature, translate};

/// How often the rest of a block is stepped through before it is translated.
const TAIL_THRESHOLD: u32 = 2;

/// How many times as often as usual code is stepped through at the most before it is translated.
const MOST_PATIENCE: u32 = 16;

/// Translations after which patience is twice as large as at first, after as many again three times, and so on: of much
/// code, each piece is the less likely to be executed for long. So a guest that makes code all the time is not
/// translated all the time.
const MUCH_CODE: usize = 64;

/// How often the patience with a word doubles when its translation is in vain. With this many it is stepped through for
/// several times as long as translating it takes.
const MOST_DOUBLINGS: u8 = 8;

/// What is kept about a translation, at the most, beside its link cells.
const NOTES: u64 = 512;

/// What allocating a cell takes.
const CELL: u64 = 32;

/// Translations and what they were made from.
pub(crate) struct Translations {
    stubs: Arc<Stubs>,
    entries: HashMap<u64, *const u8>,
    /// One cell per guest address that translations jump to; they hold its address.
    cells: HashMap<u64, Box<LinkCell>>,
    /// Beginnings of blocks, by address and length.
    tails: HashMap<(u64, u64), Tail>,
    /// How often code that is not translated was reached.
    heat: HashMap<u64, u32>,
    /// It is that of a lane which has changed its code.
    is_own: bool,
    /// Words that were written after they had been translated.
    unsettled: HashMap<u64, Unsettled>,
    /// What is translated.
    index: Index,
    /// Pages that some lane has written: code in them is checked on entry. Survives clearing.
    written_pages: PageSet,
    /// Tells this set of translations from every other.
    generation: u64,
    /// Bytes that are charged for all this.
    charged: u64,
}

/// Called with a page and its granules that hold translated words, which must be closed.
pub(crate) type CloseGranules<'a> = dyn FnMut(u64, u64) + 'a;

enum Tail {
    Seen(u32),
    Translated(*const u8),
}

/// A word that keeps changing.
#[derive(Default)]
struct Unsettled {
    /// Translations of it that were in vain.
    writes: u8,
    /// How often it was reached since.
    reached: u32,
}

/// Whether code is worth translating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heat {
    /// It was not reached often enough.
    Cold,
    /// The word changes so often that it alone is better stepped through.
    Unsettled,
    /// It is.
    Hot,
}

// SAFETY: the pointers are to code and cells that `self` owns.
unsafe impl Send for Translations {}

impl Drop for Translations {
    fn drop(&mut self) {
        self.stubs.memory.release(self.charged);
    }
}

fn next_generation() -> u64 {
    static GENERATION: AtomicU64 = AtomicU64::new(1);
    GENERATION.fetch_add(1, Ordering::Relaxed)
}

impl Translations {
    /// Of memory that all lanes begin with or share.
    pub(crate) fn common(stubs: &Arc<Stubs>) -> Translations {
        Translations::new(stubs, false)
    }

    /// Of a lane that has changed its code.
    pub(crate) fn own(stubs: &Arc<Stubs>) -> Translations {
        Translations::new(stubs, true)
    }

    fn new(stubs: &Arc<Stubs>, is_own: bool) -> Translations {
        Translations {
            stubs: Arc::clone(stubs),
            entries: HashMap::new(),
            cells: HashMap::new(),
            tails: HashMap::new(),
            heat: HashMap::new(),
            is_own,
            unsettled: HashMap::new(),
            index: Index::default(),
            written_pages: PageSet::default(),
            generation: next_generation(),
            charged: 0,
        }
    }

    /// Forgets all translations. No lane may be running in them.
    pub(crate) fn clear(&mut self) {
        let mut empty = Translations::new(&self.stubs, self.is_own);
        empty.written_pages = std::mem::take(&mut self.written_pages);
        *self = empty;
    }

    /// Changes whenever translations become invalid.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The code for a guest address, if it is translated.
    pub(crate) fn get(&self, pc: u64) -> Option<*const u8> {
        self.entries.get(&pc).copied()
    }

    /// Counts that `pc`, which is not translated, was reached.
    pub(crate) fn reach(&mut self, pc: u64) -> Heat {
        if let Some(word) = self.unsettled.get_mut(&pc) {
            word.reached = word.reached.saturating_add(1);
            return if self.is_settled(pc) { Heat::Hot } else { Heat::Unsettled };
        }
        let heat = self.heat.entry(pc).or_default();
        *heat += 1;
        let heat = *heat;
        if heat > self.patience() {
            return Heat::Hot;
        }
        if heat == 1 {
            self.account();
        }
        Heat::Cold
    }

    /// False for words that keep changing: translations end before them.
    fn is_settled(&self, pc: u64) -> bool {
        self.unsettled.get(&pc).is_none_or(|word| {
            let doublings = word.writes.min(MOST_DOUBLINGS);
            u64::from(word.reached) >= u64::from(self.patience()) << doublings
        })
    }

    /// How often code is reached before it is translated.
    fn patience(&self) -> u32 {
        let times = match self.is_own {
            // What the lane has written it may well write again.
            true => MOST_PATIENCE,
            false => MOST_PATIENCE.min(1 + (self.entries.len() / MUCH_CODE) as u32),
        };
        self.stubs.translate_after.saturating_mul(times)
    }

    /// Translates the region at `pc`; `None` if the memory for code is full. `fetch` gives words, and `None` where a
    /// region must end.
    pub(crate) fn translate(
        &mut self,
        pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<*const u8>, EngineError> {
        let find = |fetch: &dyn Fn(u64) -> Option<u32>| GuestCode::find(pc, fetch);
        let Some(code) = self.compile(Key::Region(pc), find, fetch, close)? else {
            return Ok(None);
        };
        self.entries.insert(pc, code);
        self.heat.remove(&pc);
        self.cell(pc).store(code.cast_mut(), Ordering::Release);
        self.account();
        Ok(Some(code))
    }

    /// Code for the first `len` instructions of the block at `pc`, once that has been asked for often
    /// enough to be worth it, or if it must be had. `None` also if the memory for code is full.
    pub(crate) fn tail(
        &mut self,
        pc: u64,
        len: u64,
        must: bool,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<*const u8>, EngineError> {
        match self.tails.entry((pc, len)).or_insert(Tail::Seen(0)) {
            Tail::Translated(code) => return Ok(Some(*code)),
            Tail::Seen(times) if *times < TAIL_THRESHOLD && !must => {
                *times += 1;
                self.account();
                return Ok(None);
            }
            Tail::Seen(_) => {}
        }
        let find =
            |fetch: &dyn Fn(u64) -> Option<u32>| GuestCode::straight(pc, len as usize, fetch);
        let Some(code) = self.compile(Key::Tail(pc, len), find, fetch, close)? else {
            return Ok(None);
        };
        self.tails.insert((pc, len), Tail::Translated(code));
        self.account();
        Ok(Some(code))
    }

    fn cell(&mut self, pc: u64) -> &LinkCell {
        let untranslated = self.stubs.untranslated.cast_mut();
        self.cells.entry(pc).or_insert_with(|| Box::new(AtomicPtr::new(untranslated)))
    }

    fn compile(
        &mut self,
        key: Key,
        find: impl Fn(&dyn Fn(u64) -> Option<u32>) -> GuestCode,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<*const u8>, EngineError> {
        let code = self.find_unchanging(find, fetch, close);
        let region = Region::new(&code, LACKS);
        let stale = self.written_granules(&code);
        let stubs = Arc::clone(&self.stubs);
        let (target, entry) = (&stubs.target, code.entry);
        let failed = |message| EngineError::Translation { pc: entry, message };
        let functions = stubs.functions.of(&region, target, &stubs.compilers).map_err(failed)?;
        let mut link_cell = |pc| std::ptr::from_ref(self.cell(pc));
        let placed = stubs.compilers.with(|compiler| {
            let host_code =
                compiler.compile(target, function_signature(), |function, scratch| {
                    let outside = Outside { functions: &functions, link_cell: &mut link_cell };
                    translate(function, scratch, target, entry, &region, &stale, outside);
                })?;
            stubs.memory.place(host_code, NOTES).map_err(|error| error.to_string())
        });
        let placed = placed.map_err(failed)?;
        if placed.is_some() {
            self.index.add(key, code.words().map(|(pc, _)| pc));
        }
        Ok(placed)
    }

    /// Finds code and closes its granules, until what was found is what is there after they were closed: in
    /// shared memory another lane may have changed words before that.
    fn find_unchanging(
        &mut self,
        find: impl Fn(&dyn Fn(u64) -> Option<u32>) -> GuestCode,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> GuestCode {
        loop {
            let code = find(&|pc| if self.is_settled(pc) { fetch(pc) } else { None });
            self.index.note(code.words().map(|(pc, _)| pc));
            for page in code.words().map(|(pc, _)| pc / PAGE).collect::<BTreeSet<_>>() {
                close(page, self.granules_of_page(page));
            }
            if code.words().all(|(pc, word)| fetch(pc) == Some(word)) {
                return code;
            }
        }
    }

    /// The granules to check on entry, because some lane has written to their page.
    fn written_granules(&self, code: &GuestCode) -> Vec<u64> {
        let written =
            code.words().filter(|(pc, _)| self.written_pages.contains((pc / PAGE) as usize));
        let mut granules: Vec<u64> = written.map(|(pc, _)| pc / GRANULE * GRANULE).collect();
        granules.dedup();
        granules
    }

    /// Forgets the translations that were made from any of these bytes, which are about to change or just have. No
    /// lane may be running in them. Words that a guest writes will be given more time to settle. The pages that they
    /// had words in, whose granules may be opened.
    pub(crate) fn forget(&mut self, addr: u64, len: u64, by_guest: bool) -> BTreeSet<u64> {
        if !self.index.overlaps(addr, len) {
            return BTreeSet::new();
        }
        if by_guest {
            for word in addr / 4..=(addr + len - 1) / 4 {
                if self.index.overlaps(4 * word, 4) {
                    let word = self.unsettled.entry(4 * word).or_default();
                    (word.writes, word.reached) = (word.writes.saturating_add(1), 0);
                }
            }
        }
        let (keys, pages) = self.index.take(addr, len);
        for key in keys {
            match key {
                Key::Region(pc) => {
                    self.entries.remove(&pc);
                    let untranslated = self.stubs.untranslated.cast_mut();
                    self.cell(pc).store(untranslated, Ordering::Release);
                }
                Key::Tail(pc, len) => {
                    self.tails.remove(&(pc, len));
                }
            }
        }
        self.generation = next_generation();
        self.account();
        pages
    }

    /// The granules of a page that hold translated words, a bit each.
    pub(crate) fn granules_of_page(&self, page: u64) -> u64 {
        self.index.granules_of_page(page)
    }

    /// Every page with translated words.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.index.pages()
    }

    /// Notes that a lane writes to a page.
    pub(crate) fn note_written(&mut self, page: u64) {
        self.written_pages.insert(page as usize);
    }

    /// True if some of the bytes are translated words.
    pub(crate) fn overlaps(&self, addr: u64, len: u64) -> bool {
        self.index.overlaps(addr, len)
    }

    /// Charges for what there is now.
    fn account(&mut self) {
        let now = map_bytes::<u64, *const u8>(self.entries.len())
            + map_bytes::<u64, Box<LinkCell>>(self.cells.len())
            + CELL * self.cells.len() as u64
            + map_bytes::<(u64, u64), Tail>(self.tails.len())
            + map_bytes::<u64, u32>(self.heat.len())
            + map_bytes::<u64, Unsettled>(self.unsettled.len())
            + self.index.bytes();
        match now.checked_sub(self.charged) {
            Some(more) => self.stubs.memory.charge(more),
            None => self.stubs.memory.release(self.charged - now),
        }
        self.charged = now;
    }
}

#[cfg(test)]
mod tests {
    use kvrm_engine::{Config, MemoryModel};

    use super::*;

    fn stubs(translate_after: u32) -> Arc<Stubs> {
        let config = Config {
            lanes: 1,
            memory_size: 1 << 20,
            model: MemoryModel::Private,
            read_only: false,
            threads: 1,
            translate_after,
            code_memory: 16 << 20,
        };
        Arc::new(Stubs::new(&config).unwrap())
    }

    /// b .+8
    fn hops(pc: u64) -> Option<u32> {
        (pc < 1 << 20).then_some(0x1400_0002)
    }

    #[test]
    fn little_is_kept_about_a_translation() {
        let stubs = stubs(0);
        let mut code = Translations::common(&stubs);
        // Every one ends at once, and leads to another that is not translated: a cell each.
        let only = |at: u64| move |pc: u64| hops(pc).filter(|_| pc == at);
        for n in 0..1000 {
            code.translate(8 * n, only(8 * n), &mut |_, _| {}).unwrap().unwrap();
        }
        assert!(code.charged / 1000 <= NOTES, "{} bytes", code.charged / 1000);
        code.clear();
        assert_eq!(code.charged, 0);
        drop(code);
        // SAFETY: nothing runs in it.
        unsafe { stubs.memory.clear() };
        assert_eq!(stubs.memory.code_use().bytes, 0);
    }

    #[test]
    fn only_what_was_made_from_a_word_is_forgotten() {
        let stubs = stubs(0);
        let mut code = Translations::common(&stubs);
        let single = |at: u64| move |pc: u64| hops(pc).filter(|_| pc == at);
        for pc in [0, 8, 16] {
            code.translate(pc, single(pc), &mut |_, _| {}).unwrap().unwrap();
        }
        let (generation, cell) = (code.generation(), code.cells[&8].load(Ordering::Relaxed));
        assert_eq!(code.get(8), Some(cell.cast_const()));
        assert!(code.forget(12, 4, true).is_empty() && code.generation() == generation);
        assert_eq!(code.forget(11, 2, true), BTreeSet::from([0]));
        assert!(code.get(8).is_none() && code.get(0).is_some() && code.get(16).is_some());
        assert_eq!(code.cells[&8].load(Ordering::Relaxed), stubs.untranslated.cast_mut());
        assert_ne!(code.generation(), generation);
    }

    #[test]
    fn words_that_change_need_longer_to_settle() {
        let mut code = Translations::common(&stubs(3));
        let reached_until_hot = |code: &mut Translations| {
            let times = (1..).find(|_| code.reach(8) == Heat::Hot).unwrap();
            code.translate(8, hops, &mut |_, _| {}).unwrap().unwrap();
            times
        };
        assert_eq!(reached_until_hot(&mut code), 4);
        for expected in [6, 12, 24] {
            code.forget(8, 4, true);
            assert_eq!(code.reach(8), Heat::Unsettled);
            assert_eq!(reached_until_hot(&mut code), expected - 1);
        }
        // The host changes code once.
        code.forget(8, 4, false);
        assert_eq!(code.reach(8), Heat::Hot);
    }
}
