//! How near lanes may come to the number of mappings that a process may have. In a process of its own, because they
//! would be missing everywhere else.

#![cfg(target_os = "linux")]

use kvrm_mem::{Image, PAGE, Space};

/// What Linux allows, if it can be reached in a short time.
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
    // As many as can be had, to within a few.
    let most = (0..).map(|n| limit - 1000 - 100 * n);
    let spaces = most.into_iter().find_map(|lanes| Space::private(&image, lanes).ok()).unwrap();
    assert!(spaces.len() > limit - 3000, "{} of {limit}", spaces.len());
    let others: Vec<Image> = (0..LEFT).map(|_| Image::new(PAGE).unwrap()).collect();
    std::thread::spawn(|| {}).join().unwrap();
    assert_eq!(others.len(), LEFT);
}
