//! Finds the name that the user may have meant.

/// Returns the most similar name, if it is similar enough.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    if !(2..=20).contains(&name.len()) {
        return None;
    }
    let limit = (name.len() / 3).clamp(1, 2);
    let near = known.map(|other| (distance(name, other), other)).filter(|(d, _)| *d <= limit);
    near.min().map(|(_, other)| other.to_string())
}

/// Returns how many characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_found() {
        let known = ["add", "adds", "sub", "movz"];
        assert_eq!(similar("ad", known.into_iter()), Some("add".into()));
        assert_eq!(similar("movv", known.into_iter()), Some("movz".into()));
        assert_eq!(similar("frobnicate", known.into_iter()), None);
        assert_eq!(similar("x", known.into_iter()), None);
    }
}
