//! `uwsgi.ini`: the configuration of uWSGI, also of a vassal.

mod application;
mod ini;
mod known;
mod listeners;
mod log;
mod options;
mod placeholders;
mod python;
mod routing;
mod ruby;
mod server;
mod statics;
#[cfg(test)]
mod tests;

use crate::draft::{Draft, Site};
use crate::error::ImportError;
use crate::files::Files;
use crate::language::Language;
use crate::report::{Import, Place};
use crate::steps::{PathPattern, Step};
use crate::text::without_variables;
use crate::uwsgi::application::{app_option, application, set, truth};
use crate::uwsgi::known::known;
use crate::uwsgi::listeners::{is_http, socket};
use crate::uwsgi::log::RequestLog;
use crate::uwsgi::options::{UwsgiOption, options};
use crate::uwsgi::server::{is_application, other_server};
use crate::uwsgi::statics::Statics;

/// Imports the section `[uwsgi]` of a file.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, ImportError> {
    let options = options(file, files)?;
    let mut draft = Draft::default();
    let start = Place { file: file.to_owned(), line: 1 };
    let mut importer = Importer::new(&options, &start, &mut draft);
    for option in &options {
        importer.option(option, &mut draft);
    }
    importer.finish(&mut draft);
    draft.finish(&start)
}

/// What the options have said so far.
struct Importer {
    /// The place of the application: `app:NAME` or `proxy:NAME`.
    place: String,
    /// Where the application stands.
    comment: String,
    /// The language of the application, if Kirin runs it.
    language: Option<Language>,
    has_http: bool,
    /// Whether uWSGI itself decides by rules.
    has_rules: bool,
    statics: Statics,
    log: RequestLog,
    rules: Vec<Step>,
    mounts: Vec<Step>,
    headers: toml::Table,
    head_limit: Option<String>,
}

impl Importer {
    /// Finds the application, which other options speak about.
    fn new(options: &[UwsgiOption], start: &Place, draft: &mut Draft) -> Self {
        let psgi = options.iter().find(|option| option.key == "psgi" && !option.conditional);
        let stem = start.file.rsplit('/').next().unwrap_or_default();
        let name = stem.split('.').next().unwrap_or_default();
        let psgi = psgi.map(|option| (Language::Perl, (option, option.value.clone())));
        let found = psgi
            .or_else(|| Some((Language::Ruby, ruby::application(options)?)))
            .or_else(|| Some((Language::Python, python::application(options)?)));
        let language = found.as_ref().map(|(language, _)| *language);
        let (place, comment) = match found {
            Some((_, (option, load))) => {
                let name = draft.app_names.take(name);
                draft.apps.push(application(option, &load, &name));
                (format!("app:{name}"), option.place.to_string())
            }
            None => other_server(options, name, start, draft),
        };
        let has_http = options.iter().any(|option| is_http(&option.key));
        let has_rules = options.iter().any(|option| option.key.starts_with("route"));
        Self {
            place,
            language,
            has_rules,
            comment,
            has_http,
            statics: Statics::default(),
            log: RequestLog::default(),
            rules: Vec::new(),
            mounts: Vec::new(),
            headers: toml::Table::new(),
            head_limit: None,
        }
    }

    fn option(&mut self, option: &UwsgiOption, draft: &mut Draft) {
        let directive = option.directive();
        if option.conditional {
            return self.conditional(option, draft);
        }
        if draft.apps.is_empty() && self.stays(option, draft) {
            return;
        }
        let switched_off = truth(&option.value) == Some(false);
        let done = socket(option, draft, self.has_http)
            || app_option(option, draft)
            || (self.language == Some(Language::Python) && python::option(option, draft))
            || (self.language == Some(Language::Ruby) && ruby::option(option, draft))
            || self.statics.option(option, draft, &self.place)
            || self.log.option(option, draft)
            || self.other(option, draft);
        if done {
            return;
        }
        match known(&option.key) {
            _ if is_application(&option.key) => {
                let text = "Kirin runs the first application of the file. Run another uWSGI for \
                            this one, and pass requests to it by `proxy:` (docs/proxy.md)";
                draft.notes.left_out(&option.place, &directive, text);
            }
            Some(_) if switched_off => {
                draft.notes.by_itself(&option.place, &directive, "it is off")
            }
            Some((true, text)) => draft.notes.by_itself(&option.place, &directive, text),
            Some((false, text)) => draft.notes.left_out(&option.place, &directive, text),
            None if option.used => {
                let text = "its value stands where its name is";
                draft.notes.by_itself(&option.place, &directive, text);
            }
            None => draft.notes.unknown(&option.place, &directive),
        }
    }

    /// Notes an option that stays in uWSGI, because the application does. Returns whether it does.
    fn stays(&self, option: &UwsgiOption, draft: &mut Draft) -> bool {
        let key = option.key.as_str();
        let is_static = key.starts_with("static-") || key == "check-static";
        if is_http(key) || key == "http-to-https" || (is_static && !self.has_rules) {
            return false;
        }
        let text = "it stays in uWSGI, to which Kirin passes requests (docs/proxy.md)";
        draft.notes.by_itself(&option.place, &option.directive(), text);
        true
    }

    /// Reads the options that are about more than one part. Returns whether it is one.
    fn other(&mut self, option: &UwsgiOption, draft: &mut Draft) -> bool {
        let directive = option.directive();
        match option.key.as_str() {
            "psgi" => draft.notes.carried(
                &option.place,
                &directive,
                "A request may take as long \
                as `deadline` says, which is a minute unless `harakiri` is set.",
            ),
            "uid" | "immediate-uid" => user(option, draft),
            "mount" => return self.mount(option, draft),
            "buffer-size" => self.head_limit(option, draft),
            "add-header" => self.header(option, draft),
            "print" | "show-config" => draft.notes.by_itself(&option.place, &directive, "a note"),
            key if key.starts_with("route")
                || key.starts_with("error-route")
                || key.starts_with("response-route")
                || key.starts_with("final-route") =>
            {
                self.rules.extend(routing::rule(option, draft));
            }
            _ => return false,
        }
        true
    }

    /// Leaves out an option that depends on a condition.
    fn conditional(&mut self, option: &UwsgiOption, draft: &mut Draft) {
        let text = "it depends on a condition or a loop of the file: write it by hand";
        draft.notes.left_out(&option.place, &option.directive(), text);
        if option.key.starts_with("route") {
            let mut step = Step::new(vec![PathPattern::everything()], option.place.to_string());
            step.close("Closed: a rule of routing depends on a condition.");
            self.rules.push(step);
        }
    }

    /// Reads `mount = /path=app.psgi`.
    fn mount(&mut self, option: &UwsgiOption, draft: &mut Draft) -> bool {
        let Some((path, script)) = option.value.split_once('=') else { return false };
        let extension = script.rsplit_once('.').map(|(_, extension)| extension);
        let is_known = matches!(extension, Some("psgi" | "ru"));
        let (Some(path), true) = (PathPattern::below(path), is_known) else {
            return false;
        };
        let name = format!("app{}", path.start().replace('/', "-"));
        let name = draft.app_names.take(&name);
        let mut app = application(option, script, &name);
        if let Some(first) = draft.apps.first() {
            let own = ["name", "load"];
            let keys = first.keys.iter().filter(|(key, _)| !own.contains(&key.as_str()));
            keys.for_each(|(key, value)| set(&mut app, key, value.clone()));
        }
        draft.apps.push(app);
        let mut step = Step::new(vec![path], option.place.to_string());
        step.route.set("try", vec![format!("app:{name}")]);
        step.route.set("rewrite", "/");
        self.mounts.push(step);
        draft.notes.carried(&option.place, &option.directive(), "");
        true
    }

    fn header(&mut self, option: &UwsgiOption, draft: &mut Draft) {
        let directive = option.directive();
        let field = option.value.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
        match field.filter(|(name, _)| crate::text::is_settable(name)) {
            Some((name, value)) => {
                self.headers.insert(name.to_owned(), without_variables(value).into());
                draft.notes.carried(&option.place, &directive, "On errors, too.");
            }
            None => draft.notes.left_out(&option.place, &directive, "Kirin cannot set this field"),
        }
    }

    /// Makes the largest head larger, if it is larger than Kirin's.
    fn head_limit(&mut self, option: &UwsgiOption, draft: &mut Draft) {
        let directive = option.directive();
        match option.value.trim().parse::<u64>() {
            Ok(bytes) if bytes > 32 * 1024 => {
                self.head_limit = Some(crate::text::size(bytes));
                draft.notes.carried(&option.place, &directive, "");
            }
            _ => draft.notes.by_itself(&option.place, &directive, "a head may have 32 KB"),
        }
    }

    /// Writes the routes and the log.
    fn finish(self, draft: &mut Draft) {
        if draft.listeners.is_empty() {
            let section = &mut draft.listener("127.0.0.1:8080").section;
            section.comment("The configuration has no address for HTTP. Write one.");
        }
        if let Some(limit) = &self.head_limit {
            let listeners = draft.listeners.iter_mut();
            listeners.for_each(|listener| listener.section.set("head_limit", limit.as_str()));
        }
        self.log.finish(draft);
        let mut steps = self.rules;
        steps.extend(self.mounts);
        steps.extend(self.statics.into_steps(&self.place, self.comment));
        if !self.headers.is_empty() {
            for step in &mut steps {
                step.route.set("headers", self.headers.clone());
            }
        }
        draft.sites.push(Site { steps, ..Site::default() });
    }
}

/// Sets the user of Kirin and its applications.
fn user(option: &UwsgiOption, draft: &mut Draft) {
    let name = option.value.as_str();
    draft.top.set("user", name);
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = "Kirin takes the name of the user, not a number. It does not start before the \
                    name is written";
        draft.top.comment(format!("{}: write the name of this user.", option.place));
        draft.notes.left_out(&option.place, &option.directive(), text);
    } else {
        draft.notes.carried(&option.place, &option.directive(), "");
    }
}
