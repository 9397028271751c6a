//! Lists the patterns of the learned rules that are shipped, for `learned.rs`.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    list_patterns();
}

/// Lists the patterns of learned rules that are shipped, with their texts: a new one needs its file only.
fn list_patterns() {
    let folder = Path::new("../../queries/learned");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(folder).expect("the patterns are there").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "scm")).collect();
    files.sort();
    let mut list = "const SHIPPED_PATTERNS: &[(&str, &str)] = &[\n".to_owned();
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("patterns have plain names");
        let text = fs::read_to_string(&file).expect("patterns are texts");
        list.push_str(&format!("    ({name:?}, {text:?}),\n"));
    }
    list.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("learned_patterns.rs"), list).expect("the list can be written");
}
