//! `[[app]]`: an application and its workers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kirin_workers::{AppCode, AppConfig, MAX_SHARED_MEMORY_BYTES, MAX_WORKERS, SLOT_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::default::{defaults, whole_seconds};
use crate::name::check_name;
use crate::preload::PreloadKey;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::trial::{TrialSection, check_trial};
use crate::units::{ByteSize, Milliseconds, Number, Seconds};
use crate::written::Written;

/// An application and its workers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppSection {
    /// The name that routes use: `app:NAME`.
    pub name: Written<String>,
    /// The application: a PSGI file such as `"app.psgi"`, a Python file such as `"app.py"` or
    /// `"app.py:create_app()"`, a Python module such as `"shop.wsgi:application"`, or a Rack file
    /// such as `"config.ru"` or `"app.rb"`. In Python without a name, Kirin looks for
    /// `application`, `app` and `create_app` ([python.md](python.md)). With `adapter` it is any
    /// file.
    pub load: Written<String>,
    /// The program that runs the adapter, such as `"/opt/ruby-3.4/bin/ruby"`. A name without `/` is
    /// looked for in `PATH`. Default: `perl` or `ruby`; the Python of a virtual environment, or
    /// `python3`; an adapter in another language is a program itself.
    pub interpreter: Option<Written<String>>,
    /// The directory of an adapter, which has `bin/kirin-worker`. It is for an adapter of your own
    /// in any language ([worker-protocol.md](worker-protocol.md)). Default: that of Perl, Python or
    /// Ruby, which comes with Kirin.
    pub adapter: Option<Written<String>>,
    /// The directory in which the application runs. Default: the directory of the configuration
    /// file.
    pub directory: Option<Written<String>>,
    /// The number of worker processes. Each serves one request at a time.
    #[serde(default = "workers")]
    pub workers: Number<1, { MAX_WORKERS as u64 }>,
    /// Whether Kirin loads the application once before it forks the workers, so that they share its
    /// memory: `true`, `false` or `"auto"`. `"auto"` does so unless the application opens
    /// connections or databases while it is loaded, because processes cannot share these. Without
    /// preloading each worker loads the application itself ([perl.md](perl.md#preloading)).
    /// Default: `"auto"`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub preload: PreloadKey,
    /// Environment variables for the application.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The most requests that wait for an idle worker. A further one is answered 503. Clients take
    /// turns: a client with many requests in the queue delays another one by one request.
    #[serde(default = "queue")]
    pub queue: usize,
    /// How long a request may wait for an idle worker. Then it is answered 503.
    #[serde(default = "queue_wait")]
    pub queue_wait: Seconds,
    /// How long a worker may take for a request. Then the client gets 504, the worker logs where it
    /// is (a stack), and a second later Kirin kills it.
    #[serde(default = "deadline")]
    pub deadline: Seconds,
    /// How long a worker may take for a request before Kirin logs where it is (a stack), such
    /// as `"1s"` or `"300ms"`. The request continues and does not notice. `kirin status` has the
    /// last ten. It must be shorter than `deadline` ([profile.md](profile.md#slow-requests)).
    /// Default: never.
    pub slow: Option<Written<Milliseconds>>,
    /// How long the application may take to load.
    #[serde(default = "start_limit")]
    pub start_limit: Seconds,
    /// The number of requests after which Kirin replaces a worker; 0 for never. Each worker draws
    /// up to a tenth less, so that workers do not all end at once.
    #[serde(default)]
    pub max_requests: u64,
    /// The age at which Kirin replaces a worker, such as `"1h"`. Each worker draws up to a tenth
    /// less. Kirin looks every second, and never while the worker has a request. Default: never.
    pub max_age: Option<Seconds>,
    /// The resident memory at which Kirin replaces a worker, such as `"300MB"`. It is the figure
    /// that `ps` shows: memory that the worker shares with its parent counts. Kirin looks every
    /// second, and never while the worker has a request. Default: never.
    pub max_memory: Option<ByteSize>,
    /// The largest request body. A larger one is answered 413.
    #[serde(default = "body_limit")]
    pub body_limit: ByteSize,
    /// The most memory that Kirin shares with the workers of the application, for requests and
    /// answers that need no system call ([perl.md](perl.md#the-ring)). A slot for a request and its
    /// answer takes 64 KiB, and memory that was never needed is never taken. A worker needs one
    /// slot. `"0B"` is for none: then everything goes over sockets. Default: four slots for each
    /// worker and 64 more.
    pub shared_memory: Option<Written<ByteSize>>,
    /// How new code is tried after a reload, such as `{ share = "5%", time = "2m" }`. It serves a
    /// part of the visitors beside the old code. Then it serves everybody, or it is given up if it
    /// does worse ([trial.md](trial.md)). Default: new code serves everybody at once.
    pub trial: Option<TrialSection>,
    /// The directories from which the application may send files by name, with `X-Sendfile`. Files
    /// that the application has opened itself and returns as its response need none. Default: none.
    #[serde(default)]
    pub sendfile: Vec<Written<String>>,
}

defaults! {
    workers: Number<1, { MAX_WORKERS as u64 }> = Number::new(default_app().workers as u64);
    queue: usize = default_app().queue_length;
    queue_wait: Seconds = whole_seconds(default_app().queue_wait);
    deadline: Seconds = whole_seconds(default_app().request_deadline);
    start_limit: Seconds = whole_seconds(default_app().start_limit);
    body_limit: ByteSize = ByteSize(default_app().body_limit_bytes);
}

/// Returns the configuration of an application without a name, for its defaults.
fn default_app() -> AppConfig {
    AppConfig::new("", AppCode::Psgi(PathBuf::new()))
}

/// Checks `section`.
pub fn check_app(
    section: &AppSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<AppConfig> {
    let name = errors.keep(check_name("app", &section.name, source));
    let directory = match &section.directory {
        Some(directory) => errors.keep(source.existing_directory(directory)),
        None => Some(source.absolute_directory()),
    };
    let modules = directory.clone().unwrap_or_else(|| source.absolute_directory());
    let code = AppCode::parse(section.load.as_str(), &source.absolute_directory(), &modules);
    let code = if section.adapter.is_some() { code.with_named_adapter() } else { code };
    let adapter = section.adapter.as_ref().map(|adapter| check_adapter(section, adapter, source));
    let adapter = errors.keep(adapter.transpose());
    let interpreter = section.interpreter.as_ref();
    let interpreter = interpreter.map(|program| check_interpreter(section, program, source));
    let interpreter = errors.keep(interpreter.transpose());
    if let Some(file) = code.file().filter(|file| !file.is_file()) {
        let message = format!(
            "`load` of app `{}`: there is no file {}; a Python module is written \
             `package.module:NAME`",
            section.name.as_str(),
            file.display()
        );
        errors.push(source.error(section.load.span(), message));
    }
    let sendfile_roots = section.sendfile.iter().map(|root| source.existing_directory(root));
    let sendfile_roots = errors.keep(sendfile_roots.collect::<Result<_, ConfigError>>());
    let slow = section.slow.as_ref().map(|slow| check_slow(section, slow, source));
    let slow = errors.keep(slow.transpose());
    let trial = section.trial.as_ref();
    let trial = trial.map(|trial| check_trial(trial, section.deadline.into(), source));
    let trial = errors.keep(trial.transpose());
    let shared_memory_bytes = section.shared_memory.as_ref();
    let shared_memory_bytes =
        shared_memory_bytes.map(|memory| check_shared_memory(section, memory, source));
    let shared_memory_bytes = errors.keep(shared_memory_bytes.transpose());
    name?;
    Some(AppConfig {
        directory: Some(directory?),
        workers: section.workers.length(),
        preload: section.preload.0,
        interpreter: interpreter?,
        adapter: adapter?,
        env: section.env.clone().into_iter().collect(),
        queue_length: section.queue,
        queue_wait: section.queue_wait.into(),
        request_deadline: section.deadline.into(),
        slow: slow?,
        start_limit: section.start_limit.into(),
        max_requests: (section.max_requests > 0).then_some(section.max_requests),
        max_age: section.max_age.map(Duration::from),
        max_memory_bytes: section.max_memory.map(|size| size.0),
        body_limit_bytes: section.body_limit.0,
        shared_memory_bytes: shared_memory_bytes?,
        trial: trial?,
        sendfile_roots: sendfile_roots?,
        ..AppConfig::new(section.name.as_str(), code)
    })
}

/// Checks that a directory is an adapter.
fn check_adapter(
    section: &AppSection,
    adapter: &Written<String>,
    source: &ConfigSource,
) -> Result<PathBuf, ConfigError> {
    let directory = source.existing_directory(adapter)?;
    let program = directory.join("bin/kirin-worker");
    if program.is_file() {
        return Ok(directory);
    }
    let message = format!(
        "`adapter` of app `{}`: there is no file {}, which every adapter has",
        section.name.as_str(),
        program.display()
    );
    Err(source.error(adapter.span(), message))
}

/// Returns the program that runs the adapter. A name without `/` is looked for when it starts.
fn check_interpreter(
    section: &AppSection,
    program: &Written<String>,
    source: &ConfigSource,
) -> Result<PathBuf, ConfigError> {
    if !program.is_empty() && !program.contains('/') {
        return Ok(PathBuf::from(program.as_str()));
    }
    let path = source.path(program.as_str());
    if path.is_file() {
        return Ok(path);
    }
    let message = format!(
        "`interpreter` of app `{}`: there is no file {}",
        section.name.as_str(),
        path.display()
    );
    Err(source.error(program.span(), message))
}

/// Checks that there is a slot for each worker.
fn check_shared_memory(
    section: &AppSection,
    memory: &Written<ByteSize>,
    source: &ConfigSource,
) -> Result<u64, ConfigError> {
    let (bytes, workers) = (memory.0, section.workers.length());
    let least = SLOT_BYTES * workers as u64;
    if bytes == 0 || (least..=MAX_SHARED_MEMORY_BYTES).contains(&bytes) {
        return Ok(bytes);
    }
    let message = format!(
        "`shared_memory` of app `{}` is {}: {workers} workers need at least {}, and the most is {}; \"0B\" is for none",
        section.name.as_str(),
        **memory,
        ByteSize(least),
        ByteSize(MAX_SHARED_MEMORY_BYTES),
    );
    Err(source.error(memory.span(), message))
}

/// Checks that a request is slow before it is overdue.
fn check_slow(
    section: &AppSection,
    slow: &Written<Milliseconds>,
    source: &ConfigSource,
) -> Result<Duration, ConfigError> {
    let (limit, deadline) = (Duration::from(**slow), Duration::from(section.deadline));
    if limit < deadline {
        return Ok(limit);
    }
    let message = format!(
        "`slow` of app `{}` is {limit:?}, but `deadline` is {deadline:?}: no request gets slow before it is ended",
        section.name.as_str()
    );
    Err(source.error(slow.span(), message))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kirin_workers::Language;

    use super::*;
    use crate::read;

    /// Reads the keys of an application in a directory that has these files.
    fn app(files: &[&str], keys: &str) -> Result<AppConfig, String> {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let text = format!(
            "[[listener]]\naddress = \"8080\"\n[[app]]\nname = \"web\"\n{keys}\n[[route]]\n\
             path = \"/\"\ntry = [\"app:web\"]\n"
        );
        let source = ConfigSource::from_text("kirin.toml", directory.path(), text);
        let mut config = read(&source).map_err(|error| error.to_string())?;
        let mut app = config.apps.remove(0);
        for path in [&mut app.interpreter, &mut app.adapter].into_iter().flatten() {
            if let Ok(below) = path.strip_prefix(directory.path()) {
                *path = Path::new("DIRECTORY").join(below);
            }
        }
        Ok(app)
    }

    #[test]
    fn the_name_of_a_file_or_a_named_adapter_says_the_language() {
        let files = ["app.psgi", "app.py", "config.ru", "app.rb", "app.js", "own/bin/kirin-worker"];
        for (keys, language, interpreter, adapter) in [
            ("load = \"app.psgi\"", Language::Perl, None, None),
            ("load = \"app.py\"", Language::Python, None, None),
            ("load = \"config.ru\"", Language::Ruby, None, None),
            ("load = \"app.rb\"\ninterpreter = \"ruby3.4\"", Language::Ruby, Some("ruby3.4"), None),
            (
                "load = \"config.ru\"\ninterpreter = \"./app.rb\"",
                Language::Ruby,
                Some("DIRECTORY/app.rb"),
                None,
            ),
            ("load = \"app.js\"", Language::Perl, None, None),
            ("load = \"app.js\"\nadapter = \"own\"", Language::Other, None, Some("DIRECTORY/own")),
            ("load = \"app.rb\"\nadapter = \"own\"", Language::Ruby, None, Some("DIRECTORY/own")),
        ] {
            let app = app(&files, keys).unwrap();
            assert_eq!(app.code.language(), language, "{keys}");
            assert_eq!(app.interpreter.as_deref(), interpreter.map(Path::new), "{keys}");
            assert_eq!(app.adapter.as_deref(), adapter.map(Path::new), "{keys}");
        }
    }

    #[test]
    fn an_adapter_and_an_interpreter_that_are_not_there_are_errors() {
        for (keys, parts) in [
            ("adapter = \"own\"", ["kirin.toml:6:11", "there is no directory"]),
            ("adapter = \"bin\"", ["kirin.toml:6:11", "bin/bin/kirin-worker, which every adapter"]),
            ("interpreter = \"bin/ruby\"", ["kirin.toml:6:15", "there is no file"]),
            ("interpreter = \"\"", ["kirin.toml:6:15", "there is no file"]),
        ] {
            let error = app(&["config.ru", "bin/x"], &format!("load = \"config.ru\"\n{keys}"));
            let error = error.unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{keys}: {error}");
            }
        }
    }
}
