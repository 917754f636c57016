
// Translated code: where lanes leave it, in the place of the number of a block. They gather; or they interpret an
// instruction, of which the record is in the table or at hand.
const TO_GATHER: u32 = 0xffffffffu;
const TO_INTERPRET: u32 = 0xfffffffeu;
const AT_HAND: u32 = 0xfffffffdu;

// True if all lanes that came to translated code together are still there, and go on with the same block.
fn agree(block: u32, full: Votes) -> bool {
  let first = subgroupBroadcastFirst(block);
  return are_equal(votes((block < AT_HAND) & (block == first)), full);
}

// True for an access that translated code makes itself; others are left to handlers.
fn can_read(addr: u64, size: u32, len: u32) -> bool {
  let aligned = (u32(addr) & (size - 1u)) == 0u;
  let in_page = len == size || (u32(addr) & 4095u) <= 4096u - len;
  return aligned & in_page & (addr <= SIZE - u64(len));
}
