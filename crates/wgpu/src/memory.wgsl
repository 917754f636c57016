
fn low_bits(bits: u32) -> u64 {
  return ~0lu >> (64u - bits);
}

// A value of 8 to 64 bits at any address.
fn load(addr: u64, bits: u32) -> u64 {
  let word = u32(addr >> 3u);
  let shift = (u32(addr) & 7u) * 8u;
  var value = load_word(word) >> shift;
  if (shift + bits > 64u) {
    value |= load_word(word + 1u) << (64u - shift);
  }
  return value & low_bits(bits);
}

fn store(addr: u64, bits: u32, value: u64) {
  let word = u32(addr >> 3u);
  let shift = (u32(addr) & 7u) * 8u;
  store_word(word, value << shift, low_bits(bits) << shift);
  if (shift + bits > 64u) {
    let rest = 64u - shift;
    store_word(word + 1u, value >> rest, low_bits(bits) >> rest);
  }
}

fn signed(bits: u32, value: u64) -> i64 {
  let shift = 64u - bits;
  return bitcast<i64>(value << shift) >> shift;
}

// What a read-modify-write stores; the numbers are those of `RmwOp`.
fn modified(op: u32, bits: u32, old: u64, value: u64) -> u64 {
  switch (op) {
    case 0u: { return (old + value) & low_bits(bits); }
    case 1u: { return old & value; }
    case 2u: { return old | value; }
    case 3u: { return old ^ value; }
    case 4u: { return value; }
    case 5u: { return select(value, old, signed(bits, old) > signed(bits, value)); }
    case 6u: { return select(value, old, signed(bits, old) < signed(bits, value)); }
    case 7u: { return select(value, old, old > value); }
    default: { return select(value, old, old < value); }
  }
}

fn may_read(addr: u64, len: u32, fault: u32) -> bool {
  if (addr > SIZE - u64(len)) {
    stop = fault;
    detail = select(SIZE, addr, addr > SIZE);
    return false;
  }
  return true;
}

// True if some byte from `addr` on is in a granule with decoded words.
fn is_code(addr: u64, len: u32) -> bool {
  let offset = addr - (code_start() - 64lu);
  if (offset >= u64(arguments.code_len) + 128lu) {
    return false;
  }
  let first = u32(offset) >> 6u;
  let last = (u32(offset) + len - 1u) >> 6u;
  let bits = (code_map[first >> 5u] >> (first & 31u)) | (code_map[last >> 5u] >> (last & 31u));
  return (bits & 1u) != 0u;
}
