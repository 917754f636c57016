//! What private lanes cost: the pages they write. In a process of its own, so that nothing disturbs.

#![cfg(target_os = "linux")]

use kvrm::{EngineKind, Machine, Reg};

const LANES: usize = 1000;
const IMAGE: usize = 16 << 20;
const LIMIT: u64 = 100 << 20;

/// Resident memory of this process that is not shared. Pages of the image are: each lane that looks at
/// one counts as having it, but there is only one.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
    let (resident, shared) = (fields[1], fields[2]);
    resident.saturating_sub(shared) * page_size()
}

/// Pages of `/proc` are the kernel's, which need not be ours.
fn page_size() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let line = text.lines().find(|line| line.starts_with("KernelPageSize:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Each lane adds up a little of the image and writes one page.
#[test]
fn a_lane_costs_the_pages_it_writes() {
    let words = [
        0xf9400001u32, // ldr x1, [x0]
        0x91000421,    // add x1, x1, #1
        0xf9000001,    // str x1, [x0]
        0xd4400000,    // hlt #0
    ];
    let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for engine in [EngineKind::Cpu, EngineKind::Eval] {
        let builder = Machine::builder().engine(engine).lanes(LANES).memory(IMAGE as u64);
        let mut machine = builder.build().unwrap();
        machine.load(0, &vec![1; IMAGE]).unwrap();
        machine.load(0x1000, &code).unwrap();
        machine.set_entry(0x1000).unwrap();
        for lane in 0..LANES {
            let address = 0x10000 + (lane as u64 * 0x3000) % 0xf0_0000;
            machine.set_register(lane, Reg::X(0), address).unwrap();
        }
        let before = resident();
        let report = machine.run(100).unwrap();
        assert_eq!(report.cycles, 3 * LANES as u64);
        let grown = resident().saturating_sub(before);
        assert!(grown < LIMIT, "{}: {} KiB more are resident", machine.engine(), grown >> 10);
        println!("{}: {} KiB more", machine.engine(), grown >> 10);
    }
}
