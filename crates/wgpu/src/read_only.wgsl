
// The image, which every lane sees and none can write. It needs no atomics.

fn start_memory() {}

// A piece of memory that was checked: the number of its first word, and the byte in it where it starts.
struct Place {
  word: u32,
  byte: u32,
}

fn place_at(addr: u64) -> Place {
  return Place(word_of(addr), u32(addr) & 7u);
}

fn load_word(place: Place, word: u32) -> u64 {
  return image_word(word);
}

fn load_word_across(place: Place, word: u32) -> u64 {
  return load_word(place, word);
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

fn own(place: Place) -> bool {
  return true;
}

fn is_own(place: Place) -> bool {
  return true;
}

fn can_write(addr: u64, size: u32, len: u32) -> bool {
  return false;
}

// What follows a write that may not be is never reached.

fn store(place: Place, offset: u32, bits: u32, value: u64) {}

fn collect(place: Place, len: u32) {}

fn store_unaligned(place: Place, offset: u32, bits: u32, value: u64) {}

fn scatter(place: Place, len: u32) {}

fn cas(place: Place, bits: u32, expected: u64, wanted: u64) -> u64 {
  return 0lu;
}

fn rmw(op: u32, place: Place, bits: u32, value: u64) -> u64 {
  return 0lu;
}

struct Pair {
  low: u64,
  high: u64,
}

fn cas_pair(place: Place, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  return Pair(0lu, 0lu);
}
