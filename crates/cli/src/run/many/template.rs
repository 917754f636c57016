//! `{lane}` in arguments and variables.

const LANE: &[u8] = b"{lane}";
const ESCAPED: &[u8] = b"{{lane}}";

/// True if something in the text stands for something else.
pub(super) fn differs(text: &[u8]) -> bool {
    text.windows(LANE.len()).any(|part| part == LANE)
}

/// Replaces `{lane}` by the number, and `{{lane}}` by `{lane}`. Other braces stay as they are.
pub(super) fn fill(text: &[u8], lane: u64) -> Vec<u8> {
    let mut filled = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&first) = rest.first() {
        if let Some(after) = rest.strip_prefix(ESCAPED) {
            filled.extend_from_slice(LANE);
            rest = after;
        } else if let Some(after) = rest.strip_prefix(LANE) {
            filled.extend_from_slice(lane.to_string().as_bytes());
            rest = after;
        } else {
            filled.push(first);
            rest = &rest[1..];
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lane_in_braces_is_replaced() {
        let filled = |text: &str| String::from_utf8(fill(text.as_bytes(), 17)).unwrap();
        assert_eq!(filled("{lane}"), "17");
        assert_eq!(filled("in/{lane}.{lane}"), "in/17.17");
        assert_eq!(filled("{{lane}} {lane}"), "{lane} 17");
        assert_eq!(filled("{{{lane}}}"), "{{lane}}");
        for same in ["", "{}", "{{}}", "{n}", "{lane", "lane}", "{ lane }", "BEGIN { print }", "ü{"]
        {
            assert_eq!(filled(same), same);
            assert!(!differs(same.as_bytes()));
        }
        assert!(differs(b"a{lane}") && differs(b"{{lane}}"));
    }
}
