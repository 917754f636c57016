
// True for a write that translated code makes itself.
fn can_write(addr: u64, size: u32, len: u32) -> bool {
  return can_read(addr, size, len) && !is_code(addr) && (len == size || !is_code(addr + u64(len - 1u)));
}
