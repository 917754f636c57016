//! Private memory: isolation, copy-on-write, images and resets.

use kvrm::{Lanes, PAGE, Reg};

use crate::support::{
    CODE, DATA, HALT, MEMORY, Snapshot, Subject, TPIDR_EL0, all_memory, load, read_u64, run,
    run_to_halt, set_up, set_x, x,
};

for_every_engine! {
    lanes_do_not_see_each_other, pages_start_as_the_image, loading_after_writing,
    writing_memory_of_one_lane, all_lanes_at_once, reset_restores_everything, resets_with_different_pages,
    writing_every_page, load_outlives_resets_and_write_memory_does_not, unaligned_accesses,
    zeroing_blocks, the_image_of_a_written_page, empty_accesses, shared_memory_survives_a_reset,
}

for_llvmpipe! { pages_start_as_the_image }

for_split_engines! {
    lanes_do_not_see_each_other, pages_start_as_the_image, loading_after_writing,
    writing_memory_of_one_lane, all_lanes_at_once, reset_restores_everything,
    load_outlives_resets_and_write_memory_does_not,
}

fn lanes_do_not_see_each_other(subject: Subject) {
    let code = asm!(
        ; add x0, x27, 100 ; str x0, [x28] ; mov x1, 50 ; again: ; ldr x2, [x28] ; add x3, x3, x2
        ; subs x1, x1, 1 ; b.ne <again ; hlt 0);
    for threads in [1, 2] {
        let mut machine = subject.private(20, threads, &code);
        run_to_halt(&mut machine);
        for lane in 0..20 {
            assert_eq!(read_u64(&machine, lane, DATA), lane as u64 + 100);
            assert_eq!(x(&machine, lane, 3), 50 * (lane as u64 + 100));
        }
    }
}

fn pages_start_as_the_image(subject: Subject) {
    let code = asm!(; ldr x0, [x28] ; strb w27, [x28] ; ldr x1, [x28, 8] ; ldr x2, [x28] ; hlt 0);
    let mut machine = subject.private(3, 1, &code);
    machine.load(DATA, &[0x11; 16]).unwrap();
    run_to_halt(&mut machine);
    for lane in 0..3 {
        let whole = 0x1111_1111_1111_1111;
        let changed = whole & !0xff | lane as u64;
        assert_eq!([0, 1, 2].map(|n| x(&machine, lane, n)), [whole, whole, changed]);
    }
}

fn loading_after_writing(subject: Subject) {
    let code = asm!(; str x27, [x28] ; svc 0 ; ldr x0, [x28] ; ldr x1, [x28, 8] ; hlt 0);
    let mut machine = subject.private(3, 1, &code);
    machine.run(100).unwrap();
    machine.load(DATA + 8, &77u64.to_le_bytes()).unwrap();
    run_to_halt(&mut machine);
    for lane in 0..3 {
        assert_eq!((x(&machine, lane, 0), x(&machine, lane, 1)), (lane as u64, 77));
    }
}

fn writing_memory_of_one_lane(subject: Subject) {
    let code = asm!(; ldr x0, [x28] ; hlt 0);
    let mut machine = subject.private(3, 1, &code);
    machine.write_memory(Lanes::All, DATA, &5u64.to_le_bytes()).unwrap();
    machine.write_memory(1, DATA, &6u64.to_le_bytes()).unwrap();
    run_to_halt(&mut machine);
    assert_eq!([0, 1, 2].map(|lane| x(&machine, lane, 0)), [5, 6, 5]);
}

fn all_lanes_at_once(subject: Subject) {
    let code = asm!(; ldr x0, [x28] ; add x1, x0, x27 ; str x1, [x28, 8] ; hlt 0);
    let lanes = 75;
    let mut machine = subject.private(lanes, 1, &code);
    // Some have the page already.
    machine.write_memory(40, DATA + 100, b"forty").unwrap();
    let inputs: Vec<u64> = (0..lanes as u64).map(|lane| lane * lane).collect();
    let bytes: Vec<u8> = inputs.iter().flat_map(|input| input.to_le_bytes()).collect();
    machine.write_lanes(DATA, &bytes).unwrap();
    run_to_halt(&mut machine);
    let mut rows = vec![0; lanes * 10];
    machine.read_lanes(DATA + 7, &mut rows).unwrap();
    for (lane, row) in rows.chunks_exact(10).enumerate() {
        let mut wanted = [0; 10];
        wanted[0] = (inputs[lane] >> 56) as u8;
        wanted[1..9].copy_from_slice(&(inputs[lane] + lane as u64).to_le_bytes());
        assert_eq!(row, wanted, "lane {lane}");
    }
    let mut forty = [0; 5];
    machine.read_memory(40, DATA + 100, &mut forty).unwrap();
    assert_eq!(&forty, b"forty");
    // Where code has been, each lane now has its own.
    let other = asm!(; mov x2, 5 ; hlt 0);
    let mut programs = code[..8].repeat(lanes);
    programs[8 * 70..8 * 71].copy_from_slice(&other);
    machine.write_lanes(CODE, &programs).unwrap();
    machine.set_pc(Lanes::All, CODE).unwrap();
    machine.run(100).unwrap();
    assert_eq!([69, 70, 71].map(|lane| x(&machine, lane, 2)), [0, 5, 0]);
    machine.reset(Lanes::All).unwrap();
    machine.read_lanes(DATA, &mut rows).unwrap();
    assert!(rows.iter().all(|byte| *byte == 0));
}

fn reset_restores_everything(subject: Subject) {
    let code = asm!(
        ; str x28, [x28] ; stp x28, x28, [x28, 64] ; cmp x28, x28 ; mov sp, x28
        ; msr TPIDR_EL0, x28 ; hlt 0);
    let mut machine = subject.private(2, 1, &code);
    machine.load(DATA, &[3; 100]).unwrap();
    let fresh = all_memory(&machine, 0);
    for lane in [0, 1] {
        run_to_halt(&mut machine);
        assert!(all_memory(&machine, lane) != fresh);
        machine.reset(lane).unwrap();
        assert!(all_memory(&machine, lane) == fresh);
        let Snapshot { stop, count, registers } = Snapshot::of(&machine, lane);
        assert_eq!((stop, count, machine.cycles(lane).unwrap()), (None, 0, 0));
        for (reg, value) in registers {
            assert_eq!(value, if reg == Reg::Pc { CODE.into() } else { 0 }, "{reg}");
        }
        assert_eq!(machine.total_cycles(1 - lane).unwrap(), 5, "the other lane is left alone");
        set_up(&mut machine);
    }
}

fn resets_with_different_pages(subject: Subject) {
    let code = asm!(; ldr x2, [x0] ; str x1, [x0] ; ldr x3, [x0] ; hlt 0);
    let mut machine = subject.machine(&code);
    for address in (0..MEMORY).step_by(8) {
        machine.load(address, &(address ^ 0xabcd).to_le_bytes()).unwrap();
    }
    machine.load(CODE, &code).unwrap();
    for round in 0..200u64 {
        let address = (round * 0x2a38) % (MEMORY / 2) + MEMORY / 2;
        machine.reset(0).unwrap();
        set_x(&mut machine, 0, 0, address);
        set_x(&mut machine, 0, 1, round);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!((x(&machine, 0, 2), x(&machine, 0, 3)), (address ^ 0xabcd, round));
    }
}

fn writing_every_page(subject: Subject) {
    let code = asm!(
        ; again: ; str x0, [x0] ; add x0, x0, 1, lsl 12 ; cmp x0, x1 ; b.lo <again ; hlt 0);
    let size = 16 << 20;
    let mut machine = load(subject.builder().memory(size), &code);
    for _ in 0..3 {
        set_x(&mut machine, 0, 0, 0x2000);
        set_x(&mut machine, 0, 1, size);
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(read_u64(&machine, 0, size - PAGE), size - PAGE);
        machine.reset(0).unwrap();
        for page in 2..size / PAGE {
            assert_eq!(read_u64(&machine, 0, page * PAGE), 0);
        }
    }
}

fn load_outlives_resets_and_write_memory_does_not(subject: Subject) {
    let mut machine = subject.private(2, 1, &asm!(; hlt 0));
    machine.load(DATA, &[1; 8]).unwrap();
    machine.write_memory(Lanes::All, DATA + 8, &[2; 8]).unwrap();
    machine.reset(Lanes::All).unwrap();
    for lane in [0, 1] {
        assert_eq!(read_u64(&machine, lane, DATA), 0x0101_0101_0101_0101);
        assert_eq!(read_u64(&machine, lane, DATA + 8), 0);
    }
}

fn shared_memory_survives_a_reset(subject: Subject) {
    let mut machine = subject.shared(2, 1, &asm!(; str x28, [x28] ; hlt 0));
    run_to_halt(&mut machine);
    machine.write_memory(1, DATA + 8, &[2; 8]).unwrap();
    machine.reset(Lanes::All).unwrap();
    assert_eq!(read_u64(&machine, 0, DATA), DATA);
    assert_eq!(read_u64(&machine, 0, DATA + 8), 0x0202_0202_0202_0202);
}

/// Every offset across a granule and a page, and every size.
fn unaligned_accesses(subject: Subject) {
    let code = asm!(
        ; str x1, [x0] ; ldr x2, [x0] ; str w1, [x0, 1]! ; ldr w3, [x0] ; strh w1, [x0, 1]!
        ; ldrh w4, [x0] ; stp x1, x2, [x0, 8]! ; ldp x5, x6, [x0] ; stp w1, w2, [x0, 4]! ; hlt 0);
    for at in [DATA + 64, DATA + PAGE] {
        let mut machines = [subject, Subject::EVAL].map(|subject| subject.machine(&code));
        for offset in 0..24 {
            for machine in &mut machines {
                machine.reset(0).unwrap();
                set_x(machine, 0, 0, at - 20 + offset);
                set_x(machine, 0, 1, 0x0102_0304_0506_0708);
                assert_eq!(run(machine), HALT);
            }
            let [tested, reference] = &machines;
            assert_eq!(Snapshot::of(tested, 0), Snapshot::of(reference, 0), "offset {offset}");
            assert!(all_memory(tested, 0) == all_memory(reference, 0), "offset {offset}");
        }
    }
}

fn zeroing_blocks(subject: Subject) {
    let mut machine = subject.machine(&asm!(; dc zva, x0 ; dc zva, xzr ; hlt 0));
    machine.load(DATA, &[9; 256]).unwrap();
    machine.load(0, &[9; 128]).unwrap();
    set_x(&mut machine, 0, 0, DATA + 64 + 17);
    assert_eq!(run(&mut machine), HALT);
    let memory = all_memory(&machine, 0);
    let zeros = |from: u64, to: u64| memory[from as usize..to as usize].iter().all(|b| *b == 0);
    assert!(zeros(DATA + 64, DATA + 128) && zeros(0, 64));
    assert_eq!((memory[DATA as usize + 63], memory[DATA as usize + 128], memory[64]), (9, 9, 9));
}

/// A page that was written and reset takes part in changes of the image.
fn the_image_of_a_written_page(subject: Subject) {
    let code = asm!(; ldr x0, [x28] ; str x28, [x28] ; hlt 0);
    let mut machine = subject.machine(&code);
    for round in 0..5u64 {
        machine.load(DATA, &round.to_le_bytes()).unwrap();
        assert_eq!(run(&mut machine), HALT);
        assert_eq!(x(&machine, 0, 0), round);
        machine.load(DATA, &(round + 50).to_le_bytes()).unwrap();
        machine.reset(0).unwrap();
        assert_eq!(read_u64(&machine, 0, DATA), round + 50);
        set_up(&mut machine);
    }
}

fn empty_accesses(subject: Subject) {
    for mut machine in [subject.machine(&[]), subject.shared(2, 1, &[])] {
        for address in [0, DATA, MEMORY] {
            machine.load(address, &[]).unwrap();
            machine.write_memory(0, address, &[]).unwrap();
            machine.write_memory(Lanes::All, address, &[]).unwrap();
            machine.read_memory(0, address, &mut []).unwrap();
        }
        assert!(machine.load(MEMORY + 1, &[]).is_err());
    }
}
