
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
