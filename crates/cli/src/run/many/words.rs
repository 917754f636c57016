//! Words of a line, quoted as in a shell.
//!
//! Blanks separate words. `'...'` is taken as it is; in `"..."`, a backslash goes before `"`, `\`, `$` and `` ` ``; elsewhere
//! a backslash takes the next character as it is. Nothing is expanded: `$HOME`, `*` and `#` are those characters.

/// Splits a line into words; an error says what is wrong with it.
pub(super) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut words = Vec::new();
    // None between two words, so that '' is one.
    let mut word: Option<Vec<u8>> = None;
    let mut rest = line.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b' ' | b'\t' => words.extend(word.take()),
            b'\'' => single(&mut rest, word.get_or_insert_default())?,
            b'"' => double(&mut rest, word.get_or_insert_default())?,
            b'\\' => {
                let next = rest.next().ok_or("nothing follows the backslash at its end")?;
                word.get_or_insert_default().push(next);
            }
            byte => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    Ok(words)
}

fn single(rest: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Result<(), &'static str> {
    loop {
        match rest.next().ok_or("a ' is not closed")? {
            b'\'' => return Ok(()),
            byte => word.push(byte),
        }
    }
}

fn double(rest: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Result<(), &'static str> {
    const OPEN: &str = "a \" is not closed";
    loop {
        match rest.next().ok_or(OPEN)? {
            b'"' => return Ok(()),
            b'\\' => match rest.next().ok_or(OPEN)? {
                escaped @ (b'"' | b'\\' | b'$' | b'`') => word.push(escaped),
                other => word.extend([b'\\', other]),
            },
            byte => word.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let words = split(line.as_bytes()).unwrap();
        words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words("  1 \t22  "), ["1", "22"]);
        assert_eq!(words(r#"'a b' "c d" e\ f"#), ["a b", "c d", "e f"]);
        assert_eq!(words(r#"a'b'"c" '' "" x"#), ["abc", "", "", "x"]);
        assert_eq!(
            words(r#"'\n$' "\n\$\"\\" \$ # * $HOME"#),
            [r"\n$", r#"\n$"\"#, "$", "#", "*", "$HOME"]
        );
    }

    #[test]
    fn lines_that_are_no_words() {
        for (line, error) in [
            ("a 'b", "a ' is not closed"),
            (r#"a "b\"#, "a \" is not closed"),
            (r"a \", "nothing follows the backslash at its end"),
        ] {
            assert_eq!(split(line.as_bytes()), Err(error), "{line}");
        }
    }
}
