use kvrm_mem::Permissions;

use super::copies::copy_page;
use super::*;

const LANES: usize = 21;
const GROUP: usize = 8;
const PAGES: u64 = 4;

/// A device of which everything is in vectors.
pub(crate) struct Fake {
    shared: bool,
    lanes: usize,
    pub(crate) flat: Vec<u8>,
    tables: Vec<Entry>,
    frames: Vec<Vec<u8>>,
    /// How many frames there can be, with the first, which is not used; and bytes of records.
    pub(crate) most_frames: usize,
    pub(crate) most_slots: usize,
    pub(crate) most_records: u64,
    map: Option<PageMap>,
}

impl Fake {
    fn new(shared: bool) -> Fake {
        Fake::with(shared, LANES, (0..PAGES * PAGE).map(|at| (at * 7 / 3) as u8).collect())
    }

    /// A device with an image.
    pub(crate) fn with(shared: bool, lanes: usize, flat: Vec<u8>) -> Fake {
        let tables = vec![[0; 2]; lanes.div_ceil(GROUP) * flat.len() / PAGE as usize];
        let frames = vec![Vec::new()];
        let (most_frames, most_slots, most_records) = (usize::MAX, usize::MAX, u64::MAX);
        Fake {
            shared,
            lanes,
            flat,
            tables,
            frames,
            most_frames,
            most_slots,
            most_records,
            map: None,
        }
    }

    /// A device with mapped memory, for one lane.
    pub(crate) fn mapped() -> Fake {
        Fake { map: Some(PageMap::new(1 << 39)), ..Fake::with(false, 1, Vec::new()) }
    }

    /// The same for lanes with a memory each.
    pub(crate) fn mapped_for_each() -> Fake {
        let map = Some(PageMap::private(1 << 39, LANES, GROUP));
        Fake { map, ..Fake::with(false, LANES, Vec::new()) }
    }

    /// Where a group's page table starts.
    fn table_at(&self, group: usize) -> usize {
        group * self.flat.len() / PAGE as usize
    }

    /// What a lane sees.
    fn seen(&self, lane: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.flat.len()];
        self.read(lane, 0, &mut bytes).unwrap();
        bytes
    }
}

impl DeviceMemory for Fake {
    fn size(&self) -> u64 {
        if self.map.is_some() { 1 << 39 } else { self.flat.len() as u64 }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn map(&self) -> Option<&PageMap> {
        self.map.as_ref()
    }

    fn map_mut(&mut self) -> Option<&mut PageMap> {
        self.map.as_mut()
    }

    fn room(&self) -> usize {
        self.flat.len() / PAGE as usize
    }

    fn make_room(&mut self, slots: usize) -> Result<(), EngineError> {
        let before = self.room();
        if slots > self.most_slots {
            return Err(EngineError::DeviceFull("no slots".to_string()));
        }
        if slots > before {
            self.flat.resize(slots * PAGE as usize, 0);
            let mut tables = vec![[0; 2]; slots * self.lanes.div_ceil(GROUP)];
            for (new, old) in
                tables.chunks_exact_mut(slots).zip(self.tables.chunks_exact(before.max(1)))
            {
                new[..before].copy_from_slice(old);
            }
            self.tables = tables;
        }
        Ok(())
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn group(&self) -> Option<usize> {
        (!self.shared).then_some(GROUP)
    }

    fn read_flat(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError> {
        bytes.copy_from_slice(&self.flat[addr as usize..][..bytes.len()]);
        Ok(())
    }

    fn write_flat(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError> {
        self.flat[addr as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn has_copies(&self) -> bool {
        self.frames.len() > 1
    }

    fn entries(&self, groups: Range<usize>, pages: Range<u64>) -> Result<Vec<Entry>, EngineError> {
        let pages = pages.start as usize..pages.end as usize;
        let table = |group| &self.tables[self.table_at(group)..][pages.clone()];
        Ok(groups.flat_map(table).copied().collect())
    }

    fn set_entries(
        &mut self,
        groups: Range<usize>,
        pages: Range<u64>,
        entries: &[Entry],
    ) -> Result<(), EngineError> {
        let pages = pages.start as usize..pages.end as usize;
        for (group, entries) in groups.zip(entries.chunks_exact(pages.len())) {
            let start = self.table_at(group);
            let table = &mut self.tables[start..];
            table[pages.clone()].copy_from_slice(entries);
        }
        Ok(())
    }

    fn take_frames(&mut self, count: usize) -> Result<u32, EngineError> {
        let first = self.frames.len();
        if first + count > self.most_frames {
            return Err(EngineError::DeviceFull("no frames".to_string()));
        }
        // Nobody clears frames that were used before.
        self.frames.resize(first + count, vec![0xee; GROUP * PAGE as usize]);
        Ok(first as u32)
    }

    fn read_frames(&self, parts: &[FramePart]) -> Result<Vec<u8>, EngineError> {
        let part = |FramePart { frame, words }: &FramePart| {
            self.frames[*frame as usize][8 * GROUP * words.start..8 * GROUP * words.end].to_vec()
        };
        Ok(parts.iter().flat_map(part).collect())
    }

    fn write_frame(&mut self, part: &FramePart, bytes: &[u8]) -> Result<(), EngineError> {
        let words = 8 * GROUP * part.words.start..8 * GROUP * part.words.end;
        self.frames[part.frame as usize][words].copy_from_slice(bytes);
        Ok(())
    }

    fn grow(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn most_records(&self, _: u64) -> Result<u64, EngineError> {
        Ok(self.most_records)
    }

    fn drop_all_pages(&mut self) -> Result<(), EngineError> {
        self.tables.fill([0; 2]);
        Ok(())
    }
}

/// Some ranges of lanes: one, some of a group, some of several, all.
const RANGES: [Range<usize>; 6] = [0..1, 20..21, 2..5, 7..9, 3..20, 0..LANES];
/// Addresses and lengths within words and pages, and across them.
const PLACES: [(u64, usize); 8] =
    [(0, 1), (13, 3), (8, 16), (4090, 5), (4093, 6), (4091, 4111), (3, 12000), (12288, 4096)];

/// Bytes that tell lanes and places apart.
fn sample(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|index| (seed * 31 + index * 13) as u8).collect()
}

#[test]
fn lanes_read_what_they_were_given() {
    let mut fake = Fake::new(false);
    let mut wanted: Vec<Vec<u8>> = vec![fake.flat.clone(); LANES];
    for (round, lanes) in RANGES.into_iter().enumerate() {
        for (addr, len) in PLACES {
            let rows = sample(round, lanes.len() * len);
            fake.write_lanes(lanes.clone(), addr, &rows).unwrap();
            for (lane, row) in lanes.clone().zip(rows.chunks_exact(len)) {
                wanted[lane][addr as usize..][..len].copy_from_slice(row);
            }
            let image = sample(addr as usize, len / 2);
            fake.write_image(addr, &image).unwrap();
            for memory in &mut wanted {
                memory[addr as usize..][..image.len()].copy_from_slice(&image);
            }
        }
        for (lane, memory) in wanted.iter().enumerate() {
            assert!(fake.seen(lane) == *memory, "lane {lane} after {lanes:?}");
        }
    }
    for lanes in RANGES {
        for (addr, len) in PLACES {
            let mut rows = vec![0; lanes.len() * len];
            fake.read_lanes(lanes.clone(), addr, &mut rows).unwrap();
            for (lane, row) in lanes.clone().zip(rows.chunks_exact(len)) {
                assert!(*row == wanted[lane][addr as usize..][..len]);
            }
        }
    }
}

#[test]
fn pages_have_owners_until_they_are_dropped() {
    let mut fake = Fake::new(false);
    assert_eq!(fake.private_pages().unwrap(), []);
    fake.write(9, PAGE - 1, &[1, 2]).unwrap();
    fake.write(10, PAGE, &[3]).unwrap();
    assert_eq!(fake.owners(1).unwrap(), [9, 10]);
    assert_eq!(fake.private_pages().unwrap(), [(9, 0), (9, 1), (10, 1)]);
    fake.drop_pages(&[9]).unwrap();
    assert_eq!(fake.private_pages().unwrap(), [(10, 1)]);
    assert!(fake.seen(9) == fake.flat);
    // Once more from the image, in the frame that the other lane is in.
    fake.write(9, PAGE + 1, &[4]).unwrap();
    assert_eq!(fake.seen(9)[PAGE as usize..][..2], [fake.flat[PAGE as usize], 4]);
    assert_eq!(fake.seen(10)[PAGE as usize..][..2], [3, fake.flat[PAGE as usize + 1]]);
    fake.drop_all_pages().unwrap();
    assert_eq!(fake.private_pages().unwrap(), []);
}

#[test]
fn shared_memory_has_no_copies() {
    let mut fake = Fake::new(true);
    fake.write_lanes(3..5, 10, b"onetwo").unwrap();
    let mut rows = [0; 9];
    fake.read_lanes(0..3, 10, &mut rows).unwrap();
    assert_eq!(&rows, b"twotwotwo");
    fake.write_image(11, b"o").unwrap();
    assert_eq!(fake.seen(20)[10..13], *b"too");
    assert_eq!((fake.owners(0).unwrap(), fake.private_pages().unwrap()), (vec![], vec![]));
}

#[test]
fn mapped_memory_is_zero_where_nothing_was_written() {
    let mut fake = Fake::mapped();
    let map = fake.map_mut().unwrap();
    map.protect(0, 0..4, Permissions::READ | Permissions::WRITE);
    let read = |fake: &Fake, addr, len| {
        let mut bytes = vec![1; len];
        fake.read(0, addr, &mut bytes).unwrap();
        bytes
    };
    let far = (1 << 38) - 2;
    fake.write(0, far, &[1, 2, 3, 4]).unwrap();
    fake.write(0, PAGE - 2, &[5, 6, 7, 8]).unwrap();
    assert_eq!(read(&fake, far - 2, 8), [0, 0, 1, 2, 3, 4, 0, 0]);
    assert_eq!(read(&fake, PAGE - 3, 6), [0, 5, 6, 7, 8, 0]);
    assert_eq!(read(&fake, 7 * PAGE, 2), [0, 0]);
    // The lane has its own copy of a page.
    fake.entries(0..1, 2..3).unwrap();
    let slot = u64::from(fake.map.as_ref().unwrap().slot(1).unwrap());
    copy_page(&mut fake, GROUP, &(0..1), slot).unwrap();
    fake.write(0, PAGE + 1, &[9]).unwrap();
    assert_eq!(read(&fake, PAGE - 2, 5), [5, 6, 7, 9, 0]);
    assert_eq!(fake.flat[(slot * PAGE) as usize + 1], 8, "the image is another thing");
    fake.discard(0, 0, 4 * PAGE).unwrap();
    assert_eq!(read(&fake, PAGE - 2, 4), [0; 4]);
    fake.discard(0, far - far % PAGE, 2 * PAGE).unwrap();
    let slots = fake.map.as_ref().unwrap().stored(0..1 << 27);
    assert_eq!(slots.len(), 2, "pages that may be accessed keep their slots");
    fake.add_slots(&[3]).unwrap();
    assert_eq!(read(&fake, 3 * PAGE, 4), [0; 4]);
}

/// A reference for mapped memory of each lane: what was written, by lane and address.
#[derive(Default)]
struct Reference {
    image: std::collections::BTreeMap<u64, u8>,
    lanes: Vec<std::collections::BTreeMap<u64, u8>>,
}

#[test]
fn lanes_have_a_mapped_memory_each() {
    let mut fake = Fake::mapped_for_each();
    let lanes = vec![Default::default(); LANES];
    let mut reference = Reference { lanes, ..Reference::default() };
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let at = |n: u64| [5 * PAGE, (1 << 38) - 2 * PAGE][n as usize % 2] + n / 2;
    for round in 0..600 {
        let (lane, start) = (next(LANES as u64) as usize, at(next(8 * PAGE)));
        let len = 1 + next(if round % 5 == 0 { 3 * PAGE } else { 20 });
        let page = start / PAGE * PAGE;
        match next(8) {
            0 => {
                fake.discard(lane, page, 2 * PAGE).unwrap();
                let own = &mut reference.lanes[lane];
                own.extend((page..page + 2 * PAGE).map(|at| (at, 0)));
            }
            1 if round < 300 => {
                let bytes = sample(round, len as usize);
                fake.write_image(start, &bytes).unwrap();
                for (at, byte) in (start..).zip(bytes) {
                    reference.image.insert(at, byte);
                    reference.lanes.iter_mut().for_each(|own| own.extend([(at, byte)]));
                }
            }
            2 => {
                fake.reset_each(&[lane]).unwrap();
                reference.lanes[lane] = reference.image.clone();
            }
            _ => {
                let lanes = lane..(lane + 1 + next(4) as usize).min(LANES);
                let rows = sample(round, lanes.len() * len as usize);
                fake.write_lanes(lanes.clone(), start, &rows).unwrap();
                for (lane, row) in lanes.zip(rows.chunks_exact(len as usize)) {
                    let bytes = (start..).zip(row.iter().copied());
                    reference.lanes[lane].extend(bytes);
                }
            }
        }
        let seen = at(next(8 * PAGE));
        let mut rows = vec![1; LANES * 50];
        fake.read_lanes(0..LANES, seen, &mut rows).unwrap();
        for (own, row) in reference.lanes.iter().zip(rows.chunks_exact(50)) {
            let expected = (seen..seen + 50).map(|at| own.get(&at).copied().unwrap_or(0));
            assert!(expected.eq(row.iter().copied()), "round {round} at {seen:#x}");
        }
    }
}

#[test]
fn slots_are_used_again_when_no_lane_needs_them() {
    let mut fake = Fake::mapped_for_each();
    fake.write_image(0, &[7; 10]).unwrap();
    fake.most_slots = 10;
    for page in (100..).step_by(3).take(200) {
        let lane = page as usize % LANES;
        fake.write(lane, page * PAGE, &[1, 2]).unwrap();
        let mut bytes = [9; 2];
        fake.read(lane, page * PAGE, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2]);
        fake.read((lane + 1) % LANES, page * PAGE, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0]);
        match page % 2 {
            0 => fake.discard(lane, page * PAGE, PAGE).unwrap(),
            _ => fake.reset_each(&[lane]).unwrap(),
        }
    }
    let mut image = [0; 10];
    fake.read(3, 0, &mut image).unwrap();
    assert_eq!(image, [7; 10]);
    for page in 1000..1009 {
        fake.write(4, page * PAGE, &[3]).unwrap();
    }
    assert!(matches!(fake.write(4, 2000 * PAGE, &[3]), Err(EngineError::DeviceFull(_))));
    assert_eq!(fake.map().unwrap().slot(2000), None);
    fake.discard(4, 1005 * PAGE, PAGE).unwrap();
    fake.write(4, 2000 * PAGE, &[3]).unwrap();
}
