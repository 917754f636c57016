const WORKGROUP: u32 = 64u;
const STATE_WORDS: u32 = 86u;
const X_SLOTS: u32 = 34u;
const PC_WORD: u32 = 68u;
const FLAGS_WORD: u32 = 85u;
const EXCLUSIVE_LEN_WORD: u32 = 84u;
const PAGES: u32 = 256u;
const GROUP: u32 = 32u;
const RUNNING: u32 = 0u;
const MAX_CYCLES: u32 = 1u;
const NO_CODE: u32 = 2u;
const UNDEFINED: u32 = 3u;
const BREAKPOINT: u32 = 4u;
const CODE_WRITE: u32 = 5u;
const NO_FRAME: u32 = 6u;
const EXIT: u32 = 16u;
const SIZE: u64 = 0x100000lu;

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
  // Where its records start.
  records: u32,
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
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read_write> states: array<u32>;
@group(0) @binding(2) var<storage, read_write> statuses: array<Status>;
@group(0) @binding(3) var<storage, read_write> stopped: array<u32>;
@group(0) @binding(4) var<storage, read_write> pool: Pool;
@group(0) @binding(5) var<storage, read> records: array<vec4<u32>>;
// A bit for each granule from one before the code on: whether it holds decoded words.
@group(0) @binding(6) var<storage, read> code_map: array<u32>;

// The lane's state.
var<private> lane: u32;
var<private> state: u32;
var<private> x: array<u64, X_SLOTS>;
var<private> flag_n: bool;
var<private> flag_z: bool;
var<private> flag_c: bool;
var<private> flag_v: bool;
// PC, in words from the start of the code.
var<private> at: u32;
var<private> goal: u64;
var<private> jumped: bool;
// Instructions completed before this launch, and in it.
var<private> count: u64;
var<private> done: u32;
// Why the lane cannot go on, and whether it has completed the instruction; or to try it again.
var<private> stop: u32;
var<private> detail: u64;
var<private> completed: bool;
var<private> again: bool;

fn code_start() -> u64 {
  return u64(arguments.code_start_low) | (u64(arguments.code_start_high) << 32u);
}

fn pc() -> u64 {
  return code_start() + (u64(at) << 2u);
}

// A word of 64 bits of the lane's saved state.
fn get_wide(word: u32) -> u64 {
  return u64(states[state + word]) | (u64(states[state + word + 1u]) << 32u);
}

fn set_wide(word: u32, value: u64) {
  states[state + word] = u32(value);
  states[state + word + 1u] = u32(value >> 32u);
}

// One flat memory, which every lane sees.
@group(0) @binding(7) var<storage, read_write> memory: array<atomic<u64>>;

fn load_word(word: u32) -> u64 {
  return atomicLoad(&memory[word]);
}

// Changes the bits of a word that `mask` has, all at once.
fn store_word(word: u32, value: u64, mask: u64) {
  if (mask == ~0lu) {
    atomicStore(&memory[word], value);
    return;
  }
  var old = atomicLoad(&memory[word]);
  loop {
    let exchange = atomicCompareExchangeWeak(&memory[word], old, (old & ~mask) | value);
    if (exchange.exchanged) {
      break;
    }
    old = exchange.old_value;
  }
}

fn own(addr: u64, len: u32) -> bool {
  return true;
}

// The addresses of atomics are aligned: what they change is within a word.

fn cas(addr: u64, bits: u32, expected: u64, wanted: u64) -> u64 {
  let word = u32(addr >> 3u);
  let shift = (u32(addr) & 7u) * 8u;
  let mask = low_bits(bits) << shift;
  var old = atomicLoad(&memory[word]);
  loop {
    if (((old & mask) >> shift) != expected) {
      break;
    }
    let exchange = atomicCompareExchangeWeak(&memory[word], old, (old & ~mask) | (wanted << shift));
    if (exchange.exchanged) {
      break;
    }
    old = exchange.old_value;
  }
  return (old & mask) >> shift;
}

fn rmw(op: u32, addr: u64, bits: u32, value: u64) -> u64 {
  let word = u32(addr >> 3u);
  let shift = (u32(addr) & 7u) * 8u;
  let mask = low_bits(bits) << shift;
  var old = atomicLoad(&memory[word]);
  loop {
    let wanted = modified(op, bits, (old & mask) >> shift, value);
    let exchange = atomicCompareExchangeWeak(&memory[word], old, (old & ~mask) | (wanted << shift));
    if (exchange.exchanged) {
      break;
    }
    old = exchange.old_value;
  }
  return (old & mask) >> shift;
}

struct Pair {
  low: u64,
  high: u64,
}

// Two words need a lock. What it protects is in the loop's body, so that lanes in step do not wait for
// one that waits for them.
fn cas_pair(addr: u64, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  let word = u32(addr >> 3u);
  var old: Pair;
  loop {
    if (atomicExchange(&pool.lock, 1u) == 0u) {
      old = Pair(atomicLoad(&memory[word]), atomicLoad(&memory[word + 1u]));
      if (old.low == e_low && old.high == e_high) {
        atomicStore(&memory[word], n_low);
        atomicStore(&memory[word + 1u], n_high);
      }
      atomicStore(&pool.lock, 0u);
      break;
    }
  }
  return old;
}

fn low_bits(bits: u32) -> u64 {
  return ~0lu >> (64u - bits);
}

// A value of 8 to 64 bits at any address.
fn load(addr: u64, bits: u32) -> u64 {
  let word = u32(addr >> 3u);
  let shift = (u32(addr) & 7u) * 8u;
  var value = load_word(word) >> shift;
  if (shift + bits > 64u) {
    value |= load_word(word + 1u) << (64u - shift);
  }
  return value & low_bits(bits);
}

fn store(addr: u64, bits: u32, value: u64) {
  let word = u32(addr >> 3u);
  let shift = (u32(addr) & 7u) * 8u;
  store_word(word, value << shift, low_bits(bits) << shift);
  if (shift + bits > 64u) {
    let rest = 64u - shift;
    store_word(word + 1u, value >> rest, low_bits(bits) >> rest);
  }
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

fn may_read(addr: u64, len: u32, fault: u32) -> bool {
  if (addr > SIZE - u64(len)) {
    stop = fault;
    detail = select(SIZE, addr, addr > SIZE);
    return false;
  }
  return true;
}

// True if some byte from `addr` on is in a granule with decoded words.
fn is_code(addr: u64, len: u32) -> bool {
  let offset = addr - (code_start() - 64lu);
  if (offset >= u64(arguments.code_len) + 128lu) {
    return false;
  }
  let first = u32(offset) >> 6u;
  let last = (u32(offset) + len - 1u) >> 6u;
  let bits = (code_map[first >> 5u] >> (first & 31u)) | (code_map[last >> 5u] >> (last & 31u));
  return (bits & 1u) != 0u;
}

fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  if (!may_read(addr, len, fault)) {
    return false;
  }
  if (is_code(addr, len)) {
    stop = CODE_WRITE;
    detail = addr;
    return false;
  }
  return own(addr, len);
}

// ADD_imm_X
fn h3(w: vec4<u32>) {
  let v16: u32 = (w.x >> 16u) & 0xffu;
  let v26: u32 = (w.x >> 24u) & 0xffu;
  let v5: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v17: u64 = x[v16];
  let v18: u64 = v17 + v5;
  x[v26] = v18;
}

// SUBS_imm_X
fn h4(w: vec4<u32>) {
  let v16: u32 = (w.x >> 16u) & 0xffu;
  let v27: u32 = (w.x >> 24u) & 0xffu;
  let v5: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v17: u64 = x[v16];
  let v18: u64 = v17 - v5;
  let v20: bool = bitcast<i64>(v18) < bitcast<i64>(0x0lu);
  let v21: bool = v18 == 0x0lu;
  let v22: bool = v5 <= v17;
  let v28: u64 = v17 - v5;
  let v29: u64 = v17 ^ v28;
  let v30: u64 = v5 ^ v17;
  let v31: u64 = v29 & v30;
  let v23: bool = bitcast<i64>(v31) < bitcast<i64>(0x0lu);
  flag_n = v20;
  flag_z = v21;
  flag_c = v22;
  flag_v = v23;
  x[v27] = v18;
}

// B_cond
fn h5(w: vec4<u32>) {
  let v12: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v0: u64 = code_start() + (u64(at) << 2u);
  let v33: u64 = v0 + 0x4lu;
  let v15: bool = flag_z;
  let v30: bool = !v15;
  let v34: u64 = select(v33, v12, v30);
  goal = v34; jumped = true;
}

// LDR_W_uimm
fn h6(w: vec4<u32>) {
  let v7: u32 = (w.x >> 16u) & 0xffu;
  let v24: u32 = (w.x >> 24u) & 0xffu;
  let v15: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v8: u64 = x[v7];
  let v16: u64 = v8 + v15;
  if (!may_read(v16, 4u, 32u)) { return; }
  let v18: u32 = u32(load(v16, 32u));
  let v19: u64 = u64(v18);
  x[v24] = v19;
}

// STR_X_uimm
fn h7(w: vec4<u32>) {
  let v7: u32 = (w.x >> 16u) & 0xffu;
  let v18: u32 = (w.x >> 24u) & 0xffu;
  let v15: u64 = u64(w.z) | (u64(w.w) << 32u);
  let v8: u64 = x[v7];
  let v16: u64 = v8 + v15;
  let v19: u64 = x[v18];
  if (!may_write(v16, 8u, 33u)) { return; }
  store(v16, 64u, u64(v19));
}

// LDADD_X
fn h8(w: vec4<u32>) {
  let v4: u32 = (w.x >> 16u) & 0xffu;
  let v11: u32 = (w.x >> 24u) & 0xffu;
  let v22: u32 = (w.y >> 0u) & 0xffu;
  let v5: u64 = x[v4];
  let v12: u64 = x[v11];
  let v14: u64 = v12 & 0x7lu;
  let v16: bool = v14 != 0x0lu;
  if (v16) { stop = 20u; detail = v12; completed = false; return; }
  if (!may_write(v12, 8u, 34u)) { return; }
  let v17: u64 = rmw(0u, v12, 64u, u64(v5));
  x[v22] = v17;
}

// CLZ_X
fn h9(w: vec4<u32>) {
  let v4: u32 = (w.x >> 16u) & 0xffu;
  let v11: u32 = (w.x >> 24u) & 0xffu;
  let v5: u64 = x[v4];
  let v13: u64 = v5 >> 0x20u;
  let v14: u32 = u32(v5);
  let v15: u32 = u32(v13);
  let v16: u32 = countLeadingZeros(v14);
  let v17: u32 = countLeadingZeros(v15);
  let v19: u32 = v16 + 0x20u;
  let v21: bool = v15 == 0x0u;
  let v22: u32 = select(v17, v19, v21);
  let v6: u64 = u64(v22);
  x[v11] = v6;
}

fn dispatch(w: vec4<u32>) {
  switch (w.x & 0xffffu) {
    case 0u: { stop = NO_CODE; detail = pc(); }
    case 1u: { stop = UNDEFINED; detail = u64(w.z) | (u64(w.w) << 32u); }
    case 2u: { stop = BREAKPOINT; detail = 0lu; }
    case 3u: { h3(w); }
    case 4u: { h4(w); }
    case 5u: { h5(w); }
    case 6u: { h6(w); }
    case 7u: { h7(w); }
    case 8u: { h8(w); }
    case 9u: { h9(w); }
    default: { stop = NO_CODE; detail = pc(); }
  }
}

// Continues at `goal`, if it is in the code.
fn jump() {
  jumped = false;
  let offset = goal - code_start();
  if (offset >= u64(arguments.code_len) || (offset & 3lu) != 0lu) {
    stop = NO_CODE;
    detail = goal;
    return;
  }
  at = u32(offset >> 2u);
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
  goal = get_wide(PC_WORD);
}

fn save_state(counter: u64) {
  for (var i = 0u; i < X_SLOTS; i++) {
    set_wide(2u * i, x[i]);
  }
  let flags = select(0u, 0x1u, flag_n) | select(0u, 0x100u, flag_z)
    | select(0u, 0x10000u, flag_c) | select(0u, 0x1000000u, flag_v);
  states[state + FLAGS_WORD] = flags;
  set_wide(PC_WORD, counter);
  // An exception clears the exclusive monitor.
  if (stop == UNDEFINED || stop >= EXIT) {
    states[state + EXCLUSIVE_LEN_WORD] = 0u;
  }
}

// Says how far the lane has come. One that stopped because there is no code is where it found none.
fn finish(budget: u64) {
  let counter = select(pc(), detail, stop == NO_CODE);
  if (budget == 0lu && (stop == RUNNING || stop == NO_CODE)) {
    stop = MAX_CYCLES;
  }
  save_state(counter);
  let total = count + u64(done);
  statuses[lane].count_low = u32(total);
  statuses[lane].count_high = u32(total >> 32u);
  statuses[lane].budget_low = u32(budget);
  statuses[lane].budget_high = u32(budget >> 32u);
  statuses[lane].detail_low = u32(detail);
  statuses[lane].detail_high = u32(detail >> 32u);
  statuses[lane].stop = stop;
  let executed = atomicAdd(&pool.executed_low, done);
  if (executed + done < executed) {
    atomicAdd(&pool.executed_high, 1u);
  }
  if (stop != RUNNING) {
    stopped[atomicAdd(&pool.stopped, 1u)] = lane;
  }
}

@compute @workgroup_size(WORKGROUP)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  lane = id.x + id.y * groups.x * WORKGROUP;
  if (lane >= arguments.lanes) {
    return;
  }
  let status = statuses[lane];
  let for_host = status.stop == NO_CODE || status.stop == NO_FRAME || status.stop == CODE_WRITE;
  if (status.stop != RUNNING && !for_host) {
    return;
  }
  state = lane * STATE_WORDS;
  load_state();
  count = u64(status.count_low) | (u64(status.count_high) << 32u);
  let budget = u64(status.budget_low) | (u64(status.budget_high) << 32u);
  let fuel = u32(min(budget, u64(arguments.share)));
  stop = RUNNING;
  done = 0u;
  jump();
  while (stop == RUNNING && done < fuel) {
    if (at * 4u >= arguments.code_len) {
      stop = NO_CODE;
      detail = pc();
      break;
    }
    completed = false;
    again = false;
    dispatch(records[status.records + at]);
    if (again) {
      continue;
    }
    if (stop != RUNNING && !completed) {
      break;
    }
    done++;
    if (jumped) {
      jump();
    } else {
      at++;
    }
  }
  finish(budget - u64(done));
}
