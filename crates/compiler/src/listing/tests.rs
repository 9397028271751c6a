use std::sync::Arc;

use super::*;

fn sources() -> Vec<(String, Arc<str>)> {
    let own = "import triton\n\n@triton.jit\ndef k(x):\n    v = half(x)\n    for i in range(4):\n        v += i\n";
    vec![
        ("/é (x)/k.py".to_owned(), own.into()),
        ("/é (x)/helpers.py".to_owned(), "def half(x):\n    return x / 2\n".into()),
    ]
}

fn shown(stage: CompilerStage, text: &str) -> Vec<String> {
    annotated(stage, text, &sources()).lines().map(str::to_owned).collect()
}

#[test]
fn mlir_operations_are_below_their_source_lines() {
    let text = r##"#blocked = #ttg.blocked<{order = [0]}>
#loc = loc("/\C3\A9 (x)/k.py":4:0)
#loc9 = loc("x"(#loc))
module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc))) attributes {noinline = false} {
    %c = arith.constant 5.000000e-01 : f32 loc(#loc1)
    %v = arith.divf %x, %c : f32 loc(#loc4)
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc1 at #loc3)), %b: f32 loc(unknown)):
      tt.reduce.return %a : f32 loc(#loc5)
    }) : (tensor<4xf32>) -> f32 loc(#loc5)
    %r = scf.for %i = %0 to %4 step %1 iter_args(%w = %v) -> (f32) : i32 {
      scf.yield %w : f32 loc(#loc7)
    } loc(#loc6)
    tt.return loc(fused<"x">[unknown, #loc7])
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("/\C3\A9 (x)/helpers.py":2:11 to :16)
#loc3 = loc("v"("/\C3\A9 (x)/k.py":5:8))
#loc4 = loc(callsite(#loc2 at #loc3))
#loc5 = loc(callsite("/lib/triton/language/standard.py":291:36 at #loc4))
#loc6 = loc("/\C3\A9 (x)/k.py":6:13)
#loc7 = loc("/\C3\A9 (x)/k.py":7:8)
"##;
    let expected = r#"#blocked = #ttg.blocked<{order = [0]}>
// k.py:4: def k(x):
module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    // no line
    %c = arith.constant 5.000000e-01 : f32
    // helpers.py:2: return x / 2 (called at k.py:5)
    %v = arith.divf %x, %c : f32
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      tt.reduce.return %a : f32
    }) : (tensor<4xf32>) -> f32
    // k.py:6: for i in range(4):
    %r = scf.for %i = %0 to %4 step %1 iter_args(%w = %v) -> (f32) : i32 {
      // k.py:7: v += i
      scf.yield %w : f32
    }
    tt.return
  }
}"#;
    assert_eq!(shown(CompilerStage::Ttir, text), expected.lines().collect::<Vec<_>>());
}

#[test]
fn ptx_instructions_are_below_their_source_lines() {
    let text = "\
.version 8.7
.visible .entry k(
)
{
\t.reg .b32 \t%r<52>;
\t.loc\t1 4 0                          // k.py:4:0
$L__func_begin0:
// %bb.0:
\tmov.u32 \t%r10, %tid.x;
$L__tmp1:
\t.loc\t1 0 3
$L__BB0_1:
\tbar.sync \t0;
\t.loc\t2 2 11                        // helpers.py:2:11 @[ k.py:5:8 ]
\tadd.f32 \t%r14, %r5, %r13;
\t.loc\t1 5 8, function_name $L__info_string0, inlined_at 1 7 9 // k.py:5:8
\t.loc\t2 1 24, function_name $L__info_string0, inlined_at 1 5 8 // helpers.py:1:24
\tret;
}
\t.file\t1 \"/\\303\\251 (x)/k.py\"
\t.file\t2 \"/\\303\\251 (x)\" \"helpers.py\"
\t.section\t.debug_abbrev
\t{
.b8 1                                   // Abbreviation Code
\t}
\t.section\t.debug_macinfo\t{\t}
";
    let expected = "\
.version 8.7
.visible .entry k(
)
{
\t.reg .b32 \t%r<52>;
// %bb.0:
\t// k.py:4: def k(x):
\tmov.u32 \t%r10, %tid.x;
$L__BB0_1:
\t// no line
\tbar.sync \t0;
\t// helpers.py:2: return x / 2 (called at k.py:5)
\tadd.f32 \t%r14, %r5, %r13;
\t// helpers.py:1: def half(x): (called at k.py:7)
\tret;
}";
    assert_eq!(shown(CompilerStage::Ptx, text), expected.lines().collect::<Vec<_>>());
}

#[test]
fn sass_instructions_are_below_their_source_lines() {
    let text = r#".text.k:
	//## File "/\303\251 (x)/helpers.py", line 2 inlined at "/\303\251 (x)/k.py", line 5
	//## File "/\303\251 (x)/k.py", line 5
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   EXIT ;
	//## File "/lib/triton/language/standard.py", line 263
        /*0020*/                   BRA `(.L_x_1);
"#;
    let indent = "        ";
    assert_eq!(
        shown(CompilerStage::Sass, text),
        [
            ".text.k:".to_owned(),
            format!("{indent}// helpers.py:2: return x / 2 (called at k.py:5)"),
            format!("{indent}/*0000*/                   LDC R1, c[0x0][0x28] ;"),
            ".L_x_1:".to_owned(),
            format!("{indent}/*0010*/                   EXIT ;"),
            format!("{indent}// standard.py:263"),
            format!("{indent}/*0020*/                   BRA `(.L_x_1);"),
        ]
    );
}

#[test]
fn llvm_instructions_are_below_their_source_lines() {
    let text = r#"define ptx_kernel void @k(ptr addrspace(1) %0) local_unnamed_addr #0 !dbg !4 {
  %2 = fdiv float %1, 2.0, !dbg !7
  %3 = fadd float %2, 2.0
  ret void, !dbg !10
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "triton")
!1 = !DIFile(filename: "k.py", directory: "/\C3\A9 (x)")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "k", linkageName: "k", scope: !1, file: !1, line: 4, type: !5, scopeLine: 4, unit: !0)
!6 = !DIFile(filename: "helpers.py", directory: "/\C3\A9 (x)")
!7 = !DILocation(line: 2, column: 11, scope: !8, inlinedAt: !9)
!8 = distinct !DILexicalBlockFile(scope: !4, file: !6, discriminator: 0)
!9 = !DILocation(line: 5, column: 8, scope: !4)
!10 = !DILocation(line: 7, column: 8, scope: !4)
"#;
    let expected = r#"; k.py:4: def k(x):
define ptx_kernel void @k(ptr addrspace(1) %0) local_unnamed_addr #0 {
  ; helpers.py:2: return x / 2 (called at k.py:5)
  %2 = fdiv float %1, 2.0
  ; no line
  %3 = fadd float %2, 2.0
  ; k.py:7: v += i
  ret void
}

!llvm.module.flags = !{!2}
!2 = !{i32 2, !"Debug Info Version", i32 3}"#;
    assert_eq!(shown(CompilerStage::Llir, text), expected.lines().collect::<Vec<_>>());
}

#[test]
fn malformed_listings_are_returned_unchanged() {
    for text in
        ["", "} loc(", "#loc1 = loc(#loc1)\nx loc(#loc1)", "x loc(\"a", "\t.loc 1 2", "!7 = !7\nx, !dbg !7", "}\n}\n{"]
    {
        for stage in CompilerStage::ALL {
            let shown = annotated(stage, text, &sources());
            assert!(shown.len() <= text.len() + 1, "{text} {shown}");
        }
    }
    let nested = "callsite(".repeat(10_000);
    assert_eq!(shown(CompilerStage::Ttgir, &format!("x loc({nested}unknown)")).len(), 1);
}
