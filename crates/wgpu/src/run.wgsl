
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
