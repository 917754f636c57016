//! Sums, products, quotients and roots.

use super::*;

#[test]
fn sums() {
    check(fp_add, |model, [x, y]| model.add(x, y));
    check(fp_sub, |model, [x, y]| model.sub(x, y));
}

#[test]
fn products() {
    check(fp_mul, |model, [x, y]| model.mul(x, y));
}

#[test]
fn fused_sums() {
    check(fp_mul_add, |model, [a, x, y]| model.mul_add(a, x, y));
}

#[test]
fn quotients() {
    check(fp_div, |model, [x, y]| model.div(x, y));
}

#[test]
fn roots() {
    check(fp_sqrt, |model, [x]| model.sqrt(x));
}

#[test]
fn roots_of_all_halves() {
    for (op, mode) in (0..0x1_0000).flat_map(|op| (0..4).map(move |mode| (op, mode))) {
        let mut model = Model::new(HALF, mode << 22);
        let result = model.sqrt(op);
        assert_same(fp_sqrt(HALF), &[op, (mode << 22).into()], result, &model);
    }
}
