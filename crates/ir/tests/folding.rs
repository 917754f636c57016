//! Folding changes nothing: an expression over constants is what the evaluator makes of the same
//! expression over variables.

use kvrm_ir::eval::{End, Inputs, Machine, eval};
use kvrm_ir::verify::verify;
use kvrm_ir::{Access, Builder, File, Order, Type, Val, Var};

const RESULT: Var = Var { id: 255, name: "result", ty: Type::U64 };

/// A small generator of numbers, with many of those that make trouble.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn hard_value(&mut self) -> u64 {
        let edges =
            [0, 1, 2, 31, 32, 33, 63, 64, u64::MAX, 1 << 31, 1 << 63, 0xffff_ffff, i64::MAX as u64];
        match self.below(3) {
            0 => self.next(),
            _ => edges[self.below(edges.len() as u64) as usize],
        }
    }
}

/// Variables with given values; nothing else.
struct Variables(Vec<u64>, u64);

impl Inputs for Variables {
    fn word(&self) -> u32 {
        unreachable!()
    }
    fn param(&self, _: u8) -> u64 {
        unreachable!()
    }
    fn read_var(&self, var: Var) -> u64 {
        self.0[usize::from(var.id)]
    }
}

impl Machine for Variables {
    fn flags(&self) -> [bool; 4] {
        unreachable!()
    }
    fn set_flags(&mut self, _: [bool; 4]) {
        unreachable!()
    }
    fn count(&self) -> u64 {
        unreachable!()
    }
    fn read_reg(&self, _: File, _: u32) -> u64 {
        unreachable!()
    }
    fn write_reg(&mut self, _: File, _: u32, _: u64) {
        unreachable!()
    }
    fn write_var(&mut self, _: Var, value: u64) {
        self.1 = value;
    }
    fn probe(&mut self, _: Access, _: u64, _: u32) -> Result<u64, u64> {
        unreachable!()
    }
    fn load(&mut self, _: Type, _: Order, _: u64) -> u64 {
        unreachable!()
    }
    fn store(&mut self, _: Type, _: Order, _: u64, _: u64) {
        unreachable!()
    }
    fn cas(&mut self, _: Type, _: u64, _: u64, _: u64) -> u64 {
        unreachable!()
    }
    fn cas128(&mut self, _: u64, _: [u64; 2], _: [u64; 2]) -> [u64; 2] {
        unreachable!()
    }
    fn fence(&mut self) {}
}

/// A leaf of the expression: a constant, or a variable that has its value. Which of them are
/// constants does not change the random choices.
fn leaf<'b>(
    b: &'b Builder,
    rng: &mut Rng,
    ty: Type,
    vars: &mut Vec<u64>,
    constants: u64,
) -> Val<'b> {
    let bits = rng.hard_value() & ty.mask();
    let id = vars.len() as u8;
    vars.push(bits);
    if constants >> (id % 64) & 1 != 0 {
        b.konst(ty, bits)
    } else {
        b.read_var(Var { id, name: "leaf", ty })
    }
}

fn integer<'b>(
    b: &'b Builder,
    rng: &mut Rng,
    ty: Type,
    depth: u32,
    vars: &mut Vec<u64>,
    c: u64,
) -> Val<'b> {
    if depth == 0 || vars.len() > 60 {
        return leaf(b, rng, ty, vars, c);
    }
    let op = rng.below(24);
    let x = integer(b, rng, ty, depth - 1, vars, c);
    match op {
        0 => !x,
        1 => -x,
        2 => x.clz(),
        3 => x.rbit(),
        4 => x.bswap(),
        5 => x.trunc(Type::U8).sext(ty),
        6 => x.trunc(Type::U16).zext(ty),
        7 => x.trunc(Type::U32).sext(Type::U64).trunc(ty),
        8..=11 => {
            let amount = integer(b, rng, Type::U32, depth - 1, vars, c);
            [x.shl_by(amount), x.shr_by(amount), x.sar_by(amount), x.rotr_by(amount)]
                [op as usize - 8]
        }
        12 => {
            let cond = boolean(b, rng, depth - 1, vars, c);
            cond.select(x, integer(b, rng, ty, depth - 1, vars, c))
        }
        13 => boolean(b, rng, depth - 1, vars, c).zext(ty),
        _ => {
            let y = integer(b, rng, ty, depth - 1, vars, c);
            match op {
                14 => x + y,
                15 => x - y,
                16 => x * y,
                17 => x.umulh(y),
                18 => x.smulh(y),
                19 => x.udiv(y),
                20 => x.sdiv(y),
                21 => x & y,
                22 => x | y,
                _ => x ^ y,
            }
        }
    }
}

fn boolean<'b>(b: &'b Builder, rng: &mut Rng, depth: u32, vars: &mut Vec<u64>, c: u64) -> Val<'b> {
    if depth == 0 || vars.len() > 60 {
        return leaf(b, rng, Type::Bool, vars, c);
    }
    let ty = if rng.below(2) == 0 { Type::U32 } else { Type::U64 };
    let op = rng.below(12);
    if op < 4 {
        let p = boolean(b, rng, depth - 1, vars, c);
        let q = boolean(b, rng, depth - 1, vars, c);
        return [p & q, p | q, p ^ q, !p][op as usize];
    }
    let x = integer(b, rng, ty, depth - 1, vars, c);
    let y = if rng.below(4) == 0 { x } else { integer(b, rng, ty, depth - 1, vars, c) };
    match op {
        4 => x.eq(y),
        5 => x.ne(y),
        6 => x.ult(y),
        7 => x.ule(y),
        8 => x.slt(y),
        9 => x.sle(y),
        10 => x.saddo(y),
        _ => x.ssubo(y),
    }
}

/// The value of a random expression, with the leaves chosen by `constants` known while it is built.
fn value(seed: u64, constants: u64) -> u64 {
    let (mut rng, mut vars) = (Rng(seed), Vec::new());
    let b = Builder::new(None);
    let result = integer(&b, &mut rng, Type::U64, 4, &mut vars, constants);
    b.write_var(RESULT, result);
    let routine = b.finish();
    verify(&routine).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{routine}"));
    let mut machine = Variables(vars, 0);
    assert_eq!(eval(&routine, &mut machine), End::Next);
    machine.1
}

#[test]
fn folded_and_evaluated_expressions_agree() {
    for seed in 0..20_000 {
        let evaluated = value(seed, 0);
        for constants in [u64::MAX, 0x5555_5555_5555_5555, !0x5555_5555_5555_5555] {
            assert_eq!(value(seed, constants), evaluated, "seed {seed}, constants {constants:#x}");
        }
    }
}
