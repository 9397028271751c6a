//! Tests of searches with a language model: scripted replies, judged on the simulated device.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::{Project, SCALE, text};

const KEY: &str = "sk-planted-5c0ffee5deadbeef42";

/// Settings of a search in which only a model makes candidates.
fn settings(candidates: usize, more: &str) -> String {
    format!(
        "[optimize]\nparallel = 2\ncandidates = {candidates}\n[model]\nprovider = 'scripted'\nscript = 'replies.toml'\nshare = 1.0\n\
         prices = {{ input = 1.0, output = 10.0 }}\nlimits = {{ parallel = 1 }}\n{more}"
    )
}

/// A reply for requests that contain this text.
fn reply(when: &str, text: &str) -> String {
    format!("[[reply]]\nwhen = {when:?}\ninput = 1000\noutput = 100\ntext = '''\n{text}\n'''\n")
}

/// A reply that is the whole file.
fn file(when: &str, text: &str) -> String {
    reply(when, &format!("Diagnosis: it is slow, verified 9x faster.\n\n```python\n{}\n```", text.trim()))
}

const LARGE: &str = "Write this file anew";
const SMALL: &str = "Change one thing about this kernel";
const REPAIR: &str = "does not run. Repair it";
const CORRECTION: &str = "This reply cannot be used";

fn faster(block: usize) -> String {
    let definitions = SCALE.split("\nif __name__").next().unwrap();
    definitions
        .replace("(triton.cdiv(n, 16),)", &format!("(triton.cdiv(n, {block}),)"))
        .replace("BLOCK=16", &format!("BLOCK={block}"))
}

fn optimized(project: &Project, args: &[&str]) -> Value {
    let all = [&["optimize", "scale.py", "--budget", "300s", "--json"], args].concat();
    let ran = project.run(&all);
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)))
}

fn report(project: &Project) -> Value {
    serde_json::from_slice(&project.run(&["report", "--format", "json"]).stdout).unwrap()
}

/// Unusable, broken or cheating replies are refused by name; good ones are offered, with the cost of all requests.
#[test]
fn bad_broken_and_cheating_replies_are_refused_and_the_good_one_is_offered() {
    let broken = faster(64).replace("x * 2.0", "x * tl.twice");
    let cheating = faster(128).replace("import torch\n", "import torch\nimport subprocess\n");
    let wrong = faster(256).replace("x * 2.0", "x * 2.5");
    let replies = [
        // Prose is answered with a correction, and the next reply does not compile, which is then repaired.
        reply(CORRECTION, &format!("```python\n{}\n```", broken.trim())),
        reply(LARGE, "I would use larger tiles."),
        file(REPAIR, &faster(64)),
        file(LARGE, &cheating),
        file(LARGE, &wrong),
        file(LARGE, &faster(1024)),
        reply(SMALL, "Diagnosis: tiles.\n\n<<<<<<< OLD\nBLOCK=no such text\n=======\nBLOCK=8\n>>>>>>> NEW"),
    ];
    let settings = settings(6, "corrections = 1\n") + "[optimize.search]\nsmall-steps = 0\nlarge = 1.0\n";
    let settings = settings.replace("[optimize]", "[optimize]\nseed = 1");
    let project =
        Project::new(&[("scale.py", SCALE), ("warpsmith.toml", &settings), ("replies.toml", &replies.concat())]);
    let outcome = optimized(&project, &[]);
    let report = report(&project);
    let offer = outcome["offer"]["change"].as_str().unwrap_or_else(|| panic!("{outcome:#}\n{report:#}"));
    assert!(offer.contains("by scripted") && !offer.contains("9x"), "{offer}");
    let diff = outcome["diff"].as_str().unwrap();
    assert!(diff.contains("BLOCK="), "{diff}");
    let refusals: Vec<&str> =
        report["refusals"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    for reason in ["Screen", "Output"] {
        assert!(refusals.contains(&reason), "{reason} of {refusals:?}");
    }
    let of_reason = |reason: &str| {
        let all = report["refusals"].as_array().unwrap();
        all.iter().find(|one| one["reason"] == reason).unwrap()["example"].as_str().unwrap().to_owned()
    };
    assert!(of_reason("Screen").contains("subprocess"), "{}", of_reason("Screen"));
    let asked = &report["asked"];
    assert_eq!((&asked["repair"]["candidates"], &asked["repair"]["right"]), (&json!(1), &json!(1)), "{asked:#}");
    assert_eq!(asked["large"]["candidates"], 4, "{asked:#}");
    // Each reply costs a thousand tokens at one dollar per million, and a hundred at ten.
    let cost = &report["models"][0];
    let requests = cost["requests"].as_u64().unwrap();
    assert!(requests >= 6, "{cost:#}");
    assert_eq!((&cost["input"], &cost["output"]), (&json!(1000 * requests), &json!(100 * requests)));
    assert!((cost["dollars"].as_f64().unwrap() - 0.002 * requests as f64).abs() < 1e-9, "{cost:#}");
    assert!(outcome["summary"].as_str().unwrap().contains(&format!("was asked {requests} times")), "{outcome:#}");
    let page = text(&project.run(&["report", "--format", "html"]).stdout);
    assert!(page.contains("Language models") && page.contains("subprocess"));
    // Everything can be looked up and deleted.
    let transcript = project.path(".warpsmith/runs/scale_kernel-1.transcript");
    let lines = std::fs::read_to_string(&transcript).unwrap();
    assert!(lines.lines().count() as u64 >= requests && lines.contains("Write this file anew"));
    let deleted = project.run(&["report", "--delete-transcripts"]);
    assert_eq!(text(&deleted.stdout), "1 transcript deleted\n");
    assert!(!transcript.exists());
}

/// Skills and models make candidates for one tree; edits of a model apply to a text that a skill has changed.
#[test]
fn skills_and_models_search_together() {
    let small = reply(
        SMALL,
        "Diagnosis: nothing is reused.\n\n<<<<<<< OLD\n    tl.store(out_ptr + offsets, x * 2.0, mask=offsets < n)\n=======\n    \
         y = x * 2.0\n    tl.store(out_ptr + offsets, y, mask=offsets < n)\n>>>>>>> NEW",
    ) + "again = true\n";
    let replies = small + &file(LARGE, &faster(512)).replace("text =", "again = true\ntext =");
    let settings = settings(8, "").replace("share = 1.0", "share = 0.5");
    let project = Project::new(&[("scale.py", SCALE), ("warpsmith.toml", &settings), ("replies.toml", &replies)]);
    let outcome = optimized(&project, &[]);
    let report = report(&project);
    let by_model = |tried: &&Value| tried["kind"].as_str().unwrap().starts_with("model ");
    let candidates = report["candidates"].as_array().unwrap();
    let (models, skills) = (candidates.iter().filter(by_model).count(), candidates.len());
    assert!(models >= 1 && skills > models, "{models} of {skills}: {outcome:#}");
    // Repeated replies are not new candidates.
    assert!(models <= 4, "{models}");
}

/// A search goes on when its model fails or may not be asked.
#[test]
fn a_search_goes_on_without_its_model() {
    let settings = settings(4, "").replace("share = 1.0", "share = 0.5");
    let project = Project::new(&[("scale.py", SCALE), ("warpsmith.toml", &settings), ("replies.toml", "")]);
    let outcome = optimized(&project, &[]);
    let summary = outcome["summary"].as_str().unwrap();
    assert!(summary.contains("was not asked further: the `model.script` has no reply left"), "{summary}");
    assert!(outcome["evaluated"].as_u64().unwrap() >= 4, "{outcome:#}");
}

/// On the command line there is no editor.
#[test]
fn an_editors_model_is_asked_in_editors_only() {
    let settings = "[optimize]\ncandidates = 2\n[model]\nprovider = 'editor'\n";
    let project = Project::new(&[("scale.py", SCALE), ("warpsmith.toml", settings)]);
    let outcome = optimized(&project, &[]);
    let summary = outcome["summary"].as_str().unwrap();
    let expected = "The language model was not asked: `model.provider = \"editor\"` works in an editor only";
    assert!(summary.contains(expected), "{summary}");
}

/// A model that repeats itself is not asked without end.
#[test]
fn a_model_that_repeats_itself_is_no_longer_asked() {
    let replies = reply(LARGE, "Larger tiles.").replace("text =", "again = true\ntext =")
        + &reply(SMALL, "Larger tiles.").replace("text =", "again = true\ntext =");
    let project = Project::new(&[
        ("scale.py", SCALE),
        ("warpsmith.toml", &settings(8, "corrections = 1\n")),
        ("replies.toml", &replies),
    ]);
    let outcome = optimized(&project, &[]);
    let summary = outcome["summary"].as_str().unwrap();
    assert!(summary.contains("was asked 12 times"), "{summary}");
    assert!(summary.contains("was not asked further: its last 12 replies gave no new candidate"), "{summary}");
    // The skills continue, although the settings gave the whole share to models.
    assert_eq!(outcome["evaluated"], 8, "{summary}");
}

/// Answers requests until it is dropped; sends each request on.
fn provider(reply: String) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            if sender.send(head + &String::from_utf8_lossy(&body)).is_err() {
                return;
            }
            let size = reply.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n{reply}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, requests)
}

/// All files below a folder.
fn contents(folder: &Path, out: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            contents(&entry.path(), out);
        } else {
            out.extend(std::fs::read(entry.path()).unwrap());
        }
    }
}

/// Nothing is sent before the user has agreed. Then only the kernel is sent, without the rest of the file, and the key
/// appears nowhere.
#[test]
fn only_the_kernel_is_sent_after_consent_and_the_api_key_is_not_logged() {
    let usage = json!({ "prompt_tokens": 900, "completion_tokens": 90 });
    let said = format!("Diagnosis: {KEY}\n\n```python\n{}\n```\n{KEY}", faster(512).trim());
    let reply = json!({
        "choices": [{ "message": { "content": said }, "finish_reason": "stop" }], "usage": usage
    });
    let (port, requests) = provider(reply.to_string());
    let settings = format!(
        "[optimize]\nparallel = 2\ncandidates = 3\n[model]\nbase-url = 'http://127.0.0.1:{port}/v1'\nname = 'coder'\n\
         api-key-env = 'PLANTED'\nshare = 0.5\nlimits = {{ parallel = 1 }}\n"
    );
    let beside = "\ndef of_the_company():\n    return 'nobody elses business'\n";
    let project = Project::new(&[("scale.py", &(SCALE.to_owned() + beside)), ("warpsmith.toml", &settings)]);
    let run = |args: &[&str]| {
        let all = [&["optimize", "scale.py", "--budget", "300s", "--json"], args].concat();
        let ran = project.command(&all).env("PLANTED", KEY).env("WARPSMITH_LOG", "trace").output().unwrap();
        assert!(!text(&ran.stderr).contains(KEY) && !text(&ran.stdout).contains(KEY), "{}", text(&ran.stderr));
        (
            serde_json::from_slice::<Value>(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr))),
            text(&ran.stderr),
        )
    };
    let (outcome, said) = run(&[]);
    assert!(requests.try_recv().is_err(), "nobody has agreed");
    assert!(said.contains(&format!("Send to the language model coder at http://127.0.0.1:{port}/v1?")), "{said}");
    assert!(said.contains("environment variable PLANTED"), "{said}");
    assert!(outcome["summary"].as_str().unwrap().contains("you did not want anything to be sent"), "{outcome:#}");
    let (outcome, _) = run(&["--send"]);
    let sent: Vec<String> = requests.try_iter().collect();
    assert!(!sent.is_empty(), "{outcome:#}");
    for request in &sent {
        assert!(request.contains("def scale_kernel(") && request.contains(&format!("Bearer {KEY}")), "{request}");
        assert!(!request.contains("nobody elses business") && !request.contains("__main__"), "{request}");
        let body = request.split_once('{').unwrap().1;
        assert!(!body.contains(&*project.path("").to_string_lossy()), "no path: {body}");
    }
    // The user who has agreed once is not asked again.
    let (outcome, said) = run(&[]);
    assert!(!said.contains("Send to the language model") && requests.try_recv().is_ok(), "{said}\n{outcome:#}");
    for format in ["md", "html", "json"] {
        let shown = project.command(&["report", "--format", format]).env("PLANTED", KEY).output().unwrap();
        assert!(!text(&shown.stdout).contains(KEY), "{format}");
    }
    let mut all = Vec::new();
    contents(&project.path(""), &mut all);
    assert!(all.len() > 10_000 && !String::from_utf8_lossy(&all).contains(KEY));
    assert!(String::from_utf8_lossy(&all).contains("Diagnosis"), "the transcript is among them");
}

/// Secrets and files that git ignores are never sent, whatever the user has agreed to.
#[test]
fn secrets_and_ignored_files_are_not_sent() {
    let (port, requests) = provider(String::new());
    let settings = format!(
        "[optimize]\nparallel = 2\ncandidates = 2\n[model]\nbase-url = 'http://127.0.0.1:{port}/v1'\nname = 'coder'\n"
    );
    let secret = SCALE
        .replace("def scale(x):", "TOKEN = 'hf_0123456789abcdefghijABCDEFGHIJ'\n\ndef scale(x):\n    print(TOKEN)");
    let project = Project::new(&[("scale.py", &secret), ("warpsmith.toml", &settings)]);
    let outcome = optimized(&project, &["--send"]);
    let summary = outcome["summary"].as_str().unwrap();
    assert!(summary.contains("a token of Hugging Face's (line 12)"), "{summary}");
    std::fs::write(project.path("scale.py"), SCALE).unwrap();
    std::fs::write(project.path(".gitignore"), "scale.py\n").unwrap();
    let outcome = optimized(&project, &["--send"]);
    assert!(outcome["summary"].as_str().unwrap().contains("git leaves the file out"), "{outcome:#}");
    assert!(requests.try_recv().is_err());
}

const WRITE: &str = "Write Triton kernels";

/// A kernel that doubles, and what calls it in the place of `how`.
fn doubling(how: &str) -> String {
    format!(
        "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    \
         offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offsets, mask=offsets < n)\n    \
         tl.store(out_ptr + offsets, x * 2.0, mask=offsets < n)\n\n{how}"
    )
}

const LAUNCH: &str = "out = torch.empty_like(x)\n    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)\n    return out\n";

/// For a function that launches no kernel, a model writes one. A kernel that leaves the work to torch is refused;
/// others are judged as usual.
#[test]
fn kernels_are_written_for_functions_that_launch_none() {
    let file = "import torch\n\n# warpsmith: workload entry=double x=f32[300]\ndef double(x):\n    return x + x\n";
    let torch = "import torch\n\ndef double(x):\n    y = x + x\n    return y\n";
    let idle = doubling(&format!("def double(x):\n    {}", LAUNCH.replace("return out", "return x + x")));
    let good = doubling(&format!("def double(x):\n    {LAUNCH}"));
    let reply = |text: &str| self::file(WRITE, text);
    let replies = [reply(torch), reply(&idle), reply(&good)].concat();
    // No skill can do anything before there is a kernel, so the model exceeds its share.
    let settings = settings(3, "").replace("parallel = 2", "parallel = 1").replace("share = 1.0", "share = 0.5");
    let project = Project::new(&[("scale.py", file), ("warpsmith.toml", &settings), ("replies.toml", &replies)]);
    let outcome = optimized(&project, &["--function", "double"]);
    let report = report(&project);
    let fates: Vec<(&str, String)> = report["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["fate"].as_str().unwrap(), one["reason"].as_str().unwrap_or_default().to_owned()))
        .collect();
    let [first, second, third] = &fates[..] else { panic!("{fates:?}\n{outcome:#}") };
    assert!(first.0 == "wrong" && first.1.starts_with("NoKernel: no kernel of Triton's is launched"), "{first:?}");
    assert!(second.0 == "wrong" && second.1.starts_with("NoKernel"), "{second:?}");
    assert_eq!(third.0, "right", "{third:?}");
    assert_eq!(report["asked"]["write"]["candidates"], 3, "{report:#}");
    // Without a model no kernel can be written.
    std::fs::write(project.path("warpsmith.toml"), "").unwrap();
    let ran = project.run(&["optimize", "scale.py", "--function", "double"]);
    assert!(text(&ran.stderr).contains("a language model can write one"), "{}", text(&ran.stderr));
}

/// Searches all files of a folder in KernelBench's form, and reports the results with its figures.
#[test]
fn bench_reports_each_task_and_the_summary_figures() {
    let model = |how: &str| {
        format!(
            "class Model(torch.nn.Module):\n    def forward(self, x):\n        {}\n",
            how.replace("\n    ", "\n        ")
        )
    };
    let around = "\n\ndef get_inputs():\n    return [torch.rand(300)]\n\ndef get_init_inputs():\n    return []\n";
    let task = format!("import torch\n\n{}{around}", model("return x + x"));
    let good = doubling(&model(LAUNCH)) + around;
    let replies = file("1_First.py", &good) + &reply(WRITE, "No idea.").replace("text =", "again = true\ntext =");
    let settings = settings(1, "corrections = 0\n");
    let project = Project::new(&[("warpsmith.toml", &settings), ("replies.toml", &replies)]);
    std::fs::create_dir(project.path("level1")).unwrap();
    for name in ["2_Second.py", "1_First.py", "12_Other.py"] {
        std::fs::write(project.path("level1").join(name), &task).unwrap();
    }
    let words = ["bench", "kernelbench", ".", "--level", "1", "--problems", "1-2", "--budget", "60s", "--json"];
    let ran = project.run(&words);
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
    let of = |at: usize, key: &str| told["tasks"][at][key].clone();
    assert_eq!((of(0, "name"), of(1, "name")), (json!("1_First"), json!("2_Second")), "{told:#}");
    assert_eq!((of(0, "correct"), of(0, "failed")), (json!(true), Value::Null), "{told:#}");
    assert_eq!((&told["summary"]["tasks"], &told["summary"]["fast"]["fast_0"]), (&json!(2), &json!(0.5)), "{told:#}");
    assert_eq!((of(1, "correct"), of(1, "speedup")), (json!(false), Value::Null), "{told:#}");
}
