//! Vector registers, FPCR and FPSR.

use super::*;

const FADD_V0_V1_V2_4S: u32 = 0x4E22_D420;
const FDIV_S0_S1_S2: u32 = 0x1E22_1820;
const ONE: u128 = 0x3F80_0000;
const THREE: u128 = 0x4040_0000;
// Cumulative flags of FPSR: invalid operation, inexact, saturation.
const IOC: u64 = 1;
const IXC: u64 = 1 << 4;
const QC: u64 = 1 << 27;

/// A case with distinct values in all registers.
fn vector_case(word: u32) -> Case {
    let mut case = case(&[word]);
    case.vectors = true;
    case.state.v = std::array::from_fn(|i| 0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF + i as u128);
    case
}

#[test]
fn registers_go_in_and_come_out() {
    check("nop", &vector_case(NOP), |_| {});
    check("and v31.16b, v1.16b, v30.16b", &vector_case(0x4E3E_1C3F), |o| {
        o.state.v[31] = o.state.v[1] & o.state.v[30];
    });
    // The upper half is cleared.
    check("fmov d0, x1", &vector_case(0x9E67_0020), |o| o.state.v[0] = 0x101);
    let load = with_x(vector_case(0x3DC0_0020), 1, WINDOW_START + 16);
    check("ldr q0, [x1]", &load, |o| {
        o.state.v[0] = 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110;
    });
    let store = with_x(vector_case(0x3C81_0420), 1, WINDOW_START);
    check("str q0, [x1], #16", &store, |o| {
        o.state.x[1] += 16;
        o.window[..16].copy_from_slice(&o.state.v[0].to_le_bytes());
    });
}

#[test]
fn rounding_follows_fpcr_and_shows_in_fpsr() {
    let thirds = [0x3EAA_AAAB, 0x3EAA_AAAB, 0x3EAA_AAAA, 0x3EAA_AAAA];
    for (mode, third) in thirds.into_iter().enumerate() {
        let mut case = vector_case(FDIV_S0_S1_S2);
        (case.state.v[1], case.state.v[2]) = (ONE, THREE);
        (case.state.fpcr, case.state.fpsr) = ((mode as u64) << 22, QC);
        check("fdiv s0, s1, s2", &case, |o| {
            o.state.v[0] = third;
            o.state.fpsr = QC | IXC;
        });
    }
}

#[test]
fn nans_and_the_control_bits() {
    const SIGNALLING: u128 = 0x7F81_2345;
    let nan = |fpcr: u64, result: u128| {
        let mut case = vector_case(FADD_V0_V1_V2_4S);
        (case.state.v[1], case.state.v[2]) = (SIGNALLING, ONE);
        case.state.fpcr = fpcr;
        check("fadd of a signalling NaN", &case, |o| {
            o.state.v[0] = result;
            o.state.fpsr = IOC;
        });
    };
    nan(0, SIGNALLING | 1 << 22);
    // Default NaN.
    nan(1 << 25, 0x7FC0_0000);
}

#[test]
fn control_registers_are_read_and_written() {
    let mut read = vector_case(0xD53B_4400);
    (read.state.fpcr, read.state.fpsr) = (0x07C8_0000, 0x0800_009F);
    check("mrs x0, fpcr", &read, |o| o.state.x[0] = 0x07C8_0000);
    let write = with_x(vector_case(0xD51B_4420), 0, 0x0800_009F);
    check("msr fpsr, x0", &write, |o| o.state.fpsr = 0x0800_009F);
}

#[test]
fn vectors_leave_no_trace() {
    let start = CODE_START + 0x1000;
    let mut set = at(vector_case(FDIV_S0_S1_S2), start);
    set.state.fpcr = 3 << 22;
    let cases = [
        set,
        at(case(&[0x9E66_0000]), start + 16), // fmov x0, d0
        at(case(&[0xD53B_4401]), start + 32), // mrs x1, fpcr
        at(case(&[0xD53B_4422]), start + 48), // mrs x2, fpsr
    ];
    for mut oracle in both() {
        let outcomes = run(oracle.as_mut(), &cases);
        let seen = [outcomes[1].state.x[0], outcomes[2].state.x[1], outcomes[3].state.x[2]];
        assert_eq!(seen, [0; 3], "{}", oracle.name());
    }
}

/// An instruction of each extension, and whether Unicorn and QEMU have it.
const EXTENSIONS: [(&str, u32, [bool; 2]); 20] = [
    ("FEAT_FP16, scalar", 0x1EE2_2820, [true, true]),
    ("FEAT_FP16, vector", 0x4E42_1420, [true, true]),
    ("FEAT_AES", 0x4E28_4820, [true, true]),
    ("FEAT_PMULL", 0x0EE2_E020, [true, true]),
    ("FEAT_SHA1", 0x5E28_0820, [true, true]),
    ("FEAT_SHA256", 0x5E02_4020, [true, true]),
    ("FEAT_SHA512", 0xCE62_8020, [true, true]),
    ("FEAT_SHA3", 0xCE02_0C20, [true, true]),
    ("FEAT_SM3", 0xCE62_C020, [true, true]),
    ("FEAT_SM4", 0xCEC0_8420, [true, true]),
    ("FEAT_RDM", 0x6E82_8420, [true, true]),
    ("FEAT_DotProd", 0x6E82_9420, [true, true]),
    ("FEAT_FHM", 0x4E22_EC20, [true, true]),
    ("FEAT_FCMA", 0x6E82_CC20, [true, true]),
    ("FEAT_JSCVT", 0x1E7E_0020, [true, true]),
    ("FEAT_FRINTTS", 0x1E68_C020, [true, true]),
    ("FEAT_I8MM, dot product", 0x4E82_9C20, [false, true]),
    ("FEAT_I8MM, matrices", 0x4E82_A420, [false, true]),
    ("FEAT_BF16, conversion", 0x1E63_4020, [false, true]),
    ("FEAT_BF16, dot product", 0x6E42_FC20, [false, true]),
];

#[test]
fn extensions_are_those_that_the_documentation_lists() {
    let cases = EXTENSIONS.map(|(_, word, _)| vector_case(word));
    for (which, mut oracle) in both().into_iter().enumerate() {
        for (case, (name, _, has)) in cases.iter().zip(EXTENSIONS) {
            let outcome = run(oracle.as_mut(), std::slice::from_ref(case)).remove(0);
            let expected = if has[which] { OutcomeKind::Done } else { OutcomeKind::Undefined };
            assert_eq!(outcome.kind, expected, "{name} on {}", oracle.name());
        }
    }
}
