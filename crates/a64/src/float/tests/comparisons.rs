//! Comparisons, maxima and minima.

use std::cmp::Ordering;

use super::*;

fn nzcv(ordering: Option<Ordering>) -> u64 {
    match ordering {
        None => 0b0011,
        Some(Ordering::Equal) => 0b0110,
        Some(Ordering::Less) => 0b1000,
        Some(Ordering::Greater) => 0b0010,
    }
}

#[test]
fn flags_of_comparisons() {
    check(fp_compare, |model, [x, y]| nzcv(model.compare(x, y, false)));
    check(fp_compare_signalling, |model, [x, y]| nzcv(model.compare(x, y, true)));
}

#[test]
fn results_of_comparisons() {
    let is = |ordering: Option<Ordering>, wanted: fn(Ordering) -> bool| {
        u64::from(ordering.is_some_and(wanted))
    };
    check(fp_compare_eq, |model, [x, y]| is(model.compare(x, y, false), Ordering::is_eq));
    check(fp_compare_ge, |model, [x, y]| is(model.compare(x, y, true), Ordering::is_ge));
    check(fp_compare_gt, |model, [x, y]| is(model.compare(x, y, true), Ordering::is_gt));
}

#[test]
fn maxima_and_minima() {
    check(fp_max, |model, [x, y]| model.extreme(x, y, Ordering::Greater));
    check(fp_min, |model, [x, y]| model.extreme(x, y, Ordering::Less));
    check(fp_max_num, |model, [x, y]| model.extreme_number(x, y, Ordering::Greater));
    check(fp_min_num, |model, [x, y]| model.extreme_number(x, y, Ordering::Less));
}
