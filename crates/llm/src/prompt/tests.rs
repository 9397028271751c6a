use std::path::Path;

use expect_test::expect_file;

use super::*;

const KERNEL: &str = include_str!("../../../../tests/gpu/optimize/softmax_wide.py");

fn context<'a>(kernels: &'a [String]) -> PromptContext<'a> {
    let attempt = |change: &str, outcome: &str| Attempt { change: change.to_owned(), outcome: outcome.to_owned() };
    PromptContext {
        file_name: "softmax_wide.py",
        kernels,
        entry: "wide_softmax",
        workload: vec!["x: bf16[4096,32768] (12 times)".to_owned()],
        device: "NVIDIA H200",
        triton: "3.5.1",
        torch: Some("2.9.1"),
        original: KERNEL,
        base: KERNEL,
        branch: vec![
            attempt("-    num_warps = 4\n+    num_warps = 16", "right, 0.97 times as fast"),
            attempt("-    e = tl.exp(x - tl.max(x, 0))\n+    e = tl.exp2(x - tl.max(x, 0))", "refused: output"),
        ],
        pool: vec![
            Pooled { text: KERNEL.replace("8\n", "16\n"), speedup: 1.31 },
            Pooled { text: KERNEL.replace("8\n", "32\n"), speedup: 1.1 },
        ],
        facts: vec![
            "72 registers, 3 warps of 8 run at once".to_owned(),
            "bound by memory, 61 % of its bandwidth".to_owned(),
        ],
        skills: vec!["More warps for long rows, so that more loads are under way.".to_owned()],
        rules: vec!["You cannot pass a `tl.constexpr` list to `tl.arange`.".to_owned()],
        goal: 1.31,
        mistake: None,
    }
}

fn both(prompt: &Prompt) -> String {
    format!("SYSTEM\n{}\n\nUSER\n{}\n", prompt.system, prompt.user)
}

#[test]
fn prompts_match_the_reviewed_files() {
    let kernels = ["softmax_fwd".to_owned()];
    let templates = Templates::shipped();
    let render = |operator, context: &PromptContext<'_>| both(&templates.render(operator, context, 20_000).unwrap());
    expect_file!["../../../../tests/prompts/small.txt"].assert_eq(&render(Operator::Small, &context(&kernels)));
    expect_file!["../../../../tests/prompts/large.txt"].assert_eq(&render(Operator::Large, &context(&kernels)));
    let mistake = "softmax_wide.py:17:\n    e = tl.exp(x - tl.maxx(x, 0))\nmodule has no attribute 'maxx'";
    let broken = KERNEL.replace("tl.max(", "tl.maxx(");
    let repaired = PromptContext { base: &broken, mistake: Some(mistake), ..context(&kernels) };
    expect_file!["../../../../tests/prompts/repair.txt"].assert_eq(&render(Operator::Repair, &repaired));
    let model = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x, dim=1)\n";
    let written = PromptContext {
        file_name: "model.py",
        kernels: &[],
        entry: "Model.forward",
        original: model,
        base: "",
        branch: Vec::new(),
        pool: Vec::new(),
        facts: Vec::new(),
        goal: 1.0,
        ..context(&kernels)
    };
    expect_file!["../../../../tests/prompts/write.txt"].assert_eq(&render(Operator::Write, &written));
}

#[test]
fn a_retry_says_what_was_wrong() {
    let templates = Templates::shipped();
    let context = PromptContext { mistake: Some("there is no edit in the reply"), ..context(&[]) };
    for operator in [Operator::Small, Operator::Large, Operator::Repair, Operator::Write] {
        assert!(templates.render(operator, &context, 20_000).unwrap().user.contains("there is no edit in the reply"));
    }
}

/// More of everything than fits.
fn plenty(kernels: &[String]) -> PromptContext<'_> {
    let mut context = context(kernels);
    context.pool = (0..20).map(|at| Pooled { text: KERNEL.to_owned(), speedup: 3.0 - f64::from(at) / 10.0 }).collect();
    context.branch =
        (0..5).map(|at| Attempt { change: format!("attempt {at}"), outcome: "right".to_owned() }).collect();
    context.skills = (0..30).map(|at| format!("Method {at}: {}", "words ".repeat(20))).collect();
    context.rules = (0..300).map(|at| format!("You cannot do {at} {}", "so ".repeat(at % 7))).collect();
    context
}

#[test]
fn prompts_fill_the_token_budget_without_exceeding_it() {
    let kernels = ["softmax_fwd".to_owned()];
    let templates = Templates::shipped();
    let context = plenty(&kernels);
    for operator in [Operator::Small, Operator::Large, Operator::Repair, Operator::Write] {
        let mut last = usize::MAX;
        for budget in [2500, 3000, 3500, 4000, 6000] {
            let prompt = templates.render(operator, &context, budget).unwrap();
            let used = tokens(&prompt.system) + tokens(&prompt.user);
            assert!(used <= budget, "{operator:?}: {used} of {budget}");
            // Only a whole version does not fit into the rest.
            let has_room = |told: &String| !told.starts_with("a version") || budget - used > tokens(KERNEL) + 60;
            let is_full = used * 100 >= budget * 98 || !prompt.left_out.iter().any(has_room);
            assert!(is_full, "{operator:?}: {used} of {budget}, {:?}", prompt.left_out);
            assert!(prompt.left_out.len() <= last);
            last = prompt.left_out.len();
        }
        let whole = templates.render(operator, &context, 1_000_000).unwrap();
        assert!(whole.left_out.is_empty() && whole.user.contains("You cannot do 299"));
    }
}

#[test]
fn the_least_relevant_parts_are_dropped_first() {
    let templates = Templates::shipped();
    let context = plenty(&[]);
    let whole = templates.render(Operator::Write, &context, 1_000_000).unwrap();
    let all = tokens(&whole.system) + tokens(&whole.user);
    let prompt = templates.render(Operator::Write, &context, all - 1).unwrap();
    assert_eq!(prompt.left_out, ["a version that is 1.10 times as fast"]);
    let most = templates.render(Operator::Write, &context, all - 20 * (tokens(KERNEL) + 60)).unwrap();
    let out = |word: &str| most.left_out.iter().filter(|told| told.starts_with(word)).count();
    assert_eq!((out("a version"), out("a rule")), (20, 0), "{:?}", most.left_out);
    assert!(out("an attempt") <= 5 && most.user.contains("Method 0:"));
}

#[test]
fn a_kernel_that_does_not_fit_is_an_error() {
    let said = Templates::shipped().render(Operator::Small, &context(&[]), 1000).unwrap_err().to_string();
    assert!(said.contains("and the limit is 1000") && said.contains("model.send"), "{said}");
}

#[test]
fn templates_of_the_user_replace_ours() {
    let folder = tempfile::tempdir().unwrap();
    let shipped = Templates::shipped();
    let version = || Templates::with_overrides(folder.path()).map(|templates| templates.version());
    assert_eq!(version().unwrap(), shipped.version());
    assert_eq!(shipped.version().len(), 12);
    let write = |text: &str| std::fs::write(folder.path().join("small.md"), text).unwrap();
    write("version: 1\r\nFaster: {{ base }}\r\n{% for rule in rules %}\r\n- {{ rule }}\r\n{% endfor %}\r\n");
    let own = Templates::with_overrides(folder.path()).unwrap();
    assert_ne!(own.version(), shipped.version());
    let prompt = own.render(Operator::Small, &context(&[]), 20_000).unwrap();
    assert!(prompt.user.starts_with("Faster: ```python\n\"\"\"Softmax"), "{}", prompt.user);
    assert!(prompt.user.ends_with("```\n- You cannot pass a `tl.constexpr` list to `tl.arange`.\n"), "{}", prompt.user);
    let said = |text: &str| {
        write(text);
        let templates = Templates::with_overrides(folder.path());
        templates.and_then(|own| own.render(Operator::Small, &context(&[]), 20_000)).unwrap_err().to_string()
    };
    assert!(said("Faster!\n").contains("`small.md` must begin with the line `version: 1`"));
    assert!(said("version: 1\n{% for x in %}\n").contains("`small.md` is wrong"));
    assert!(said("version: 1\n{{ secret }}\n").contains("`small.md` is wrong"));
    assert!(
        said("version: 1\n{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}\n")
            .contains("is wrong")
    );
    std::fs::remove_file(folder.path().join("small.md")).unwrap();
    std::fs::create_dir(folder.path().join("small.md")).unwrap();
    assert!(version().unwrap_err().to_string().contains("cannot be read"));
    assert!(version().is_err() && Templates::with_overrides(Path::new("nowhere")).is_ok());
}

#[test]
fn tokens_are_a_third_of_the_bytes() {
    assert_eq!((tokens(""), tokens("a"), tokens("abc"), tokens("abcd"), tokens("größe")), (0, 1, 1, 2, 3));
}
