
// A value of 8 to 64 bits at an address that is a multiple of its size.
fn store(addr: u64, bits: u32, value: u64) {
  if (bits == 64u) {
    set_word(word_of(addr), value);
  } else {
    let shift = shift_of(addr);
    change_word(word_of(addr), value << shift, low_bits(bits) << shift);
  }
}

// The same at any address.
fn store_unaligned(addr: u64, bits: u32, value: u64) {
  let shift = shift_of(addr);
  change_word(word_of(addr), value << shift, low_bits(bits) << shift);
  if (shift + bits > 64u) {
    let rest = 64u - shift;
    change_word(word_of(addr) + 1u, value >> rest, low_bits(bits) >> rest);
  }
}

// True if the byte at an address is in a granule with decoded words.
fn is_code(addr: u64) -> bool {
  let offset = Address(addr) - (Address(code_start()) - GRANULE);
  if (offset >= Address(arguments.code_len) + GRANULE + GRANULE) {
    return false;
  }
  let granule = (u32(offset) >> 6u) + arguments.first_flag;
  return ((code_map[granule >> 5u] >> (granule & 31u)) & 1u) != 0u;
}

// For an aligned access, which crosses no boundary.
fn may_write_within(addr: u64, len: u32, fault: u32) -> bool {
  if (!may_read(addr, len, fault)) {
    return false;
  }
  if (is_code(addr)) {
    stop_before(CODE_WRITE, addr);
    return false;
  }
  return own(addr);
}

// For all that is not larger than a granule.
fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  if (!may_write_within(addr, len, fault)) {
    return false;
  }
  let last = addr + u64(len - 1u);
  if (is_code(last)) {
    stop_before(CODE_WRITE, addr);
    return false;
  }
  return own(last);
}
