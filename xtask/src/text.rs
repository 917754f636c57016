//! Formats numbers for pages, and replaces sections of pages.

/// Formats digits in groups of three.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Formats bytes in the largest unit of which there is at least one.
pub(crate) fn bytes(number: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| number >= *size);
    let Some((size, unit)) = unit else { return format!("{number} bytes") };
    let value = number as f64 / size as f64;
    let decimals = usize::from(!number.is_multiple_of(size));
    format!("{value:.decimals$} {unit}")
}

/// A part of a page, between two marker lines.
pub(crate) struct Section {
    pub(crate) start: &'static str,
    pub(crate) end: &'static str,
}

impl Section {
    /// Returns the section, including the two lines.
    pub(crate) fn find<'a>(&self, page: &'a str) -> Option<&'a str> {
        let start = page.find(self.start)?;
        let len = page[start..].find(self.end)? + self.end.len();
        Some(&page[start..start + len])
    }

    /// Returns the page with new content there; `None` if it has no such section.
    pub(crate) fn replace(&self, page: &str, content: &str) -> Option<String> {
        let old = self.find(page)?;
        Some(page.replacen(old, &self.around(content), 1))
    }

    /// Returns the content between the two lines.
    pub(crate) fn around(&self, content: &str) -> String {
        format!("{}\n{content}{}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_groups() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(100_000), "100,000");
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(100), "100 bytes");
        assert_eq!(bytes(256 << 10), "256 KiB");
        assert_eq!(bytes(17 << 29), "8.5 GiB");
    }

    #[test]
    fn a_section_replaces_the_one_before() {
        let section = Section { start: "<!-- a -->", end: "<!-- b -->" };
        let page = |content: &str| format!("x\n<!-- a -->\n{content}<!-- b -->\ny\n");
        assert_eq!(section.replace(&page("old\n"), "new\n"), Some(page("new\n")));
        assert_eq!(section.replace("nothing", "new\n"), None);
    }
}
