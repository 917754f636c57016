//! Translations that are kept on disk, so that a program which was run before starts translated.
//!
//! There is a file for every page of guest code, found by its contents, with the translations that are entered there.
//! Whether one is used is decided by the words that it was made from, all of which must be in memory.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use kvrm_engine::cache::{KernelCache, KernelKey};
use kvrm_mem::PAGE;

use crate::file::{
    read_address, read_bytes, read_list, read_number, read_text, write_address, write_bytes,
    write_number,
};
use crate::hashing::NumberMap;
use crate::library::{code_key, host_key};
use crate::translate::HostTarget;

/// Bytes of all pages together after which no more is held.
const MOST_HELD: usize = 16 << 20;
/// What is noted about a page, at the most, beside its translations.
const NOTES: usize = 256;
/// Contents of a page for which translations are kept: what changes more often is not worth it.
const MOST_CONTENTS: u8 = 4;
/// Bytes of a file after which no more is added.
const MOST_OF_PAGE: usize = 1 << 20;
/// Translations of one address in a file, at the most: other lanes, or other words, may need others.
const MOST_OF_ENTRY: usize = 4;

/// A translation, before it has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) entry: u64,
    /// The words it was made from, by address.
    pub(crate) words: Vec<(u64, u32)>,
    /// Addresses of the granules that it checks on entry.
    pub(crate) checked: Vec<u64>,
    /// Where it ends between two instructions.
    pub(crate) cuts: Vec<u64>,
    /// Host code, in which addresses are to be filled in.
    pub(crate) code: Vec<u8>,
    pub(crate) links: Vec<(u32, Link)>,
}

/// What a unit refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The record of a guest address.
    Record(u64),
    /// A function, by its name.
    Function(String),
}

impl Unit {
    fn size(&self) -> usize {
        self.code.len() + size_of_val(&self.words[..]) + size_of_val(&self.links[..])
    }

    /// True if they are made from the same, for the same lanes.
    fn is_like(&self, other: &Unit) -> bool {
        (self.entry, &self.words, &self.checked) == (other.entry, &other.words, &other.checked)
    }

    fn read(bytes: &mut &[u8]) -> Option<Unit> {
        let word = |bytes: &mut &[u8]| Some((read_address(bytes)?, read_number(bytes)?));
        let link = |bytes: &mut &[u8]| Some((read_number(bytes)?, Link::read(bytes)?));
        Some(Unit {
            entry: read_address(bytes)?,
            words: read_list(bytes, word)?,
            checked: read_list(bytes, read_address)?,
            cuts: read_list(bytes, read_address)?,
            code: read_bytes(bytes)?.to_vec(),
            links: read_list(bytes, link)?,
        })
    }

    fn write(&self, file: &mut Vec<u8>) {
        let Unit { entry, words, checked, cuts, code, links } = self;
        write_address(file, *entry);
        write_number(file, words.len());
        for (pc, word) in words {
            write_address(file, *pc);
            write_number(file, *word as usize);
        }
        for addresses in [checked, cuts] {
            write_number(file, addresses.len());
            addresses.iter().for_each(|address| write_address(file, *address));
        }
        write_bytes(file, code);
        write_number(file, links.len());
        for (offset, link) in links {
            write_number(file, *offset as usize);
            link.write(file);
        }
    }
}

impl Link {
    /// A record has no name.
    fn read(bytes: &mut &[u8]) -> Option<Link> {
        match read_text(bytes)? {
            "" => Some(Link::Record(read_address(bytes)?)),
            name => Some(Link::Function(name.to_string())),
        }
    }

    fn write(&self, file: &mut Vec<u8>) {
        match self {
            Link::Record(pc) => {
                write_bytes(file, &[]);
                write_address(file, *pc);
            }
            Link::Function(name) => write_bytes(file, name.as_bytes()),
        }
    }
}

/// The translations that are kept for a machine.
pub(crate) struct Kept {
    cache: KernelCache,
    /// What code depends on beside its words.
    host: String,
    machine: String,
    /// What is known of the contents of pages, by their number.
    known: NumberMap<u64, Known>,
    /// Grows when memory changes.
    time: u64,
    pages: NumberMap<Contents, Page>,
    held: usize,
}

/// What is known of the contents of a page.
#[derive(Clone, Copy)]
struct Known {
    hash: u64,
    /// When it had that.
    time: u64,
    /// How many contents it has had.
    contents: u8,
}

/// A page, by its number and the hash of its words.
type Contents = (u64, u64);

/// Translations that are entered in a page.
#[derive(Default)]
struct Page {
    units: NumberMap<u64, Vec<Arc<Unit>>>,
    /// There are some that were not on disk.
    has_new: bool,
}

impl Page {
    /// What is in a file, which the checksum says is as it was written.
    fn parse(mut file: &[u8]) -> Page {
        let mut page = Page::default();
        while let Some(unit) = Unit::read(&mut file) {
            page.add(Arc::new(unit));
        }
        page
    }

    fn file(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for unit in self.units.values().flatten() {
            if file.len() < MOST_OF_PAGE {
                unit.write(&mut file);
            }
        }
        file
    }

    /// Adds a unit; false if it is there.
    fn add(&mut self, unit: Arc<Unit>) -> bool {
        let units = self.units.entry(unit.entry).or_default();
        if units.iter().any(|other| other.is_like(&unit)) {
            return false;
        }
        if units.len() == MOST_OF_ENTRY {
            units.remove(0);
        }
        units.push(unit);
        true
    }
}

impl Kept {
    pub(crate) fn new(target: &HostTarget, cache: KernelCache) -> Kept {
        let HostTarget { memory_size, shared, read_only, profile, .. } = target;
        Kept {
            cache,
            host: host_key(target),
            machine: format!(
                "memory {memory_size:#x}, shared {shared}, read-only {read_only}, profile {profile}"
            ),
            known: NumberMap::default(),
            time: 0,
            pages: NumberMap::default(),
            held: 0,
        }
    }

    /// Memory has changed: pages may have other contents now.
    pub(crate) fn memory_changed(&mut self) {
        self.time += 1;
    }

    /// True if there are translations that are entered at an address. `fetch` gives the words of its page.
    pub(crate) fn has(&mut self, pc: u64, fetch: &impl Fn(u64) -> Option<u32>) -> bool {
        !self.at(pc, fetch).is_empty()
    }

    /// Translations that are entered at an address, the latest last.
    pub(crate) fn at(&mut self, pc: u64, fetch: &impl Fn(u64) -> Option<u32>) -> &[Arc<Unit>] {
        let units = self.page(pc, fetch).and_then(|page| page.units.get(&pc));
        units.map_or(&[], |units| units)
    }

    /// Adds a translation, if there is room.
    pub(crate) fn add(&mut self, unit: Arc<Unit>, fetch: &impl Fn(u64) -> Option<u32>) {
        let size = unit.size();
        if self.held + size > MOST_HELD {
            return;
        }
        let Some(page) = self.page(unit.entry, fetch) else { return };
        if page.add(unit) {
            page.has_new = true;
            self.held += size;
        }
    }

    /// The page of an address, unless there are too many or it has had too many contents.
    fn page(&mut self, pc: u64, fetch: &impl Fn(u64) -> Option<u32>) -> Option<&mut Page> {
        let contents = self.contents(pc / PAGE, fetch)?;
        if !self.pages.contains_key(&contents) {
            if self.held >= MOST_HELD {
                return None;
            }
            let file = self.cache.get(&self.key(&self.text(contents)));
            let page = Page::parse(&file.unwrap_or_default());
            self.held += page.units.values().flatten().map(|unit| unit.size()).sum::<usize>();
            self.held += NOTES;
            self.pages.insert(contents, page);
        }
        self.pages.get_mut(&contents)
    }

    /// What a page has in it now, unless that has changed too often.
    fn contents(&mut self, number: u64, fetch: &impl Fn(u64) -> Option<u32>) -> Option<Contents> {
        let time = self.time;
        let before = self.known.get(&number).copied();
        let known = match before {
            Some(known) if known.time == time || known.contents > MOST_CONTENTS => known,
            None if self.held >= MOST_HELD => return None,
            _ => {
                let hash = hash_of(number, fetch);
                let had = before.map_or(0, |known| known.contents);
                let is_new = before.is_none_or(|known| known.hash != hash);
                Known { hash, time, contents: had + u8::from(is_new) }
            }
        };
        if before.is_none_or(|before| before.time != time) {
            self.known.insert(number, known);
        }
        (known.contents <= MOST_CONTENTS).then_some((number, known.hash))
    }

    fn text(&self, (number, hash): Contents) -> String {
        format!("{} {}, page {number:#x}, {hash:016x}", env!("KVRM_CPU_SOURCES"), self.machine)
    }

    fn key<'k>(&'k self, text: &'k str) -> KernelKey<'k> {
        code_key(text, &self.host)
    }

    /// Puts what is new on disk, beside what other processes have put there.
    pub(crate) fn save(&mut self) {
        let new: Vec<Contents> =
            self.pages.iter().filter(|(_, page)| page.has_new).map(|(key, _)| *key).collect();
        let files: Vec<_> = new.iter().map(|contents| self.merged(*contents)).collect();
        let entries = files.iter().map(|(text, file)| (self.key(text), &file[..]));
        self.cache.put_all(entries);
        self.pages.values_mut().for_each(|page| page.has_new = false);
    }

    fn merged(&self, contents: Contents) -> (String, Vec<u8>) {
        let text = self.text(contents);
        let there = self.cache.get(&self.key(&text)).unwrap_or_default();
        let mut page = Page::parse(&there);
        for unit in self.pages[&contents].units.values().flatten() {
            page.add(Arc::clone(unit));
        }
        (text, page.file())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.save();
    }
}

fn hash_of(page: u64, fetch: &impl Fn(u64) -> Option<u32>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for word in (page * PAGE..(page + 1) * PAGE).step_by(4).map(fetch) {
        hasher.write_u64(word.map_or(u64::MAX, u64::from));
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::translate::MemoryKind;

    fn kept(folder: &Path, memory_size: u64) -> Kept {
        kept_in(KernelCache::at(folder), memory_size)
    }

    fn kept_in(cache: KernelCache, memory_size: u64) -> Kept {
        let target = HostTarget::new(MemoryKind::default()).unwrap();
        Kept::new(&HostTarget { memory_size, ..target }, cache)
    }

    fn unit(entry: u64, word: u32) -> Arc<Unit> {
        let links = vec![(0, Link::Record(u64::MAX - 3)), (8, Link::Function("sqrt".to_string()))];
        Arc::new(Unit {
            entry,
            words: vec![(entry, word), (0x8000, 3)],
            checked: vec![0x40],
            cuts: vec![entry + 4],
            code: vec![7; 16],
            links,
        })
    }

    fn memory(pc: u64) -> Option<u32> {
        (pc < 0x10_0000).then_some(pc as u32)
    }

    #[test]
    fn units_are_found_again_by_their_page() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = kept(folder.path(), 1 << 20);
        assert!(!first.has(0x1000, &memory));
        let units = [unit(0x1000, 1), unit(0x1000, 2), unit(0x1004, 1), unit(0x2000, 1)];
        units.iter().for_each(|unit| first.add(Arc::clone(unit), &memory));
        first.add(unit(0x1000, 1), &memory);
        drop(first);
        let mut second = kept(folder.path(), 1 << 20);
        assert_eq!(second.at(0x1000, &memory), &units[..2]);
        assert_eq!(second.at(0x1004, &memory), &units[2..3]);
        assert!(second.has(0x2000, &memory) && !second.has(0x1008, &memory));
        let other = |pc| memory(pc).map(|word| word.max(0x1001));
        second.memory_changed();
        assert!(!second.has(0x1000, &other), "the page has other words");
        assert!(!kept(folder.path(), 2 << 20).has(0x1000, &memory), "the machine is another");
    }

    #[test]
    fn what_other_processes_have_kept_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [mut first, mut second] = [(); 2].map(|()| kept(folder.path(), 1 << 20));
        first.add(unit(0x1000, 1), &memory);
        second.add(unit(0x1000, 2), &memory);
        drop((first, second));
        assert_eq!(kept(folder.path(), 1 << 20).at(0x1000, &memory).len(), 2);
    }

    #[test]
    fn a_page_that_keeps_changing_is_given_up() {
        let mut kept = kept_in(KernelCache::nowhere(), 1 << 20);
        for version in 0..100 {
            let memory = |pc| memory(pc).map(|word| word + version);
            kept.add(unit(0x1000, version), &memory);
            assert_eq!(kept.has(0x1000, &memory), version < MOST_CONTENTS.into());
            kept.memory_changed();
        }
        assert_eq!(kept.pages.len(), MOST_CONTENTS.into());
    }

    #[test]
    fn pages_without_translations_take_room_too() {
        let mut kept = kept_in(KernelCache::nowhere(), 1 << 40);
        let most = MOST_HELD / NOTES;
        for page in 0..most as u64 + 100 {
            kept.has(page * PAGE, &|_| None);
        }
        assert_eq!((kept.pages.len(), kept.known.len()), (most, most));
    }

    #[test]
    fn the_latest_units_of_an_address_are_kept() {
        let mut page = Page::default();
        (0..10).for_each(|word| assert!(page.add(unit(8, word))));
        assert!(!page.add(unit(8, 9)));
        let words: Vec<u32> = page.units[&8].iter().map(|unit| unit.words[0].1).collect();
        assert_eq!(words, [6, 7, 8, 9]);
    }

    #[test]
    fn files_that_end_early_have_fewer_units() {
        let mut page = Page::default();
        page.add(unit(8, 1));
        page.add(unit(8, 2));
        let file = page.file();
        assert_eq!(Page::parse(&file).units, page.units);
        for len in 0..file.len() {
            let count = Page::parse(&file[..len]).units.values().flatten().count();
            assert_eq!(count, usize::from(len >= file.len() / 2));
        }
    }
}
