
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
