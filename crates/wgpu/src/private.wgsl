
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
  table = (lane / GROUP) * PAGES;
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

fn load_word(word: u32) -> u64 {
  let entry = tables[table + (word >> 9u)];
  if (has(entry)) {
    return frame_word(entry.x, in_frame(word));
  }
  return image_word(word);
}

// The lane has its own copy of what it writes.
fn set_word(word: u32, value: u64) {
  set_frame_word(tables[table + (word >> 9u)].x, in_frame(word), value);
}

// Changes the bits of a word that `mask` has.
fn change_word(word: u32, value: u64, mask: u64) {
  let frame = tables[table + (word >> 9u)].x;
  let index = in_frame(word);
  set_frame_word(frame, index, (frame_word(frame, index) & ~mask) | value);
}

// True if the lane has its own copy of the page; otherwise the instruction is executed again when it has.
fn own(addr: u64) -> bool {
  let page = u32(Address(addr) >> 12u);
  if (has(tables[table + page])) {
    return true;
  }
  want = page;
  at -= 1u;
  return false;
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

fn cas(addr: u64, bits: u32, expected: u64, wanted: u64) -> u64 {
  let old = load(addr, bits);
  if (old == expected) {
    store(addr, bits, wanted);
  }
  return old;
}

fn rmw(op: u32, addr: u64, bits: u32, value: u64) -> u64 {
  let old = load(addr, bits);
  store(addr, bits, modified(op, bits, old, value));
  return old;
}

struct Pair {
  low: u64,
  high: u64,
}

fn cas_pair(addr: u64, e_low: u64, e_high: u64, n_low: u64, n_high: u64) -> Pair {
  let old = Pair(load(addr, 64u), load(addr + 8lu, 64u));
  if (old.low == e_low && old.high == e_high) {
    store(addr, 64u, n_low);
    store(addr + 8lu, 64u, n_high);
  }
  return old;
}
