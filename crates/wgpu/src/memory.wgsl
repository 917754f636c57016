
fn low_bits(bits: u32) -> u64 {
  return ~0lu >> (64u - bits);
}

// A value of 8 to 64 bits in a place, at an offset in bytes: aligned, and in the page where the place starts.
fn load(place: Place, offset: u32, bits: u32) -> u64 {
  let at = place.byte + offset;
  let word = load_word(place, place.word + (at >> 3u));
  if (bits == 64u) {
    return word;
  }
  return (word >> ((at & 7u) * 8u)) & low_bits(bits);
}

// What is at any address goes through here: the words of a place, the largest of which has 64 bytes. Loops take far
// less code than accesses to each word where an instruction needs it, and so much less time to compile.
var<private> window: array<u64, 9>;

// The words that a place has bytes of.
fn words_of(place: Place, len: u32) -> u32 {
  return (place.byte + len + 7u) >> 3u;
}

// Loads the words of a place.
fn gather(place: Place, len: u32) {
  let count = words_of(place, len);
  for (var i = 0u; i < count; i++) {
    window[i] = load_word_across(place, place.word + i);
  }
}

// A value in a place whose words were loaded.
fn load_unaligned(place: Place, offset: u32, bits: u32) -> u64 {
  let at = place.byte + offset;
  let index = at >> 3u;
  let shift = (at & 7u) * 8u;
  var value = window[index] >> shift;
  if (shift + bits > 64u) {
    value |= window[index + 1u] << (64u - shift);
  }
  return value & low_bits(bits);
}

// False if the address is not a multiple of the size of an element, or the place crosses a page: then the instruction
// is left to the handlers that can.
fn is_usual(addr: u64, size: u32, len: u32) -> bool {
  if ((u32(addr) & (size - 1u)) == 0u && (len == size || (u32(addr) & 4095u) <= 4096u - len)) {
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
