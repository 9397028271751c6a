use std::collections::HashMap;
use std::fs;

use super::*;

struct Fake {
    folder: tempfile::TempDir,
    variables: HashMap<&'static str, OsString>,
}

impl Fake {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: HashMap::new() }
    }

    fn path(&self, relative: &str) -> PathBuf {
        // The temporary folder may itself be a link.
        fs::canonicalize(self.folder.path()).unwrap().join(relative)
    }

    fn file(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// An environment with `distribution` in it, as `python -m venv` lays it out.
    fn venv(&self, prefix: &str, distribution: &str) {
        self.file(&format!("{prefix}/pyvenv.cfg"), "home = /nowhere/bin\nversion = 3.12.1\n");
        self.file(&format!("{prefix}/bin/python"), "");
        self.file(&format!("{prefix}/lib/python3.12/site-packages/{distribution}.dist-info/METADATA"), "");
    }

    fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.insert(name, value.into());
    }

    fn find(&self, python: Option<&str>) -> Option<PythonEnvironment> {
        self.find_with(python, None)
    }

    fn find_with(&self, settings: Option<&str>, editor: Option<&str>) -> Option<PythonEnvironment> {
        let (start, root) = (self.path("work/pkg/kernels.py"), self.path("work"));
        let (settings, editor) = (settings.map(Path::new), editor.map(Path::new));
        let search = InterpreterSearch { start: &start, root: &root, settings, editor };
        PythonEnvironment::find(&search, &|name| self.variables.get(name).cloned())
    }

    fn found(&self, python: Option<&str>) -> (InterpreterOrigin, Option<String>) {
        let found = self.find(python).unwrap();
        (found.origin, found.triton.map(|version| version.to_string()))
    }
}

fn some(version: &str) -> Option<String> {
    Some(version.to_owned())
}

#[test]
fn environments_are_found_in_the_documented_order() {
    let mut fake = Fake::new();
    assert_eq!(fake.find(None), None);
    fake.venv("system", "triton-3.1.0");
    fake.file("system/bin/python3", "");
    fake.set("PATH", std::env::join_paths([fake.path("empty"), fake.path("system/bin")]).unwrap());
    assert_eq!(fake.found(None), (InterpreterOrigin::Path, some("3.1.0")));
    fake.venv("conda", "triton-3.2.0");
    fake.set("CONDA_PREFIX", fake.path("conda"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Conda, some("3.2.0")));
    fake.venv("work/venv", "triton-3.3.0");
    assert_eq!(fake.found(None), (InterpreterOrigin::Workspace, some("3.3.0")));
    fake.venv("work/pkg/.venv", "triton-3.4.0");
    assert_eq!(fake.found(None), (InterpreterOrigin::Workspace, some("3.4.0")));
    fake.venv(".venv", "triton-3.5.0"); // A `.venv` above the workspace is not the project's.
    fake.venv("active", "triton-3.6.0");
    fake.set("VIRTUAL_ENV", fake.path("active"));
    assert_eq!(fake.found(None), (InterpreterOrigin::VirtualEnv, some("3.6.0")));
    fake.venv("named", "triton-3.7.0");
    assert_eq!(fake.found(Some("../named/bin/python")), (InterpreterOrigin::Settings, some("3.7.0")));
    assert_eq!(fake.found(Some("../named")), (InterpreterOrigin::Settings, some("3.7.0")));
    assert_eq!(fake.found(Some("python3")), (InterpreterOrigin::Settings, some("3.1.0")));
}

#[test]
fn a_place_without_an_interpreter_is_passed_by() {
    let mut fake = Fake::new();
    fake.file("work/.venv/pyvenv.cfg", "");
    fake.set("VIRTUAL_ENV", fake.path("deleted"));
    fake.set("CONDA_PREFIX", "");
    fake.set("PATH", "relative");
    assert_eq!(fake.find(None), None);
    // An interpreter in the settings is never replaced by another one, so that a missing one can be reported.
    let named = fake.find(Some("missing/python")).unwrap();
    assert_eq!((named.python, named.triton), (fake.path("work/missing/python"), None));
}

#[test]
fn every_build_of_triton_counts_and_forks_do_not() {
    for (distribution, triton, release) in [
        ("triton-3.6.0", some("3.6.0"), true),
        ("pytorch_triton-3.5.0+git7416ffcb", some("3.5.0"), false),
        ("pytorch_triton_rocm-3.4.0", some("3.4.0"), true),
        ("triton_windows-3.2.0.post19", some("3.2.0"), true),
        ("triton-3.7.0rc1", some("3.7.0"), false),
        ("triton_ascend-3.2.0", None, false),
        ("tritonclient-2.5.0", None, false),
    ] {
        let fake = Fake::new();
        fake.venv("work/.venv", distribution);
        let found = fake.find(None).unwrap();
        assert_eq!(
            (found.triton.map(|version| version.to_string()), found.release),
            (triton, release),
            "{distribution}"
        );
    }
}

#[test]
fn environments_with_the_windows_layout_are_found() {
    let fake = Fake::new();
    fake.file("work/.venv/Scripts/python.exe", "");
    fake.file("work/.venv/Lib/site-packages/triton_windows-3.3.1.post19.dist-info/METADATA", "");
    let found = fake.find(None).unwrap();
    assert_eq!(found.python, fake.path("work/.venv/Scripts/python.exe"));
    assert_eq!(found.triton, Some("3.3.1".parse().unwrap()));
}

#[cfg(unix)]
#[test]
fn packages_belong_to_the_interpreter_behind_a_link() {
    let mut fake = Fake::new();
    let real = fake.file("opt/python/bin/python3.11", "");
    fake.file("opt/python/lib/python3.11/site-packages/triton-3.6.0.dist-info/METADATA", "");
    fake.file("opt/python/lib/python3.12/site-packages/triton-3.9.0.dist-info/METADATA", "");
    fs::create_dir_all(fake.path("bin")).unwrap();
    std::os::unix::fs::symlink(real, fake.path("bin/python3")).unwrap();
    fake.set("PATH", fake.path("bin"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Path, some("3.6.0")));
    // The user's own packages come first.
    fake.file("home/.local/lib/python3.11/site-packages/triton-3.5.0.dist-info/METADATA", "");
    fake.set("HOME", fake.path("home"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Path, some("3.5.0")));
}

#[test]
fn an_environment_may_see_the_packages_of_its_base() {
    let fake = Fake::new();
    let base = fake.path("base/bin");
    fake.file("base/lib/python3.12/dist-packages/triton-3.4.0.dist-info/METADATA", "");
    fake.file("work/.venv/bin/python", "");
    fs::create_dir_all(fake.path("work/.venv/lib/python3.12/site-packages")).unwrap();
    for (sees, triton) in [("true", some("3.4.0")), ("false", None)] {
        let home = base.display();
        let config = format!("home = {home}\ninclude-system-site-packages = {sees}\nversion = 3.12.1\n");
        fake.file("work/.venv/pyvenv.cfg", &config);
        assert_eq!(fake.found(None), (InterpreterOrigin::Workspace, triton));
    }
}

#[test]
fn a_shim_of_pyenv_leads_to_the_version_chosen() {
    let mut fake = Fake::new();
    fake.file("pyenv/shims/python3", "#!/bin/sh");
    for (python, triton) in [("3.11.7", "3.6.0"), ("3.12.1", "3.9.0")] {
        let series = &python[..4];
        fake.file(&format!("pyenv/versions/{python}/bin/python3"), "");
        fake.file(
            &format!("pyenv/versions/{python}/lib/python{series}/site-packages/triton-{triton}.dist-info/METADATA"),
            "",
        );
    }
    fake.file("pyenv/version", "3.11.7\n");
    fake.set("PATH", fake.path("pyenv/shims"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Path, some("3.6.0")));
    fake.file("work/.python-version", "3.12.1\n");
    assert_eq!(fake.found(None), (InterpreterOrigin::Path, some("3.9.0")));
}

#[test]
fn the_target_is_set_installed_or_assumed() {
    let fake = Fake::new();
    let target = |settings: &Settings| {
        let found = fake.find(None);
        target_for(settings, found.as_ref()).map(|target| (target.table.version.to_string(), target.certainty))
    };
    let newest = model::api::Table::newest().version.to_string();
    assert_eq!(target(&Settings::default()), Ok((newest, VersionCertainty::Assumed)));
    fake.venv("work/.venv", "triton-3.5.0");
    assert_eq!(target(&Settings::default()), Ok(("3.5.1".to_owned(), VersionCertainty::Known)));
    let set = |version: &str| Settings { triton_version: Some(version.to_owned()), ..Settings::default() };
    assert_eq!(target(&set("3.2")), Ok(("3.2.0".to_owned(), VersionCertainty::Known)));
    assert_eq!(target(&set("newest")), Err(VersionError("newest".to_owned())));
    fake.venv("work/.venv", "triton-3.6.0+git1a2b3c"); // With 3.5.0 beside it, the newer one counts.
    assert_eq!(target(&Settings::default()), Ok(("3.6.0".to_owned(), VersionCertainty::Assumed)));
}

#[test]
fn the_editors_choice_ranks_after_the_setting() {
    let mut fake = Fake::new();
    fake.file("work/pkg/kernels.py", "");
    fake.venv("active", "triton-3.6.0");
    fake.set("VIRTUAL_ENV", fake.path("active"));
    fake.venv("chosen", "triton-3.7.0");
    let found = |settings, editor| fake.find_with(settings, editor).map(|found| (found.origin, found.triton));
    let of = |origin, version: &str| Some((origin, Some(version.parse().unwrap())));
    assert_eq!(found(None, Some("../chosen/bin/python")), of(InterpreterOrigin::Editor, "3.7.0"));
    assert_eq!(found(None, Some("../chosen")), of(InterpreterOrigin::Editor, "3.7.0"));
    assert_eq!(found(Some("../active"), Some("../chosen")), of(InterpreterOrigin::Settings, "3.6.0"));
    assert_eq!(found(None, Some("../gone/bin/python")), of(InterpreterOrigin::VirtualEnv, "3.6.0"));
}

#[test]
fn the_first_with_triton_is_taken() {
    let mut fake = Fake::new();
    fake.file("work/pkg/kernels.py", "");
    fake.venv("active", "numpy-2.0.0");
    fake.set("VIRTUAL_ENV", fake.path("active"));
    assert_eq!(fake.found(None), (InterpreterOrigin::VirtualEnv, None), "the first, as long as there is none with it");
    fake.venv("work/.venv", "triton-3.5.0");
    assert_eq!(fake.found(None), (InterpreterOrigin::Workspace, some("3.5.0")));
    assert_eq!(fake.found(Some("../active")), (InterpreterOrigin::Settings, None), "the setting is not overruled");
}

#[test]
fn a_reinstalled_triton_counts_as_a_change() {
    let fake = Fake::new();
    fake.venv("work/.venv", "triton-3.6.0");
    let before = fake.find(None);
    assert_eq!(fake.find(None), before);
    let info = fake.path("work/.venv/lib/python3.12/site-packages/triton-3.6.0.dist-info");
    fs::remove_dir_all(&info).unwrap();
    let without = fake.find(None).unwrap();
    assert_eq!((without.triton, without.installed), (None, None));
    fake.venv("work/.venv", "triton-3.6.0");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    fs::File::open(&info).unwrap().set_modified(later).unwrap();
    assert_ne!(fake.find(None), before);
}

#[test]
fn uv_keeps_the_environment_beside_its_lock() {
    let mut fake = Fake::new();
    fake.file("uv.lock", ""); // A workspace of uv, of which the editor shows one member.
    fake.venv(".venv", "triton-3.5.0");
    assert_eq!(fake.found(None), (InterpreterOrigin::Uv, some("3.5.0")));
    fake.venv("envs/here", "triton-3.6.0");
    fake.set("UV_PROJECT_ENVIRONMENT", "envs/here");
    assert_eq!(fake.found(None), (InterpreterOrigin::Uv, some("3.6.0")));
    fake.set("UV_PROJECT_ENVIRONMENT", fake.path(".venv"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Uv, some("3.5.0")));
}

#[test]
fn the_interpreter_in_a_pdm_python_file_is_used() {
    let fake = Fake::new();
    fake.venv("elsewhere", "triton-3.6.0");
    let python = fake.path("elsewhere/bin/python");
    fake.file("work/.pdm-python", &format!("{}\n", python.display()));
    assert_eq!(fake.found(None), (InterpreterOrigin::Pdm, some("3.6.0")));
}

#[test]
fn poetry_environment_names_follow_from_name_and_path() {
    // The same hash that Poetry 2 computes.
    for (name, place, called) in POETRY {
        assert_eq!(managers::poetry_name(name, Path::new(place)), called);
    }
}

#[test]
fn poetry_keeps_environments_in_its_cache() {
    let mut fake = Fake::new();
    fake.file("work/pyproject.toml", "[tool.poetry]\nname = 'Kernels'\n");
    let base = managers::poetry_name("Kernels", &fake.path("work"));
    fake.set("HOME", fake.path("home"));
    let default = if cfg!(target_os = "macos") { "home/Library/Caches" } else { "home/.cache" };
    fake.venv(&format!("{default}/pypoetry/virtualenvs/{base}-py3.9"), "triton-3.4.0");
    fake.venv(&format!("{default}/pypoetry/virtualenvs/{base}-py3.12"), "triton-3.5.0");
    assert_eq!(fake.found(None), (InterpreterOrigin::Poetry, some("3.5.0")), "the newest");
    let activated = format!("[{base}]\nminor = '3.9'\npatch = '3.9.2'\n");
    fake.file(&format!("{default}/pypoetry/virtualenvs/envs.toml"), &activated);
    assert_eq!(fake.found(None), (InterpreterOrigin::Poetry, some("3.4.0")), "the one that was activated");
    fake.venv(&format!("cache/virtualenvs/{base}-py3.12"), "triton-3.6.0");
    fake.set("POETRY_CACHE_DIR", fake.path("cache"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Poetry, some("3.6.0")));
    fake.venv(&format!("cache/more/{base}-py3.12"), "triton-3.7.0");
    fake.file("work/poetry.toml", "[virtualenvs]\npath = '{cache-dir}/more'\n");
    assert_eq!(fake.found(None), (InterpreterOrigin::Poetry, some("3.7.0")));
    fake.venv(&format!("named/{base}-py3.12"), "triton-3.8.0");
    fake.set("POETRY_VIRTUALENVS_PATH", fake.path("named"));
    assert_eq!(fake.found(None), (InterpreterOrigin::Poetry, some("3.8.0")));
}

const POETRY: [(&str, &str, &str); 2] =
    [("My Kernels", "/srv/my kernels", "my_kernels-19k3iFWa"), ("attention", "/srv/a", "attention-sGimzvgz")];
