//! What lanes begin with: the memory of the program as it is loaded without anything of a row.

use std::collections::BTreeMap;

use kvrm_engine::{Engine, EngineError, MemoryChange};
use kvrm_mem::{PAGE, Permissions};

use super::guest::make;

type Page = Box<[u8; PAGE as usize]>;
/// What may be done with ranges, in the order in which that was said: address, length, permissions.
type Rights = Vec<(u64, u64, Permissions)>;

/// Memory with something in it.
pub(super) struct Image {
    pages: BTreeMap<u64, Page>,
    rights: Rights,
}

impl Image {
    /// The memory that these changes make of zeros that nobody may access.
    pub(super) fn new(changes: &[MemoryChange]) -> Image {
        let mut pages: BTreeMap<u64, Page> = BTreeMap::new();
        let mut rights = Vec::new();
        for change in changes {
            match change {
                MemoryChange::Write { addr, bytes } => {
                    for page in addr / PAGE..(addr + bytes.len() as u64).div_ceil(PAGE) {
                        let contents =
                            pages.entry(page).or_insert_with(|| Box::new([0; PAGE as usize]));
                        make(change, page * PAGE, &mut contents[..]);
                    }
                }
                MemoryChange::Discard { addr, len } => {
                    let there = pages.range_mut(addr / PAGE..(addr + len) / PAGE);
                    there.for_each(|(_, contents)| contents.fill(0));
                }
                MemoryChange::Protect { addr, len, permissions } => {
                    rights.push((*addr, *len, *permissions));
                }
            }
        }
        Image { pages, rights }
    }

    /// Makes it the image of an engine that has none yet.
    pub(super) fn write(&self, engine: &mut dyn Engine) -> Result<(), EngineError> {
        for (page, contents) in &self.pages {
            engine.write_image(page * PAGE, &contents[..])?;
        }
        self.rights.iter().try_for_each(|(addr, len, permissions)| {
            engine.protect_image(*addr, *len, *permissions)
        })
    }

    /// What has to change in this image so that memory is as other changes make it of zeros.
    pub(super) fn difference(&self, changes: &[MemoryChange]) -> Vec<MemoryChange> {
        let wanted = Image::new(changes);
        let mut difference = Vec::new();
        if wanted.rights != self.rights {
            let protect = |(addr, len, permissions): (u64, u64, Permissions)| {
                MemoryChange::Protect { addr, len, permissions }
            };
            let none = self.rights.iter().map(|(addr, len, _)| (*addr, *len, Permissions::NONE));
            difference.extend(none.chain(wanted.rights.iter().copied()).map(protect));
        }
        for page in self.pages.keys().filter(|page| !wanted.pages.contains_key(page)) {
            difference.push(MemoryChange::Discard { addr: page * PAGE, len: PAGE });
        }
        let zeros = [0; PAGE as usize];
        for (page, contents) in &wanted.pages {
            let here = self.pages.get(page).map_or(&zeros, |page| &**page);
            let differs = |at: &usize| contents[*at] != here[*at];
            if let Some(first) = (0..contents.len()).find(differs) {
                let last = (0..contents.len()).rfind(differs).expect("found from the other side");
                let bytes = contents[first..=last].to_vec();
                difference.push(MemoryChange::Write { addr: page * PAGE + first as u64, bytes });
            }
        }
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_needs_what_it_has_of_its_own() {
        let write = |addr, bytes: &[u8]| MemoryChange::Write { addr, bytes: bytes.to_vec() };
        let protect = |addr, permissions| MemoryChange::Protect { addr, len: PAGE, permissions };
        let read = Permissions::READ;
        let common = [protect(0, read), write(PAGE - 2, &[1, 2, 3, 4]), write(9 * PAGE, &[5])];
        let image = Image::new(&common);
        let changes = |changes: &[MemoryChange]| format!("{:?}", changes);
        assert_eq!(changes(&image.difference(&common)), "[]");
        let row = [protect(0, read), write(PAGE - 2, &[1, 2, 9, 4, 7])];
        let discard = MemoryChange::Discard { addr: 9 * PAGE, len: PAGE };
        let expected = [discard, write(PAGE, &[9, 4, 7])];
        assert_eq!(changes(&image.difference(&row)), changes(&expected));
        let other = [write(PAGE - 2, &[1, 2, 3, 4]), write(9 * PAGE, &[5]), protect(PAGE, read)];
        let expected = [protect(0, Permissions::NONE), protect(PAGE, read)];
        assert_eq!(changes(&image.difference(&other)), changes(&expected));
    }
}
