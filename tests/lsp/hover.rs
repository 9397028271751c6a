//! Tests of hover texts.

use serde_json::json;

use crate::harness::{BAD, MISTAKE, Setup};

const FILE: &str = r#"import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
@triton.jit
def scale(x_ptr, n: int, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, helper(offsets))


@triton.jit
def helper(x):
    return x


def run(x):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    scale[grid](x, x.numel())
    scale[(1,)](x, 3)
"#;

#[test]
fn a_member_of_triton_shows_its_signature() {
    let options = json!({ "settings": { "tritonVersion": "3.6.0" } });
    let mut client = Setup::new().full().options(options).start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let (text, range) = client.hover(&document, "arange").unwrap();
    assert!(text.starts_with("```python\ntriton.language.arange(start, end)\n```"), "{text}");
    assert!(text.contains("compiler built-in · Triton 3.6.0"), "{text}");
    assert_eq!(range, document.range_of("tl.arange"));
    let (text, _) = client.hover(&document, "cdiv").unwrap();
    assert!(text.contains("triton.cdiv("), "{text}");
    let (text, _) = client.hover(&document, "constexpr").unwrap();
    assert!(text.contains("class triton.language.constexpr"), "{text}");
    // On the module's name, the module is described, not its member.
    let (text, range) = client.hover(&document, "tl.arange").unwrap();
    assert!(text.contains("triton.language\n") && text.contains("module"), "{text}");
    assert_eq!(range["end"]["character"], 16);
}

#[test]
fn hover_on_a_kernel_shows_its_parameters_and_configurations() {
    let mut client = Setup::new().full().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let (text, range) = client.hover(&document, "scale(x_ptr").unwrap();
    let expected = "```python\n@triton.jit\n\
        def scale(x_ptr, n: int, BLOCK: tl.constexpr, EVEN: tl.constexpr)\n```\n\
        \n- Runtime parameters: `x_ptr`, `n`\
        \n- Constexpr parameters: `BLOCK`, `EVEN`\
        \n- Autotuned: 2 configurations, key `n`\
        \n- Set by heuristics: `EVEN`\
        \n- Launched twice in this file: line 23, 24";
    assert_eq!(text, expected);
    assert_eq!(range["start"]["line"], 10);
    // The launch has the same hover, and a called helper has its own.
    assert_eq!(client.hover(&document, "scale[grid]").unwrap().0, expected);
    assert!(client.hover(&document, "helper(offsets)").unwrap().0.contains("def helper(x)"));
    // A local name has its type, and the value of each lane.
    let (text, _) = client.hover(&document, "offsets = ").unwrap();
    assert_eq!(text, "```python\noffsets: int32[BLOCK]\n```\n\nEach lane: `arange(0, BLOCK)`");
    assert_eq!(client.hover(&document, "return x"), None);
}

#[test]
fn a_diagnostic_shows_the_page_of_its_rule() {
    let mut client = Setup::new().full().start();
    let document = client.open("a.py", BAD);
    client.published(&document);
    let (text, range) = client.hover(&document, "n)\n").unwrap();
    assert!(text.contains("# L002 dtype-called") && text.contains("## Why is this bad?"), "{text}");
    let url = rules::find("L002").unwrap().declaration.url();
    assert!(text.ends_with(&format!("[{url}]({url})")), "{text}");
    assert_eq!(range, document.range_of(MISTAKE));
    // The member under the cursor comes first.
    let (text, _) = client.hover(&document, "float32").unwrap();
    assert!(text.starts_with("```python\ntriton.language.float32"), "{text}");
    assert!(text.contains("\n\n---\n\n# L002"), "{text}");
}

#[test]
fn a_suppression_shows_the_page_of_its_rule() {
    let mut client = Setup::new().full().start();
    let text = BAD.replace(MISTAKE, &format!("{MISTAKE}  # warpsmith: ignore[L003, L002]"));
    let document = client.open("a.py", &text);
    client.published(&document);
    let (text, range) = client.hover(&document, "002]").unwrap();
    assert!(text.starts_with("# L002 dtype-called"), "{text}");
    let range_of_code = document.range_of("L002");
    assert_eq!(range, range_of_code);
    let (text, _) = client.hover(&document, "003").unwrap();
    assert!(text.starts_with("# L003"), "{text}");
}

#[test]
fn hover_is_plain_text_for_a_client_without_markdown() {
    let mut client = Setup::new().start();
    let document = client.open("a.py", FILE);
    client.published(&document);
    let position = document.range_of("arange")["start"].clone();
    let params = json!({ "textDocument": { "uri": document.uri }, "position": position });
    assert_eq!(client.request("textDocument/hover", params)["contents"]["kind"], "plaintext");
}
