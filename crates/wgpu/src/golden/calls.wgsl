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

@group(0) @binding(8) var<storage, read_write> vectors: array<u32>;

// The vector registers, by halves.
var<private> v: array<u64, V_SLOTS>;

fn load_vectors() {
  let first = lane * 2u * V_SLOTS;
  for (var i = 0u; i < V_SLOTS; i++) {
    v[i] = u64(vectors[first + 2u * i]) | (u64(vectors[first + 2u * i + 1u]) << 32u);
  }
}

fn save_vectors() {
  let first = lane * 2u * V_SLOTS;
  for (var i = 0u; i < V_SLOTS; i++) {
    vectors[first + 2u * i] = u32(v[i]);
    vectors[first + 2u * i + 1u] = u32(v[i] >> 32u);
  }
}

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

// ADD_imm_X
fn h6(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v2: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v3: u64 = x[v0];
  let v4: u64 = v3 + v2;
  x[v1] = v4;
}

// FCMP_S
fn h11(w: vec4<u32>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v4: u32 = v0 << 0x1u;
  let v5: u32 = v1 << 0x1u;
  let v6: u64 = v[v4];
  let v7: u32 = u32(v6);
  let v8: u64 = v[v5];
  let v9: u32 = u32(v8);
  let v10: u64 = u64(fpsr);
  let v12: u64 = v10 & 0x10lu;
  let v13: u64 = u64(fpcr);
  let v14: u64 = v13 | v12;
  let v15: u32 = u32(v14);
  let v17: u32 = v15 & 0x1000000u;
  let v19: bool = v17 != 0x0u;
  var v42: u32;
  var v43: u32;
  var v44: u32;
  if (v19) {
    let v21: u32 = v15 & 0x1000000u;
    let v22: bool = v21 != 0x0u;
    let v24: u32 = v7 & 0x7fffffffu;
    let v25: u32 = v24 - 0x1u;
    let v27: bool = v25 < 0x7fffffu;
    let v28: bool = v27 & v22;
    let v30: u32 = v7 & 0x80000000u;
    let v31: u32 = select(v7, v30, v28);
    let v32: u32 = v9 & 0x7fffffffu;
    let v33: u32 = v32 - 0x1u;
    let v34: bool = v33 < 0x7fffffu;
    let v35: bool = v34 & v22;
    let v36: u32 = v9 & 0x80000000u;
    let v37: u32 = select(v9, v36, v35);
    let v39: bool = v28 | v35;
    let v41: u32 = select(0x0u, 0x80u, v39);
    v42 = v31;
    v43 = v37;
    v44 = v41;
  } else {
    v42 = v7;
    v43 = v9;
    v44 = 0x0u;
  }
  let v45: u32 = v42 & 0x80000000u;
  let v46: bool = v45 != 0x0u;
  let v47: u32 = v42 & 0x7fffffffu;
  let v48: u32 = v43 & 0x80000000u;
  let v49: bool = v48 != 0x0u;
  let v50: u32 = v43 & 0x7fffffffu;
  let v52: u32 = 0x0u - v47;
  let v53: u32 = select(v47, v52, v46);
  let v54: u32 = 0x0u - v50;
  let v55: u32 = select(v50, v54, v49);
  let v56: bool = 0x7f800000u < v47;
  let v57: bool = 0x7f800000u < v50;
  let v58: bool = v56 | v57;
  var v89: u32;
  var v90: u32;
  if (v58) {
    let v60: u32 = v42 & 0x7fffffffu;
    let v61: bool = 0x7f800000u < v60;
    let v62: u32 = v43 & 0x7fffffffu;
    let v63: bool = 0x7f800000u < v62;
    let v65: u32 = v42 & 0x400000u;
    let v66: bool = v65 == 0x0u;
    let v67: bool = v61 & v66;
    let v68: u32 = v43 & 0x400000u;
    let v69: bool = v68 == 0x0u;
    let v70: bool = v63 & v69;
    let v74: bool = v67 | v70;
    let v81: u32 = select(0x0u, 0x1u, v74);
    v89 = 0x3u;
    v90 = v81;
  } else {
    let v82: bool = bitcast<i32>(v53) < bitcast<i32>(v55);
    let v85: u32 = select(0x2u, 0x8u, v82);
    let v86: bool = v53 == v55;
    let v88: u32 = select(v85, 0x6u, v86);
    v89 = v88;
    v90 = 0x0u;
  }
  let v91: u32 = v44 | v90;
  let v92: bool = v91 != 0x0u;
  if (v92) {
    let v93: u64 = u64(fpsr);
    let v94: u64 = u64(v91);
    let v95: u64 = v93 | v94;
    fpsr = u32(v95);
  } else {
  }
  let v96: u32 = v89 & 0x8u;
  let v97: bool = v96 != 0x0u;
  let v99: u32 = v89 & 0x4u;
  let v100: bool = v99 != 0x0u;
  let v101: u32 = v89 & 0x2u;
  let v102: bool = v101 != 0x0u;
  let v103: u32 = v89 & 0x1u;
  let v104: bool = v103 != 0x0u;
  flag_n = v97;
  flag_z = v100;
  flag_c = v102;
  flag_v = v104;
}

// A call: what comes next, operands, results, and what is kept for later.
struct Call {
  piece: u32,
  function: u32,
  param0: u32,
  param1: u32,
  param2: u32,
  result0: u64,
  result1: u32,
  kept_u32_0: u32,
  kept_u64_0: u64,
  kept_u64_1: u64,
}

// FADD_S
fn piece_12(w: vec4<u32>, call: ptr<function, Call>) {
  let v19: u32 = u32((*call).result0);
  let v20: u32 = (*call).result1;
  let v2: u32 = (w.y >> 0u) & 0xffu;
  let v7: u32 = v2 << 0x1u;
  let v8: u32 = v7 + 0x1u;
  let v22: bool = v20 != 0x0u;
  if (v22) {
    let v24: u64 = u64(fpsr);
    let v25: u64 = u64(v20);
    let v26: u64 = v24 | v25;
    fpsr = u32(v26);
  } else {
  }
  let v27: u64 = u64(v19);
  v[v7] = v27;
  v[v8] = 0x0lu;
  (*call).piece = 0u;
}
fn piece_7(w: vec4<u32>, call: ptr<function, Call>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v0 << 0x1u;
  let v6: u32 = v1 << 0x1u;
  let v9: u64 = v[v5];
  let v10: u32 = u32(v9);
  let v11: u64 = v[v6];
  let v12: u32 = u32(v11);
  let v13: u64 = u64(fpsr);
  let v15: u64 = v13 & 0x10lu;
  let v16: u64 = u64(fpcr);
  let v17: u64 = v16 | v15;
  let v18: u32 = u32(v17);
  (*call).param0 = v10;
  (*call).param1 = v12;
  (*call).param2 = v18;
  (*call).piece = 12u;
  (*call).function = 0u;
}

// FADD_4S
fn piece_13(w: vec4<u32>, call: ptr<function, Call>) {
  let v44: u32 = (*call).kept_u32_0;
  let v49: u64 = (*call).kept_u64_0;
  let v50: u64 = (*call).kept_u64_1;
  let v41: u32 = u32((*call).result0);
  let v42: u32 = (*call).result1;
  let v2: u32 = (w.y >> 0u) & 0xffu;
  let v9: u32 = v2 << 0x1u;
  let v10: u32 = v9 + 0x1u;
  let v45: u32 = v44 | v42;
  let v51: u64 = u64(v41);
  let v52: u64 = v51 << 0x20u;
  let v53: u64 = v50 | v52;
  let v55: bool = v45 != 0x0u;
  if (v55) {
    let v57: u64 = u64(fpsr);
    let v58: u64 = u64(v45);
    let v59: u64 = v57 | v58;
    fpsr = u32(v59);
  } else {
  }
  v[v9] = v49;
  v[v10] = v53;
  (*call).piece = 0u;
}
fn piece_14(w: vec4<u32>, call: ptr<function, Call>) {
  let v43: u32 = (*call).kept_u32_0;
  let v39: u32 = u32((*call).result0);
  let v40: u32 = (*call).result1;
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v0 << 0x1u;
  let v6: u32 = v5 + 0x1u;
  let v7: u32 = v1 << 0x1u;
  let v8: u32 = v7 + 0x1u;
  let v12: u64 = v[v6];
  let v14: u64 = v[v8];
  let v15: u64 = u64(fpsr);
  let v17: u64 = v15 & 0x10lu;
  let v18: u64 = u64(fpcr);
  let v19: u64 = v18 | v17;
  let v20: u32 = u32(v19);
  let v27: u64 = v12 >> 0x20u;
  let v28: u32 = u32(v27);
  let v33: u64 = v14 >> 0x20u;
  let v34: u32 = u32(v33);
  let v44: u32 = v43 | v40;
  let v50: u64 = u64(v39);
  (*call).kept_u32_0 = v44;
  (*call).kept_u64_1 = v50;
  (*call).param0 = v28;
  (*call).param1 = v34;
  (*call).param2 = v20;
  (*call).piece = 13u;
  (*call).function = 0u;
}
fn piece_15(w: vec4<u32>, call: ptr<function, Call>) {
  let v36: u32 = (*call).kept_u32_0;
  let v46: u64 = (*call).kept_u64_0;
  let v37: u32 = u32((*call).result0);
  let v38: u32 = (*call).result1;
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v0 << 0x1u;
  let v6: u32 = v5 + 0x1u;
  let v7: u32 = v1 << 0x1u;
  let v8: u32 = v7 + 0x1u;
  let v12: u64 = v[v6];
  let v14: u64 = v[v8];
  let v15: u64 = u64(fpsr);
  let v17: u64 = v15 & 0x10lu;
  let v18: u64 = u64(fpcr);
  let v19: u64 = v18 | v17;
  let v20: u32 = u32(v19);
  let v26: u32 = u32(v12);
  let v32: u32 = u32(v14);
  let v43: u32 = v36 | v38;
  let v47: u64 = u64(v37);
  let v48: u64 = v47 << 0x20u;
  let v49: u64 = v46 | v48;
  (*call).kept_u32_0 = v43;
  (*call).kept_u64_0 = v49;
  (*call).param0 = v26;
  (*call).param1 = v32;
  (*call).param2 = v20;
  (*call).piece = 14u;
  (*call).function = 0u;
}
fn piece_16(w: vec4<u32>, call: ptr<function, Call>) {
  let v35: u32 = u32((*call).result0);
  let v36: u32 = (*call).result1;
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v0 << 0x1u;
  let v7: u32 = v1 << 0x1u;
  let v11: u64 = v[v5];
  let v13: u64 = v[v7];
  let v15: u64 = u64(fpsr);
  let v17: u64 = v15 & 0x10lu;
  let v18: u64 = u64(fpcr);
  let v19: u64 = v18 | v17;
  let v20: u32 = u32(v19);
  let v24: u64 = v11 >> 0x20u;
  let v25: u32 = u32(v24);
  let v30: u64 = v13 >> 0x20u;
  let v31: u32 = u32(v30);
  let v46: u64 = u64(v35);
  (*call).kept_u32_0 = v36;
  (*call).kept_u64_0 = v46;
  (*call).param0 = v25;
  (*call).param1 = v31;
  (*call).param2 = v20;
  (*call).piece = 15u;
  (*call).function = 0u;
}
fn piece_8(w: vec4<u32>, call: ptr<function, Call>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v0 << 0x1u;
  let v7: u32 = v1 << 0x1u;
  let v11: u64 = v[v5];
  let v13: u64 = v[v7];
  let v15: u64 = u64(fpsr);
  let v17: u64 = v15 & 0x10lu;
  let v18: u64 = u64(fpcr);
  let v19: u64 = v18 | v17;
  let v20: u32 = u32(v19);
  let v21: u32 = u32(v11);
  let v29: u32 = u32(v13);
  (*call).param0 = v21;
  (*call).param1 = v29;
  (*call).param2 = v20;
  (*call).piece = 16u;
  (*call).function = 0u;
}

// FSUB_S
fn piece_9(w: vec4<u32>, call: ptr<function, Call>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v0 << 0x1u;
  let v6: u32 = v1 << 0x1u;
  let v9: u64 = v[v5];
  let v10: u32 = u32(v9);
  let v11: u64 = v[v6];
  let v12: u32 = u32(v11);
  let v13: u64 = u64(fpsr);
  let v15: u64 = v13 & 0x10lu;
  let v16: u64 = u64(fpcr);
  let v17: u64 = v16 | v15;
  let v18: u32 = u32(v17);
  (*call).param0 = v10;
  (*call).param1 = v12;
  (*call).param2 = v18;
  (*call).piece = 12u;
  (*call).function = 1u;
}

// FCVT_D_S
fn piece_17(w: vec4<u32>, call: ptr<function, Call>) {
  let v15: u64 = (*call).result0;
  let v16: u32 = (*call).result1;
  let v1: u32 = (w.x >> 24u) & 0xffu;
  let v5: u32 = v1 << 0x1u;
  let v6: u32 = v5 + 0x1u;
  let v18: bool = v16 != 0x0u;
  if (v18) {
    let v20: u64 = u64(fpsr);
    let v21: u64 = u64(v16);
    let v22: u64 = v20 | v21;
    fpsr = u32(v22);
  } else {
  }
  v[v5] = v15;
  v[v6] = 0x0lu;
  (*call).piece = 0u;
}
fn piece_10(w: vec4<u32>, call: ptr<function, Call>) {
  let v0: u32 = (w.x >> 16u) & 0xffu;
  let v4: u32 = v0 << 0x1u;
  let v7: u64 = v[v4];
  let v8: u32 = u32(v7);
  let v9: u64 = u64(fpsr);
  let v11: u64 = v9 & 0x10lu;
  let v12: u64 = u64(fpcr);
  let v13: u64 = v12 | v11;
  let v14: u32 = u32(v13);
  (*call).param0 = v8;
  (*call).param1 = v14;
  (*call).piece = 17u;
  (*call).function = 2u;
}

fn FPAdd_32(call: ptr<function, Call>) {
  let v0: u32 = (*call).param0;
  let v1: u32 = (*call).param1;
  let v2: u32 = (*call).param2;
  let v4: u32 = v0 & 0x7fffffffu;
  let v5: u32 = v1 & 0x7fffffffu;
  let v6: bool = v4 < v5;
  let v7: u32 = select(v0, v1, v6);
  let v8: u32 = select(v1, v0, v6);
  let v11: u32 = v7 >> 0x17u;
  let v13: u32 = v11 & 0xffu;
  let v14: u32 = v8 >> 0x17u;
  let v15: u32 = v14 & 0xffu;
  let v17: u32 = v7 & 0x7fffffu;
  let v19: u32 = v17 << 0x7u;
  let v21: u32 = v19 | 0x40000000u;
  let v22: u32 = v8 & 0x7fffffu;
  let v23: u32 = v22 << 0x7u;
  let v24: u32 = v23 | 0x40000000u;
  let v25: u32 = v7 ^ v8;
  let v27: u32 = v25 & 0x80000000u;
  let v29: bool = v27 != 0x0u;
  let v30: bool = v13 == 0xffu;
  let v31: bool = v15 == 0x0u;
  let v32: bool = v30 | v31;
  var v100: bool;
  var v101: u32;
  var v102: u32;
  var v103: u32;
  var v104: u32;
  var v105: u32;
  var v106: u32;
  if (v32) {
    let v35: u32 = v2 & 0x1000000u;
    let v36: bool = v35 != 0x0u;
    let v37: u32 = v7 & 0x7fffffffu;
    let v39: u32 = v37 - 0x1u;
    let v40: bool = v39 < 0x7fffffu;
    let v41: bool = v40 & v36;
    let v42: u32 = v7 & 0x80000000u;
    let v43: u32 = select(v7, v42, v41);
    let v44: u32 = v8 & 0x7fffffffu;
    let v45: u32 = v44 - 0x1u;
    let v46: bool = v45 < 0x7fffffu;
    let v47: bool = v46 & v36;
    let v48: u32 = v8 & 0x80000000u;
    let v49: u32 = select(v8, v48, v47);
    let v51: bool = v41 | v47;
    let v53: u32 = select(0x0u, 0x80u, v51);
    var v88: u32;
    var v89: u32;
    if (v30) {
      let v55: u32 = v43 & 0x7fffffffu;
      let v56: bool = 0x7f800000u < v55;
      let v57: u32 = v49 & 0x7fffffffu;
      let v58: bool = 0x7f800000u < v57;
      let v59: bool = v56 | v58;
      var v86: u32;
      var v87: u32;
      if (v59) {
        let v60: u32 = v0 & 0x7fffffffu;
        let v61: bool = 0x7f800000u < v60;
        let v62: u32 = v1 & 0x7fffffffu;
        let v63: bool = 0x7f800000u < v62;
        let v65: u32 = v0 & 0x400000u;
        let v66: bool = v65 == 0x0u;
        let v67: bool = v61 & v66;
        let v68: u32 = v1 & 0x400000u;
        let v69: bool = v68 == 0x0u;
        let v70: bool = v63 & v69;
        let v71: u32 = select(v1, v0, v61);
        let v72: u32 = select(v71, v1, v70);
        let v73: u32 = select(v72, v0, v67);
        let v74: bool = v67 | v70;
        let v77: u32 = v2 & 0x2000000u;
        let v78: bool = v77 != 0x0u;
        let v79: u32 = v73 | 0x400000u;
        let v80: u32 = select(v79, 0x7fc00000u, v78);
        let v81: u32 = select(0x0u, 0x1u, v74);
        v86 = v80;
        v87 = v81;
      } else {
        let v82: u32 = v43 ^ v49;
        let v83: bool = v82 == 0x80000000u;
        let v84: u32 = select(v43, 0x7fc00000u, v83);
        let v85: u32 = select(0x0u, 0x1u, v83);
        v86 = v84;
        v87 = v85;
      }
      v88 = v86;
      v89 = v87;
    } else {
      v88 = 0x0u;
      v89 = 0x0u;
    }
    let v90: bool = v13 == 0x0u;
    let v91: u32 = select(v13, 0x1u, v90);
    let v92: u32 = v43 & 0x7fffffu;
    let v93: u32 = v92 << 0x7u;
    let v94: u32 = select(v21, v93, v90);
    let v95: u32 = v89 | v53;
    let v96: u32 = v49 & 0x7fffffu;
    let v97: u32 = v96 << 0x7u;
    let v98: u32 = v91 - 0x1u;
    v100 = v30;
    v101 = v88;
    v102 = v95;
    v103 = v94;
    v104 = v97;
    v105 = v91;
    v106 = v98;
  } else {
    let v99: u32 = v13 - v15;
    v100 = false;
    v101 = 0x0u;
    v102 = 0x0u;
    v103 = v21;
    v104 = v24;
    v105 = v13;
    v106 = v99;
  }
  var v201: u32;
  var v202: u32;
  if (v100) {
    v201 = v101;
    v202 = v102;
  } else {
    let v107: bool = v106 < 0x1fu;
    let v108: u32 = select(0x1fu, v106, v107);
    let v109: u32 = v108 & 0x1fu;
    let v110: u32 = v104 >> v109;
    let v111: u32 = v108 & 0x1fu;
    let v112: u32 = v110 << v111;
    let v113: bool = v112 != v104;
    let v114: u32 = select(0x0u, 0x1u, v113);
    let v115: u32 = v110 | v114;
    let v116: u32 = v103 - v115;
    let v117: u32 = v103 + v115;
    let v118: u32 = select(v117, v116, v29);
    let v119: bool = v118 == 0x0u;
    var v198: u32;
    var v199: u32;
    if (v119) {
      let v121: u32 = v2 & 0xc00000u;
      let v123: bool = v121 == 0x800000u;
      let v124: u32 = select(0x0u, 0x80000000u, v123);
      let v125: u32 = v7 & 0x80000000u;
      let v126: u32 = select(v125, v124, v29);
      v198 = v126;
      v199 = 0x0u;
    } else {
      let v127: u32 = countLeadingZeros(v118);
      let v128: u32 = v7 & 0x80000000u;
      let v129: u32 = v105 - v127;
      let v130: u32 = v127 & 0x1fu;
      let v131: u32 = v118 << v130;
      let v132: bool = 0xffu <= v129;
      var v157: u32;
      var v158: u32;
      var v159: u32;
      if (v132) {
        let v133: bool = bitcast<i32>(v129) < bitcast<i32>(0x0u);
        let v134: u32 = v2 & 0x1000000u;
        let v135: bool = v134 != 0x0u;
        let v136: bool = v133 & v135;
        let v137: u32 = 0x0u - v129;
        let v138: bool = v137 < 0x1fu;
        let v139: u32 = select(0x1fu, v137, v138);
        let v140: u32 = v139 & 0x1fu;
        let v141: u32 = v131 >> v140;
        let v142: u32 = v139 & 0x1fu;
        let v143: u32 = v141 << v142;
        let v144: bool = v143 != v131;
        let v145: u32 = select(0x0u, 0x1u, v144);
        let v146: u32 = v141 | v145;
        let v147: u32 = select(v146, 0x0u, v136);
        let v148: u32 = v147 & 0xffu;
        let v149: bool = v148 != 0x0u;
        let v151: u32 = select(0x100u, 0x0u, v133);
        let v152: u32 = select(v131, v147, v133);
        let v153: bool = v133 & v149;
        let v154: bool = v136 | v153;
        let v156: u32 = select(0x0u, 0x8u, v154);
        v157 = v151;
        v158 = v152;
        v159 = v156;
      } else {
        v157 = v129;
        v158 = v131;
        v159 = 0x0u;
      }
      let v160: u32 = v158 & 0xffu;
      let v161: bool = v160 != 0x0u;
      let v162: u32 = v2 & 0xc00000u;
      let v163: u32 = v158 >> 0x8u;
      let v164: u32 = v163 & 0x1u;
      let v166: u32 = v164 + 0x7fu;
      let v167: bool = v128 != 0x0u;
      let v168: u32 = select(0x400000u, 0x800000u, v167);
      let v169: bool = v162 == v168;
      let v170: u32 = select(0x0u, 0xffu, v169);
      let v171: bool = v162 == 0x0u;
      let v172: u32 = select(v170, v166, v171);
      let v173: u32 = v160 + v172;
      let v174: u32 = v173 >> 0x8u;
      let v175: u32 = v158 >> 0x8u;
      let v176: u32 = v175 + v174;
      let v177: u32 = v157 << 0x17u;
      let v178: u32 = v177 + v176;
      let v180: u32 = select(0x0u, 0x10u, v161);
      let v181: u32 = v159 | v180;
      let v182: bool = 0x7f800000u <= v178;
      var v195: u32;
      var v196: u32;
      if (v182) {
        let v183: u32 = v2 & 0xc00000u;
        let v184: bool = v183 == 0x0u;
        let v185: bool = v128 != 0x0u;
        let v186: u32 = select(0x400000u, 0x800000u, v185);
        let v187: bool = v183 == v186;
        let v188: bool = v184 | v187;
        let v190: u32 = select(0x7f7fffffu, 0x7f800000u, v188);
        v195 = v190;
        v196 = 0x14u;
      } else {
        v195 = v178;
        v196 = v181;
      }
      let v197: u32 = v128 | v195;
      v198 = v197;
      v199 = v196;
    }
    let v200: u32 = v102 | v199;
    v201 = v198;
    v202 = v200;
  }
  (*call).result0 = u64(v201);
  (*call).result1 = v202;
}

fn FPConvert_32_64(call: ptr<function, Call>) {
  let v0: u32 = (*call).param0;
  let v1: u32 = (*call).param1;
  let v3: u32 = v0 & 0x80000000u;
  let v4: u64 = u64(v3);
  let v7: u64 = v4 << 0x20u;
  let v10: u32 = v0 >> 0x17u;
  let v12: u32 = v10 & 0xffu;
  let v14: u32 = v12 - 0x1u;
  let v16: bool = 0xfeu <= v14;
  var v102: u64;
  var v103: u32;
  if (v16) {
    let v19: u32 = v1 & 0x1000000u;
    let v21: bool = v19 != 0x0u;
    let v23: u32 = v0 & 0x7fffffffu;
    let v24: u32 = v23 - 0x1u;
    let v26: bool = v24 < 0x7fffffu;
    let v27: bool = v26 & v21;
    let v28: u32 = v0 & 0x80000000u;
    let v29: u32 = select(v0, v28, v27);
    let v32: u32 = select(0x0u, 0x80u, v27);
    let v33: bool = v12 == 0xffu;
    let v35: u32 = v29 & 0x7fffffffu;
    let v36: bool = v35 == 0x0u;
    let v38: u32 = v29 & 0x7fffffffu;
    let v39: bool = 0x7f800000u < v38;
    let v40: bool = v33 & v39;
    let v41: u32 = v29 & 0x7fffffu;
    let v42: u32 = countLeadingZeros(v41);
    let v44: u32 = v42 - 0x8u;
    let v45: u32 = v29 >> 0x17u;
    let v46: u32 = v45 & 0xffu;
    let v47: bool = v46 == 0x0u;
    let v48: u32 = v29 >> 0x17u;
    let v49: u32 = v48 & 0xffu;
    let v50: u32 = v49 - 0x1u;
    let v51: u32 = v29 & 0x7fffffu;
    let v53: u32 = v51 | 0x800000u;
    let v54: u32 = 0x0u - v44;
    let v55: u32 = select(v50, v54, v47);
    let v56: u32 = v44 & 0x1fu;
    let v57: u32 = v41 << v56;
    let v58: u32 = select(v53, v57, v47);
    let v60: u32 = v55 + 0x380u;
    let v61: u64 = u64(v60);
    let v63: u64 = v61 << 0x34u;
    let v64: u64 = u64(v58);
    let v66: u64 = v64 << 0x1du;
    let v67: u64 = v63 + v66;
    let v69: u64 = select(v67, 0x0lu, v36);
    let v71: u64 = select(v69, 0x7ff0000000000000lu, v33);
    let v72: u64 = v7 | v71;
    let v73: u32 = v29 & 0x7fffffffu;
    let v74: bool = 0x7f800000u < v73;
    let v76: u32 = v29 & 0x400000u;
    let v77: bool = v76 == 0x0u;
    let v78: bool = v74 & v77;
    let v79: bool = v33 & v78;
    let v80: u32 = select(0x0u, 0x1u, v79);
    let v82: u32 = v29 & 0x7fffffu;
    let v83: u64 = u64(v82);
    let v84: u64 = v83 << 0x1du;
    let v86: u32 = v1 & 0x2000000u;
    let v87: bool = v86 != 0x0u;
    let v88: u32 = v29 & 0x80000000u;
    let v89: u64 = u64(v88);
    let v90: u64 = v89 << 0x20u;
    let v91: u64 = v90 | v84;
    let v92: u64 = v91 | 0x7ff8000000000000lu;
    let v93: u64 = select(v92, 0x7ff8000000000000lu, v87);
    let v94: u64 = select(v72, v93, v40);
    let v95: u32 = v32 | v80;
    v102 = v94;
    v103 = v95;
  } else {
    let v96: u32 = v0 & 0x7fffffffu;
    let v97: u64 = u64(v96);
    let v98: u64 = v97 << 0x1du;
    let v100: u64 = v98 + 0x3800000000000000lu;
    let v101: u64 = v7 | v100;
    v102 = v101;
    v103 = 0x0u;
  }
  (*call).result0 = v102;
  (*call).result1 = v103;
}

fn FPSub_32(call: ptr<function, Call>) {
  let v0: u32 = (*call).param0;
  let v1: u32 = (*call).param1;
  let v2: u32 = (*call).param2;
  let v4: u32 = v1 ^ 0x80000000u;
  let v6: u32 = v0 & 0x7fffffffu;
  let v7: u32 = v4 & 0x7fffffffu;
  let v8: bool = v6 < v7;
  let v9: u32 = select(v0, v4, v8);
  let v10: u32 = select(v4, v0, v8);
  let v13: u32 = v9 >> 0x17u;
  let v15: u32 = v13 & 0xffu;
  let v16: u32 = v10 >> 0x17u;
  let v17: u32 = v16 & 0xffu;
  let v19: u32 = v9 & 0x7fffffu;
  let v21: u32 = v19 << 0x7u;
  let v23: u32 = v21 | 0x40000000u;
  let v24: u32 = v10 & 0x7fffffu;
  let v25: u32 = v24 << 0x7u;
  let v26: u32 = v25 | 0x40000000u;
  let v27: u32 = v9 ^ v10;
  let v28: u32 = v27 & 0x80000000u;
  let v30: bool = v28 != 0x0u;
  let v31: bool = v15 == 0xffu;
  let v32: bool = v17 == 0x0u;
  let v33: bool = v31 | v32;
  var v101: bool;
  var v102: u32;
  var v103: u32;
  var v104: u32;
  var v105: u32;
  var v106: u32;
  var v107: u32;
  if (v33) {
    let v36: u32 = v2 & 0x1000000u;
    let v37: bool = v36 != 0x0u;
    let v38: u32 = v9 & 0x7fffffffu;
    let v40: u32 = v38 - 0x1u;
    let v41: bool = v40 < 0x7fffffu;
    let v42: bool = v41 & v37;
    let v43: u32 = v9 & 0x80000000u;
    let v44: u32 = select(v9, v43, v42);
    let v45: u32 = v10 & 0x7fffffffu;
    let v46: u32 = v45 - 0x1u;
    let v47: bool = v46 < 0x7fffffu;
    let v48: bool = v47 & v37;
    let v49: u32 = v10 & 0x80000000u;
    let v50: u32 = select(v10, v49, v48);
    let v52: bool = v42 | v48;
    let v54: u32 = select(0x0u, 0x80u, v52);
    var v89: u32;
    var v90: u32;
    if (v31) {
      let v56: u32 = v44 & 0x7fffffffu;
      let v57: bool = 0x7f800000u < v56;
      let v58: u32 = v50 & 0x7fffffffu;
      let v59: bool = 0x7f800000u < v58;
      let v60: bool = v57 | v59;
      var v87: u32;
      var v88: u32;
      if (v60) {
        let v61: u32 = v0 & 0x7fffffffu;
        let v62: bool = 0x7f800000u < v61;
        let v63: u32 = v1 & 0x7fffffffu;
        let v64: bool = 0x7f800000u < v63;
        let v66: u32 = v0 & 0x400000u;
        let v67: bool = v66 == 0x0u;
        let v68: bool = v62 & v67;
        let v69: u32 = v1 & 0x400000u;
        let v70: bool = v69 == 0x0u;
        let v71: bool = v64 & v70;
        let v72: u32 = select(v1, v0, v62);
        let v73: u32 = select(v72, v1, v71);
        let v74: u32 = select(v73, v0, v68);
        let v75: bool = v68 | v71;
        let v78: u32 = v2 & 0x2000000u;
        let v79: bool = v78 != 0x0u;
        let v80: u32 = v74 | 0x400000u;
        let v81: u32 = select(v80, 0x7fc00000u, v79);
        let v82: u32 = select(0x0u, 0x1u, v75);
        v87 = v81;
        v88 = v82;
      } else {
        let v83: u32 = v44 ^ v50;
        let v84: bool = v83 == 0x80000000u;
        let v85: u32 = select(v44, 0x7fc00000u, v84);
        let v86: u32 = select(0x0u, 0x1u, v84);
        v87 = v85;
        v88 = v86;
      }
      v89 = v87;
      v90 = v88;
    } else {
      v89 = 0x0u;
      v90 = 0x0u;
    }
    let v91: bool = v15 == 0x0u;
    let v92: u32 = select(v15, 0x1u, v91);
    let v93: u32 = v44 & 0x7fffffu;
    let v94: u32 = v93 << 0x7u;
    let v95: u32 = select(v23, v94, v91);
    let v96: u32 = v90 | v54;
    let v97: u32 = v50 & 0x7fffffu;
    let v98: u32 = v97 << 0x7u;
    let v99: u32 = v92 - 0x1u;
    v101 = v31;
    v102 = v89;
    v103 = v96;
    v104 = v95;
    v105 = v98;
    v106 = v92;
    v107 = v99;
  } else {
    let v100: u32 = v15 - v17;
    v101 = false;
    v102 = 0x0u;
    v103 = 0x0u;
    v104 = v23;
    v105 = v26;
    v106 = v15;
    v107 = v100;
  }
  var v202: u32;
  var v203: u32;
  if (v101) {
    v202 = v102;
    v203 = v103;
  } else {
    let v108: bool = v107 < 0x1fu;
    let v109: u32 = select(0x1fu, v107, v108);
    let v110: u32 = v109 & 0x1fu;
    let v111: u32 = v105 >> v110;
    let v112: u32 = v109 & 0x1fu;
    let v113: u32 = v111 << v112;
    let v114: bool = v113 != v105;
    let v115: u32 = select(0x0u, 0x1u, v114);
    let v116: u32 = v111 | v115;
    let v117: u32 = v104 - v116;
    let v118: u32 = v104 + v116;
    let v119: u32 = select(v118, v117, v30);
    let v120: bool = v119 == 0x0u;
    var v199: u32;
    var v200: u32;
    if (v120) {
      let v122: u32 = v2 & 0xc00000u;
      let v124: bool = v122 == 0x800000u;
      let v125: u32 = select(0x0u, 0x80000000u, v124);
      let v126: u32 = v9 & 0x80000000u;
      let v127: u32 = select(v126, v125, v30);
      v199 = v127;
      v200 = 0x0u;
    } else {
      let v128: u32 = countLeadingZeros(v119);
      let v129: u32 = v9 & 0x80000000u;
      let v130: u32 = v106 - v128;
      let v131: u32 = v128 & 0x1fu;
      let v132: u32 = v119 << v131;
      let v133: bool = 0xffu <= v130;
      var v158: u32;
      var v159: u32;
      var v160: u32;
      if (v133) {
        let v134: bool = bitcast<i32>(v130) < bitcast<i32>(0x0u);
        let v135: u32 = v2 & 0x1000000u;
        let v136: bool = v135 != 0x0u;
        let v137: bool = v134 & v136;
        let v138: u32 = 0x0u - v130;
        let v139: bool = v138 < 0x1fu;
        let v140: u32 = select(0x1fu, v138, v139);
        let v141: u32 = v140 & 0x1fu;
        let v142: u32 = v132 >> v141;
        let v143: u32 = v140 & 0x1fu;
        let v144: u32 = v142 << v143;
        let v145: bool = v144 != v132;
        let v146: u32 = select(0x0u, 0x1u, v145);
        let v147: u32 = v142 | v146;
        let v148: u32 = select(v147, 0x0u, v137);
        let v149: u32 = v148 & 0xffu;
        let v150: bool = v149 != 0x0u;
        let v152: u32 = select(0x100u, 0x0u, v134);
        let v153: u32 = select(v132, v148, v134);
        let v154: bool = v134 & v150;
        let v155: bool = v137 | v154;
        let v157: u32 = select(0x0u, 0x8u, v155);
        v158 = v152;
        v159 = v153;
        v160 = v157;
      } else {
        v158 = v130;
        v159 = v132;
        v160 = 0x0u;
      }
      let v161: u32 = v159 & 0xffu;
      let v162: bool = v161 != 0x0u;
      let v163: u32 = v2 & 0xc00000u;
      let v164: u32 = v159 >> 0x8u;
      let v165: u32 = v164 & 0x1u;
      let v167: u32 = v165 + 0x7fu;
      let v168: bool = v129 != 0x0u;
      let v169: u32 = select(0x400000u, 0x800000u, v168);
      let v170: bool = v163 == v169;
      let v171: u32 = select(0x0u, 0xffu, v170);
      let v172: bool = v163 == 0x0u;
      let v173: u32 = select(v171, v167, v172);
      let v174: u32 = v161 + v173;
      let v175: u32 = v174 >> 0x8u;
      let v176: u32 = v159 >> 0x8u;
      let v177: u32 = v176 + v175;
      let v178: u32 = v158 << 0x17u;
      let v179: u32 = v178 + v177;
      let v181: u32 = select(0x0u, 0x10u, v162);
      let v182: u32 = v160 | v181;
      let v183: bool = 0x7f800000u <= v179;
      var v196: u32;
      var v197: u32;
      if (v183) {
        let v184: u32 = v2 & 0xc00000u;
        let v185: bool = v184 == 0x0u;
        let v186: bool = v129 != 0x0u;
        let v187: u32 = select(0x400000u, 0x800000u, v186);
        let v188: bool = v184 == v187;
        let v189: bool = v185 | v188;
        let v191: u32 = select(0x7f7fffffu, 0x7f800000u, v189);
        v196 = v191;
        v197 = 0x14u;
      } else {
        v196 = v179;
        v197 = v182;
      }
      let v198: u32 = v129 | v196;
      v199 = v198;
      v200 = v197;
    }
    let v201: u32 = v103 | v200;
    v202 = v199;
    v203 = v201;
  }
  (*call).result0 = u64(v202);
  (*call).result1 = v203;
}

fn run_calls(w: vec4<u32>) {
  var call: Call;
  call.piece = w.x & 0xffffu;
  loop {
    switch (call.piece) {
      case 12u: { piece_12(w, &call); }
      case 7u: { piece_7(w, &call); }
      case 13u: { piece_13(w, &call); }
      case 14u: { piece_14(w, &call); }
      case 15u: { piece_15(w, &call); }
      case 16u: { piece_16(w, &call); }
      case 8u: { piece_8(w, &call); }
      case 9u: { piece_9(w, &call); }
      case 17u: { piece_17(w, &call); }
      case 10u: { piece_10(w, &call); }
      default: {}
    }
    if (call.piece == 0u) {
      break;
    }
    switch (call.function) {
      case 0u: { FPAdd_32(&call); }
      case 2u: { FPConvert_32_64(&call); }
      case 1u: { FPSub_32(&call); }
      default: {}
    }
  }
}

fn run_unaligned(w: vec4<u32>) -> bool {
  switch (w.x & 0xffffu) {
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
      case 11u: { h11(w); continue; }
      case 7u, 8u, 9u, 10u: { run_calls(w); continue; }
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

// Where lanes are, now and then: the lower half of the address, and its lowest bit, which no instruction's has.
@group(0) @binding(9) var<storage, read_write> samples: array<u32, SAMPLES>;

// Turns between two notes: a prime number, so that lanes in a loop are not met at one place only.
const UNTIL_NOTE: u32 = 251u;

var<private> until_note: u32;

fn note_turn(turn: u32) {
  if (until_note == 0u) {
    until_note = UNTIL_NOTE;
    if (turn != IDLE) {
      note_place();
    }
  }
  until_note -= 1u;
}

// A lane's notes go to different places. Lanes overwrite each other's.
fn note_place() {
  let index = (u32(count) - (limit - at)) * 0x9e3779b1u + lane;
  samples[index % SAMPLES] = u32(address_of(at)) | 1u;
}

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
  fpsr = states[state + 76u];
  fpcr = states[state + 74u];
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
  states[state + 76u] = fpsr;
  states[state + 74u] = fpcr;
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

var<private> fpcr: u32;

var<private> fpsr: u32;
