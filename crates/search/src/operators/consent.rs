//! Consent to ask a model: what must not be sent, and what the user has agreed to.

use config::{ModelSettings, Provider, Sent};
use llm::numbered_text::one_line;
use runtime::python::state_folder;
use store::Store;

use super::excerpt::Excerpt;
use super::secrets::{is_ignored, secret};
use crate::observer::Observer;
use crate::request::SearchRequest;

/// Greatest length of a name, an address or a command in a question, in characters.
const LONGEST: usize = 200;

/// Asks the user once for each combination of workspace, provider, model, source of the key and amount that is
/// sent.
///
/// # Errors
/// Returns the reason why no model is asked, as a sentence for the user.
pub(super) fn consent(request: &SearchRequest, excerpt: &Excerpt, observer: &dyn Observer) -> Result<(), String> {
    let model = &request.settings.model;
    if is_ignored(&request.file) {
        return Err("git leaves the file out, so it is not sent to a model".to_owned());
    }
    if let Some((_, what)) = secret(&excerpt.text) {
        let line = secret(&request.text).map(|(line, _)| format!(" (line {line})")).unwrap_or_default();
        return Err(format!("the file has what looks like {what}{line}, so it is not sent to a model"));
    }
    // A scripted model receives nothing outside of this machine, and the editor asks for consent itself.
    if matches!(model.provider, Provider::Scripted | Provider::Editor) {
        return Ok(());
    }
    let key = key(request, model);
    let mut store = Store::of_user(&state_folder())
        .map_err(|error| format!("your consent to send text to models cannot be read: {error}"))?;
    match store.has_agreed(&key) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) => return Err(format!("your consent to send text to models cannot be read: {error}")),
    }
    if !observer.may_send(&question(request, model)) {
        return Err("you did not want anything to be sent to the language model".to_owned());
    }
    store.agree(&key).map_err(|error| format!("that you agreed cannot be kept: {error}"))
}

/// The question to the user.
fn question(request: &SearchRequest, model: &ModelSettings) -> String {
    let sent = match model.send {
        Sent::Kernel => "the kernels that you optimize, with what of their file they and their launch need",
        Sent::File => "whole files that you optimize",
    };
    format!(
        "Send to {}? What is sent of this workspace ({}): {sent}, the shapes and types they are called with, the name of your GPU, and \
         what came of earlier candidates.{} What comes back is run in a sandbox, and nothing of it reaches your files unless you \
         apply it. You are asked once.",
        recipient(model),
        request.workspace.display(),
        key_source(model),
    )
}

/// The recipient according to the settings: `the language model coder at https://…`.
#[must_use]
pub fn recipient(model: &ModelSettings) -> String {
    let names: Vec<&str> = model.name.iter().chain(&model.also).map(String::as_str).collect();
    let plural = if names.len() > 1 { "s" } else { "" };
    let address = model.base_url.as_deref().unwrap_or_default();
    format!("the language model{plural} {} at {}", plain(&names.join(", ")), plain(address))
}

/// A sentence about the source of the key, with a leading space.
#[must_use]
pub fn key_source(model: &ModelSettings) -> String {
    let command = plain(&model.key_command.join(" "));
    match (model.api_key_env.as_deref().map(plain), model.key_command.is_empty()) {
        (Some(name), true) => format!(" The key comes from the environment variable {name}."),
        (Some(name), false) => format!(" The key comes from {name} or from the command `{command}`."),
        (None, true) => " No key is sent.".to_owned(),
        (None, false) => format!(" The key comes from the command `{command}`."),
    }
}

/// One line of limited length, because a repository's settings may imitate other text.
fn plain(text: &str) -> String {
    one_line(text, LONGEST)
}

fn key(request: &SearchRequest, model: &ModelSettings) -> [u8; 32] {
    let workspace = request.workspace.canonicalize().unwrap_or_else(|_| request.workspace.clone());
    let to = (&model.provider, &model.base_url, &model.ca_file, &model.name, &model.also);
    let parts = serde_json::to_vec(&(workspace, to, &model.api_key_env, &model.key_command, model.send));
    *blake3::hash(&parts.unwrap_or_default()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Settings;

    fn request() -> SearchRequest {
        let mut settings = Settings::default();
        settings.model.base_url = Some("https://models.example/v1".to_owned());
        settings.model.name = Some("coder".to_owned());
        SearchRequest {
            file: "/w/k.py".into(),
            text: String::new(),
            subject: crate::OptimizeScope::File,
            workspace: "/w".into(),
            python: "python3".into(),
            settings,
            work: crate::SearchAction::Search,
        }
    }

    #[test]
    fn the_consent_question_names_recipient_contents_and_key_source() {
        let mut request = request();
        request.settings.model.key_command = vec!["pass".to_owned(), "show".to_owned()];
        let asked = question(&request, &request.settings.model);
        for part in ["coder at https://models.example/v1", "the kernels that you optimize", "`pass show`", "(/w)"] {
            assert!(asked.contains(part), "{part} in {asked}");
        }
        request.settings.model.send = Sent::File;
        assert!(question(&request, &request.settings.model).contains("whole files"));
    }

    /// A repository's own settings may name another provider or source of the key than the user has agreed to.
    #[test]
    fn consent_is_asked_again_when_recipient_or_contents_change() {
        let first = request();
        let was = key(&first, &first.settings.model);
        let changes: [fn(&mut ModelSettings); 6] = [
            |model| model.base_url = Some("https://elsewhere.example".to_owned()),
            |model| model.name = Some("other".to_owned()),
            |model| model.api_key_env = Some("GITHUB_TOKEN".to_owned()),
            |model| model.key_command = vec!["cat".to_owned()],
            |model| model.send = Sent::File,
            |model| model.also = vec!["more".to_owned()],
        ];
        for change in changes {
            let mut other = request();
            change(&mut other.settings.model);
            assert_ne!(key(&other, &other.settings.model), was, "{:?}", other.settings.model);
        }
        let mut same = request();
        same.settings.model.max_tokens = 100;
        assert_eq!(key(&same, &same.settings.model), was);
    }
}
