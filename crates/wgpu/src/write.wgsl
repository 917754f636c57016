
// A value of 8 to 64 bits in a place, at an offset in bytes: aligned, and in the page where the place starts.
fn store(place: Place, offset: u32, bits: u32, value: u64) {
  let at = place.byte + offset;
  let word = place.word + (at >> 3u);
  if (bits == 64u) {
    set_word(place, word, value);
  } else {
    let shift = (at & 7u) * 8u;
    change_word(place, word, value << shift, low_bits(bits) << shift);
  }
}

// The bits of each word that will be changed.
var<private> masks: array<u64, 9>;

// Begins to collect what will be stored in a place.
fn collect(place: Place, len: u32) {
  let count = words_of(place, len);
  for (var i = 0u; i < count; i++) {
    window[i] = 0lu;
    masks[i] = 0lu;
  }
}

// Collects a value, at any address.
fn store_unaligned(place: Place, offset: u32, bits: u32, value: u64) {
  let at = place.byte + offset;
  let index = at >> 3u;
  let shift = (at & 7u) * 8u;
  window[index] |= value << shift;
  masks[index] |= low_bits(bits) << shift;
  if (shift + bits > 64u) {
    let rest = 64u - shift;
    window[index + 1u] |= value >> rest;
    masks[index + 1u] |= low_bits(bits) >> rest;
  }
}

// Stores what was collected.
fn scatter(place: Place, len: u32) {
  let count = words_of(place, len);
  for (var i = 0u; i < count; i++) {
    change_word_across(place, place.word + i, window[i], masks[i]);
  }
}

// For an aligned element, which crosses no boundary.
fn may_write_within(addr: u64, len: u32, fault: u32) -> bool {
  if (!is_within(addr, len, fault)) {
    return false;
  }
  if (is_code(addr)) {
    stop_before(CODE_WRITE, addr);
    return false;
  }
  return true;
}

// For all that is not larger than a granule.
fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  if (!may_write_within(addr, len, fault)) {
    return false;
  }
  if (is_code(addr + u64(len - 1u))) {
    stop_before(CODE_WRITE, addr);
    return false;
  }
  return true;
}
