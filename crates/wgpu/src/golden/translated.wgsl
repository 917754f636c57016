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
const PAGES: u32 = 256u;
const VARIES: u32 = 4u;
const LEAF_PAGES: u32 = 512u;
const LEAF_BITS: u32 = 21u;
const RIGHTS_BITS: u32 = 3u;
const BLOCK_BITS: u32 = 20u;
const BLOCK_RECORDS: u32 = 263168u;
const NO_PAGE_STOP: u32 = 8u;
const GROUP: u32 = 32u;
const GROUP_BITS: u32 = 4294967295u;
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
const SIZE: u64 = 0x100000lu;
alias Address = u32;
const GRANULE: Address = 64u;

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
  return frames0[frame * 16384u + index];
}

fn set_frame_word(frame: u32, index: u32, value: u64) {
  frames0[frame * 16384u + index] = value;
}

// Memory goes from address 0 to its size, and the code is in one piece.

fn code_start() -> u64 {
  return u64(arguments.code_start_low) | (u64(arguments.code_start_high) << 32u);
}

fn code_len() -> u32 {
  return arguments.code_len;
}

fn start_code() {
  base = arguments.first_record;
}

fn branch_target(address: u64) -> u64 {
  return address;
}

// Goes on outside of the code.
fn leave(goal: u64) {
  stop_without_code(goal);
}

// At a record that is not decoded.
fn not_decoded() {
  at -= 1u;
  stop_without_code(address_of(at));
}

// The number of the 8-byte word that holds the byte at an address.
fn word_of(addr: u64) -> u32 {
  return u32(Address(addr) >> 3u);
}

fn is_within(addr: u64, len: u32, fault: u32) -> bool {
  if (addr > SIZE - u64(len)) {
    stop_before(fault, addr);
    return false;
  }
  return true;
}

// True if the byte at an address is in a granule with decoded words.
fn is_code(addr: u64) -> bool {
  let offset = Address(addr) - (Address(code_start()) - GRANULE);
  if (offset >= Address(arguments.code_len) + GRANULE + GRANULE) {
    return false;
  }
  let granule = (u32(offset) >> 6u) + arguments.first_flag;
  return ((code_map[granule >> 5u] >> (granule & 31u)) & 1u) != 0u;
}

// Where the page table of the lane's group is.
fn table_at() -> u32 {
  return (lane / GROUP) * PAGES;
}

// A piece of memory that was checked: the number of its first word, the byte in it where it starts, and the
// frame of its page, or zero if the lane has no copy of it.
struct Place {
  word: u32,
  byte: u32,
  frame: u32,
}

fn place_at(addr: u64) -> Place {
  let word = word_of(addr);
  return Place(word, u32(addr) & 7u, frame_of(word));
}

// The place as seen from a word of it, which may be in the next page.
fn around(place: Place, word: u32) -> Place {
  if ((word >> 9u) == (place.word >> 9u)) {
    return place;
  }
  return Place(word, 0u, frame_of(word));
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

// LDR_W_uimm
fn h6(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  if (!is_usual(v4, 4u, 4u)) { return false; }
  if (!is_within(v4, 4u, 32u)) { return false; }
  let p0 = place_at(v4);
  let v5: u32 = u32(load(p0, 0u, 32u));
  let v6: u64 = u64(v5);
  x[v1] = v6;
  return true;
}
fn unaligned_6(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  if (!is_within(v4, 4u, 32u)) { return false; }
  let p0 = place_at(v4);
  gather(p0, 4u);
  let v5: u32 = u32(load_unaligned(p0, 0u, 32u));
  let v6: u64 = u64(v5);
  x[v1] = v6;
  return true;
}

// STR_X_uimm
fn h7(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  let v5: u64 = x[v1];
  if (!is_usual(v4, 8u, 8u)) { return false; }
  if (!may_write_within(v4, 8u, 33u)) { return false; }
  let p0 = place_at(v4);
  if (!own(p0)) { return false; }
  store(p0, 0u, 64u, u64(v5));
  return true;
}
fn unaligned_7(w: vec4<u32>) -> bool {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  let v5: u64 = x[v1];
  if (!may_write(v4, 8u, 33u)) { return false; }
  let p0 = place_at(v4);
  if (!own(p0)) { return false; }
  if (!own(place_at(v4 + 7lu))) { return false; }
  collect(p0, 8u);
  store_unaligned(p0, 0u, 64u, u64(v5));
  scatter(p0, 8u);
  return true;
}

// CBZ_X
fn h8(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v2: u64 = x[v0];
  let v4: bool = v2 == 0x0lu;
  if (v4) { branch_near(w.z); }
}

// ADD_imm_X
fn h9(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  x[v1] = v4;
}

// SUBS_imm_X
fn h10(w: vec4<u32>) {
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
fn h11(w: vec4<u32>) {
  let v0: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v2: bool = flag_z;
  let v5: bool = !v2;
  if (v5) { branch_near(w.z); }
}

fn run_unaligned(w: vec4<u32>) -> bool {
  switch (w.x & 0xffffu) {
    case 6u: { return unaligned_6(w); }
    case 7u: { return unaligned_7(w); }
    default: { return false; }
  }
}

fn run_straight(given: vec4<u32>) -> u32 {
  var w = given;
  var is_given = true;
  var block = TO_GATHER;
  loop {
    if (at == limit) {
      break;
    }
    if (!is_given) { w = records[at]; }
    is_given = false;
    at += 1u;
    switch (w.x & 0xffffu) {
      case 0u: { not_decoded(); }
      case 1u: { stop_before(UNDEFINED, u64(w.z) | (u64(w.w) << 32u)); }
      case 2u: { stop_before(BREAKPOINT, 0lu); }
      case 4u: { stop_before(NO_HANDLER, 0lu); }
      case 5u: { at -= 1u; block = w.y; }
      case 6u: { if (h6(w)) { continue; } }
      case 7u: { if (h7(w)) { continue; } }
      case 8u: { h8(w); }
      case 9u: { h9(w); continue; }
      case 10u: { h10(w); continue; }
      case 11u: { h11(w); }
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
  return block;
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

// Translated code: where lanes leave it, in the place of the number of a block. They gather; or they interpret an
// instruction, of which the record is in the table or at hand.
const TO_GATHER: u32 = 0xffffffffu;
const TO_INTERPRET: u32 = 0xfffffffeu;
const AT_HAND: u32 = 0xfffffffdu;

// True if all lanes that came to translated code together are still there, and go on with the same block.
fn agree(block: u32, full: Votes) -> bool {
  let first = subgroupBroadcastFirst(block);
  return are_equal(votes((block < AT_HAND) & (block == first)), full);
}

// True for an access that translated code makes itself; others are left to handlers.
fn can_read(addr: u64, size: u32, len: u32) -> bool {
  let aligned = (u32(addr) & (size - 1u)) == 0u;
  let in_page = len == size || (u32(addr) & 4095u) <= 4096u - len;
  return aligned & in_page & (addr <= SIZE - u64(len));
}

// True for a write that translated code makes itself.
fn can_write(addr: u64, size: u32, len: u32) -> bool {
  return can_read(addr, size, len) && !is_code(addr) && (len == size || !is_code(addr + u64(len - 1u)));
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
  var in_variables = false;
  var g0 = 0lu;
  var g1 = 0lu;
  var g2 = 0lu;
  var g3 = 0lu;
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
        if (in_variables) {
          x[0] = g0;
          x[1] = g1;
          x[2] = g2;
          x[3] = g3;
        }
        break; // Nobody can go on.
      }
      if (subgroupAny(turn != chosen && turn != IDLE)) {
        chosen = choose(turn);
      }
      held = HOLD;
    }
    goes = turn == chosen && turn != IDLE;
    waited = select(waited + 1u, 0u, goes);
    let full = votes(goes);
    let apart = subgroupAny(!goes && turn != IDLE);
    if (goes) {
      var w = records[at];
      loop {
        var block = w.y;
        if ((w.x & 0xffffu) != 5u) {
          if (in_variables) {
            x[0] = g0;
            x[1] = g1;
            x[2] = g2;
            x[3] = g3;
            in_variables = false;
          }
          block = run_straight(w);
        }
        if (block == TO_GATHER) {
          break;
        }
        if (!in_variables) {
          g0 = x[0];
          g1 = x[1];
          g2 = x[2];
          g3 = x[3];
          in_variables = true;
        }
        var fuel = limit - at;
        var goal = 0lu;
        loop {
          switch (block / GROUPED) {
            case 0u: {
              switch (block) {
                case 0u: { // 0x1000
                  fuel -= 3u;
                  if (fuel > 0xfffffffcu) { fuel += 3u; w = vec4<u32>(0x10006u, 0x0u, 0x4u, 0x0u); goal = 0x1000lu; block = AT_HAND; break; }
                  let v8: u64 = g1;
                  let v12: u64 = v8 + 0x4lu;
                  if (!can_read(v12, 4u, 4u)) { fuel += 3u; w = vec4<u32>(0x10006u, 0x0u, 0x4u, 0x0u); goal = 0x1000lu; block = AT_HAND; break; }
                  let p0 = place_at(v12);
                  let v13: u32 = u32(load(p0, 0u, 32u));
                  let v14: u64 = u64(v13);
                  g0 = v14;
                  let v18: u64 = g3;
                  let v20: u64 = g2;
                  if (!can_write(v18, 8u, 8u)) { fuel += 2u; goal = 0x1004lu; block = TO_INTERPRET; break; }
                  let p1 = place_at(v18);
                  if (!is_own(p1)) { fuel += 2u; goal = 0x1004lu; block = TO_INTERPRET; break; }
                  store(p1, 0u, 64u, u64(v20));
                  let v21: bool = v14 == 0x0lu;
                  if (fuel >= 1u) {
                    fuel -= select(1u, 0u, v21);
                    if (v21) {
                    } else {
                      let v34: u64 = g2;
                      let v35: u64 = v34 + 0x1lu;
                      g2 = v35;
                    }
                    block = 1u;
                    goal = 0x1010lu;
                  } else {
                    block = select(2u, 1u, v21);
                    goal = select(0x100clu, 0x1010lu, v21);
                  }
                }
                case 1u: { // 0x1010
                  fuel -= 2u;
                  if (fuel > 0xfffffffdu) { fuel += 2u; w = vec4<u32>(0x101000au, 0x0u, 0x1u, 0x0u); goal = 0x1010lu; block = AT_HAND; break; }
                  let v40: u64 = g1;
                  let v41: u64 = v40 - 0x1lu;
                  let v42: bool = bitcast<i64>(v41) < bitcast<i64>(0x0lu);
                  let v43: bool = v41 == 0x0lu;
                  let v44: bool = 0x1lu <= v40;
                  let v45: u64 = v40 ^ 0x1lu;
                  let v46: u64 = v40 ^ v41;
                  let v47: u64 = v45 & v46;
                  let v48: bool = bitcast<i64>(v47) < bitcast<i64>(0x0lu);
                  flag_n = v42;
                  flag_z = v43;
                  flag_c = v44;
                  flag_v = v48;
                  g1 = v41;
                  let v49: bool = !v43;
                  block = select(TO_GATHER, 0u, v49);
                  goal = select(0x1018lu, 0x1000lu, v49);
                }
                case 2u: { // 0x100c
                  fuel -= 1u;
                  if (fuel > 0xfffffffeu) { fuel += 1u; w = vec4<u32>(0x2020009u, 0x0u, 0x1u, 0x0u); goal = 0x100clu; block = AT_HAND; break; }
                  let v34: u64 = g2;
                  let v35: u64 = v34 + 0x1lu;
                  g2 = v35;
                  block = 1u;
                  goal = 0x1010lu;
                }
                default: {}
              }
            }
            default: {}
          }
          if (apart || !agree(block, full)) {
            break;
          }
        }
        at = 0u;
        limit = fuel;
        branch_far(goal);
        if ((block != TO_INTERPRET && block != AT_HAND) || at == limit) {
          break;
        }
        if (block == TO_INTERPRET) {
          w = records[at];
        }
      }
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
