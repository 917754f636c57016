//! Code that is not the same for all lanes.

use std::fmt::Write;

use kvrm_engine::code::{
    DIRECTORY_FACTORS, DIRECTORY_SHIFT, DirectoryEntry, GRANULE_RECORDS, NOBODY,
};

use crate::kernel::{Arguments, RECORD};

/// Takes another record instead of one that is diverted: the lane's own, which the directory tells of, or the one of
/// all lanes that have none. Lanes that came here together may part, and come together again after the next branch.
pub(crate) fn diverted(out: &mut String) {
    let _ = write!(
        out,
        "DIVERTED:
\tld.param.u64 %t10, [args+{directory}];
\tld.param.u64 %t12, [args+{mask}];
\tcvt.u32.u64 %s11, %t12;
\tmad.lo.u32 %s12, %lane, {factor}, %w1;
\tmul.lo.u32 %s12, %s12, {factor_2};
\tshr.u32 %s13, %s12, {DIRECTORY_SHIFT};
\txor.b32 %s12, %s12, %s13;
SEARCH:
\tand.b32 %s12, %s12, %s11;
\tmad.wide.u32 %t12, %s12, {entry}, %t10;
\tld.global.v4.u32 {{%s14, %s15, %s16, %s17}}, [%t12];
\tsetp.eq.u32 %q0, %s14, {NOBODY};
\t@%q0 bra SEARCHED;
\tadd.u32 %s12, %s12, 1;
\tsetp.ne.u32 %q0, %s14, %lane;
\tsetp.ne.or.u32 %q0, %s15, %w1, %q0;
\t@%q0 bra SEARCH;
\tmov.b32 %w2, %s16;
\tmov.b32 %w3, %s17;
SEARCHED:
\tmov.b64 %t11, {{%w2, %w3}};
\tsub.u32 %s12, %at, %records_low;
\tsub.u32 %s12, %s12, {RECORD};
\tand.b32 %s12, %s12, {within};
\tcvt.u64.u32 %t12, %s12;
\tadd.u64 %t11, %t11, %t12;
\tld.global.v4.u32 {{%w0, %w1, %w2, %w3}}, [%t11];
\tand.b32 %s10, %w0, 0xffff;
\tbrx.idx %s10, DISPATCH;
",
        directory = std::mem::offset_of!(Arguments, directory),
        mask = std::mem::offset_of!(Arguments, directory_mask),
        factor = DIRECTORY_FACTORS[0],
        factor_2 = DIRECTORY_FACTORS[1],
        entry = size_of::<DirectoryEntry>(),
        within = (GRANULE_RECORDS - 1) * RECORD,
    );
}
