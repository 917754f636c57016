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

@group(1) @binding(0) var<storage, read_write> memory0: array<atomic<u64>>;

fn memory_word(word: u32) -> u64 {
  return atomicLoad(&memory0[word & 0x7ffffffu]);
}

fn set_memory_word(word: u32, value: u64) {
  atomicStore(&memory0[word & 0x7ffffffu], value);
}

fn exchange_memory_word(word: u32, old: u64, wanted: u64) -> u64 {
  var seen = old; loop { let result = atomicCompareExchangeWeak(&memory0[word & 0x7ffffffu], old, wanted); seen = result.old_value; if (result.exchanged || seen != old) { break; } } return seen;
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

// One flat memory in windows, which every lane sees.

fn start_memory() {}

// A piece of memory that was checked: the number of its first word, and the byte in it where it starts.
struct Place {
  word: u32,
  byte: u32,
}

fn place_at(addr: u64) -> Place {
  return Place(word_of(addr), u32(addr) & 7u);
}

fn own(place: Place) -> bool {
  return true;
}

fn is_own(place: Place) -> bool {
  return true;
}

fn load_word(place: Place, word: u32) -> u64 {
  return memory_word(word);
}

fn set_word(place: Place, word: u32, value: u64) {
  set_memory_word(word, value);
}

// Changes the bits of a word that `mask` has, all at once.
fn change_word(place: Place, word: u32, value: u64, mask: u64) {
  var old = memory_word(word);
  loop {
    let seen = exchange_memory_word(word, old, (old & ~mask) | value);
    if (seen == old) {
      break;
    }
    old = seen;
  }
}

fn load_word_across(place: Place, word: u32) -> u64 {
  return load_word(place, word);
}

fn change_word_across(place: Place, word: u32, value: u64, mask: u64) {
  change_word(place, word, value, mask);
}

fn wants_page() -> bool {
  return false;
}

fn own_pages() {}

// Places of atomics are aligned: what they change is within a word.

fn cas(place: Place, bits: u32, expected: u64, wanted: u64) -> u64 {
  let word = place.word;
  let shift = place.byte * 8u;
  let mask = low_bits(bits) << shift;
  var old = memory_word(word);
  loop {
    if (((old & mask) >> shift) != expected) {
      break;
    }
    let seen = exchange_memory_word(word, old, (old & ~mask) | (wanted << shift));
    if (seen == old) {
      break;
    }
    old = seen;
  }
  return (old & mask) >> shift;
}

fn rmw(op: u32, place: Place, bits: u32, value: u64) -> u64 {
  let word = place.word;
  let shift = place.byte * 8u;
  let mask = low_bits(bits) << shift;
  var old = memory_word(word);
  loop {
    let wanted = modified(op, bits, (old & mask) >> shift, value);
    let seen = exchange_memory_word(word, old, (old & ~mask) | (wanted << shift));
    if (seen == old) {
      break;
    }
    old = seen;
  }
  return (old & mask) >> shift;
}

struct Pair {
  low: u64,
  high: u64,
}

// Two words need a lock. Lanes that have had it stay until all of their subgroup have: a compiler may take what
// comes before a lane leaves a loop to come after all have left it, and then the one that holds the lock waits for
// the others, which wait for the lock.
fn cas_pair(place: Place, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  let word = place.word;
  var old: Pair;
  var done = false;
  while (subgroupAny(!done)) {
    if (!done && atomicExchange(&pool.lock, 1u) == 0u) {
      old = Pair(memory_word(word), memory_word(word + 1u));
      if (old.low == e_low && old.high == e_high) {
        set_memory_word(word, n_low);
        set_memory_word(word + 1u, n_high);
      }
      atomicStore(&pool.lock, 0u);
      done = true;
    }
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
  if (!is_usual(v4, 4u, 4u)) { return false; }
  if (!is_within(v4, 4u, 32u)) { return false; }
  let p0 = place_at(v4);
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
  if (!is_within(v4, 4u, 32u)) { return false; }
  let p0 = place_at(v4);
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
  if (!is_usual(v4, 8u, 8u)) { return false; }
  if (!may_write_within(v4, 8u, 33u)) { return false; }
  let p0 = place_at(v4);
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
  if (!may_write(v4, 8u, 33u)) { return false; }
  let p0 = place_at(v4);
  if (!own(p0)) { return false; }
  if (!own(place_at(v4 + 7lu))) { return false; }
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
  if (!may_write_within(v4, 8u, 34u)) { return false; }
  let p0 = place_at(v4);
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
