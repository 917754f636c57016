//! x
use kvrm_conformance::{compare::*, oracle::Tools, invalid::*, random::Random};
fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let cases = std::env::args().nth(2).map_or(2000, |s| s.parse().unwrap());
    let tools = Tools::find([true, true]).unwrap();
    if filter == "invalid" {
    let start = std::time::Instant::now();
        let mut bench = Bench::new(&tools).unwrap();
        let r = try_words(&mut bench, cases, Random::new(3)).unwrap();
        println!("{} words {} undefined {} expl {} different", r.words, r.undefined, r.explained, r.different);
        for d in &r.descriptions { println!("{d}"); }
        for (g, (n, ws)) in &r.missing { println!("{g} {n}"); for w in ws { println!("W {w:08x}"); } }
    println!("{:?}", start.elapsed());
        return;
    }
    if filter == "programs" {
    let start = std::time::Instant::now();
        let mut bench = Bench::new(&tools).unwrap();
        let r = kvrm_conformance::programs::run_programs(&mut bench, cases, 5).unwrap();
        println!("{r:?}"); for d in &r.descriptions { println!("{d}"); }
    println!("{:?}", start.elapsed());
        return;
    }
    let rows: Vec<_> = kvrm_a64::table().iter().filter(|r| r.name.contains(&filter)).collect();
    let start = std::time::Instant::now();
    let reports = compare_rows(&tools, &rows, cases, 1, 2, &|_| {}).unwrap();
    for r in &reports {
        if r.different > 0 || r.dropped * 5 > r.cases { println!("== {} {} different of {}, dropped {}, tallies {:?}", r.row.name, r.different, r.cases, r.dropped, r.tallies); }
        for d in &r.descriptions { println!("{d}"); }
    }
    println!("{} rows {:?}", rows.len(), start.elapsed());
}
