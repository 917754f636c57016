//! Conversions between formats, and to and from integers.

use super::model::Mode;
use super::*;

#[test]
fn between_formats() {
    for (i, (from, to)) in pairs().enumerate() {
        many(i as u64, 60_000, |random, fpcr| {
            // Often with a fraction that is nearly a tie there.
            let op = match random.once_in(2) {
                true => values::operand(random, from),
                false => values::near_format(random, from, to),
            };
            let mut model = Model::new(from, fpcr);
            let result = model.convert(op, to, None);
            assert_same(fp_convert(from, to), &[op, fpcr.into()], result, &model);
        });
    }
}

#[test]
fn to_singles_rounded_to_odd() {
    many(8, 100_000, |random, fpcr| {
        let op = match random.once_in(2) {
            true => values::operand(random, DOUBLE),
            false => values::near_format(random, DOUBLE, SINGLE),
        };
        let mut model = Model::new(DOUBLE, fpcr);
        let result = model.convert(op, SINGLE, Some(Mode::Odd));
        assert_same(fp_convert_odd(), &[op, fpcr.into()], result, &model);
    });
}

#[test]
fn all_halves_to_other_formats() {
    for to in [SINGLE, DOUBLE] {
        for (op, fpcr) in (0..0x1_0000).flat_map(|op| [0, 1 << AHP, 1 << DN].map(|fpcr| (op, fpcr)))
        {
            let mut model = Model::new(HALF, fpcr);
            let result = model.convert(op, to, None);
            assert_same(fp_convert(HALF, to), &[op, fpcr.into()], result, &model);
        }
    }
}

#[test]
fn to_integers() {
    for (i, (format, range)) in integers().enumerate() {
        let function = fp_to_fixed(format, range.0, range.1);
        many(i as u64, 40_000, |random, fpcr| {
            let op = values::operand(random, format);
            let fbits = if random.once_in(2) { 0 } else { random.below(u64::from(range.0) + 1) };
            let rounding = random.below(5);
            let mut model = Model::new(format, fpcr);
            let mode = Mode::ALL[rounding as usize];
            let result = model.fp_to_fixed(op, fbits as u32, mode, range);
            assert_same(function, &[op, fbits, rounding, fpcr.into()], result, &model);
        });
    }
}

#[test]
fn from_integers() {
    for (i, (format, range)) in integers().enumerate() {
        let function = fixed_to_fp(format, range.0, range.1);
        many(i as u64, 40_000, |random, fpcr| {
            let op = values::integer(random, format) & (u64::MAX >> (64 - range.0));
            let fbits = if random.once_in(2) { 0 } else { random.below(u64::from(range.0) + 1) };
            let mut model = Model::new(format, fpcr);
            let result = model.fixed_to_fp(op, fbits as u32, range);
            assert_same(function, &[op, fbits, fpcr.into()], result, &model);
        });
    }
}

#[test]
fn to_integral_numbers() {
    for format in FORMATS {
        many(format.bits.into(), 100_000, |random, fpcr| {
            let op = values::operand(random, format);
            let (rounding, exact) = (random.below(5), random.below(2));
            let mut model = Model::new(format, fpcr);
            let result = model.round_int(op, Mode::ALL[rounding as usize], exact != 0);
            assert_same(fp_round_int(format), &[op, rounding, exact, fpcr.into()], result, &model);
        });
    }
}

#[test]
fn to_integral_numbers_in_range() {
    for (format, bits) in [(SINGLE, 32), (SINGLE, 64), (DOUBLE, 32), (DOUBLE, 64)] {
        many(u64::from(format.bits * bits), 60_000, |random, fpcr| {
            let op = values::operand(random, format);
            let rounding = random.below(4);
            let mut model = Model::new(format, fpcr);
            let result = model.round_int_n(op, Mode::ALL[rounding as usize], bits);
            let function = fp_round_int_n(format, bits);
            assert_same(function, &[op, rounding, fpcr.into()], result, &model);
        });
    }
}

#[test]
fn to_integers_as_javascript_does() {
    many(7, 200_000, |random, fpcr| {
        let op = values::operand(random, DOUBLE);
        let mut model = Model::new(DOUBLE, fpcr);
        let (result, z) = model.fp_to_fixed_js(op);
        let got = fp_to_fixed_js().eval(&[op, fpcr.into()]);
        assert_eq!(got, [result, z.into(), model.fpsr.into()], "{op:x} with FPCR {fpcr:x}");
    });
}
