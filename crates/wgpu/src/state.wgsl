
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
