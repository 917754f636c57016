
@group(0) @binding(7) var<storage, read_write> locks: array<atomic<u32>>;

// Lanes that have done what a lock protects stay until all of their subgroup have: a compiler may take what comes
// before a lane leaves a loop to come after all have left it, and then the one that holds the lock waits for the
// others, which wait for the lock.

fn set_memory_word(word: u32, value: u64) {
  var done = false;
  while (subgroupAny(!done)) {
    if (!done && atomicExchange(&locks[word % LOCKS], 1u) == 0u) {
      store_locked_word(word, value);
      atomicStore(&locks[word % LOCKS], 0u);
      done = true;
    }
  }
}

// What was there before; `wanted` is there now if that was `old`.
fn exchange_memory_word(word: u32, old: u64, wanted: u64) -> u64 {
  var seen = 0lu;
  var done = false;
  while (subgroupAny(!done)) {
    if (!done && atomicExchange(&locks[word % LOCKS], 1u) == 0u) {
      seen = exchange_locked_word(word, old, wanted);
      atomicStore(&locks[word % LOCKS], 0u);
      done = true;
    }
  }
  return seen;
}
