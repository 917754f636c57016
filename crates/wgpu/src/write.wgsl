
fn may_write(addr: u64, len: u32, fault: u32) -> bool {
  if (!may_read(addr, len, fault)) {
    return false;
  }
  if (is_code(addr, len)) {
    stop = CODE_WRITE;
    detail = addr;
    return false;
  }
  return own(addr, len);
}
