//! Which words translations were made from.

use std::collections::{BTreeSet, HashMap};

use kvrm_mem::{GRANULE, PAGE};

/// Words in a granule.
const GRANULE_WORDS: u64 = GRANULE / 4;
const PAGE_WORDS: u64 = PAGE / 4;

/// What a translation is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The region at an address.
    Region(u64),
    /// The first instructions of the block at an address.
    Tail(u64, u64),
}

/// Translations and their words, found from either side.
#[derive(Default)]
pub(crate) struct Index {
    pages: HashMap<u64, Box<Page>>,
    /// By number.
    translations: Vec<Option<Translation>>,
    /// Numbers that are free.
    free: Vec<u32>,
    /// Bytes that `translations` hold beside themselves.
    held: u64,
}

struct Translation {
    key: Key,
    /// Words that follow one another, first and last; a word is a quarter of its address.
    runs: Box<[(u64, u64)]>,
}

impl Translation {
    fn has_any(&self, (first, last): (u64, u64)) -> bool {
        self.runs.iter().any(|run| run.0 <= last && first <= run.1)
    }

    fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(|(first, last)| first / PAGE_WORDS..=last / PAGE_WORDS)
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&*self.runs) + self.pages().count() * size_of::<u32>()) as u64
    }
}

/// What is translated in a page.
#[derive(Default)]
struct Page {
    /// A bit for every word.
    words: [u64; (PAGE_WORDS / 64) as usize],
    /// Translations of some of them.
    translations: Vec<u32>,
}

impl Page {
    /// Notes words, numbered within the page.
    fn note(&mut self, first: u64, last: u64) {
        (first..=last).for_each(|word| self.words[word as usize / 64] |= 1 << (word % 64));
    }

    fn has_any(&self, first: u64, last: u64) -> bool {
        (first..=last).any(|word| self.words[word as usize / 64] >> (word % 64) & 1 != 0)
    }

    /// A bit for every granule with noted words.
    fn granules(&self) -> u64 {
        let has_words = |granule: &u64| {
            let first = granule * GRANULE_WORDS;
            let words = self.words[first as usize / 64] >> (first % 64);
            words & ((1 << GRANULE_WORDS) - 1) != 0
        };
        (0..PAGE / GRANULE).filter(has_words).fold(0, |bits, granule| bits | 1 << granule)
    }
}

/// The part of a run of words that is in a page, numbered within it.
fn within(page: u64, (first, last): (u64, u64)) -> Option<(u64, u64)> {
    let start = page * PAGE_WORDS;
    let (first, last) = (first.max(start), last.min(start + PAGE_WORDS - 1));
    (first <= last).then(|| (first - start, last - start))
}

/// The words of some bytes.
fn words_of(addr: u64, len: u64) -> (u64, u64) {
    (addr / 4, (addr + len - 1) / 4)
}

impl Index {
    /// Notes that words at ascending addresses are about to be translated.
    pub(crate) fn note(&mut self, addresses: impl Iterator<Item = u64>) {
        for word in addresses.map(|addr| addr / 4) {
            let page = self.pages.entry(word / PAGE_WORDS).or_default();
            page.note(word % PAGE_WORDS, word % PAGE_WORDS);
        }
    }

    /// Adds a translation of words that have been noted.
    pub(crate) fn add(&mut self, key: Key, addresses: impl Iterator<Item = u64>) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for word in addresses.map(|addr| addr / 4) {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == word => *last = word,
                _ => runs.push((word, word)),
            }
        }
        let translation = Translation { key, runs: runs.into() };
        let number = self.free.pop().unwrap_or_else(|| {
            self.translations.push(None);
            self.translations.len() as u32 - 1
        });
        for page in translation.pages() {
            let numbers = &mut self.pages.get_mut(&page).expect("it was noted").translations;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        self.held += translation.bytes();
        self.translations[number as usize] = Some(translation);
    }

    /// Takes out all translations made from any of these bytes; what they were found by, and the pages they had words in.
    pub(crate) fn take(&mut self, addr: u64, len: u64) -> (Vec<Key>, BTreeSet<u64>) {
        let words = words_of(addr, len);
        let (mut taken, mut pages) = (Vec::new(), BTreeSet::new());
        for page in words.0 / PAGE_WORDS..=words.1 / PAGE_WORDS {
            let Some(found) = self.pages.get(&page) else { continue };
            for number in found.translations.clone() {
                let slot = &mut self.translations[number as usize];
                if let Some(translation) = slot.take_if(|translation| translation.has_any(words)) {
                    taken.push(translation.key);
                    pages.extend(translation.pages());
                    self.free.push(number);
                    self.held -= translation.bytes();
                    self.remove_from_pages(number, &translation);
                }
            }
        }
        (taken, pages)
    }

    fn remove_from_pages(&mut self, number: u32, translation: &Translation) {
        for number_of_page in translation.pages() {
            let Some(page) = self.pages.get_mut(&number_of_page) else { continue };
            page.translations.retain(|other| *other != number);
            page.words = Default::default();
            let others = std::mem::take(&mut page.translations);
            for other in &others {
                let other = self.translations[*other as usize].as_ref();
                let runs = &other.expect("pages name translations that there are").runs;
                for (first, last) in runs.iter().filter_map(|run| within(number_of_page, *run)) {
                    page.note(first, last);
                }
            }
            page.translations = others;
            if page.translations.is_empty() {
                self.pages.remove(&number_of_page);
            }
        }
    }

    /// True if some of the bytes are translated words.
    pub(crate) fn overlaps(&self, addr: u64, len: u64) -> bool {
        let words = words_of(addr, len);
        (words.0 / PAGE_WORDS..=words.1 / PAGE_WORDS).any(|number| {
            let part = within(number, words).expect("the page has some of them");
            self.pages.get(&number).is_some_and(|page| page.has_any(part.0, part.1))
        })
    }

    /// The granules of a page that hold translated words, a bit each.
    pub(crate) fn granules_of_page(&self, page: u64) -> u64 {
        self.pages.get(&page).map_or(0, |page| page.granules())
    }

    /// Every page with translated words.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }

    /// What it takes of memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let page = size_of::<Page>() as u64 + map_bytes::<u64, Box<Page>>(1);
        let slot = size_of::<Option<Translation>>() as u64;
        self.pages.len() as u64 * page + self.translations.len() as u64 * slot + self.held
    }
}

/// What so many entries of a map take, about: a map is filled by half to seven eighths.
pub(crate) fn map_bytes<K, V>(entries: usize) -> u64 {
    (entries * (size_of::<(K, V)>() + 1) * 3 / 2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(index: &mut Index, pc: u64, addresses: &[u64]) {
        index.note(addresses.iter().copied());
        index.add(Key::Region(pc), addresses.iter().copied());
    }

    #[test]
    fn translations_are_found_by_their_words() {
        let mut index = Index::default();
        add(&mut index, 0x1000, &[0x1000, 0x1004, 0x1040]);
        add(&mut index, 0x1004, &[0x1004, 0x1008]);
        assert_eq!(index.granules_of_page(1), 0b11);
        assert!(index.overlaps(0x1043, 1) && index.overlaps(0xfff, 2));
        assert!(!index.overlaps(0x100c, 0x34) && !index.overlaps(0x1044, 0x10000));
        assert_eq!(index.take(0x100c, 0x34).0, []);
        assert_eq!(index.take(0x103e, 4).0, [Key::Region(0x1000)]);
        assert!(index.overlaps(0x1004, 1), "the other has it, too");
        assert!(!index.overlaps(0x1000, 4) && !index.overlaps(0x1040, 4));
        assert_eq!(index.granules_of_page(1), 1);
        assert_eq!(index.take(0x1000, 64).0, [Key::Region(0x1004)]);
        assert_eq!((index.pages().count(), index.held), (0, 0));
    }

    #[test]
    fn translations_across_pages_are_taken_once() {
        let mut index = Index::default();
        add(&mut index, 0x1ffc, &[0x1ffc, 0x2000, 0x2004, 0x5000]);
        let (taken, pages) = index.take(0, 0x10000);
        assert_eq!(
            (&taken[..], &Vec::from_iter(pages)[..]),
            (&[Key::Region(0x1ffc)][..], &[1, 2, 5][..])
        );
        assert_eq!(index.pages().count(), 0);
        add(&mut index, 0, &[0]);
        assert_eq!(index.translations.len(), 1, "numbers are used again");
    }
}
