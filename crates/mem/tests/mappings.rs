//! How close lanes may come to the limit on the mappings of a process. This test has a process of its own, because
//! other tests would lack the mappings that it takes.

#![cfg(target_os = "linux")]

use kvrm_mem::{Image, PAGE, Space};

/// Returns the limit of Linux, if it can be reached quickly.
fn limit() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    text.trim().parse().ok().filter(|limit| *limit <= 1 << 18)
}

/// Mappings that a process should have left, for allocations and threads.
const LEFT: usize = 500;

#[test]
fn lanes_leave_mappings_for_everything_else() {
    let Some(limit) = limit() else { return };
    let image = Image::new(PAGE).unwrap();
    let error = Space::private(&image, limit - 50).err().expect("that is all there are");
    assert!(error.0 > limit / 2, "{error:?}");
    // As many lanes as fit, to within a hundred.
    let most = (0..).map(|n| limit - 1000 - 100 * n);
    let spaces = most.into_iter().find_map(|lanes| Space::private(&image, lanes).ok()).unwrap();
    assert!(spaces.len() > limit - 3000, "{} of {limit}", spaces.len());
    let others: Vec<Image> = (0..LEFT).map(|_| Image::new(PAGE).unwrap()).collect();
    std::thread::spawn(|| {}).join().unwrap();
    assert_eq!(others.len(), LEFT);
}
