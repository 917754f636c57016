//! The ways between code that is interpreted and translated code.
//!
//! The registers that translated code keeps in variables are in the register file while code is interpreted, where handlers
//! have them. They are moved when a lane gets from one kind of code to the other, not before; lanes that gather in
//! between leave them where they are. `in_variables` says where that is.

use kvrm_engine::kernel::BLOCK;

use crate::region::Blocks;

/// Lines of run.wgsl that are different where there is translated code.
const DECLARATIONS: &str = "  var held = 0u;\n";
const CHOSEN: &str = "    waited = select(waited + 1u, 0u, goes);\n";
const TURN: &str = "      run_straight();\n";
const END: &str = "        break; // Nobody can go on.\n";

/// The text around the loop, with translated code.
pub(crate) fn with_blocks(run: &str, blocks: &Blocks<'_>) -> String {
    let declarations = format!("{DECLARATIONS}  var in_variables = false;\n{}", blocks.declare());
    // All lanes that go on; those that wait, if there are some, would wait for ever for a lane that does not gather.
    let chosen = format!(
        "{CHOSEN}    let full = votes(goes);\n    let apart = subgroupAny(!goes && turn != IDLE);\n"
    );
    let end =
        format!("        if (in_variables) {{\n{}        }}\n{END}", indented(5, blocks.store()));
    let lines = [(DECLARATIONS, declarations), (CHOSEN, chosen), (TURN, turn(blocks)), (END, end)];
    lines.into_iter().fold(run.to_string(), |text, (line, new)| {
        assert_eq!(text.matches(line).count(), 1, "run.wgsl has the line {line:?} once");
        text.replace(line, &new)
    })
}

/// What lanes do that go on: they interpret, or execute blocks, until they have to gather.
fn turn(blocks: &Blocks<'_>) -> String {
    format!(
        "      var w = records[at];
      loop {{
        var block = w.y;
        if ((w.x & 0xffffu) != {BLOCK}u) {{
          if (in_variables) {{
{store}            in_variables = false;
          }}
          block = run_straight(w);
        }}
        if (block == TO_GATHER) {{
          break;
        }}
        if (!in_variables) {{
{load}          in_variables = true;
        }}
        var fuel = limit - at;
        var goal = 0lu;
        loop {{
{dispatch}          if (apart || !agree(block, full)) {{
            break;
          }}
        }}
        at = 0u;
        limit = fuel;
        branch_far(goal);
        if ((block != TO_INTERPRET && block != AT_HAND) || at == limit) {{
          break;
        }}
        if (block == TO_INTERPRET) {{
          w = records[at];
        }}
      }}
",
        store = indented(6, blocks.store()),
        load = indented(5, blocks.load()),
        dispatch = blocks.dispatch(),
    )
}

fn indented(depth: usize, lines: String) -> String {
    lines.lines().map(|line| format!("{}{line}\n", "  ".repeat(depth))).collect()
}
