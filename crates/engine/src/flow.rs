//! The code that direct branches reach.

use std::collections::{HashSet, VecDeque};

use kvrm_a64::flow;

/// The code that is reached from `entry` by direct branches, through calls and after stops the lane may
/// resume from, as addresses and words; `fetch` gives the words, or `None` where there are none.
pub fn reachable(entry: u64, fetch: impl Fn(u64) -> Option<u32>) -> Vec<(u64, u32)> {
    let (mut seen, mut pending, mut code) = (HashSet::new(), VecDeque::from([entry]), Vec::new());
    while let Some(pc) = pending.pop_front() {
        if !seen.insert(pc) {
            continue;
        }
        let Some(word) = fetch(pc) else { continue };
        code.push((pc, word));
        pending.extend(flow(word, pc).successors(pc));
    }
    code
}
