use std::time::{Duration, Instant};

use super::*;

const SOURCE: &str = "\
import triton

@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if n:
        i = tl.arange(0, BLOCK)
    y = i + 1
    return y


def run(x):
    kernel[(1,)](x, 3, BLOCK=64)
    return x
";

fn edit(old: &str, new: &str) -> String {
    format!("<<<<<<< OLD\n{old}\n=======\n{new}\n>>>>>>> NEW\n")
}

#[test]
fn an_edit_is_found_however_it_is_wrapped() {
    let expected = SOURCE.replace("BLOCK=64", "BLOCK=128");
    let (old, new) = ("    kernel[(1,)](x, 3, BLOCK=64)", "    kernel[(1,)](x, 3, BLOCK=128)");
    let plain = edit(old, new);
    for reply in [
        plain.clone(),
        plain.replace('\n', "\r\n"),
        format!("Diagnosis: small tiles.\n\n```python\n{plain}```\nThat is all."),
        format!("<think>\n{}</think>\n{plain}", edit("nothing", "of this")),
        format!("{plain}\nAgain, the edit:\n{plain}"),
        plain.replace("OLD", "SEARCH").replace("NEW", "REPLACE"),
        format!("<<<<<<< OLD\n```python\n{old}\n```\n=======\n```\n{new}\n```\n>>>>>>> NEW"),
        format!("<old>\n{old}\n</old>\n<new>\n{new}\n</new>"),
        format!("```old\n{old}\n```\nbecomes\n```new\n{new}\n```"),
        // An edit of a part of a line.
        edit("BLOCK=64", "BLOCK=128"),
    ] {
        assert_eq!(small_step(&reply, SOURCE).as_deref(), Ok(&*expected), "{reply}");
    }
}

#[test]
fn all_edits_apply_to_the_original_text() {
    let reply = edit("    return y\n", "    return i\n") + &edit("    y = i + 1\n", "") + &edit("BLOCK=64", "BLOCK=1");
    let expected = SOURCE.replace("    y = i + 1\n", "").replace("return y\n\n", "return i\n\n").replace("=64", "=1");
    let made = small_step(&reply, SOURCE).unwrap();
    assert_eq!(made.replace("\n\n\n", "\n"), expected.replace("\n\n\n", "\n"));
    // The edit removes the whole line.
    assert_eq!(small_step(&edit("    y = i + 1", ""), SOURCE).unwrap(), SOURCE.replace("    y = i + 1\n", ""));
    // Line ends stay as they are.
    let other = SOURCE.replace('\n', "\r\n");
    let reply = edit("    y = i + 1\n    return y", "    return i\n");
    let expected = other.replace("    y = i + 1\r\n    return y", "    return i\r\n");
    assert_eq!(small_step(&reply, &other).unwrap(), expected);
}

#[test]
fn edits_match_whole_lines_before_partial_lines() {
    let made = small_step(&edit("    i = tl.arange(0, BLOCK)", "    i = tl.arange(0, 2)"), SOURCE).unwrap();
    assert!(made.contains("\n    i = tl.arange(0, 2)\n    if n:\n        i = tl.arange(0, BLOCK)\n"), "{made}");
}

#[test]
fn errors_describe_what_is_wrong_with_an_edit() {
    let says = |reply: &str, words: &[&str]| {
        let said = small_step(reply, SOURCE).unwrap_err().to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    says("I would use larger tiles.", &["no edit", "<<<<<<< OLD"]);
    says("```python\ny = 1\n```", &["no edit"]);
    says(&edit("    y = i + 2\n    return y", "x"), &["not occur", "from line 8 on", "    y = i + 1\n    return y"]);
    says(&edit("i = tl.arange(0, BLOCK)", "i = 1"), &["several times", "on the lines 5, 7"]);
    says(&edit("", "y = 1"), &["replaces nothing"]);
}

#[test]
fn an_edit_that_cannot_be_made_is_an_error() {
    let overlapping = edit("    y = i + 1\n    return y", "    return i") + &edit("    return y", "    return 2");
    assert_eq!(small_step(&overlapping, SOURCE), Err(ReplyError::Overlap { line: 9 }));
    assert_eq!(small_step(&edit("return x", "return x"), SOURCE), Err(ReplyError::Unchanged));
    let open = "prose\n<<<<<<< OLD\nreturn x\n=======\nreturn y\n";
    assert_eq!(small_step(open, SOURCE), Err(ReplyError::Unfinished { line: 2 }));
    let broken = small_step(&edit("    return y", "    return (y"), SOURCE).unwrap_err();
    assert!(matches!(&broken, ReplyError::Syntax { line: 9.., .. }), "{broken}");
    let turned = small_step(&edit("    return y", "    return y  # \u{202e}x"), SOURCE);
    assert_eq!(turned, Err(ReplyError::Hidden { line: 9, code: 0x202e }));
    let many: String = (0..100).map(|at| edit(&format!("a{at}"), "b")).collect();
    assert_eq!(small_step(&many, SOURCE), Err(ReplyError::Many { count: 100, most: 64 }));
}

#[test]
fn a_file_is_found_in_prose() {
    let file = SOURCE.trim_end();
    let names = &["run", "kernel"];
    for reply in [
        format!("Here it is:\n\n```python\n{file}\n```\nIt uses\n```\nlarger tiles\n```\n"),
        format!("```bash\npip install x\n```\n~~~~py title=\"../other.py\"\n{file}\n~~~~"),
        format!("````\n{file}\n````\n"),
        file.to_owned(),
        format!("The file:\n\n{file}"),
        format!("```python\n{file}\n"),
        format!("```python\ndef run(x): ...\n```\nNo, better:\n```python\n{file}\n```"),
        format!("<think>```python\ny = 1\n```</think>```python\n{file}\n```"),
    ] {
        assert_eq!(whole_file(&reply, names).as_deref(), Ok(SOURCE), "{reply}");
    }
    let (kernel, host) = file.split_once("def run").unwrap();
    let parts = format!("Kernel:\n```python\n{kernel}```\nHost:\n```python\ndef run{host}\n```\n");
    assert_eq!(whole_file(&parts, names).unwrap().replace("\n\n\n\n\n", "\n\n\n"), SOURCE);
    let nested = format!("```python\n\"\"\"Use:\n```\nrun(x)\n```\n\"\"\"\n{file}\n```\n");
    assert!(whole_file(&nested, names).unwrap().ends_with(SOURCE));
}

#[test]
fn a_reply_with_a_file_must_be_complete() {
    let says = |reply: &str, names: &[&str], word: &str| {
        let said = whole_file(reply, names).unwrap_err().to_string();
        assert!(said.contains(word), "{said}");
    };
    says("I cannot do that.", &[], "no Python file");
    says("```sh\nls\n```", &[], "no Python file");
    says("```python\ny = 1\n```", &["y", "run", "Op.forward"], "must define run, Op.forward,");
    says(&format!("```python\n{SOURCE}def f(:\n```"), &["run"], "line 15: def f(:");
    let class =
        "```python\nif 1:\n    class Op:\n        @staticmethod\n        def forward(x):\n            return x\n```";
    assert!(whole_file(class, &["Op", "Op.forward"]).is_ok());
}

#[test]
fn a_diagnosis_is_one_line() {
    let of = |reply: &str| diagnosis(reply).unwrap_or_default();
    let edit = edit("a", "b");
    assert_eq!(of(&format!("**Diagnosis:** loads are\nnot coalesced.\n\nPlan: x\n{edit}")), "loads are not coalesced.");
    assert_eq!(of(&format!("Some words.\n\n## Diagnosis\n\nBound by memory.\n{edit}")), "Bound by memory.");
    assert_eq!(of(&format!("The tiles are small.\n\n{edit}")), "The tiles are small.");
    assert_eq!(diagnosis(&edit), None);
    let long = of(&"\u{1b}[31mword\u{202e} ".repeat(1000));
    assert!(long.chars().count() <= 301 && !long.contains(['\u{1b}', '\u{202e}', '\n']), "{long}");
}

#[test]
fn long_replies_take_no_time() {
    let begin = Instant::now();
    let huge = "```python\nx = [1,\n".repeat(10 << 20 >> 4);
    assert!(matches!(small_step(&huge, SOURCE), Err(ReplyError::TooLong { .. })));
    assert!(matches!(whole_file(&huge, &["run"]), Err(ReplyError::TooLong { .. })));
    assert_eq!(diagnosis(&huge), None);
    // Replies of the maximum length, in forms that could take long to parse.
    for piece in
        ["```python\nx = [1,\n", "<<<<<<< OLD\na\n=======\nb\n>>>>>>> NEW\n", "<old>", "((((", "a\n```\n", "=======\n"]
    {
        let reply = piece.repeat((1 << 20) / piece.len());
        assert!(small_step(&reply, SOURCE).is_err() && whole_file(&reply, &["run"]).is_err());
        let _ = diagnosis(&reply);
    }
    let wide = edit(&"x = 1; ".repeat(20_000), "y");
    assert!(matches!(small_step(&wide, &SOURCE.repeat(500)), Err(ReplyError::Nowhere { .. })));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}
