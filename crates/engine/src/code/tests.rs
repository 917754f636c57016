//! Records on a device as kernels look for them, without a device.

use super::*;
use crate::kernel::{BLOCK, DIVERTED};
use crate::memory::tests::Fake;

const NOP: u32 = 0xd503_201f;
const HLT: u32 = 0xd440_0000;
/// `b` to the next instruction.
const B_NEXT: u32 = 0x1400_0001;

/// What a device would have, and how much was written.
#[derive(Default)]
pub(crate) struct Store {
    layout: Layout,
    table: Vec<Record>,
    slots: Vec<Record>,
    directory: Vec<DirectoryEntry>,
    map: Vec<u64>,
    blocks: Vec<u32>,
    written: usize,
}

impl CodeDevice for Store {
    fn make_room(&mut self, layout: &Layout) -> Result<(), EngineError> {
        *self = Store {
            layout: layout.clone(),
            table: vec![Record::default(); layout.table_records()],
            slots: vec![Record::default(); layout.slot_records()],
            directory: vec![[0; 4]; layout.directory_len()],
            map: vec![0; layout.map_len() / PAGE_GRANULES],
            blocks: Vec::new(),
            written: self.written,
        };
        Ok(())
    }

    fn place(&self, slot: u32) -> u64 {
        u64::from(slot) << 32
    }

    fn write_pages(
        &mut self,
        first: u64,
        records: &[Record],
        flags: &[u64],
    ) -> Result<(), EngineError> {
        self.table[first as usize * PAGE_RECORDS..][..records.len()].copy_from_slice(records);
        self.map[first as usize + 1..][..flags.len()].copy_from_slice(flags);
        self.written += records.len();
        Ok(())
    }

    fn write_slots(&mut self, first: u32, records: &[Record]) -> Result<(), EngineError> {
        self.slots[first as usize * GRANULE_RECORDS..][..records.len()].copy_from_slice(records);
        self.written += records.len();
        Ok(())
    }

    fn write_directory(&mut self, entries: &[DirectoryEntry]) -> Result<(), EngineError> {
        self.directory.copy_from_slice(entries);
        Ok(())
    }

    fn write_blocks(&mut self, parts: &[u32]) -> Result<(), EngineError> {
        self.blocks = parts.to_vec();
        Ok(())
    }
}

impl Store {
    /// The record that a kernel finds for a lane.
    pub(crate) fn record(&self, code: &DecodedCode, lane: u32, at: u64) -> Record {
        if at.wrapping_sub(code.start()) >= code.len() {
            return Record::default();
        }
        let record = self.table[(code.first_record() + (at - code.start()) / 4) as usize];
        if record.handler() != DIVERTED {
            return record;
        }
        let [_, granule, low, high] = record.0;
        let (mut index, mask) = (directory_index(lane, granule), self.directory.len() as u32 - 1);
        let place = loop {
            match self.directory[(index & mask) as usize] {
                [NOBODY, ..] => break [low, high],
                [whose, which, low, high] if (whose, which) == (lane, granule) => {
                    break [low, high];
                }
                _ => index += 1,
            }
        };
        assert_eq!(place[0], 0, "a place of this device");
        self.slots[place[1] as usize * GRANULE_RECORDS + (at / 4) as usize % GRANULE_RECORDS]
    }

    /// Whether a store there makes a lane stop.
    fn is_code(&self, code: &DecodedCode, at: u64) -> bool {
        let offset = at.wrapping_sub(code.start().wrapping_sub(GRANULE));
        let flag = code.first_flag() + offset / GRANULE;
        offset < code.len() + 2 * GRANULE && self.map[(flag / 64) as usize] >> (flag % 64) & 1 != 0
    }
}

/// Code, the memory it is in, and a device that it is brought to.
struct Bench {
    code: DecodedCode,
    memory: Fake,
    store: Store,
}

impl Bench {
    fn new(shared: bool, lanes: usize, pages: u64, words: impl Fn(u64) -> u32) -> Bench {
        let words = (0..pages * PAGE / 4).map(|word| words(4 * word).to_le_bytes());
        let memory = Fake::with(shared, lanes, words.flatten().collect());
        let handlers = Handlers::new();
        let code = DecodedCode { handlers, ..DecodedCode::new() };
        Bench { code, memory, store: Store::default() }
    }

    fn find(&mut self, lane: usize, pc: u64) -> Option<Stop> {
        self.code.find(&mut self.memory, lane, pc, &mut { AHEAD }).unwrap()
    }

    /// Writes a word of lanes, as the host does.
    fn write(&mut self, lanes: Range<usize>, at: u64, word: u32) -> bool {
        let room = self.code.before_write(&self.memory, lanes.clone(), at, 4).unwrap();
        if room {
            let rows = word.to_le_bytes().repeat(lanes.len());
            self.memory.write_lanes(lanes, at, &rows).unwrap();
        }
        room
    }

    /// Brings the device up to date, and looks whether it has of each lane what is in its memory, or nothing, and
    /// whether it would notice all changes of that.
    fn check(&mut self) {
        self.code.upload(&mut self.store).unwrap();
        assert_eq!(self.store.layout, *self.code.layout());
        for lane in 0..self.memory.lanes() {
            let mut bytes = vec![0; self.code.len() as usize];
            self.memory.read(lane, self.code.start(), &mut bytes).unwrap();
            for (at, word) in (self.code.start()..).step_by(4).zip(bytes.chunks_exact(4)) {
                let found = self.store.record(&self.code, lane as u32, at);
                if is_decoded(&found) {
                    let word = u32::from_le_bytes(word.try_into().unwrap());
                    let wanted = self.code.handlers.record(at, word);
                    assert_eq!(found, wanted, "lane {lane} at {at:#x}");
                    assert!(self.store.is_code(&self.code, at), "lane {lane} at {at:#x}");
                }
            }
        }
    }

    fn has(&self, lane: usize, at: u64) -> bool {
        is_decoded(&self.store.record(&self.code, lane as u32, at))
    }
}

#[test]
fn a_long_slide_is_decoded_in_steps_and_copied_a_few_times() {
    let pages = 2048; // 8 MiB
    for down in [false, true] {
        let mut bench = Bench::new(true, 1, pages, |_| NOP);
        let mut pc = if down { pages * PAGE - 4 } else { 0 };
        let (mut steps, mut layouts) = (0, 0);
        loop {
            let before = bench.code.decoded();
            assert_eq!(bench.find(0, pc), None);
            assert!(bench.code.decoded() - before <= AHEAD as u64);
            let layout = bench.store.layout.clone();
            bench.code.upload(&mut bench.store).unwrap();
            layouts += usize::from(layout != bench.store.layout);
            steps += 1;
            // The next place without a record.
            let place = (0..=pc / 4).rev().map(|word| 4 * word).find(|at| !bench.has(0, *at));
            let above =
                (pc / 4..pages * PAGE / 4).map(|word| 4 * word).find(|at| !bench.has(0, *at));
            match if down { place } else { above } {
                // Down, as a lane that goes back by a few pages each time.
                Some(at) => pc = if down { at.saturating_sub(16 * PAGE) } else { at },
                None => break,
            }
        }
        assert_eq!(bench.code.decoded(), pages * PAGE / 4);
        assert!(steps >= 32, "{steps} steps");
        assert!(layouts <= 10, "{layouts} layouts");
        assert!(bench.store.written <= 4 * (pages * PAGE / 4) as usize, "{}", bench.store.written);
    }
}

#[test]
fn what_lanes_do_not_reach_is_not_decoded() {
    // A branch over half a MiB, and one over 100, at the start of much memory.
    let far = 100 << 20;
    let words = move |at: u64| match at {
        0 => 0x5400_0000 | (1 << 17) << 5,
        4 => 0x1400_0000 | ((far as u32 - 4) / 4),
        _ => HLT,
    };
    let mut bench = Bench::new(true, 1, (far >> 12) + 1, words);
    assert_eq!(bench.find(0, 0), None);
    assert_eq!(bench.code.decoded(), 3, "the far one is left");
    assert!(bench.code.len() <= 1 << 20);
    assert_eq!(bench.find(0, far), None);
    bench.check();
    assert!(bench.has(0, far));
}

#[test]
fn a_round_has_its_limit_and_every_lane_gets_something() {
    let mut bench = Bench::new(true, 4, 64, |_| NOP);
    let mut ahead = 100;
    for lane in 0..4 {
        let pc = lane as u64 * 16 * PAGE;
        assert_eq!(bench.code.find(&mut bench.memory, lane, pc, &mut ahead).unwrap(), None);
    }
    assert_eq!((ahead, bench.code.decoded()), (0, 100 + 3 * AHEAD_OF_EACH as u64));
    bench.check();
    assert!((0..4).all(|lane| bench.has(0, lane * 16 * PAGE)));
}

#[test]
fn code_too_far_apart_stops_the_lane() {
    // Too large for a vector of words: the pages between are not looked at.
    let mut bench = Bench::new(true, 2, 1, |_| HLT);
    bench.memory.flat.resize((SPAN * PAGE + 2 * PAGE) as usize, 0);
    assert_eq!(bench.find(0, 0), None);
    let lacking = Some(Stop::OutOfMemory { lacking: Lacking::Code });
    assert_eq!(bench.find(1, SPAN * PAGE), lacking);
    assert_eq!(bench.find(1, SPAN * PAGE - PAGE), None);
    assert_eq!((bench.code.start(), bench.code.len()), (0, SPAN * PAGE));
    // Where there is less room, it is less far.
    bench.code.clear();
    bench.memory.most_records = 16 * PAGE;
    assert_eq!(bench.find(0, 0), None);
    assert_eq!(bench.find(1, 16 * PAGE), lacking);
    assert_eq!(bench.find(1, PAGE), None);
    bench.check();
}

#[test]
fn lanes_that_change_a_word_have_their_own_records_of_a_granule() {
    let (lanes, pages) = (200, 1024); // 4 MiB of code
    let mut bench = Bench::new(false, lanes, pages, |_| B_NEXT);
    let mut pc = 0;
    while pc < pages * PAGE {
        assert_eq!(bench.find(0, pc), None);
        pc += 4 * AHEAD as u64;
    }
    bench.code.upload(&mut bench.store).unwrap();
    let (decoded, written) = (bench.code.decoded(), bench.store.written);
    assert_eq!(decoded, pages * PAGE / 4);
    for lane in 0..lanes {
        assert!(bench.write(lane..lane + 1, 40 * PAGE + 8, HLT + ((lane as u32) << 5)));
        assert_eq!(bench.find(lane, 40 * PAGE + 8), None);
    }
    let there = bench.code.layout().bytes();
    bench.code.upload(&mut bench.store).unwrap();
    // One word each; and all there is on a device is the table and some kilobytes for each lane.
    assert_eq!(bench.code.decoded(), decoded + lanes as u64);
    assert!(there < 16 * PAGE / 4 * pages + lanes as u64 * 1024, "{there}");
    for lane in 0..lanes {
        let record = bench.store.record(&bench.code, lane as u32, 40 * PAGE + 8);
        assert_eq!(record, bench.code.handlers.record(40 * PAGE + 8, HLT + ((lane as u32) << 5)));
        assert!(bench.has(lane, 40 * PAGE + 12) && bench.has(lane, 0));
    }
    // The table was copied once more, for the slots, and not for each lane.
    assert!(bench.store.written <= 3 * written, "{} after {written}", bench.store.written);
    // A lane that changes its word again has only that copied.
    let before = bench.store.written;
    assert!(bench.write(7..8, 40 * PAGE + 8, NOP));
    bench.code.upload(&mut bench.store).unwrap();
    assert_eq!(bench.store.written - before, GRANULE_RECORDS);
    assert!(!bench.has(7, 40 * PAGE + 8) && bench.has(8, 40 * PAGE + 8));
}

#[test]
fn lanes_come_back_to_common_records() {
    let mut bench = Bench::new(false, 3, 2, |_| NOP);
    assert_eq!(bench.find(0, 0), None);
    assert!(bench.write(1..3, 64, HLT));
    bench.check();
    assert!(bench.store.table.iter().any(|record| record.handler() == DIVERTED));
    for lane in 1..3 {
        bench.memory.drop_pages(&[lane]).unwrap();
        bench.code.join(lane);
        bench.check();
        assert!(bench.has(lane, 64));
    }
    assert!(bench.store.table.iter().all(|record| record.handler() != DIVERTED));
    assert_eq!((bench.code.own.len(), bench.code.slots.used()), (0, 0));
}

/// Where no word is decoded any more, stores go through again.
#[test]
fn the_map_forgets_too() {
    let mut bench = Bench::new(true, 1, 2, |at| if at < 256 { NOP } else { HLT });
    assert_eq!(bench.find(0, 0), None);
    bench.check();
    assert!((0..5).all(|granule| bench.store.is_code(&bench.code, granule * GRANULE)));
    assert!(!bench.store.is_code(&bench.code, 5 * GRANULE));
    for at in (64..128).step_by(4) {
        assert!(bench.write(0..1, at, 0));
    }
    bench.check();
    assert!(!bench.store.is_code(&bench.code, 64) && bench.store.is_code(&bench.code, 128));
}

#[test]
fn without_room_for_own_records_nothing_is_written() {
    let mut bench = Bench::new(false, 300, 2, |_| NOP);
    assert_eq!(bench.find(0, 0), None);
    bench.memory.most_records = bench.code.layout().bytes() + 32 * 1024;
    let mut lanes = 0..300;
    let refused = lanes.find(|lane| !bench.write(*lane..lane + 1, 4, HLT)).expect("not all fit");
    assert!(refused >= 64, "only {refused} lanes fit");
    bench.check();
    let mut word = [0; 4];
    bench.memory.read(refused, 4, &mut word).unwrap();
    assert_eq!(u32::from_le_bytes(word), NOP);
    // A lane that does the same itself stops, and nothing has happened to it.
    let mut state = CpuState { pc: 0x1000, ..CpuState::new() };
    (state.x[1], state.x[2], state.exclusive_len) = (HLT.into(), 4, 8);
    bench.memory.write_flat(0x1000, &0xb900_0041_u32.to_le_bytes()).unwrap(); // str w1, [x2]
    let before = state;
    let end = bench
        .code
        .step(&mut bench.memory, refused, &mut state, &mut VectorState::new(), 5)
        .unwrap();
    assert_eq!(end, (0, Some(Stop::OutOfMemory { lacking: Lacking::Code })));
    assert!(state.x == before.x && (state.pc, state.exclusive_len) == (0x1000, 8));
    // It can when another lane has given its records back.
    bench.code.join(0);
    bench.memory.drop_pages(&[0]).unwrap();
    let end = bench
        .code
        .step(&mut bench.memory, refused, &mut state, &mut VectorState::new(), 5)
        .unwrap();
    assert_eq!((end, state.pc), ((1, None), 0x1004));
    bench.code.clear();
    bench.check();
}

#[test]
fn without_frames_the_host_stops_a_lane_before_it_writes() {
    let mut bench = Bench::new(false, 1, 4, |_| 0xa900_0440); // stp x0, x1, [x2]
    assert_eq!(bench.find(0, 0), None);
    bench.memory.most_frames = 2;
    let mut state = CpuState::new();
    (state.x[0], state.x[1], state.x[2]) = (1, 2, PAGE - 8);
    let end =
        bench.code.step(&mut bench.memory, 0, &mut state, &mut VectorState::new(), 0).unwrap();
    assert_eq!(end, (0, Some(Stop::OutOfMemory { lacking: Lacking::Pages })));
    let mut word = [0; 4];
    bench.memory.read(0, PAGE - 8, &mut word).unwrap();
    assert_eq!(u32::from_le_bytes(word), 0xa900_0440, "the first half is not written either");
}

/// Lanes that write, run, and are reset, at random.
#[test]
fn lanes_never_see_anything_but_their_own_code() {
    let words = [NOP, HLT, B_NEXT, 0x1400_0011, 0x17ff_fff9, 0x9100_0400, 0xffff_ffff];
    for shared in [false, true] {
        let (lanes, pages) = (20, 6);
        let mut bench = Bench::new(shared, lanes, pages, |at| words[(at / 4 % 7) as usize]);
        let mut random = 1u64;
        let mut below = |end: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) % end
        };
        for _ in 0..150 {
            let (lane, at) = (below(lanes as u64) as usize, 4 * below(pages * PAGE / 4));
            let word = words[below(7) as usize];
            match below(8) {
                0 if !shared => {
                    bench.memory.drop_pages(&[lane]).unwrap();
                    bench.code.join(lane);
                }
                // As a kernel does it, which stops at code.
                1 | 2 if !bench.store.is_code(&bench.code, at) || bench.store.table.is_empty() => {
                    bench.code.upload(&mut bench.store).unwrap();
                    if !bench.store.is_code(&bench.code, at) {
                        bench.memory.write(lane, at, &word.to_le_bytes()).unwrap();
                    }
                }
                1..4 => assert!(bench.write(lane..lanes.min(lane + 3), at, word)),
                _ => assert_eq!(bench.find(lane, at), None),
            }
            bench.check();
        }
        assert_eq!(shared, bench.code.own.is_empty());
    }
}

/// The record that a kernel finds in mapped memory, and whether a store there makes the lane stop.
pub(crate) fn in_blocks(store: &Store, at: u64) -> (Record, bool) {
    const BLOCK: u64 = BLOCK_PAGES * PAGE;
    let Some(part) = store.blocks[(at / BLOCK) as usize].checked_sub(1) else {
        return (Record::default(), false);
    };
    let page = u64::from(part) * BLOCK_STRIDE + at % BLOCK / PAGE;
    let record = store.table[(page * PAGE_RECORDS as u64 + at % PAGE / 4) as usize];
    (record, store.map[page as usize + 1] >> (at % PAGE / GRANULE) & 1 != 0)
}

#[test]
fn code_of_mapped_memory_may_lie_far_apart() {
    const FAR: u64 = 1 << 38;
    let mut memory = Fake::mapped();
    let pages = [0x40_0000, 0x50_0000 - PAGE, 0x50_0000, FAR];
    for at in pages {
        let permissions = kvrm_mem::Permissions::EXECUTE;
        memory.map_mut().unwrap().protect(0, at / PAGE..at / PAGE + 1, permissions);
        let words: Vec<u8> = [NOP.to_le_bytes(), HLT.to_le_bytes()].concat();
        memory.write(0, at, &words.repeat(PAGE as usize / 8)).unwrap();
    }
    let bench = Bench { code: DecodedCode::of_mapped(1 << 39), memory, store: Store::default() };
    let mut bench = bench;
    for at in pages {
        assert_eq!(bench.find(0, at), None);
        let wanted = bench.code.wanted().by_frequency();
        bench.code.choose(Arc::new(Selection::new(wanted)));
        bench.code.upload(&mut bench.store).unwrap();
        let wanted = [NOP, HLT].map(|word| bench.code.handlers.record(at, word));
        let wanted = wanted.map(|record| bench.code.handlers.in_kernel(record));
        assert_eq!([in_blocks(&bench.store, at).0, in_blocks(&bench.store, at + 4).0], wanted);
        assert_eq!(bench.code.first_flag(), 0, "kernels count flags from the first");
        assert!(in_blocks(&bench.store, at + 60).1 && !in_blocks(&bench.store, at + 64).1);
    }
    // The last page of a block goes on in the next.
    assert_eq!(bench.find(0, 0x50_0000 - 4), None);
    let fault = |address| Some(Stop::Fault { kind: crate::FaultKind::Fetch, address });
    assert_eq!(bench.find(0, FAR + PAGE), fault(FAR + PAGE));
    assert!(bench.write(0..1, FAR, HLT));
    bench.code.upload(&mut bench.store).unwrap();
    assert_eq!(in_blocks(&bench.store, FAR).0, Record::default(), "it is another word now");
    // Where there is room for one block alone, what was there before is forgotten.
    bench.code.clear();
    bench.memory.most_records = Layout { pages: 0..BLOCK_STRIDE, slots: 0 }.bytes();
    for at in [FAR, 0x40_0000, FAR, 0x50_0000] {
        assert_eq!(bench.find(0, at), None);
        bench.code.upload(&mut bench.store).unwrap();
        let decoded = pages.map(|page| is_decoded(&in_blocks(&bench.store, page).0));
        assert_eq!(decoded, pages.map(|page| page == at));
    }
    bench.memory.most_records = 0;
    let full = Some(Stop::OutOfMemory { lacking: Lacking::Code });
    assert_eq!(bench.find(0, 0x40_0000), full);
}

/// Everything that may be translated.
fn translate(bench: &mut Bench) {
    let lacks = kvrm_ir::legalise::Lacks { flag_operands: true, ..Default::default() };
    let means = crate::translation::Means { lacks, calls: true, most: 500 };
    let made = crate::hot::translate(&bench.code, &bench.memory, None, means).unwrap();
    bench.code.set_translation(made.map(Arc::new));
    bench.code.upload(&mut bench.store).unwrap();
}

#[test]
fn records_lead_to_blocks_until_the_code_changes() {
    // From 0x1000 on: nop; b over the next; (data); nop; hlt
    let words = |at| match at {
        0x1004 => 0x1400_0002,
        0x1010 => HLT,
        _ => NOP,
    };
    for shared in [false, true] {
        let mut bench = Bench::new(shared, 2, 2, words);
        assert_eq!(bench.find(0, 0x1000), None);
        translate(&mut bench);
        let block = |bench: &Bench, at| {
            let record = bench.store.record(&bench.code, 0, at);
            (record.handler() == BLOCK).then_some(record.0[1])
        };
        assert_eq!(
            [0x1000, 0x1004, 0x100c, 0x1010].map(|at| block(&bench, at)),
            [Some(0), None, Some(1), None]
        );
        assert!(bench.code.record_in_kernel(0x1000).handler() >= crate::kernel::FIRST_HANDLER);
        // Data in the same granule changes nothing, a word that is translated does.
        assert!(bench.write(0..1, 0x1008, 7));
        bench.code.upload(&mut bench.store).unwrap();
        assert_eq!(block(&bench, 0x1000), Some(0));
        assert!(bench.write(1..2, 0x1000, HLT));
        assert!(bench.code.translation().is_none());
        bench.code.upload(&mut bench.store).unwrap();
        assert_eq!([0x1000, 0x100c].map(|at| block(&bench, at)), [None; 2]);
        // It is not worth another one.
        assert_eq!(bench.find(0, 0x1000), None);
        translate(&mut bench);
        assert!(bench.code.translation().is_none());
    }
}

#[test]
fn blocks_are_cut_at_breakpoints() {
    let mut bench = Bench::new(true, 1, 2, |at| if at == 0x1020 { HLT } else { NOP });
    bench.code.set_breakpoints(&[0x1008]);
    assert_eq!(bench.find(0, 0x1000), None);
    translate(&mut bench);
    let heads: Vec<u64> = bench.code.translation().unwrap().heads().map(|(pc, _)| pc).collect();
    assert_eq!(heads, [0x1000, 0x100c]);
    assert_eq!(bench.store.record(&bench.code, 0, 0x1008).handler(), BREAKPOINT);
}
