
// Memory goes from address 0 to its size, and the code is in one piece.

fn code_start() -> u64 {
  return u64(arguments.code_start_low) | (u64(arguments.code_start_high) << 32u);
}

fn code_len() -> u32 {
  return arguments.code_len;
}

fn start_code() {
  base = arguments.first_record;
}

fn branch_target(address: u64) -> u64 {
  return address;
}

// Goes on outside of the code.
fn leave(goal: u64) {
  stop_without_code(goal);
}

// At a record that is not decoded.
fn not_decoded() {
  at -= 1u;
  stop_without_code(address_of(at));
}

// The number of the 8-byte word that holds the byte at an address.
fn word_of(addr: u64) -> u32 {
  return u32(Address(addr) >> 3u);
}

fn is_within(addr: u64, len: u32, fault: u32) -> bool {
  if (addr > SIZE - u64(len)) {
    stop_before(fault, addr);
    return false;
  }
  return true;
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
