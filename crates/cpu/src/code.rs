//! Translated code of one view of memory: the image, the shared memory, or that of a lane that has
//! changed its own code.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use cranelift::codegen::Context;
use cranelift::prelude::FunctionBuilderContext;
use cranelift_jit::JITModule;
use cranelift_module::{Linkage, Module};
use kvrm_engine::EngineError;
use kvrm_mem::{GRANULE, PAGE};
use kvrm_translate::{GuestCode, Region};

use crate::stubs::{Stubs, module};
use crate::translate::{LACKS, LinkCell, function_signature, translate};

/// How often the rest of a block is stepped through before it is translated.
const TAIL_THRESHOLD: u32 = 2;

/// Translations and what they were made from.
pub(crate) struct Code {
    stubs: Arc<Stubs>,
    module: Option<JITModule>,
    context: Context,
    scratch: FunctionBuilderContext,
    entries: HashMap<u64, *const u8>,
    /// One cell per guest address that translations jump to; they hold its address.
    cells: HashMap<u64, Box<LinkCell>>,
    /// Beginnings of blocks, by address and length.
    tails: HashMap<(u64, u64), Tail>,
    /// How often code that is not translated was reached.
    heat: HashMap<u64, u32>,
    /// Addresses of translated words.
    words: HashSet<u64>,
    /// Granules of translated words: a bit each, by page.
    granules: HashMap<u64, u64>,
    /// Pages that some lane has written: code in them is checked on entry. Survives clearing.
    written_pages: HashSet<u64>,
    /// Tells this set of translations from every other.
    generation: u64,
    functions: usize,
}

/// Called with a page and its granules that hold translated words, which must be closed.
pub(crate) type CloseGranules<'a> = dyn FnMut(u64, u64) + 'a;

enum Tail {
    Seen(u32),
    Translated(*const u8),
}

// SAFETY: the pointers are to code and cells that `self` owns.
unsafe impl Send for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        self.free();
    }
}

fn next_generation() -> u64 {
    static GENERATION: AtomicU64 = AtomicU64::new(1);
    GENERATION.fetch_add(1, Ordering::Relaxed)
}

impl Code {
    pub(crate) fn new(stubs: &Arc<Stubs>) -> Code {
        Code {
            stubs: Arc::clone(stubs),
            module: None,
            context: Context::new(),
            scratch: FunctionBuilderContext::new(),
            entries: HashMap::new(),
            cells: HashMap::new(),
            tails: HashMap::new(),
            heat: HashMap::new(),
            words: HashSet::new(),
            granules: HashMap::new(),
            written_pages: HashSet::new(),
            generation: next_generation(),
            functions: 0,
        }
    }

    fn free(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the engine clears and drops code only while no lane runs in it.
            unsafe { module.free_memory() };
        }
    }

    /// Forgets all translations. No lane may be running in them.
    pub(crate) fn clear(&mut self) {
        self.free();
        self.entries.clear();
        self.cells.clear();
        self.tails.clear();
        // Code that keeps changing is better stepped through than translated again each time.
        self.heat.clear();
        self.words.clear();
        self.granules.clear();
        self.generation = next_generation();
    }

    /// Changes whenever translations become invalid.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The code for a guest address, if it is translated.
    pub(crate) fn get(&self, pc: u64) -> Option<*const u8> {
        self.entries.get(&pc).copied()
    }

    /// Counts that `pc` was reached; true if it now was more than `threshold` times.
    pub(crate) fn is_hot(&mut self, pc: u64, threshold: u32) -> bool {
        let heat = self.heat.entry(pc).or_default();
        *heat += 1;
        *heat > threshold
    }

    /// Translates the region at `pc`. `fetch` gives words, and `None` where a region must end.
    pub(crate) fn translate(
        &mut self,
        pc: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<*const u8, EngineError> {
        let code = self.compile(|| GuestCode::find(pc, &fetch), &fetch, close)?;
        self.entries.insert(pc, code);
        self.cell(pc).store(code.cast_mut(), Ordering::Release);
        Ok(code)
    }

    /// Code for the first `len` instructions of the block at `pc`, once that has been asked for often
    /// enough to be worth it, or if it must be had.
    pub(crate) fn tail(
        &mut self,
        pc: u64,
        len: u64,
        must: bool,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<Option<*const u8>, EngineError> {
        let tail = self.tails.entry((pc, len)).or_insert(Tail::Seen(0));
        match tail {
            Tail::Translated(code) => return Ok(Some(*code)),
            Tail::Seen(times) if *times < TAIL_THRESHOLD && !must => {
                *times += 1;
                return Ok(None);
            }
            Tail::Seen(_) => {}
        }
        let code = self.compile(|| GuestCode::straight(pc, len as usize, &fetch), &fetch, close)?;
        self.tails.insert((pc, len), Tail::Translated(code));
        Ok(Some(code))
    }

    fn cell(&mut self, pc: u64) -> &LinkCell {
        let untranslated = self.stubs.untranslated.cast_mut();
        self.cells.entry(pc).or_insert_with(|| Box::new(AtomicPtr::new(untranslated)))
    }

    fn compile(
        &mut self,
        find: impl Fn() -> GuestCode,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> Result<*const u8, EngineError> {
        let code = self.find_unchanging(find, fetch, close);
        let region = Region::new(&code, LACKS);
        let stale = self.note_words(&code);
        let stubs = Arc::clone(&self.stubs);
        let mut context = std::mem::replace(&mut self.context, Context::new());
        let mut scratch = std::mem::take(&mut self.scratch);
        context.func.signature = function_signature();
        let mut link_cell = |pc| std::ptr::from_ref(self.cell(pc));
        let target = &stubs.target;
        let function = &mut context.func;
        translate(function, &mut scratch, target, code.entry, &region, &stale, &mut link_cell);
        let compiled = self.define(&mut context, code.entry);
        context.clear();
        (self.context, self.scratch) = (context, scratch);
        compiled
    }

    /// Finds code and closes its granules, until what was found is what is there after they were closed: in
    /// shared memory another lane may have changed words before that.
    fn find_unchanging(
        &mut self,
        find: impl Fn() -> GuestCode,
        fetch: impl Fn(u64) -> Option<u32>,
        close: &mut CloseGranules<'_>,
    ) -> GuestCode {
        loop {
            let code = find();
            self.note_words(&code);
            for page in code.words().map(|(pc, _)| pc / PAGE).collect::<BTreeSet<_>>() {
                close(page, self.granules_of_page(page));
            }
            if code.words().all(|(pc, word)| fetch(pc) == Some(word)) {
                return code;
            }
        }
    }

    fn define(&mut self, context: &mut Context, pc: u64) -> Result<*const u8, EngineError> {
        let failed =
            |e: &dyn std::fmt::Display| EngineError::Translation { pc, message: e.to_string() };
        let stubs = &self.stubs;
        let module = self.module.get_or_insert_with(|| module(&stubs.target));
        let name = format!("{pc:x}.{}", self.functions);
        self.functions += 1;
        let signature = &context.func.signature;
        let id =
            module.declare_function(&name, Linkage::Local, signature).map_err(|e| failed(&e))?;
        module.define_function(id, context).map_err(|e| failed(&e))?;
        module.finalize_definitions().map_err(|e| failed(&e))?;
        Ok(module.get_finalized_function(id))
    }

    /// Remembers what a translation is made from; the granules to check on entry, because some lane has
    /// written to their page.
    fn note_words(&mut self, code: &GuestCode) -> Vec<u64> {
        let mut stale = Vec::new();
        for (pc, _) in code.words() {
            self.words.insert(pc);
            let (page, bit) = granule_bit(pc);
            *self.granules.entry(page).or_default() |= bit;
            let granule = pc / GRANULE * GRANULE;
            if self.written_pages.contains(&page) && stale.last() != Some(&granule) {
                stale.push(granule);
            }
        }
        stale
    }

    /// The granules of a page that hold translated words, a bit each.
    pub(crate) fn granules_of_page(&self, page: u64) -> u64 {
        self.granules.get(&page).copied().unwrap_or(0)
    }

    /// Every page with translated words, and their granules.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.granules.iter().map(|(page, bits)| (*page, *bits))
    }

    /// Notes that a lane writes to a page.
    pub(crate) fn note_written(&mut self, page: u64) {
        self.written_pages.insert(page);
    }

    /// True if some of the bytes are translated words.
    pub(crate) fn overlaps(&self, addr: u64, len: u64) -> bool {
        (addr / 4..=(addr + len - 1) / 4).any(|word| self.words.contains(&(4 * word)))
    }
}

/// The page of an address, and the bit of its granule in it.
pub(crate) fn granule_bit(addr: u64) -> (u64, u64) {
    (addr / PAGE, 1 << (addr % PAGE / GRANULE))
}
