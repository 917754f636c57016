const WORKGROUP: u32 = 64u;
const LOCKS: u32 = 4096u;
const SAMPLES: u32 = 4096u;
const GROUPED: u32 = 16u;
const STATE_WORDS: u32 = 100u;
const X_SLOTS: u32 = 34u;
const V_SLOTS: u32 = 64u;
const PC_WORD: u32 = 68u;
const FLAGS_WORD: u32 = 99u;
const EXCLUSIVE_LEN_WORD: u32 = 98u;
const CALLER_WORD: u32 = 90u;
const PAGES: u32 = 0u;
const VARIES: u32 = 4u;
const LEAF_PAGES: u32 = 512u;
const LEAF_BITS: u32 = 21u;
const RIGHTS_BITS: u32 = 3u;
const BLOCK_BITS: u32 = 20u;
const BLOCK_RECORDS: u32 = 263168u;
const NO_PAGE_STOP: u32 = 8u;
const GROUP: u32 = 1u;
const GROUP_BITS: u32 = 1u;
const RUNNING: u32 = 0u;
const MAX_CYCLES: u32 = 1u;
const NO_CODE: u32 = 2u;
const UNDEFINED: u32 = 15u;
const BREAKPOINT: u32 = 3u;
const CODE_WRITE: u32 = 4u;
const NO_FRAME: u32 = 5u;
const NO_HANDLER: u32 = 7u;
const FIRST_EXCEPTION: u32 = 15u;
const GRANULE_RECORDS: u32 = 16u;
const NOBODY: u32 = 4294967295u;
const DIRECTORY_FACTOR: u32 = 2654435761u;
const DIRECTORY_FACTOR_2: u32 = 2246822507u;
const DIRECTORY_SHIFT: u32 = 15u;
const SIZE: u64 = 0x8000000000lu;
const PROGRAM: u64 = 0x7fffe00000lu;
alias Address = u64;
const GRANULE: Address = 64lu;

// What a launch is given.
struct Arguments {
  lanes: u32,
  // Instructions a lane may execute in this launch.
  share: u32,
  // Bytes of decoded code, and where it starts.
  code_len: u32,
  code_start_low: u32,
  code_start_high: u32,
  // Frames there are.
  frames: u32,
  // Whether this is the first launch of a run, and what each lane may execute in the run.
  begins: u32,
  max_cycles_low: u32,
  max_cycles_high: u32,
  // The number of the first instruction's record, and that of the flag of the granule before it.
  first_record: u32,
  first_flag: u32,
  // Where the directory starts in the records, and its length less one.
  directory: u32,
  directory_mask: u32,
  // Of mapped memory: pages of a group's page table, and groups.
  table_pages: u32,
  groups: u32,
}

// A lane's counts and stop.
struct Status {
  count_low: u32,
  count_high: u32,
  budget_low: u32,
  budget_high: u32,
  detail_low: u32,
  detail_high: u32,
  stop: u32,
  unused: u32,
}

// What is counted on the device.
struct Pool {
  // Frames handed out, the unused first one included; may run over.
  next: atomic<u32>,
  // Lanes that stopped in the last launch.
  stopped: atomic<u32>,
  // The lock of 128-bit exchanges.
  lock: atomic<u32>,
  // Instructions completed in all launches: the lower and the upper half.
  executed_low: atomic<u32>,
  executed_high: atomic<u32>,
  // Lanes that came to the end of a launch, in all launches; runs over.
  ended: atomic<u32>,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read_write> states: array<u32>;
@group(0) @binding(2) var<storage, read_write> statuses: array<Status>;
@group(0) @binding(3) var<storage, read_write> stopped: array<u32>;
@group(0) @binding(4) var<storage, read_write> pool: Pool;
@group(0) @binding(5) var<storage, read> records: array<vec4<u32>>;
// A bit for each granule: whether it holds decoded words.
@group(0) @binding(6) var<storage, read> code_map: array<u32>;

// The lane, and its place in its subgroup.
var<private> lane: u32;
var<private> place: u32;
// Where its registers are in `states`; those that most instructions use are here.
var<private> state: u32;
var<private> x: array<u64, X_SLOTS>;
var<private> flag_n: bool;
var<private> flag_z: bool;
var<private> flag_c: bool;
var<private> flag_v: bool;
// PC: the number of the record after the instruction's. Records start at `base`.
var<private> at: u32;
var<private> base: u32;
// The value of `at` at which the launch's share is used up; branches move it along.
var<private> limit: u32;
// Instructions completed at the end of the launch's share.
var<private> count: u64;
// An access of the instruction is not aligned.
var<private> unaligned: bool;
// Why the lane cannot go on, and how much of its share was left.
var<private> stop: u32;
var<private> detail: u64;
var<private> left: u32;

// The address of a record's instruction.
fn address_of(record: u32) -> u64 {
  return code_start() + (u64(record - base) << 2u);
}

// The address of the instruction that is being executed, and how many were completed before it.
fn pc() -> u64 {
  return address_of(at - 1u);
}

fn completed() -> u64 {
  return count - u64(limit - at) - 1lu;
}

// A word of 64 bits of the lane's saved state.
fn get_wide(word: u32) -> u64 {
  return u64(states[state + word]) | (u64(states[state + word + 1u]) << 32u);
}

fn set_wide(word: u32, value: u64) {
  states[state + word] = u32(value);
  states[state + word + 1u] = u32(value >> 32u);
}

// Stops before the instruction that is being executed.
fn stop_before(reason: u32, why: u64) {
  stop = reason;
  detail = why;
  at -= 1u;
}

// Stops where there is no record for the address.
fn stop_without_code(goal: u64) {
  stop = NO_CODE;
  detail = goal;
}

// Leaves a stopped lane nothing to do.
fn park() {
  left = limit - at;
  limit = at;
}

fn continue_at(record: u32) {
  limit += record - at;
  at = record;
}

// Continues at an address within reach of a 32-bit distance, given its lower half.
fn branch_near(low: u32) {
  let offset = low - u32(code_start());
  if (offset >= code_len()) {
    let distance = bitcast<i32>(low - u32(pc()));
    leave(pc() + bitcast<u64>(i64(distance)));
  } else {
    continue_at(base + (offset >> 2u));
  }
}

// Continues at any address.
fn branch_far(address: u64) {
  let goal = branch_target(address);
  let offset = goal - code_start();
  if (offset >= u64(code_len()) || (offset & 3lu) != 0lu) {
    leave(goal);
  } else {
    continue_at(base + u32(offset >> 2u));
  }
}

fn load_vectors() {}
fn save_vectors() {}

@group(1) @binding(0) var<storage, read> image0: array<u64>;

fn image_word(word: u32) -> u64 {
  return image0[word & 0x7ffffffu];
}

@group(2) @binding(0) var<storage, read_write> frames0: array<u64>;

fn frame_word(frame: u32, index: u32) -> u64 {
  return frames0[frame * 512u + index];
}

fn set_frame_word(frame: u32, index: u32, value: u64) {
  frames0[frame * 512u + index] = value;
}

// Pages of memory are anywhere, and stored in slots; words are numbered as they are stored. The map says where: first, for
// each 2 MiB of addresses, where the leaf for them begins, and in a leaf, for each page, its slot and what may be done with
// it. Code has records in blocks of 1 MiB; for each, there is the number of its part of the records, counted from one.
// Where lanes differ in what they may do with a page, there is a column for its slot: for each group, who may read, and who
// may write.
@group(0) @binding(9) var<storage, read> page_map: array<u32>;
@group(0) @binding(10) var<storage, read> code_blocks: array<u32>;
@group(0) @binding(11) var<storage, read> page_columns: array<vec2<u32>>;

// Where the page table of the lane's group is.
fn table_at() -> u32 {
  return (lane / GROUP) * arguments.table_pages;
}

// The block that the lane is in.
var<private> block: u32;

fn start_code() {
  block = 0xffffffffu;
  base = 0u;
}

fn code_start() -> u64 {
  return u64(block) << BLOCK_BITS;
}

fn code_len() -> u32 {
  return 1u << BLOCK_BITS;
}

// Where a branch goes: the top byte becomes the sign of what is below it.
fn branch_target(address: u64) -> u64 {
  return bitcast<u64>(bitcast<i64>(address << 8u) >> 8u);
}

// The address of data: without the top byte, if it is a user's.
fn untagged(address: u64) -> u64 {
  return address & branch_target(address);
}

// True for an address that is not the supervisors', or if the lane's supervisor runs.
fn may_reach(address: u64) -> bool {
  return PROGRAM == SIZE || address < PROGRAM || get_wide(CALLER_WORD) != 0lu;
}

// Goes on outside of the block.
fn leave(goal: u64) {
  var part = 0u;
  if (goal < SIZE && (goal & 3lu) == 0lu && may_reach(goal)) {
    part = code_blocks[u32(goal >> BLOCK_BITS)];
  }
  if (part == 0u) {
    stop_without_code(goal);
    return;
  }
  block = u32(goal >> BLOCK_BITS);
  base = (part - 1u) * BLOCK_RECORDS;
  continue_at(base + ((u32(goal) & (code_len() - 1u)) >> 2u));
}

// At a record that is not decoded, perhaps behind the end of the block.
fn not_decoded() {
  at -= 1u;
  let here = address_of(at);
  if (at - base < (code_len() >> 2u)) {
    stop_without_code(here);
  } else {
    leave(here);
  }
}

// A piece of memory that was checked: the number of its first word, the byte in it where it starts, the frame of its page,
// or zero if the lane has no copy of it, and the first word of the page in which it ends.
struct Place {
  word: u32,
  byte: u32,
  frame: u32,
  last: u32,
}

// What the map says of an address.
fn entry_of(addr: u64) -> u32 {
  return page_map[page_map[u32(addr >> LEAF_BITS)] + (u32(addr >> 12u) & (LEAF_PAGES - 1u))];
}

// The first word of an address's page.
fn page_at(addr: u64) -> u32 {
  return (entry_of(addr) >> RIGHTS_BITS) * 512u;
}

fn place_at(addr: u64) -> Place {
  let word = page_at(addr) + ((u32(addr) & 4095u) >> 3u);
  return Place(word, u32(addr) & 7u, frame_of(word), 0u);
}

// The same, if it may reach into the next page.
fn place_across(addr: u64, len: u32) -> Place {
  var place = place_at(addr);
  place.last = page_at(addr + u64(len - 1u));
  return place;
}

// The place as seen from a word of it, which may be in the next page.
fn around(place: Place, word: u32) -> Place {
  if ((word >> 9u) == (place.word >> 9u)) {
    return place;
  }
  let there = place.last + (word & 511u);
  return Place(there, 0u, frame_of(there), place.last);
}

// True if the map allows what a stop, which is `refused` otherwise, says that an access needs.
fn allows(addr: u64, refused: u32) -> bool {
  if (addr >= SIZE) {
    return false;
  }
  let needed = refused - NO_PAGE_STOP;
  let entry = entry_of(addr);
  if ((entry & VARIES) != 0u) {
    return allows_here(entry >> RIGHTS_BITS, needed);
  }
  return (entry & needed) == needed || (PROGRAM < SIZE && addr >= PROGRAM && may_reach(addr));
}

// The same for one lane of many that differ.
fn allows_here(slot: u32, needed: u32) -> bool {
  let column = page_columns[slot * arguments.groups + lane / GROUP];
  let rights = ((column.x >> seat) & 1u) | (((column.y >> seat) & 1u) << 1u);
  return (rights & needed) == needed;
}

fn is_within(addr: u64, len: u32, refused: u32) -> bool {
  if (allows(addr, refused)) {
    if ((u32(addr) & 4095u) <= 4096u - len) {
      return true;
    }
    if (allows(addr + u64(len - 1u), refused)) {
      return true;
    }
  }
  stop_before(refused, addr);
  return false;
}

// True if the byte at an address is in a granule with decoded words.
fn is_code(addr: u64) -> bool {
  let part = code_blocks[u32(addr >> BLOCK_BITS)];
  if (part == 0u) {
    return false;
  }
  let in_block = (u32(addr) & (code_len() - 1u)) >> 6u;
  let granule = (part - 1u) * (BLOCK_RECORDS >> 4u) + 64u + in_block;
  return ((code_map[granule >> 5u] >> (granule & 31u)) & 1u) != 0u;
}

// The image is in windows, and so are frames of what lanes have written: a page of GROUP lanes each,
// interleaved by word. For each group of lanes and each page: the frame, and a bit per lane that has copied
// the page. Only lanes of the group look there, and they are in one subgroup.
@group(0) @binding(7) var<storage, read_write> tables: array<vec2<u32>>;

// The group's table; the lane's place in the group.
var<private> table: u32;
var<private> seat: u32;
// A page of which the lane needs a copy.
var<private> want: u32;

const NO_PAGE: u32 = 0xffffffffu;

fn start_memory() {
  table = table_at();
  seat = lane % GROUP;
  want = NO_PAGE;
}

fn has(entry: vec2<u32>) -> bool {
  return ((entry.y >> seat) & 1u) != 0u;
}

// Where a word of the lane's is in a frame.
fn in_frame(word: u32) -> u32 {
  return (word & 511u) * GROUP + seat;
}

// The frame of a word's page, or zero if the lane has no copy of it.
fn frame_of(word: u32) -> u32 {
  let entry = tables[table + (word >> 9u)];
  return select(0u, entry.x, has(entry));
}

// True if the lane has a copy of the page.
fn is_own(place: Place) -> bool {
  return place.frame != 0u;
}

// The same; otherwise the instruction is executed again when it has.
fn own(place: Place) -> bool {
  if (is_own(place)) {
    return true;
  }
  want = place.word >> 9u;
  at -= 1u;
  return false;
}

// A word of the page where the place starts.
fn load_word(place: Place, word: u32) -> u64 {
  if (place.frame != 0u) {
    return frame_word(place.frame, in_frame(word));
  }
  return image_word(word);
}

// The lane has its own copy of what it writes.
fn set_word(place: Place, word: u32, value: u64) {
  set_frame_word(place.frame, in_frame(word), value);
}

// Changes the bits of a word that `mask` has.
fn change_word(place: Place, word: u32, value: u64, mask: u64) {
  let index = in_frame(word);
  set_frame_word(place.frame, index, (frame_word(place.frame, index) & ~mask) | value);
}

fn load_word_across(place: Place, word: u32) -> u64 {
  return load_word(around(place, word), word);
}

fn change_word_across(place: Place, word: u32, value: u64, mask: u64) {
  change_word(around(place, word), word, value, mask);
}

fn wants_page() -> bool {
  return want != NO_PAGE;
}

// Gives lanes the pages they want. Those of a group that want the same page share a frame, which one of them
// gets; they stop if there is none.
fn own_pages() {
  loop {
    let page = subgroupMin(want);
    if (page == NO_PAGE) {
      break;
    }
    let mine = want == page;
    let votes = subgroupBallot(mine);
    let first_of_group = place - seat;
    let lanes = (votes[first_of_group >> 5u] >> (first_of_group & 31u)) & GROUP_BITS;
    let leader = first_of_group + countTrailingZeros(lanes | 0x80000000u);
    var frame = 0u;
    if (mine && place == leader) {
      let entry = tables[table + page];
      frame = entry.x;
      if (frame == 0u) {
        frame = atomicAdd(&pool.next, 1u);
        frame = select(0u, frame, frame < arguments.frames);
      }
      if (frame != 0u) {
        tables[table + page] = vec2<u32>(frame, entry.y | lanes);
      }
    }
    frame = subgroupShuffle(frame, leader);
    if (mine) {
      want = NO_PAGE;
      if (frame == 0u) {
        stop = NO_FRAME;
        detail = 0lu;
        park();
      } else {
        for (var i = 0u; i < 512u; i++) {
          set_frame_word(frame, in_frame(i), image_word(page * 512u + i));
        }
      }
    }
  }
}

fn cas(place: Place, bits: u32, expected: u64, wanted: u64) -> u64 {
  let old = load(place, 0u, bits);
  if (old == expected) {
    store(place, 0u, bits, wanted);
  }
  return old;
}

fn rmw(op: u32, place: Place, bits: u32, value: u64) -> u64 {
  let old = load(place, 0u, bits);
  store(place, 0u, bits, modified(op, bits, old, value));
  return old;
}

struct Pair {
  low: u64,
  high: u64,
}

fn cas_pair(place: Place, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  let old = Pair(load(place, 0u, 64u), load(place, 8u, 64u));
  if (old.low == e_low && old.high == e_high) {
    store(place, 0u, 64u, n_low);
    store(place, 8u, 64u, n_high);
  }
  return old;
}

fn low_bits(bits: u32) -> u64 {
  return ~0lu >> (64u - bits);
}

// A value of 8 to 64 bits in a place, at an offset in bytes: aligned, and in the page where the place starts.
fn load(place: Place, offset: u32, bits: u32) -> u64 {
  let at = place.byte + offset;
  let word = load_word(place, place.word + (at >> 3u));
  if (bits == 64u) {
    return word;
  }
  return (word >> ((at & 7u) * 8u)) & low_bits(bits);
}

// What is at any address goes through here: the words of a place, the largest of which has 64 bytes. Loops take far
// less code than accesses to each word where an instruction needs it, and so much less time to compile.
var<private> window: array<u64, 9>;

// The words that a place has bytes of.
fn words_of(place: Place, len: u32) -> u32 {
  return (place.byte + len + 7u) >> 3u;
}

// Loads the words of a place.
fn gather(place: Place, len: u32) {
  let count = words_of(place, len);
  for (var i = 0u; i < count; i++) {
    window[i] = load_word_across(place, place.word + i);
  }
}

// A value in a place whose words were loaded.
fn load_unaligned(place: Place, offset: u32, bits: u32) -> u64 {
  let at = place.byte + offset;
  let index = at >> 3u;
  let shift = (at & 7u) * 8u;
  var value = window[index] >> shift;
  if (shift + bits > 64u) {
    value |= window[index + 1u] << (64u - shift);
  }
  return value & low_bits(bits);
}

// False if the address is not a multiple of the size of an element, or the place crosses a page: then the instruction
// is left to the handlers that can.
fn is_usual(addr: u64, size: u32, len: u32) -> bool {
  if ((u32(addr) & (size - 1u)) == 0u && (len == size || (u32(addr) & 4095u) <= 4096u - len)) {
    return true;
  }
  unaligned = true;
  at -= 1u;
  return false;
}

fn signed(bits: u32, value: u64) -> i64 {
  let shift = 64u - bits;
  return bitcast<i64>(value << shift) >> shift;
}

// What a read-modify-write stores; the numbers are those of `RmwOp`.
fn modified(op: u32, bits: u32, old: u64, value: u64) -> u64 {
  switch (op) {
    case 0u: { return (old + value) & low_bits(bits); }
    case 1u: { return old & value; }
    case 2u: { return old | value; }
    case 3u: { return old ^ value; }
    case 4u: { return value; }
    case 5u: { return select(value, old, signed(bits, old) > signed(bits, value)); }
    case 6u: { return select(value, old, signed(bits, old) < signed(bits, value)); }
    case 7u: { return select(value, old, old > value); }
    default: { return select(value, old, old < value); }
  }
}

// A value of 8 to 64 bits in a place, at an offset in bytes: aligned, and in the page where the place starts.
fn store(place: Place, offset: u32, bits: u32, value: u64) {
  let at = place.byte + offset;
  let word = place.word + (at >> 3u);
  if (bits == 64u) {
    set_word(place, word, value);
  } else {
    let shift = (at & 7u) * 8u;
    change_word(place, word, value << shift, low_bits(bits) << shift);
  }
}

// The bits of each word that will be changed.
var<private> masks: array<u64, 9>;

// Begins to collect what will be stored in a place.
fn collect(place: Place, len: u32) {
  let count = words_of(place, len);
  for (var i = 0u; i < count; i++) {
    window[i] = 0lu;
    masks[i] = 0lu;
  }
}

// Collects a value, at any address.
fn store_unaligned(place: Place, offset: u32, bits: u32, value: u64) {
  let at = place.byte + offset;
  let index = at >> 3u;
  let shift = (at & 7u) * 8u;
  window[index] |= value << shift;
  masks[index] |= low_bits(bits) << shift;
  if (shift + bits > 64u) {
    let rest = 64u - shift;
    window[index + 1u] |= value >> rest;
    masks[index + 1u] |= low_bits(bits) >> rest;
  }
}

// Stores what was collected.
fn scatter(place: Place, len: u32) {
  let count = words_of(place, len);
  for (var i = 0u; i < count; i++) {
    change_word_across(place, place.word + i, window[i], masks[i]);
  }
}

// For an aligned element, which crosses no boundary.
fn may_write_within(addr: u64, len: u32, fault: u32) -> bool {
  if (!is_within(addr, len, fault)) {
    return false;
  }
  if (is_code(addr)) {
    stop_before(CODE_WRITE, addr);
    return false;
  }
  return true;
}

// For all that is not larger than a granule.
fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  if (!may_write_within(addr, len, fault)) {
    return false;
  }
  if (is_code(addr + u64(len - 1u))) {
    stop_before(CODE_WRITE, addr);
    return false;
  }
  return true;
}

// ADD_imm_X
fn h6(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  x[v1] = v4;
}

// SUBS_imm_X
fn h7(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 - v2;
  let v6: bool = bitcast<i64>(v4) < bitcast<i64>(0x0lu);
  let v7: bool = v4 == 0x0lu;
  let v8: bool = v2 <= v3;
  let v9: u64 = v3 ^ v2;
  let v10: u64 = v3 ^ v4;
  let v11: u64 = v9 & v10;
  let v12: bool = bitcast<i64>(v11) < bitcast<i64>(0x0lu);
  flag_n = v6;
  flag_z = v7;
  flag_c = v8;
  flag_v = v12;
  x[v1] = v4;
}

// B_cond
fn h8(w: vec4<u32>) {
  let v0: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v2: bool = flag_z;
  let v5: bool = !v2;
  if (v5) { branch_near(w.z); }
}

// LDR_W_uimm
fn h9(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  let p0_at = untagged(v4);
  if (!is_usual(p0_at, 4u, 4u)) { return false; }
  if (!is_within(p0_at, 4u, 9u)) { return false; }
  let p0 = place_at(p0_at);
  let v5: u32 = u32(load(p0, 0u, 32u));
  let v6: u64 = u64(v5);
  x[v1] = v6;
  return true;
}
fn unaligned_9(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  let p0_at = untagged(v4);
  if (!is_within(p0_at, 4u, 9u)) { return false; }
  let p0 = place_across(p0_at, 4u);
  gather(p0, 4u);
  let v5: u32 = u32(load_unaligned(p0, 0u, 32u));
  let v6: u64 = u64(v5);
  x[v1] = v6;
  return true;
}

// STR_X_uimm
fn h10(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  let v5: u64 = x[v1];
  let p0_at = untagged(v4);
  if (!is_usual(p0_at, 8u, 8u)) { return false; }
  if (!may_write_within(p0_at, 8u, 10u)) { return false; }
  let p0 = place_at(p0_at);
  if (!own(p0)) { return false; }
  store(p0, 0u, 64u, u64(v5));
  return true;
}
fn unaligned_10(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  let v5: u64 = x[v1];
  let p0_at = untagged(v4);
  if (!may_write(p0_at, 8u, 10u)) { return false; }
  let p0 = place_across(p0_at, 8u);
  if (!own(p0)) { return false; }
  if (!own(place_at(p0_at + 7lu))) { return false; }
  collect(p0, 8u);
  store_unaligned(p0, 0u, 64u, u64(v5));
  scatter(p0, 8u);
  return true;
}

// LDADD_X
fn h11(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u32 = (w.y >> 0u) & 0xffu;
  let v3: u64 = x[v0];
  let v4: u64 = x[v1];
  let v6: u64 = v4 & 0x7lu;
  let v8: bool = v6 != 0x0lu;
  if (v8) { stop_before(20u, v4); return false; }
  let p0_at = untagged(v4);
  if (!may_write_within(p0_at, 8u, 11u)) { return false; }
  let p0 = place_at(p0_at);
  if (!own(p0)) { return false; }
  let v9: u64 = rmw(0u, p0, 64u, u64(v3));
  x[v2] = v9;
  return true;
}

// CLZ_X
fn h12(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = x[v0];
  let v5: u64 = v2 >> 0x20u;
  let v6: u32 = u32(v2);
  let v7: u32 = u32(v5);
  let v9: bool = v7 == 0x0u;
  let v10: u32 = countLeadingZeros(v6);
  let v11: u32 = v10 + 0x20u;
  let v12: u32 = countLeadingZeros(v7);
  let v13: u32 = select(v12, v11, v9);
  let v14: u64 = u64(v13);
  x[v1] = v14;
}

fn run_unaligned(w: vec4<u32>) -> bool {
  switch (w.x & 0xffffu) {
    case 9u: { return unaligned_9(w); }
    case 10u: { return unaligned_10(w); }
    default: { return false; }
  }
}

fn run_straight() {
  loop {
    if (at == limit) {
      break;
    }
    let w = records[at];
    at += 1u;
    switch (w.x & 0xffffu) {
      case 0u: { not_decoded(); }
      case 1u: { stop_before(UNDEFINED, u64(w.z) | (u64(w.w) << 32u)); }
      case 2u: { stop_before(BREAKPOINT, 0lu); }
      case 4u: { stop_before(NO_HANDLER, 0lu); }
      case 6u: { h6(w); continue; }
      case 7u: { h7(w); continue; }
      case 8u: { h8(w); }
      case 9u: { if (h9(w)) { continue; } }
      case 10u: { if (h10(w)) { continue; } }
      case 11u: { if (h11(w)) { continue; } }
      case 12u: { h12(w); continue; }
      default: { not_decoded(); }
    }
    if (!unaligned) {
      break;
    }
    unaligned = false;
    at += 1u;
    if (!run_unaligned(w)) {
      break;
    }
  }
}

alias Votes = u32;

fn votes(yes: bool) -> Votes {
  return subgroupBallot(yes).x;
}

fn count_votes(votes: Votes) -> u32 {
  let counts = countOneBits(votes);
  return counts;
}

fn are_equal(a: Votes, b: Votes) -> bool {
  return a == b;
}

fn note_turn(turn: u32) {}

fn note_place() {}

// The turn of a lane that has nothing to do.
const IDLE: u32 = 0xffffffffu;

// How often a group that was chosen goes on without a new choice.
const HOLD: u32 = 1u;

// Bits that tell the places of lanes apart.
const HASH_BITS: u32 = 5u;

// How often in a row the lane has had to wait.
var<private> waited: u32;

fn next_turn() -> u32 {
  return select(at, IDLE, at == limit);
}

// How many lanes are at the place of this one. Places are told apart by a hash: now and then it is too many, and
// then a smaller group goes on.
fn lanes_at(turn: u32) -> u32 {
  let hash = (turn * 0x9e3779b1u) >> (32u - HASH_BITS);
  var same = votes(turn != IDLE);
  for (var bit = 0u; bit < HASH_BITS; bit++) {
    let mine = ((hash >> bit) & 1u) != 0u;
    let others = votes(mine);
    same &= select(~others, others, mine);
  }
  return count_votes(same);
}

// The turn of the largest group of lanes at one place, with a bonus for waiting. So lanes that have parted
// find together again, most of them do something most of the time, and none waits for ever, not even for a
// lock that another one holds.
fn choose(turn: u32) -> u32 {
  let score = select(((lanes_at(turn) + (waited >> 1u)) << 7u) | place, 0u, turn == IDLE);
  return subgroupShuffle(turn, subgroupMax(score) & 127u);
}

// Lanes of a subgroup come together after each branch. If they are not at the same place, one group that is
// goes on. Those that have stopped stay, with nothing left to do: what chooses who goes on wants all lanes.
fn run_subgroup() {
  var goes = false;
  var held = 0u;
  loop {
    if (subgroupAny(wants_page())) {
      own_pages();
    }
    let turn = next_turn();
    note_turn(turn);
    // Where those are that went on before; the last place, if they have parted.
    var chosen = subgroupMax(select(0u, turn, goes && turn != IDLE));
    if (held > 0u && chosen != 0u) {
      held -= 1u;
    } else {
      if (!subgroupAny(turn != IDLE)) {
        break; // Nobody can go on.
      }
      if (subgroupAny(turn != chosen && turn != IDLE)) {
        chosen = choose(turn);
      }
      held = HOLD;
    }
    goes = turn == chosen && turn != IDLE;
    waited = select(waited + 1u, 0u, goes);
    if (goes) {
      run_straight();
      if (stop != RUNNING) {
        park();
      }
    }
  }
}

fn load_state() {
  for (var i = 0u; i < X_SLOTS; i++) {
    x[i] = get_wide(2u * i);
  }
  let flags = states[state + FLAGS_WORD];
  flag_n = (flags & 0x1u) != 0u;
  flag_z = (flags & 0x100u) != 0u;
  flag_c = (flags & 0x10000u) != 0u;
  flag_v = (flags & 0x1000000u) != 0u;
  load_vectors();
}

fn save_state(counter: u64) {
  for (var i = 0u; i < X_SLOTS; i++) {
    set_wide(2u * i, x[i]);
  }
  let flags = select(0u, 0x1u, flag_n) | select(0u, 0x100u, flag_z)
    | select(0u, 0x10000u, flag_c) | select(0u, 0x1000000u, flag_v);
  states[state + FLAGS_WORD] = flags;
  set_wide(PC_WORD, counter);
  save_vectors();
  // An exception clears the exclusive monitor.
  if (stop >= FIRST_EXCEPTION) {
    states[state + EXCLUSIVE_LEN_WORD] = 0u;
  }
}

// Prepares a lane that can go on. The instructions it may still complete in this run.
fn start(status: Status) -> u64 {
  state = lane * STATE_WORDS;
  load_state();
  var budget = u64(status.budget_low) | (u64(status.budget_high) << 32u);
  if (arguments.begins != 0u) {
    budget = u64(arguments.max_cycles_low) | (u64(arguments.max_cycles_high) << 32u);
  }
  let fuel = u32(min(budget, u64(arguments.share)));
  count = (u64(status.count_low) | (u64(status.count_high) << 32u)) + u64(fuel);
  stop = RUNNING;
  start_code();
  at = base;
  limit = at + fuel;
  branch_far(get_wide(PC_WORD));
  if (stop != RUNNING) {
    park();
  }
  return budget - u64(fuel);
}

// Says how far the lane has come; `rest` is what it may complete beyond this launch. One that stopped because
// there is no code is where it found none.
fn finish(rest: u64) {
  let counter = select(address_of(at), detail, stop == NO_CODE);
  let budget = rest + u64(left);
  if (budget == 0lu && (stop == RUNNING || stop == NO_CODE)) {
    stop = MAX_CYCLES;
  }
  save_state(counter);
  let total = count - u64(left);
  let before = u64(statuses[lane].count_low) | (u64(statuses[lane].count_high) << 32u);
  statuses[lane].count_low = u32(total);
  statuses[lane].count_high = u32(total >> 32u);
  statuses[lane].budget_low = u32(budget);
  statuses[lane].budget_high = u32(budget >> 32u);
  statuses[lane].detail_low = u32(detail);
  statuses[lane].detail_high = u32(detail >> 32u);
  statuses[lane].stop = stop;
  let done = u32(total - before);
  let executed = atomicAdd(&pool.executed_low, done);
  if (executed + done < executed) {
    atomicAdd(&pool.executed_high, 1u);
  }
  if (stop != RUNNING) {
    stopped[atomicAdd(&pool.stopped, 1u)] = lane;
  } else {
    note_place();
  }
}

fn can_run(stop: u32) -> bool {
  return stop == RUNNING || stop == NO_CODE || stop == NO_FRAME || stop == CODE_WRITE
    || stop == NO_HANDLER || (stop > NO_PAGE_STOP && stop <= NO_PAGE_STOP + 3u);
}

@compute @workgroup_size(WORKGROUP)
fn run(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) invocation: u32,
) {
  place = invocation;
  lane = (group.x + group.y * groups.x) * WORKGROUP + subgroup * size + place;
  // Those without a lane take part in what the subgroup does together.
  at = 0u;
  limit = 0u;
  waited = 0u;
  left = 0u;
  start_memory();
  var runs = false;
  var rest = 0lu;
  if (lane < arguments.lanes) {
    let status = statuses[lane];
    runs = arguments.begins != 0u || can_run(status.stop);
    if (runs) {
      rest = start(status);
    }
  }
  run_subgroup();
  if (runs) {
    finish(rest);
  }
  if (lane < arguments.lanes) {
    atomicAdd(&pool.ended, 1u);
  }
}
