
// Code that is not the same for all lanes. Behind the table of records is a directory of those that lanes have of
// their own, and behind it are these records, and those of all other lanes.

// The number of the record that the lane has instead of the one at `at`, which is diverted.
fn own_record(w: vec4<u32>) -> u32 {
  var index = (lane * DIRECTORY_FACTOR + w.y) * DIRECTORY_FACTOR_2;
  index ^= index >> DIRECTORY_SHIFT;
  // Where all lanes have theirs that do not have their own.
  var found = w.z;
  loop {
    let entry = records[arguments.directory + (index & arguments.directory_mask)];
    if (entry.x == NOBODY) {
      break;
    }
    if (entry.x == lane && entry.y == w.y) {
      found = entry.z;
      break;
    }
    index += 1u;
  }
  return found + (at & (GRANULE_RECORDS - 1u));
}
