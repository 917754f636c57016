
// The image, and frames of what lanes have written: a page of GROUP lanes each, interleaved by word.
@group(0) @binding(7) var<storage, read> image: array<u64>;
@group(0) @binding(8) var<storage, read_write> frames: array<u64>;
// For each group of lanes and each page: the frame, and a bit per lane that has copied the page.
@group(0) @binding(9) var<storage, read_write> tables: array<atomic<u32>>;

// A frame that is being handed out.
const BUSY: u32 = 0xffffffffu;

fn entry(page: u32) -> u32 {
  return ((lane / GROUP) * PAGES + page) * 2u;
}

fn lane_bit() -> u32 {
  return 1u << (lane % GROUP);
}

// Where a word of the lane's is in a frame.
fn in_frame(frame: u32, word: u32) -> u32 {
  return (frame * 512u + (word & 511u)) * GROUP + lane % GROUP;
}

fn load_word(word: u32) -> u64 {
  let e = entry(word >> 9u);
  if ((atomicLoad(&tables[e + 1u]) & lane_bit()) != 0u) {
    return frames[in_frame(atomicLoad(&tables[e]), word)];
  }
  return image[word];
}

// Changes the bits of a word that `mask` has; the lane has its own copy of the page.
fn store_word(word: u32, value: u64, mask: u64) {
  let i = in_frame(atomicLoad(&tables[entry(word >> 9u)]), word);
  frames[i] = (frames[i] & ~mask) | value;
}

// Gives the lane its own copy of a page, unless it has one. False if it has to stop, or to try again
// because another lane of its group is getting the frame.
fn own_page(page: u32) -> bool {
  let e = entry(page);
  if ((atomicLoad(&tables[e + 1u]) & lane_bit()) != 0u) {
    return true;
  }
  var frame = atomicLoad(&tables[e]);
  if (frame == 0u) {
    let exchange = atomicCompareExchangeWeak(&tables[e], 0u, BUSY);
    if (!exchange.exchanged) {
      again = true;
      return false;
    }
    frame = atomicAdd(&pool.next, 1u);
    if (frame >= arguments.frames) {
      atomicStore(&tables[e], 0u);
      stop = NO_FRAME;
      detail = 0lu;
      return false;
    }
    atomicStore(&tables[e], frame);
  }
  if (frame == BUSY) {
    again = true;
    return false;
  }
  for (var i = 0u; i < 512u; i++) {
    frames[in_frame(frame, i)] = image[page * 512u + i];
  }
  atomicOr(&tables[e + 1u], lane_bit());
  return true;
}

fn own(addr: u64, len: u32) -> bool {
  let first = u32(addr >> 12u);
  let last = u32((addr + u64(len - 1u)) >> 12u);
  return own_page(first) && (first == last || own_page(last));
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
