
// Where lanes are, now and then: the lower half of the address, and its lowest bit, which no instruction's has.
@group(0) @binding(9) var<storage, read_write> samples: array<u32, SAMPLES>;

// Turns between two notes: a prime number, so that lanes in a loop are not met at one place only.
const UNTIL_NOTE: u32 = 251u;

var<private> until_note: u32;

fn note_turn(turn: u32) {
  if (until_note == 0u) {
    until_note = UNTIL_NOTE;
    if (turn != IDLE) {
      note_place();
    }
  }
  until_note -= 1u;
}

// A lane's notes go to different places. Lanes overwrite each other's.
fn note_place() {
  let index = (u32(count) - (limit - at)) * 0x9e3779b1u + lane;
  samples[index % SAMPLES] = u32(address_of(at)) | 1u;
}
