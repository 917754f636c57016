
// Pages of memory are anywhere, and stored in slots; words are numbered as they are stored. The map says where: first, for
// each 2 MiB of addresses, where the leaf for them begins, and in a leaf, for each page, its slot and what may be done with
// it. Code has records in blocks of 1 MiB; for each, there is the number of its part of the records, counted from one.
// Where lanes differ in what they may do with a page, there is a column for its slot: for each group, who may read, and who
// may write.
@group(0) @binding(9) var<storage, read> page_map: array<u32>;
@group(0) @binding(10) var<storage, read> code_blocks: array<u32>;
@group(0) @binding(11) var<storage, read> page_columns: array<vec2<u32>>;

// Where the page table of the lane's group is.
fn table_at() -> u32 {
  return (lane / GROUP) * arguments.table_pages;
}

// The block that the lane is in.
var<private> block: u32;

fn start_code() {
  block = 0xffffffffu;
  base = 0u;
}

fn code_start() -> u64 {
  return u64(block) << BLOCK_BITS;
}

fn code_len() -> u32 {
  return 1u << BLOCK_BITS;
}

// Where a branch goes: the top byte becomes the sign of what is below it.
fn branch_target(address: u64) -> u64 {
  return bitcast<u64>(bitcast<i64>(address << 8u) >> 8u);
}

// The address of data: without the top byte, if it is a user's.
fn untagged(address: u64) -> u64 {
  return address & branch_target(address);
}

// True for an address that is not the supervisors', or if the lane's supervisor runs.
fn may_reach(address: u64) -> bool {
  return PROGRAM == SIZE || address < PROGRAM || get_wide(CALLER_WORD) != 0lu;
}

// Goes on outside of the block.
fn leave(goal: u64) {
  var part = 0u;
  if (goal < SIZE && (goal & 3lu) == 0lu && may_reach(goal)) {
    part = code_blocks[u32(goal >> BLOCK_BITS)];
  }
  if (part == 0u) {
    stop_without_code(goal);
    return;
  }
  block = u32(goal >> BLOCK_BITS);
  base = (part - 1u) * BLOCK_RECORDS;
  continue_at(base + ((u32(goal) & (code_len() - 1u)) >> 2u));
}

// At a record that is not decoded, perhaps behind the end of the block.
fn not_decoded() {
  at -= 1u;
  let here = address_of(at);
  if (at - base < (code_len() >> 2u)) {
    stop_without_code(here);
  } else {
    leave(here);
  }
}

// A piece of memory that was checked: the number of its first word, the byte in it where it starts, the frame of its page,
// or zero if the lane has no copy of it, and the first word of the page in which it ends.
struct Place {
  word: u32,
  byte: u32,
  frame: u32,
  last: u32,
}

// What the map says of an address.
fn entry_of(addr: u64) -> u32 {
  return page_map[page_map[u32(addr >> LEAF_BITS)] + (u32(addr >> 12u) & (LEAF_PAGES - 1u))];
}

// The first word of an address's page.
fn page_at(addr: u64) -> u32 {
  return (entry_of(addr) >> RIGHTS_BITS) * 512u;
}

fn place_at(addr: u64) -> Place {
  let word = page_at(addr) + ((u32(addr) & 4095u) >> 3u);
  return Place(word, u32(addr) & 7u, frame_of(word), 0u);
}

// The same, if it may reach into the next page.
fn place_across(addr: u64, len: u32) -> Place {
  var place = place_at(addr);
  place.last = page_at(addr + u64(len - 1u));
  return place;
}

// The place as seen from a word of it, which may be in the next page.
fn around(place: Place, word: u32) -> Place {
  if ((word >> 9u) == (place.word >> 9u)) {
    return place;
  }
  let there = place.last + (word & 511u);
  return Place(there, 0u, frame_of(there), place.last);
}

// True if the map allows what a stop, which is `refused` otherwise, says that an access needs.
fn allows(addr: u64, refused: u32) -> bool {
  if (addr >= SIZE) {
    return false;
  }
  let needed = refused - NO_PAGE_STOP;
  let entry = entry_of(addr);
  if ((entry & VARIES) != 0u) {
    return allows_here(entry >> RIGHTS_BITS, needed);
  }
  return (entry & needed) == needed || (PROGRAM < SIZE && addr >= PROGRAM && may_reach(addr));
}

// The same for one lane of many that differ.
fn allows_here(slot: u32, needed: u32) -> bool {
  let column = page_columns[slot * arguments.groups + lane / GROUP];
  let rights = ((column.x >> seat) & 1u) | (((column.y >> seat) & 1u) << 1u);
  return (rights & needed) == needed;
}

fn is_within(addr: u64, len: u32, refused: u32) -> bool {
  if (allows(addr, refused)) {
    if ((u32(addr) & 4095u) <= 4096u - len) {
      return true;
    }
    if (allows(addr + u64(len - 1u), refused)) {
      return true;
    }
  }
  stop_before(refused, addr);
  return false;
}

// True if the byte at an address is in a granule with decoded words.
fn is_code(addr: u64) -> bool {
  let part = code_blocks[u32(addr >> BLOCK_BITS)];
  if (part == 0u) {
    return false;
  }
  let in_block = (u32(addr) & (code_len() - 1u)) >> 6u;
  let granule = (part - 1u) * (BLOCK_RECORDS >> 4u) + 64u + in_block;
  return ((code_map[granule >> 5u] >> (granule & 31u)) & 1u) != 0u;
}
