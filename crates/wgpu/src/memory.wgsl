
fn low_bits(bits: u32) -> u64 {
  return ~0lu >> (64u - bits);
}

// The number of the 8-byte word that holds the byte at an address, and the byte's position in it, in bits.
fn word_of(addr: u64) -> u32 {
  return u32(Address(addr) >> 3u);
}

fn shift_of(addr: u64) -> u32 {
  return (u32(addr) & 7u) * 8u;
}

// A value of 8 to 64 bits at an address that is a multiple of its size.
fn load(addr: u64, bits: u32) -> u64 {
  if (bits == 64u) {
    return load_word(word_of(addr));
  }
  return (load_word(word_of(addr)) >> shift_of(addr)) & low_bits(bits);
}

// The same at any address.
fn load_unaligned(addr: u64, bits: u32) -> u64 {
  let shift = shift_of(addr);
  var value = load_word(word_of(addr)) >> shift;
  if (shift + bits > 64u) {
    value |= load_word(word_of(addr) + 1u) << (64u - shift);
  }
  return value & low_bits(bits);
}

// False if the address is not a multiple of the size: then the instruction is left to the handlers that can.
fn is_aligned(addr: u64, size: u32) -> bool {
  if ((u32(addr) & (size - 1u)) == 0u) {
    return true;
  }
  unaligned = true;
  at -= 1u;
  return false;
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
    stop_before(fault, select(SIZE, addr, addr > SIZE));
    return false;
  }
  return true;
}
