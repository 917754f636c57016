
@group(0) @binding(7) var<storage, read_write> locks: array<atomic<u32>>;

// What a lock protects is in the loop's body, so that lanes in step do not wait for one that waits for them.

fn set_memory_word(word: u32, value: u64) {
  loop {
    if (atomicExchange(&locks[word % LOCKS], 1u) == 0u) {
      store_locked_word(word, value);
      atomicStore(&locks[word % LOCKS], 0u);
      break;
    }
  }
}

// What was there before; `wanted` is there now if that was `old`.
fn exchange_memory_word(word: u32, old: u64, wanted: u64) -> u64 {
  var seen = 0lu;
  loop {
    if (atomicExchange(&locks[word % LOCKS], 1u) == 0u) {
      seen = exchange_locked_word(word, old, wanted);
      atomicStore(&locks[word % LOCKS], 0u);
      break;
    }
  }
  return seen;
}
