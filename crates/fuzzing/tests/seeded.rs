//! The fuzz targets on pseudorandom bytes.

use kvrm_fuzzing::{decode, program, random_bytes};

#[test]
fn decoding() {
    for seed in 0..2000 {
        decode::check(&random_bytes(seed, 4096));
    }
}

#[test]
fn programs() {
    let start = std::time::Instant::now();
    for seed in (0..300).map(|i| i + std::env::var("SEED").map_or(0, |s| s.parse::<u64>().unwrap()))
    {
        println!("seed {seed}");
        program::check(&random_bytes(seed, 1024));
    }
    println!("{:?}", start.elapsed());
}
