use expect_test::{Expect, expect};

use model::syntax::Span;
use rules::Edit;

use super::output::Format;
use super::*;

const TEXT: &str = "import triton\nÜ = tl.cidv(n, 4) + tl.cidv(m, 4)\n";

/// A finding at the `nth` occurrence of `word`, with a fix that replaces it by `new`.
fn finding(text: &str, word: &str, nth: usize, new: &str) -> Diagnostic {
    let (start, _) = text.match_indices(word).nth(nth).unwrap();
    let span = Span::new(start, start + word.len());
    Diagnostic::new(&rules::find("L001").unwrap().declaration, span, format!("`{word}` is unknown: it was, 100 %"))
        .with_fix(format!("replace with `{new}`"), vec![Edit { span, text: new.to_owned() }])
}

fn written(format: Format, reports: &[Report]) -> String {
    let mut out = Vec::new();
    output::write(format, reports, false, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn reports() -> [Report; 2] {
    let mut second = finding(TEXT, "cidv", 1, "cdiv");
    second.severity = rules::Severity::Hint;
    second = second.with_related(Span::new(7, 13), "imported here");
    let report = Report {
        path: "a b.py".to_owned(),
        source: Some(Source::parse(TEXT)),
        findings: vec![finding(TEXT, "cidv", 0, "cdiv"), second],
        fixed: 0,
        outcome: Outcome::Checked,
    };
    [report, Report::without_findings("c.py", Outcome::Checked)]
}

fn check(format: Format, expected: &Expect) {
    expected.assert_eq(&written(format, &reports()));
}

#[test]
fn text_shows_the_line_and_the_fix() {
    check(
        Format::Text,
        &expect![[r#"
            error[L001]: `cidv` is unknown: it was, 100 %
             --> a b.py:2:8
              |
            2 | Ü = tl.cidv(n, 4) + tl.cidv(m, 4)
              |        ^^^^
              |
              = help: unknown-member: https://docs.rs/warpsmith/latest/warpsmith/rules/pages/index.html#l001-unknown-member
            help: replace with `cdiv`
              |
            2 - Ü = tl.cidv(n, 4) + tl.cidv(m, 4)
            2 + Ü = tl.cdiv(n, 4) + tl.cidv(m, 4)
              |

            hint[L001]: `cidv` is unknown: it was, 100 %
             --> a b.py:2:24
              |
            1 | import triton
              |        ------ imported here
            2 | Ü = tl.cidv(n, 4) + tl.cidv(m, 4)
              |                        ^^^^
              |
              = help: unknown-member: https://docs.rs/warpsmith/latest/warpsmith/rules/pages/index.html#l001-unknown-member
            help: replace with `cdiv`
              |
            2 - Ü = tl.cidv(n, 4) + tl.cidv(m, 4)
            2 + Ü = tl.cidv(n, 4) + tl.cdiv(m, 4)
              |

            Found 1 error and 1 hint in 1 of 2 files; --fix fixes 2.
        "#]],
    );
}

#[test]
fn github_output_is_workflow_commands() {
    check(
        Format::Github,
        &expect![[r#"
        ::error file=a b.py,line=2,col=8,endColumn=12,title=L001 unknown-member::`cidv` is unknown: it was, 100 %25
        ::notice file=a b.py,line=2,col=24,endColumn=28,title=L001 unknown-member::`cidv` is unknown: it was, 100 %25
    "#]],
    );
}

#[test]
fn json_counts_code_points_from_one() {
    let all: serde_json::Value = serde_json::from_str(&written(Format::Json, &reports())).unwrap();
    expect![[r#"
        {
          "path": "a b.py",
          "line": 2,
          "column": 8,
          "end_line": 2,
          "end_column": 12,
          "code": "L001",
          "name": "unknown-member",
          "severity": "error",
          "message": "`cidv` is unknown: it was, 100 %",
          "url": "https://docs.rs/warpsmith/latest/warpsmith/rules/pages/index.html#l001-unknown-member",
          "fix": {
            "title": "replace with `cdiv`",
            "edits": [
              {
                "line": 2,
                "column": 8,
                "end_line": 2,
                "end_column": 12,
                "text": "cdiv"
              }
            ]
          }
        }"#]]
    .assert_eq(&format!("{:#}", all[0]));
    assert_eq!(all[1]["severity"], "hint");
    assert_eq!(written(Format::Json, &[]), "[]\n");
}

#[test]
fn sarif_names_rules_places_and_fixes() {
    let log: serde_json::Value = serde_json::from_str(&written(Format::Sarif, &reports())).unwrap();
    let run = &log["runs"][0];
    assert_eq!((&log["version"], &run["columnKind"]), (&"2.1.0".into(), &"unicodeCodePoints".into()));
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), rules::all().len());
    for result in run["results"].as_array().unwrap() {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    // The index was checked above; it changes with every new rule.
    let mut result = run["results"][1].clone();
    result.as_object_mut().unwrap().shift_remove("ruleIndex");
    expect![[r#"
        {
          "ruleId": "L001",
          "level": "note",
          "message": {
            "text": "`cidv` is unknown: it was, 100 %"
          },
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "a%20b.py"
                },
                "region": {
                  "startLine": 2,
                  "startColumn": 24,
                  "endLine": 2,
                  "endColumn": 28
                }
              }
            }
          ],
          "relatedLocations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "a%20b.py"
                },
                "region": {
                  "startLine": 1,
                  "startColumn": 8,
                  "endLine": 1,
                  "endColumn": 14
                }
              },
              "message": {
                "text": "imported here"
              }
            }
          ],
          "fixes": [
            {
              "description": {
                "text": "replace with `cdiv`"
              },
              "artifactChanges": [
                {
                  "artifactLocation": {
                    "uri": "a%20b.py"
                  },
                  "replacements": [
                    {
                      "deletedRegion": {
                        "startLine": 2,
                        "startColumn": 24,
                        "endLine": 2,
                        "endColumn": 28
                      },
                      "insertedContent": {
                        "text": "cdiv"
                      }
                    }
                  ]
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&format!("{result:#}"));
}

#[test]
fn the_summary_counts() {
    let last = |reports: &[Report]| written(Format::Text, reports).lines().last().unwrap().to_owned();
    assert_eq!(last(&[]), "Found nothing in 0 files.");
    let [mut first, second] = reports();
    assert_eq!(last(std::slice::from_ref(&second)), "Found nothing in 1 file.");
    first.fixed = 3;
    assert_eq!(last(&[first, second]), "Made 3 fixes. Found 1 error and 1 hint in 1 of 2 files; --fix fixes 2.");
}

/// Every `a` is found and becomes `b`, every `b` becomes `c`.
fn letters(text: &str) -> (Source, Vec<Diagnostic>) {
    let all = |word: &str, new: &str| {
        (0..text.matches(word).count()).map(|nth| finding(text, word, nth, new)).collect::<Vec<_>>()
    };
    (Source::parse(text), [all("a", "b"), all("b", "c")].concat())
}

#[test]
fn fixes_are_made_until_there_are_none() {
    let fixed = fix::fix("a, b, a".to_owned(), letters);
    assert_eq!((fixed.state.0.text().as_ref(), fixed.count), ("c, c, c", 5));
    assert!(fixed.state.1.is_empty());
}

#[test]
fn fixes_that_touch_are_made_one_after_the_other() {
    let fixed = fix::fix("ab".to_owned(), letters);
    assert_eq!((fixed.state.0.text().as_ref(), fixed.count), ("cc", 3));
}

#[test]
fn a_fix_that_breaks_the_file_is_not_made() {
    let breaking = |text: &str| (Source::parse(text), vec![finding(text, "x", 0, "x = (")]);
    let fixed = fix::fix("x".to_owned(), breaking);
    assert_eq!((fixed.state.0.text().as_ref(), fixed.count), ("x", 0));
    assert_eq!(fixed.state.1.len(), 1);
}

#[test]
fn fixes_that_never_end_are_stopped() {
    let endless = |text: &str| (Source::parse(text), vec![finding(text, "x", 0, "x.x")]);
    assert_eq!(fix::fix("x".to_owned(), endless).count, 10);
}

#[test]
fn replacing_a_file_keeps_its_mode_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("a.py"), folder.path().join("link.py"));
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o754)).unwrap();
    symlink(&file, &link).unwrap();
    replace(&link, "new").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o754);
    assert!(link.is_symlink());
}
