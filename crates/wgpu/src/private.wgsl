
// The image is in windows, and so are frames of what lanes have written: a page of GROUP lanes each,
// interleaved by word. For each group of lanes and each page: the frame, and a bit per lane that has copied
// the page. Only lanes of the group look there, and they are in one subgroup.
@group(0) @binding(7) var<storage, read_write> tables: array<vec2<u32>>;

// The group's table; the lane's place in the group.
var<private> table: u32;
var<private> seat: u32;
// A page of which the lane needs a copy.
var<private> want: u32;

const NO_PAGE: u32 = 0xffffffffu;

fn start_memory() {
  table = table_at();
  seat = lane % GROUP;
  want = NO_PAGE;
}

fn has(entry: vec2<u32>) -> bool {
  return ((entry.y >> seat) & 1u) != 0u;
}

// Where a word of the lane's is in a frame.
fn in_frame(word: u32) -> u32 {
  return (word & 511u) * GROUP + seat;
}

// The frame of a word's page, or zero if the lane has no copy of it.
fn frame_of(word: u32) -> u32 {
  let entry = tables[table + (word >> 9u)];
  return select(0u, entry.x, has(entry));
}

// True if the lane has a copy of the page.
fn is_own(place: Place) -> bool {
  return place.frame != 0u;
}

// The same; otherwise the instruction is executed again when it has.
fn own(place: Place) -> bool {
  if (is_own(place)) {
    return true;
  }
  want = place.word >> 9u;
  at -= 1u;
  return false;
}

// A word of the page where the place starts.
fn load_word(place: Place, word: u32) -> u64 {
  if (place.frame != 0u) {
    return frame_word(place.frame, in_frame(word));
  }
  return image_word(word);
}

// The lane has its own copy of what it writes.
fn set_word(place: Place, word: u32, value: u64) {
  set_frame_word(place.frame, in_frame(word), value);
}

// Changes the bits of a word that `mask` has.
fn change_word(place: Place, word: u32, value: u64, mask: u64) {
  let index = in_frame(word);
  set_frame_word(place.frame, index, (frame_word(place.frame, index) & ~mask) | value);
}

fn load_word_across(place: Place, word: u32) -> u64 {
  return load_word(around(place, word), word);
}

fn change_word_across(place: Place, word: u32, value: u64, mask: u64) {
  change_word(around(place, word), word, value, mask);
}

fn wants_page() -> bool {
  return want != NO_PAGE;
}

// Gives lanes the pages they want. Those of a group that want the same page share a frame, which one of them
// gets; they stop if there is none.
fn own_pages() {
  loop {
    let page = subgroupMin(want);
    if (page == NO_PAGE) {
      break;
    }
    let mine = want == page;
    let votes = subgroupBallot(mine);
    let first_of_group = place - seat;
    let lanes = (votes[first_of_group >> 5u] >> (first_of_group & 31u)) & GROUP_BITS;
    let leader = first_of_group + countTrailingZeros(lanes | 0x80000000u);
    var frame = 0u;
    if (mine && place == leader) {
      let entry = tables[table + page];
      frame = entry.x;
      if (frame == 0u) {
        frame = atomicAdd(&pool.next, 1u);
        frame = select(0u, frame, frame < arguments.frames);
      }
      if (frame != 0u) {
        tables[table + page] = vec2<u32>(frame, entry.y | lanes);
      }
    }
    frame = subgroupShuffle(frame, leader);
    if (mine) {
      want = NO_PAGE;
      if (frame == 0u) {
        stop = NO_FRAME;
        detail = 0lu;
        park();
      } else {
        for (var i = 0u; i < 512u; i++) {
          set_frame_word(frame, in_frame(i), image_word(page * 512u + i));
        }
      }
    }
  }
}

fn cas(place: Place, bits: u32, expected: u64, wanted: u64) -> u64 {
  let old = load(place, 0u, bits);
  if (old == expected) {
    store(place, 0u, bits, wanted);
  }
  return old;
}

fn rmw(op: u32, place: Place, bits: u32, value: u64) -> u64 {
  let old = load(place, 0u, bits);
  store(place, 0u, bits, modified(op, bits, old, value));
  return old;
}

struct Pair {
  low: u64,
  high: u64,
}

fn cas_pair(place: Place, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  let old = Pair(load(place, 0u, 64u), load(place, 8u, 64u));
  if (old.low == e_low && old.high == e_high) {
    store(place, 0u, 64u, n_low);
    store(place, 8u, 64u, n_high);
  }
  return old;
}
