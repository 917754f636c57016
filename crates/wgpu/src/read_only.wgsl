
// One flat memory, which every lane sees and none can write. It needs no atomics.
@group(0) @binding(7) var<storage, read> memory: array<u64>;

fn load_word(word: u32) -> u64 {
  return memory[word];
}

fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  stop = fault;
  detail = addr;
  return false;
}

// What follows a write that may not be is never reached.

fn store_word(word: u32, value: u64, mask: u64) {}

fn cas(addr: u64, bits: u32, expected: u64, wanted: u64) -> u64 {
  return 0lu;
}

fn rmw(op: u32, addr: u64, bits: u32, value: u64) -> u64 {
  return 0lu;
}

struct Pair {
  low: u64,
  high: u64,
}

fn cas_pair(addr: u64, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  return Pair(0lu, 0lu);
}
