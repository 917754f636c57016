//! x
use kvrm_conformance::{compare::compare_rows, oracle::Tools};
fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let cases = std::env::args().nth(2).map_or(2000, |s| s.parse().unwrap());
    let tools = Tools::find([true, true]).unwrap();
    let rows: Vec<_> = kvrm_a64::table().iter().filter(|r| r.name.contains(&filter)).collect();
    let start = std::time::Instant::now();
    let reports = compare_rows(&tools, &rows, cases, 1, 2, &|_| {}).unwrap();
    for r in &reports {
        if r.different > 0 || r.dropped * 5 > r.cases { println!("== {} {} different of {}, dropped {}, tallies {:?}", r.row.name, r.different, r.cases, r.dropped, r.tallies); }
        for d in &r.descriptions { println!("{d}"); }
    }
    println!("{} rows {:?}", rows.len(), start.elapsed());
}
