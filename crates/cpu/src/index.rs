//! Which words were decoded, and which words translations were made from.

use std::collections::BTreeSet;

use kvrm_mem::{GRANULE, PAGE};

use crate::hashing::NumberMap;

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

impl Key {
    /// The address of its first word.
    pub(crate) fn entry(self) -> u64 {
        match self {
            Key::Region(pc) | Key::Tail(pc, _) => pc,
        }
    }
}

/// Translations and their words, found from either side.
#[derive(Default)]
pub(crate) struct Index {
    pages: NumberMap<u64, Box<Page>>,
    /// By number.
    translations: Vec<Option<Translation>>,
    /// Numbers that are free.
    free: Vec<u32>,
    /// Bytes that `translations` hold beside themselves.
    held: u64,
    words: Words,
}

/// How many words were translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// Those that were ever.
    pub(crate) distinct: u64,
    /// The same, counted again whenever they were translated again.
    pub(crate) translated: u64,
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

/// What is decoded and translated in a page.
#[derive(Default)]
struct Page {
    /// A bit for every word that is.
    words: [u64; (PAGE_WORDS / 64) as usize],
    /// A bit for every granule with such words.
    granules: u64,
    /// A bit for every word that was ever translated.
    translated: [u64; (PAGE_WORDS / 64) as usize],
    /// Translations of some of them.
    translations: Vec<u32>,
}

impl Page {
    /// Notes a word, numbered within the page; true if it is the first of its granule.
    fn note(&mut self, word: u64) -> bool {
        self.words[word as usize / 64] |= 1 << (word % 64);
        let granule = 1 << (word / GRANULE_WORDS);
        let is_first = self.granules & granule == 0;
        self.granules |= granule;
        is_first
    }

    /// Notes that a word is translated; true if it was not before.
    fn note_translated(&mut self, word: u64) -> bool {
        let bits = &mut self.translated[word as usize / 64];
        let is_new = *bits >> (word % 64) & 1 == 0;
        *bits |= 1 << (word % 64);
        is_new
    }

    fn remove(&mut self, first: u64, last: u64) {
        (first..=last).for_each(|word| self.words[word as usize / 64] &= !(1 << (word % 64)));
        self.granules = self.granules_with_words();
    }

    fn has_any(&self, first: u64, last: u64) -> bool {
        (first..=last).any(|word| self.words[word as usize / 64] >> (word % 64) & 1 != 0)
    }

    /// A bit for every granule with noted words.
    fn granules_with_words(&self) -> u64 {
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
    /// Notes that a word is about to be decoded or translated; true if it is the first of its granule.
    pub(crate) fn note(&mut self, addr: u64) -> bool {
        let word = addr / 4 % PAGE_WORDS;
        self.pages.entry(addr / PAGE).or_default().note(word)
    }

    /// Notes that the words of these bytes are neither decoded nor translated any more.
    pub(crate) fn remove(&mut self, addr: u64, len: u64) {
        let words = words_of(addr, len);
        for number in self.pages_of(words).collect::<Vec<_>>() {
            let part = within(number, words).expect("the page has some of them");
            self.pages.get_mut(&number).expect("it is there").remove(part.0, part.1);
        }
    }

    /// Adds a translation of words that have been noted; how many they are.
    pub(crate) fn add(&mut self, key: Key, addresses: impl Iterator<Item = u64>) -> Words {
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
        let mut words = Words::default();
        for word in translation.runs.iter().flat_map(|(first, last)| *first..=*last) {
            let page = self.pages.get_mut(&(word / PAGE_WORDS)).expect("it was noted");
            words.distinct += u64::from(page.note_translated(word % PAGE_WORDS));
            words.translated += 1;
        }
        self.words.distinct += words.distinct;
        self.words.translated += words.translated;
        for page in translation.pages() {
            let numbers = &mut self.pages.get_mut(&page).expect("it was noted").translations;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        self.held += translation.bytes();
        self.translations[number as usize] = Some(translation);
        words
    }

    /// Takes out all translations made from any of these bytes; what they were found by, and the pages they had words in.
    pub(crate) fn take(&mut self, addr: u64, len: u64) -> (Vec<Key>, BTreeSet<u64>) {
        let words = words_of(addr, len);
        let (mut taken, mut pages) = (Vec::new(), BTreeSet::new());
        for page in self.pages_of(words).collect::<Vec<_>>() {
            for number in self.pages[&page].translations.clone() {
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
        for page in translation.pages() {
            let page = self.pages.get_mut(&page).expect("it was noted");
            page.translations.retain(|other| *other != number);
        }
    }

    /// True if some of the bytes are words that are decoded or translated.
    pub(crate) fn overlaps(&self, addr: u64, len: u64) -> bool {
        let words = words_of(addr, len);
        self.pages_of(words).any(|number| {
            let part = within(number, words).expect("the page has some of them");
            self.pages[&number].has_any(part.0, part.1)
        })
    }

    /// Addresses of such words among these bytes.
    pub(crate) fn noted(&self, addr: u64, len: u64) -> Vec<u64> {
        let words = words_of(addr, len);
        let mut noted = Vec::new();
        for number in self.pages_of(words) {
            let (first, last) = within(number, words).expect("the page has some of them");
            let page = &self.pages[&number];
            let here = (first..=last).filter(|word| page.has_any(*word, *word));
            noted.extend(here.map(|word| 4 * (number * PAGE_WORDS + word)));
        }
        noted
    }

    /// The pages of these words, of those that have or had decoded ones. Takes time for whatever are fewer.
    fn pages_of(&self, (first, last): (u64, u64)) -> impl Iterator<Item = u64> + '_ {
        let numbers = first / PAGE_WORDS..=last / PAGE_WORDS;
        let is_short = numbers.end() - numbers.start() < self.pages.len() as u64;
        let of_all = (!is_short).then(|| self.pages());
        let of_all = of_all.into_iter().flatten().filter({
            let numbers = numbers.clone();
            move |number| numbers.contains(number)
        });
        let of_range = is_short.then_some(numbers).into_iter().flatten();
        of_range.filter(|number| self.pages.contains_key(number)).chain(of_all)
    }

    /// The granules of a page that hold such words, a bit each.
    pub(crate) fn granules_of_page(&self, page: u64) -> u64 {
        self.pages.get(&page).map_or(0, |page| page.granules)
    }

    /// Every page that has or had such words.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }

    /// True if the word at an address was ever translated.
    pub(crate) fn is_translated(&self, addr: u64) -> bool {
        let word = addr / 4 % PAGE_WORDS;
        let bits = |page: &Page| page.translated[word as usize / 64] >> (word % 64) & 1;
        self.pages.get(&(addr / PAGE)).is_some_and(|page| bits(page) != 0)
    }

    /// True if words were translated less than one and a half times, or few were, when so many more have been translated
    /// again.
    pub(crate) fn may_repeat(&self, more: u64) -> bool {
        const FEW: u64 = 64;
        let Words { distinct, translated } = self.words;
        translated - distinct + more < FEW + distinct / 2
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
        addresses.iter().for_each(|addr| {
            index.note(*addr);
        });
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
        assert_eq!(index.take(0x1000, 64).0, [Key::Region(0x1004)]);
        assert_eq!(index.held, 0);
    }

    #[test]
    fn long_ranges_take_no_time_for_pages_without_words() {
        let mut index = Index::default();
        assert!([0x1000, 1 << 38, 1 << 50].iter().all(|addr| index.note(*addr)));
        index.note(0x1008);
        let mut noted = index.noted(0x1004, 1 << 39);
        noted.sort();
        assert_eq!(noted, [0x1008, 1 << 38]);
        assert!(index.overlaps(1 << 40, 1 << 60) && !index.overlaps(1 << 40, 1 << 49));
        index.remove(0x1004, 1 << 60);
        assert_eq!(index.noted(0, 1 << 60), [0x1000]);
    }

    #[test]
    fn words_are_noted_until_they_are_removed() {
        let mut index = Index::default();
        assert!(index.note(0x1004));
        assert!(!index.note(0x1008) && index.note(0x1040));
        index.remove(0x1000, 8);
        assert!(index.overlaps(0x1008, 1) && !index.overlaps(0x1000, 8));
        index.remove(0xfff, 64);
        assert_eq!(index.granules_of_page(1), 0b10);
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
        add(&mut index, 0, &[0]);
        assert_eq!(index.translations.len(), 1, "numbers are used again");
    }
}
