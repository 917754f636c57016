//! Disassembles instruction words, in Arm's syntax.

/// A disassembled word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disassembled {
    /// Its address.
    pub address: u64,
    /// The word.
    pub word: u32,
    /// Its row in the instruction table; `None` if kvrm does not support it.
    pub row: Option<&'static str>,
    /// The instruction as text, or `.inst` and the word if kvrm does not support it.
    pub text: String,
}

impl Disassembled {
    /// Disassembles a word at an address.
    pub fn new(address: u64, word: u32) -> Disassembled {
        let text = kvrm_asm::disassemble(word, address);
        Disassembled {
            address,
            word,
            row: kvrm_a64::decode(word).map(|row| row.name),
            text: text.unwrap_or_else(|| format!(".inst {word:#010x}  // undefined")),
        }
    }
}

/// Disassembles code that starts at `address`. Bytes after the last whole word are ignored.
///
/// ```
/// let code = 0x9100_0420u32.to_le_bytes();
/// assert_eq!(kvrm::disassemble(&code, 0x1000)[0].text, "add x0, x1, #1");
/// ```
pub fn disassemble(code: &[u8], address: u64) -> Vec<Disassembled> {
    let addresses = (0..).map(|index: u64| address.wrapping_add(4 * index));
    let (words, _) = code.as_chunks();
    let words = words.iter().map(|word| u32::from_le_bytes(*word));
    addresses.zip(words).map(|(address, word)| Disassembled::new(address, word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_text_at_any_address() {
        // Random fields: xorshift.
        let mut random = 0x9e37_79b9_u32;
        for row in kvrm_a64::table() {
            for _ in 0..2_000 {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                let word = random & !row.pattern.mask | row.pattern.value;
                if row.matches(word) {
                    let address = u64::from(random) << 32 | 0xffff_fffc;
                    let line = Disassembled::new(address, word);
                    assert_eq!(line.row, Some(row.name));
                    assert!(!line.text.starts_with(".inst"), "{}: {word:08x}", row.name);
                }
            }
        }
    }
}
