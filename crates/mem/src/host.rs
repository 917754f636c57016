//! Finds out how much memory the host has left.

/// Bytes that are granted without a check.
const LITTLE: u64 = 1 << 30;

/// True unless the host certainly cannot provide this many bytes, all of which will be written. Systems promise more
/// memory than they have, and end processes that use it.
///
/// ```
/// assert!(kvrm_mem::may_have(4096));
/// ```
pub fn may_have(bytes: u64) -> bool {
    bytes <= LITTLE || available().is_none_or(|available| bytes <= available)
}

/// Returns the bytes that are free or can be freed, including swap, within the limit of this process's control group.
#[cfg(target_os = "linux")]
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let free = kibibytes(&text, "MemAvailable:")? + kibibytes(&text, "SwapFree:").unwrap_or(0);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    // It says "max" if there is no limit.
    let group = group.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some(group.min(free * 1024))
}

#[cfg(not(target_os = "linux"))]
fn available() -> Option<u64> {
    None
}

/// Finds a line such as `SwapFree:  1024 kB`.
#[cfg(target_os = "linux")]
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_everything() {
        assert!(may_have(LITTLE));
        assert_eq!(may_have(u64::MAX), available().is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells() {
        let text = "MemTotal:       24 kB\nMemAvailable:    7 kB\nSwapFree: 0 kB\nOdd: many kB\n";
        assert_eq!(kibibytes(text, "MemAvailable:"), Some(7));
        assert_eq!((kibibytes(text, "Odd:"), kibibytes(text, "None:")), (None, None));
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
