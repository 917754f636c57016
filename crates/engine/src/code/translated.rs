//! Which of the code a kernel has translated.

use std::sync::Arc;

use kvrm_mem::{GRANULE, PAGE};

use super::DecodedCode;
use super::tables::is_decoded;
use crate::kernel::{FIRST_HANDLER, Record};
use crate::translation::{Means, Translation};

impl DecodedCode {
    /// What of the code is translated in the next launch's kernel.
    pub fn translation(&self) -> Option<&Arc<Translation>> {
        self.translation.as_ref()
    }

    /// Changes what is translated.
    pub fn set_translation(&mut self, translation: Option<Arc<Translation>>) {
        let before = std::mem::replace(&mut self.translation, translation);
        for translation in [&before, &self.translation].into_iter().flatten() {
            self.changes.pages.extend(translation.heads().map(|(pc, _)| pc / PAGE));
        }
    }

    /// How often all records were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// True if no word of a translation has changed since it was made, unless all records were forgotten.
    pub(crate) fn has_all_of(&self, translation: &Translation) -> bool {
        !self.unsettled.iter().any(|granule| translation.covers(*granule))
    }

    /// Pages with records, by number.
    pub(crate) fn pages_with_code(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }

    /// Notes that the words of a granule change, or are not the same for all lanes.
    pub(super) fn unsettle(&mut self, granule: u64) {
        self.unsettled.insert(granule);
        if self.translation.as_ref().is_some_and(|translation| translation.covers(granule)) {
            self.set_translation(None);
        }
    }

    /// The record of an instruction of all lanes, as a kernel has it where nothing is translated.
    pub fn record_in_kernel(&self, pc: u64) -> Record {
        self.handlers.in_kernel(self.pages[&(pc / PAGE)].records[(pc % PAGE / 4) as usize])
    }

    /// True if the instruction at an address, which is a multiple of 4, may be translated: it is the same for all lanes and
    /// stays so, as far as is known, and the kernel has its handler, which can be part of a block of
    /// the device.
    pub(crate) fn is_translatable(&self, pc: u64, means: Means) -> bool {
        let Some(page) = self.pages.get(&(pc / PAGE)) else { return false };
        let record = page.records[(pc % PAGE / 4) as usize];
        let granule = pc / GRANULE;
        let in_kernel = self.handlers.in_kernel(record).handler() >= FIRST_HANDLER;
        in_kernel
            && self.handlers.is_translatable(record, means)
            && !self.unsettled.contains(&granule)
    }

    /// Addresses of all instructions that are decoded.
    pub(crate) fn decoded_addresses(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|(page, code)| {
            let decoded = |(_, record): &(u64, &Record)| is_decoded(record);
            let address = move |(index, _): (u64, &Record)| page * PAGE + 4 * index;
            (0..).zip(&code.records[..]).filter(decoded).map(address)
        })
    }

    /// Puts records in the place of others, from an address on, that lead to blocks.
    pub(super) fn mark_blocks(&self, start: u64, records: &mut [Record]) {
        let Some(translation) = &self.translation else { return };
        for (pc, number) in translation.heads_from(start) {
            match records.get_mut(((pc - start) / 4) as usize) {
                Some(record) => *record = Record::block(number),
                None => break,
            }
        }
    }
}
