//! Known answers of instructions that are more than arithmetic on elements.

use kvrm_ir::eval::{End, Inputs, Machine, eval};
use kvrm_ir::legalise::{Calls, Lacks, legalise};
use kvrm_ir::verify::verify;
use kvrm_ir::{Access, File, Op, Order, Type, Var};
use kvrm_random::Random;
use kvrm_random::vectors::{Element, Format};

use crate::state::{CpuState, FPCR, FPSR, V, VectorState};
use crate::{table, translated_form};

/// Registers without memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Registers {
    cpu: CpuState,
    vectors: VectorState,
}

impl Inputs for Registers {
    fn word(&self) -> u32 {
        unreachable!("the word is known")
    }
    fn param(&self, _: u8) -> u64 {
        unreachable!("nothing is cut")
    }
    fn read_var(&self, var: Var) -> u64 {
        self.cpu.var(var)
    }
}

impl Machine for Registers {
    fn count(&self) -> u64 {
        0
    }
    fn read_reg(&self, file: File, index: u32) -> u64 {
        if file == V { self.vectors.half(index) } else { self.cpu.x[index as usize] }
    }
    fn write_reg(&mut self, file: File, index: u32, value: u64) {
        if file == V {
            self.vectors.set_half(index, value);
        } else {
            self.cpu.x[index as usize] = value;
        }
    }
    fn write_var(&mut self, var: Var, value: u64) {
        self.cpu.set_var(var, value);
    }
    fn flags(&self) -> [bool; 4] {
        self.cpu.flags.map(|flag| flag != 0)
    }
    fn set_flags(&mut self, flags: [bool; 4]) {
        self.cpu.flags = flags.map(u8::from);
    }
    fn probe(&mut self, _: Access, _: u64, _: u32) -> Result<u64, u64> {
        unreachable!("no memory")
    }
    fn load(&mut self, _: Type, _: Order, _: u64) -> u64 {
        unreachable!("no memory")
    }
    fn store(&mut self, _: Type, _: Order, _: u64, _: u64) {
        unreachable!("no memory")
    }
    fn cas(&mut self, _: Type, _: u64, _: u64, _: u64) -> u64 {
        unreachable!("no memory")
    }
    fn cas128(&mut self, _: u64, _: [u64; 2], _: [u64; 2]) -> [u64; 2] {
        unreachable!("no memory")
    }
    fn fence(&mut self) {
        unreachable!("no memory")
    }
}

impl Registers {
    fn new() -> Registers {
        Registers { cpu: CpuState::new(), vectors: VectorState::new() }
    }

    /// Runs the row of that name with these fields.
    fn run(&mut self, name: &str, fields: &[(&str, u32)]) {
        let row = table().iter().find(|row| row.name == name).expect(name);
        let word = fields.iter().fold(row.pattern.value | row.pattern.preferred, |word, (f, v)| {
            row.pattern.field(f).unwrap_or_else(|| panic!("{name} has no {f}")).set(word, *v)
        });
        assert!(row.matches(word), "{name}");
        assert_eq!(eval(&translated_form(row, word, 0), self), End::Next);
    }

    /// The same with the registers of an instruction.
    fn two(&mut self, name: &str, [d, n]: [u32; 2]) {
        self.run(name, &[("Rd", d), ("Rn", n)]);
    }

    fn three(&mut self, name: &str, [d, n, m]: [u32; 3]) {
        self.run(name, &[("Rd", d), ("Rn", n), ("Rm", m)]);
    }

    fn get(&self, r: usize) -> u128 {
        let [low, high] = self.vectors.v[r];
        u128::from(high) << 64 | u128::from(low)
    }

    fn set(&mut self, r: usize, value: u128) {
        self.vectors.v[r] = [value as u64, (value >> 64) as u64];
    }

    fn words(&self, r: usize) -> [u32; 4] {
        std::array::from_fn(|i| (self.get(r) >> (32 * i)) as u32)
    }

    fn set_words(&mut self, r: usize, words: &[u32]) {
        let value = words.iter().rev().fold(0, |value, word| value << 32 | u128::from(*word));
        self.set(r, value);
    }
}

#[test]
fn aes_round() {
    // FIPS 197, appendix B: the state and key of round 1, and the state at the start of round 2.
    let bytes = |text: &str| u128::from_str_radix(text, 16).unwrap().swap_bytes();
    let mut r = Registers::new();
    r.set(0, bytes("3243f6a8885a308d313198a2e0370734"));
    r.set(1, bytes("2b7e151628aed2a6abf7158809cf4f3c"));
    r.two("AESE", [0, 1]);
    assert_eq!(r.get(0), bytes("d4bf5d30e0b452aeb84111f11e2798e5"));
    r.two("AESMC", [2, 0]);
    assert_eq!(r.get(2), bytes("046681e5e0cb199a48f8d37a2806264c"));
    r.two("AESIMC", [3, 2]);
    assert_eq!(r.get(3), r.get(0));
    r.two("AESD", [3, 4]);
    assert_eq!(r.get(3), bytes("3243f6a8885a308d313198a2e0370734") ^ r.get(1));
}

/// The first 32 bits of the fractions of the cube roots of the first 64 primes.
fn sha256_constants() -> Vec<u32> {
    let is_prime = |n: &u128| (2..*n).all(|d| !n.is_multiple_of(d));
    let root = |p: u128| {
        let cube = p << 96;
        (0..40).rev().fold(0u128, |root, bit| {
            let larger = root | 1 << bit;
            if larger * larger * larger <= cube { larger } else { root }
        })
    };
    (2..).filter(is_prime).take(64).map(|p| root(p) as u32).collect()
}

/// The only block of the message "abc".
const ABC: [u32; 16] = [0x6162_6380, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24];

#[test]
fn sha256_of_abc() {
    let start = [
        [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a],
        [0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19],
    ];
    let mut r = Registers::new();
    r.set_words(0, &start[0]);
    r.set_words(1, &start[1]);
    for (i, block) in ABC.chunks(4).enumerate() {
        r.set_words(4 + i, block);
    }
    for (i, k) in sha256_constants().chunks(4).enumerate() {
        let w = 4 + i % 4;
        let sum: Vec<u32> = r.words(w).iter().zip(k).map(|(w, k)| w.wrapping_add(*k)).collect();
        r.set_words(8, &sum);
        r.vectors.v[2] = r.vectors.v[0];
        r.three("SHA256H", [0, 1, 8]);
        r.three("SHA256H2", [1, 2, 8]);
        let next = |n: usize| 4 + ((i + n) % 4) as u32;
        r.two("SHA256SU0", [next(0), next(1)]);
        r.three("SHA256SU1", [next(0), next(2), next(3)]);
    }
    let hash = |half: usize| {
        let words = r.words(half);
        std::array::from_fn(|i| words[i].wrapping_add(start[half][i]))
    };
    assert_eq!(hash(0), [0xba78_16bf, 0x8f01_cfea, 0x4141_40de, 0x5dae_2223]);
    assert_eq!(hash(1), [0xb003_61a3, 0x9617_7a9c, 0xb410_ff61, 0xf200_15ad]);
}

#[test]
fn sha1_of_abc() {
    let start = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut r = Registers::new();
    r.set_words(0, &start);
    r.set_words(1, &[0xc3d2_e1f0]);
    for (i, block) in ABC.chunks(4).enumerate() {
        r.set_words(4 + i, block);
    }
    for i in 0..20 {
        let (name, k) = [
            ("SHA1C", 0x5a82_7999u32),
            ("SHA1P", 0x6ed9_eba1),
            ("SHA1M", 0x8f1b_bcdc),
            ("SHA1P", 0xca62_c1d6),
        ][i / 5];
        let sum = r.words(4 + i % 4).map(|w| w.wrapping_add(k));
        r.set_words(8, &sum);
        r.two("SHA1H", [2, 0]);
        r.three(name, [0, 1, 8]);
        r.vectors.v[1] = r.vectors.v[2];
        let next = |n: usize| 4 + ((i + n) % 4) as u32;
        r.three("SHA1SU0", [next(0), next(1), next(2)]);
        r.two("SHA1SU1", [next(0), next(3)]);
    }
    let words = r.words(0);
    let hash: [u32; 4] = std::array::from_fn(|i| words[i].wrapping_add(start[i]));
    assert_eq!(hash, [0xa999_3e36, 0x4706_816a, 0xba3e_2571, 0x7850_c26c]);
    assert_eq!(r.words(1)[0].wrapping_add(0xc3d2_e1f0), 0x9cd0_d89d);
}

#[test]
fn sm4_example() {
    let text = [0x0123_4567u32, 0x89ab_cdef, 0xfedc_ba98, 0x7654_3210];
    let system = [0xa3b1_bac6, 0x56aa_3350, 0x677d_9197, 0xb270_22dc];
    let mut r = Registers::new();
    r.set_words(0, &text);
    r.set_words(1, &std::array::from_fn::<u32, 4, _>(|i| text[i] ^ system[i]));
    for i in 0..8 {
        let byte = |n: u32| n * 7 % 256;
        let constant = |n: u32| (0..4).fold(0, |word, j| word << 8 | byte(4 * n + j));
        r.set_words(2, &[0, 1, 2, 3].map(|j| constant(4 * i + j)));
        r.three("SM4EKEY", [1, 1, 2]);
        r.two("SM4E", [0, 1]);
    }
    let mut cipher = r.words(0);
    cipher.reverse();
    assert_eq!(cipher, [0x681e_df34, 0xd206_965e, 0x86b3_e94f, 0x536e_4246]);
}

#[test]
fn scalar_floating_point() {
    let mut r = Registers::new();
    r.set(1, 1.5f64.to_bits().into());
    r.set(2, 2.25f64.to_bits().into());
    r.set(3, (-4.0f64).to_bits().into());
    let result = |r: &Registers| f64::from_bits(r.get(0) as u64);
    for (name, expected) in [
        ("FADD_D", 3.75),
        ("FSUB_D", -0.75),
        ("FMUL_D", 3.375),
        ("FNMUL_D", -3.375),
        ("FMAX_D", 2.25),
    ] {
        r.three(name, [0, 1, 2]);
        assert_eq!(result(&r), expected, "{name}");
    }
    for (name, expected) in
        [("FMADD_D", -0.625), ("FMSUB_D", -7.375), ("FNMADD_D", 0.625), ("FNMSUB_D", 7.375)]
    {
        r.run(name, &[("Rd", 0), ("Rn", 1), ("Rm", 2), ("Ra", 3)]);
        assert_eq!(result(&r), expected, "{name}");
    }
    assert_eq!(r.cpu.var(FPSR), 0);
    r.two("FCVTZS_X_D", [5, 3]);
    assert_eq!(r.cpu.x[5], -4i64 as u64);
    r.two("FCVTAU_W_D", [5, 1]);
    assert_eq!((r.cpu.x[5], r.cpu.var(FPSR)), (2, 0x10));
    r.run("FCVTZS_fixed_W_D", &[("Rd", 5), ("Rn", 2), ("scale", 30)]);
    assert_eq!(r.cpu.x[5], 9);
    r.cpu.x[6] = 7;
    r.run("SCVTF_fixed_X_D", &[("Rd", 0), ("Rn", 6), ("scale", 63)]);
    assert_eq!(result(&r), 3.5);
    r.run("FMOV_imm_D", &[("Rd", 0), ("imm8", 0x70)]);
    assert_eq!(result(&r), 1.0);
}

#[test]
fn comparisons_that_are_not_made_raise_nothing() {
    let mut r = Registers::new();
    r.set(1, f32::NAN.to_bits().into());
    // Z is clear: EQ does not hold.
    r.run("FCCMPE_S", &[("Rn", 1), ("Rm", 1), ("cond", 0), ("nzcv", 0b1010)]);
    assert_eq!((r.cpu.flags, r.cpu.var(FPSR)), ([1, 0, 1, 0], 0));
    r.run("FCCMPE_S", &[("Rn", 1), ("Rm", 1), ("cond", 1), ("nzcv", 0b1010)]);
    assert_eq!((r.cpu.flags, r.cpu.var(FPSR)), ([0, 0, 1, 1], 1));
}

#[test]
fn vectors_of_numbers() {
    let mut r = Registers::new();
    let bits = |numbers: [f32; 4]| numbers.map(f32::to_bits);
    r.set_words(1, &bits([1.0, 2.0, 3.0, 4.0]));
    r.set_words(2, &bits([10.0, 20.0, 30.0, 40.0]));
    r.three("FADDP_4S", [0, 1, 2]);
    assert_eq!(r.words(0), bits([3.0, 7.0, 30.0, 70.0]));
    r.two("FADDP_S", [0, 2]);
    assert_eq!(r.words(0), bits([30.0, 0.0, 0.0, 0.0]));
    r.two("FMAXNMV_4S", [0, 1]);
    assert_eq!(r.words(0), bits([4.0, 0.0, 0.0, 0.0]));
    r.set_words(0, &bits([1.0; 4]));
    r.run("FMLS_elem_4S", &[("Rd", 0), ("Rn", 1), ("Rm", 2), ("H", 1), ("L", 1)]);
    assert_eq!(r.words(0), bits([-39.0, -79.0, -119.0, -159.0]));
    r.three("FACGT_2S", [0, 2, 1]);
    assert_eq!(r.words(0), [u32::MAX, u32::MAX, 0, 0]);
    r.two("FCVTN_4H", [3, 1]);
    assert_eq!(r.get(3), 0x4400_4200_4000_3c00);
    r.two("FCVTL_4H", [0, 3]);
    assert_eq!(r.words(0), bits([1.0, 2.0, 3.0, 4.0]));
    r.set_words(0, &bits([0.5; 4]));
    r.three("FMLAL2_2S", [0, 3, 3]);
    assert_eq!(r.words(0), bits([9.5, 16.5, 0.0, 0.0]));
    // (1 + 2i) (10 + 20i), in two steps.
    r.set(0, 0);
    for rot in [0, 1] {
        r.run("FCMLA_2S", &[("Rd", 0), ("Rn", 1), ("Rm", 2), ("rot", rot)]);
    }
    assert_eq!(r.words(0), bits([-30.0, 40.0, 0.0, 0.0]));
    // Brain: the upper halves of singles.
    r.set_words(4, &[0x3f80_4000, 0, 0, 0]);
    r.set(0, 0);
    r.three("BFDOT_2S", [0, 4, 4]);
    assert_eq!(r.words(0), bits([5.0, 0.0, 0.0, 0.0]));
    assert_eq!(r.cpu.var(FPSR), 0);
}

#[test]
fn halves_are_flushed_as_fpcr_says() {
    const FZ16: u64 = 1 << 19;
    let mut r = Registers::new();
    r.set(1, 1);
    r.set(2, 0x3c00);
    r.three("FMLAL_2S", [0, 1, 2]);
    assert_eq!(f32::from_bits(r.words(0)[0]), 2f32.powi(-24));
    r.cpu.set_var(FPCR, FZ16);
    r.set(0, 0);
    r.three("FMLAL_2S", [0, 1, 2]);
    assert_eq!((r.get(0), r.cpu.var(FPSR)), (0, 0));
}

/// Numbers without a pattern.
fn noise(count: usize) -> Vec<u64> {
    let mut x = 1u64;
    let next = || {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        x ^ x >> 29
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn two_rounds_of_sha512() {
    let numbers = noise(10);
    let [a, b, c, d, e, f, g, h] = numbers[..8].try_into().unwrap();
    let mut expected = [a, b, c, d, e, f, g, h];
    for k in &numbers[8..] {
        let [a, b, c, d, e, f, g, h] = expected;
        let sigma1 = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
        let sigma0 = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
        let t1 = [sigma1, e & f ^ !e & g, *k].into_iter().fold(h, u64::wrapping_add);
        let t2 = sigma0.wrapping_add(a & b ^ a & c ^ b & c);
        expected = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    let mut r = Registers::new();
    let sum = [g.wrapping_add(numbers[9]), h.wrapping_add(numbers[8])];
    for (i, pair) in [[a, b], [c, d], sum, [f, g], [d, e]].into_iter().enumerate() {
        r.vectors.v[i] = pair;
    }
    r.three("SHA512H", [2, 3, 4]);
    let [t1_second, t1_first] = r.vectors.v[2];
    assert_eq!([c.wrapping_add(t1_second), d.wrapping_add(t1_first)], expected[4..6]);
    r.three("SHA512H2", [2, 1, 0]);
    assert_eq!(r.vectors.v[2], expected[..2]);
}

#[test]
fn schedule_of_sha512() {
    let w = noise(16);
    let mut r = Registers::new();
    for (register, first) in [0, 2, 9, 14].into_iter().enumerate() {
        r.vectors.v[register] = [w[first], w[first + 1]];
    }
    r.two("SHA512SU0", [0, 1]);
    r.three("SHA512SU1", [0, 3, 2]);
    let expected = |i: usize| {
        let (x, y) = (w[i + 1], w[i + 14]);
        let sigma0 = x.rotate_right(1) ^ x.rotate_right(8) ^ x >> 7;
        let sigma1 = y.rotate_right(19) ^ y.rotate_right(61) ^ y >> 6;
        [sigma0, w[i + 9], sigma1].into_iter().fold(w[i], u64::wrapping_add)
    };
    assert_eq!(r.vectors.v[0], [expected(0), expected(1)]);
}

#[test]
fn schedule_of_sm3() {
    let mut w: Vec<u32> = noise(16).into_iter().map(|x| x as u32).collect();
    let mut r = Registers::new();
    for (register, first) in [7, 0, 12, 10, 3].into_iter().enumerate() {
        r.set_words(register, &w[first..first + 4]);
    }
    r.three("SM3PARTW1", [0, 1, 2]);
    r.three("SM3PARTW2", [0, 3, 4]);
    for j in 16..20 {
        let x = w[j - 16] ^ w[j - 9] ^ w[j - 3].rotate_left(15);
        let permuted = x ^ x.rotate_left(15) ^ x.rotate_left(23);
        w.push(permuted ^ w[j - 13].rotate_left(7) ^ w[j - 6]);
    }
    assert_eq!(r.words(0), w[16..]);
}

#[test]
fn round_of_sm3() {
    let numbers: Vec<u32> = noise(11).into_iter().map(|x| x as u32).collect();
    let [a, b, c, d, e, f, g, h] = numbers[..8].try_into().unwrap();
    let [t, w, w_prime] = numbers[8..].try_into().unwrap();
    for (suffix, ff, gg) in
        [("A", a ^ b ^ c, e ^ f ^ g), ("B", a & b | a & c | b & c, e & f | !e & g)]
    {
        let mut r = Registers::new();
        r.set_words(0, &[d, c, b, a]);
        r.set_words(1, &[h, g, f, e]);
        r.set_words(2, &[0, 0, 0, t]);
        r.set_words(3, &[0, w, w_prime, 0]);
        r.run("SM3SS1", &[("Rd", 4), ("Rn", 0), ("Rm", 2), ("Ra", 1)]);
        let fields = |d, i| [("Rd", d), ("Rn", 4), ("Rm", 3), ("imm2", i)];
        r.run(&format!("SM3TT1{suffix}"), &fields(0, 2));
        r.run(&format!("SM3TT2{suffix}"), &fields(1, 1));
        let sum = |numbers: &[u32]| numbers.iter().fold(0, |sum: u32, x| sum.wrapping_add(*x));
        let ss1 = sum(&[a.rotate_left(12), e, t]).rotate_left(7);
        let tt1 = sum(&[ff, d, ss1 ^ a.rotate_left(12), w_prime]);
        let tt2 = sum(&[gg, h, ss1, w]);
        assert_eq!(r.words(0), [c, b.rotate_left(9), a, tt1]);
        let permuted = tt2 ^ tt2.rotate_left(9) ^ tt2.rotate_left(17);
        assert_eq!(r.words(1), [g, f.rotate_left(19), e, permuted]);
    }
}

/// Rows that call functions do the same if these have shortcuts: numbers of all kinds, and FPSR.
#[test]
fn shortcuts_change_nothing() {
    let lacks = Lacks { calls: Calls::Shortened, ..Lacks::default() };
    let mut random = Random::new(17);
    for row in table() {
        let free = random.next() as u32 & !row.pattern.mask;
        let word = row.pattern.value | row.pattern.preferred | free;
        let routine = translated_form(row, word, 0);
        let mut calls = false;
        routine.body.for_each_stmt(&mut |stmt| calls |= matches!(stmt.op, Op::Call(..)));
        if !calls || !row.matches(word) {
            continue;
        }
        let shortened = legalise(&routine, lacks);
        assert_eq!(verify(&shortened), Ok(()), "{}", row.name);
        for _ in 0..300 {
            let state = random_state(&mut random);
            let [plain, short] = [&routine, &shortened].map(|routine| {
                let mut registers = state;
                assert_eq!(eval(routine, &mut registers), End::Next);
                registers
            });
            assert_eq!(plain, short, "{} {word:#x} {state:x?}", row.name);
        }
    }
}

/// Registers with hard numbers, where shortcuts do as a rule.
fn random_state(random: &mut Random) -> Registers {
    let mut r = Registers::new();
    let element = random.pick(&[Element::Float(Format::SINGLE), Element::Float(Format::DOUBLE)]);
    (0..32).for_each(|n| r.set(n, random.hard_vector(element)));
    r.cpu.x[..31].fill_with(|| random.hard_value());
    r.cpu.set_var(FPCR, if random.once_in(4) { random.hard_fpcr() } else { 0 });
    r.cpu.set_var(FPSR, if random.once_in(4) { random.hard_fpsr() } else { 0x10 });
    r
}
