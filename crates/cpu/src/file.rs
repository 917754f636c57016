//! Numbers, bytes and text in files of host code. Readers take what they read from the front, and give `None` where a
//! file ends early.

pub(crate) fn read_number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

pub(crate) fn read_address(bytes: &mut &[u8]) -> Option<u64> {
    let (address, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*address))
}

/// Bytes after their number.
pub(crate) fn read_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = read_number(bytes)?;
    let (read, rest) = bytes.split_at_checked(len as usize)?;
    *bytes = rest;
    Some(read)
}

pub(crate) fn read_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(read_bytes(bytes)?).ok()
}

/// Things after their number.
pub(crate) fn read_list<'a, T>(
    bytes: &mut &'a [u8],
    read: impl Fn(&mut &'a [u8]) -> Option<T>,
) -> Option<Vec<T>> {
    (0..read_number(bytes)?).map(|_| read(bytes)).collect()
}

pub(crate) fn write_number(file: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("files of code are small");
    file.extend(number.to_le_bytes());
}

pub(crate) fn write_address(file: &mut Vec<u8>, address: u64) {
    file.extend(address.to_le_bytes());
}

pub(crate) fn write_bytes(file: &mut Vec<u8>, bytes: &[u8]) {
    write_number(file, bytes.len());
    file.extend_from_slice(bytes);
}
