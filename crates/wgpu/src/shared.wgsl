
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
