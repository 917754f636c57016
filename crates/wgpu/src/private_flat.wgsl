
// Where the page table of the lane's group is.
fn table_at() -> u32 {
  return (lane / GROUP) * PAGES;
}

// A piece of memory that was checked: the number of its first word, the byte in it where it starts, and the
// frame of its page, or zero if the lane has no copy of it.
struct Place {
  word: u32,
  byte: u32,
  frame: u32,
}

fn place_at(addr: u64) -> Place {
  let word = word_of(addr);
  return Place(word, u32(addr) & 7u, frame_of(word));
}

// The place as seen from a word of it, which may be in the next page.
fn around(place: Place, word: u32) -> Place {
  if ((word >> 9u) == (place.word >> 9u)) {
    return place;
  }
  return Place(word, 0u, frame_of(word));
}
