
// The image, which every lane sees and none can write. It needs no atomics.

fn start_memory() {}

fn load_word(word: u32) -> u64 {
  return image_word(word);
}

fn wants_page() -> bool {
  return false;
}

fn own_pages() {}

fn may_write_within(addr: u64, len: u32, fault: u32) -> bool {
  stop_before(fault, addr);
  return false;
}

fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  return may_write_within(addr, len, fault);
}

// What follows a write that may not be is never reached.

fn store(addr: u64, bits: u32, value: u64) {}

fn store_unaligned(addr: u64, bits: u32, value: u64) {}

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
