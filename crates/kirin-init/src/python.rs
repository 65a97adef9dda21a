//! Web applications in Python, which speak WSGI or ASGI.

use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, PythonPlan, StaticFiles, Step};
use crate::project::{Project, Text, is_plain_path};

/// The files in which small applications are.
const FILES: [&str; 7] =
    ["app.py", "main.py", "wsgi.py", "asgi.py", "application.py", "app/main.py", "app/__init__.py"];

/// The classes of applications, and Django's functions that make one.
const CLASSES: [&str; 9] = [
    "FastAPI",
    "Starlette",
    "Litestar",
    "Quart",
    "Sanic",
    "Flask",
    "Bottle",
    "get_wsgi_application",
    "get_asgi_application",
];

/// The directories of virtual environments that Kirin finds by itself.
const ENVIRONMENTS: [&str; 3] = [".venv", "venv", "env"];

/// Finds an application that Kirin can run.
pub(crate) fn find(project: &Project) -> Option<Candidate> {
    let found = django(project)
        .or_else(|| FILES.iter().find_map(|path| small_application(project, path)))?;
    let mut evidence = vec![found.evidence];
    let mut steps = Vec::new();
    let environment = ENVIRONMENTS
        .map(|name| format!("{name}/pyvenv.cfg"))
        .into_iter()
        .find(|path| project.is_file(path));
    match environment {
        Some(path) => {
            evidence.push(Evidence::of_file(&path, "is of the virtual environment"));
        }
        None if project.is_file("requirements.txt") => steps.push(Step {
            purpose: "install the packages, if they are not there",
            command: "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt".into(),
        }),
        None => {}
    }
    if let Some(files) = &found.static_files {
        let fact = format!("has the files of the paths below {}", files.path);
        evidence.push(Evidence::of_file(&files.directory, fact));
        if found.framework == "Django" && !project.is_directory(&files.directory) {
            let command = "python3 manage.py collectstatic".into();
            steps.push(Step { purpose: "collect the static files", command });
        }
    }
    let Found { load, framework, static_files, .. } = found;
    let plan = Plan::Python(PythonPlan { load, framework, static_files });
    Some(Candidate { plan, evidence, steps })
}

/// An application.
struct Found {
    load: String,
    framework: &'static str,
    static_files: Option<StaticFiles>,
    evidence: Evidence,
}

fn django(project: &Project) -> Option<Found> {
    let text = project.text("manage.py")?;
    let (line, settings) = text.lines().find_map(|(number, line)| {
        let (_, rest) = line.split_once("DJANGO_SETTINGS_MODULE")?;
        let (_, rest) = rest.split_once(',')?;
        let settings = quoted(rest)?;
        settings.split('.').all(is_identifier).then_some((number, settings))
    })?;
    let module = settings.split('.').next()?;
    let path = settings.replace('.', "/");
    let mut paths =
        vec![format!("{path}.py"), format!("{path}/__init__.py"), format!("{path}/base.py")];
    // Settings for one purpose, such as press/settings/dev.py, begin with those in base.py.
    paths.extend(path.rsplit_once('/').map(|(directory, _)| format!("{directory}/base.py")));
    let texts: Vec<_> = paths.iter().filter_map(|path| project.text(path)).collect();
    // Channels needs this setting. Other projects have an asgi.py too, because Django makes one.
    let is_asgi = texts.iter().any(|text| {
        text.lines().any(|(_, line)| line.trim_start().starts_with("ASGI_APPLICATION"))
    });
    let interface = if is_asgi { "asgi" } else { "wsgi" };
    let file = format!("{module}/{interface}.py");
    if !project.is_file(&file) {
        project.note_problem(Evidence::of_file(&file, "is missing"));
        return None;
    }
    Some(Found {
        load: format!("{module}.{interface}:application"),
        framework: "Django",
        static_files: texts.iter().find_map(collected_files),
        evidence: Evidence::of_line("manage.py", Some(line), "starts a Django project"),
    })
}

/// Returns the static files that the settings of Django name with `STATIC_URL` and `STATIC_ROOT`,
/// if these are below the directory of the project.
fn collected_files(settings: &Text) -> Option<StaticFiles> {
    let value_of = |key: &str| {
        settings.lines().find_map(|(_, line)| {
            path_below_base(line.strip_prefix(key)?.trim_start().strip_prefix('=')?)
        })
    };
    let url = value_of("STATIC_URL").unwrap_or_else(|| "static/".into());
    let path = format!("/{}", url.trim_matches('/'));
    let directory = value_of("STATIC_ROOT")?.trim_end_matches('/').to_owned();
    // Otherwise the sources of the project would be public.
    let is_below = |path: &str| {
        is_plain_path(path) && path.split('/').all(|part| !part.is_empty() && part != ".")
    };
    (is_below(&path[1..]) && is_below(&directory)).then_some(StaticFiles { path, directory })
}

fn small_application(project: &Project, path: &str) -> Option<Found> {
    let text = project.text(path)?;
    let (line, name, class) = application(&text)?;
    let module = path.trim_end_matches(".py").trim_end_matches("/__init__").replace('/', ".");
    let (framework, fact) = match class {
        "get_wsgi_application" => ("Django", "makes a WSGI application".to_owned()),
        "get_asgi_application" => ("Django", "makes an ASGI application".to_owned()),
        class => (class, format!("makes a {class} application")),
    };
    // Flask serves the directory `static` beside the module.
    let beside = path
        .rsplit_once('/')
        .map_or("static".to_owned(), |(directory, _)| format!("{directory}/static"));
    let has_static_files = framework == "Flask" && project.is_directory(&beside);
    let static_files =
        has_static_files.then(|| StaticFiles { path: "/static".into(), directory: beside });
    Some(Found {
        load: format!("{module}:{name}"),
        framework,
        static_files,
        evidence: Evidence::of_line(path, Some(line), fact),
    })
}

/// Returns the first text in quotes.
fn quoted(text: &str) -> Option<&str> {
    let start = text.find(['"', '\''])?;
    let quote = text[start..].chars().next()?;
    let rest = &text[start + 1..];
    Some(&rest[..rest.find(quote)?])
}

/// Returns the path that an expression makes of `BASE_DIR` and of texts in quotes, as Django's own
/// settings do: `BASE_DIR / "static"`, `os.path.join(BASE_DIR, "static")`, `"static/"`.
fn path_below_base(expression: &str) -> Option<String> {
    let expression = expression.split(" #").next()?;
    let mut names = Vec::new();
    for (at, part) in expression.split(['"', '\'']).enumerate() {
        if at % 2 == 1 {
            names.push(part);
            continue;
        }
        let mut words = part.split([' ', '/', ',', '(', ')', '\t']).filter(|word| !word.is_empty());
        if !words.all(|word| matches!(word, "BASE_DIR" | "os.path.join" | "str" | "Path")) {
            return None;
        }
    }
    (!names.is_empty()).then(|| names.join("/"))
}

/// Returns the line, the variable and the class of the first `app = Flask(__name__)`.
fn application(text: &Text) -> Option<(usize, &str, &'static str)> {
    text.lines().find_map(|(number, line)| {
        let (name, value) = line.split_once('=')?;
        // A type may follow the name: `app: FastAPI = FastAPI()`.
        let name = name.split(':').next()?.trim_end();
        let call = value.trim_start().split('(').next()?;
        let class = call.rsplit('.').next()?;
        let class = CLASSES.iter().find(|known| **known == class)?;
        is_identifier(name).then_some((number, name, *class))
    })
}

fn is_identifier(text: &str) -> bool {
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty()
        && text.bytes().all(is_in_name)
        && !text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_settings_are_read_in_their_usual_forms() {
        for (expression, path) in [
            (r#" BASE_DIR / "static""#, Some("static")),
            (r#" str(BASE_DIR / 'build' / "static") # all"#, Some("build/static")),
            (r#" os.path.join(BASE_DIR, "static/")"#, Some("static/")),
            (r#" "/srv/static""#, Some("/srv/static")),
            (r#" env("STATIC_ROOT", default="x")"#, None),
            (" None", None),
            ("", None),
        ] {
            assert_eq!(path_below_base(expression).as_deref(), path, "{expression}");
        }
    }

    #[test]
    fn static_files_outside_the_project_are_left_to_the_user() {
        let files = |root: &str| {
            let text = format!("STATIC_URL = '/assets/'\nSTATIC_ROOT = {root}\n");
            collected_files(&Text { text }).map(|files| (files.path, files.directory))
        };
        let found = |directory: &str| Some(("/assets".to_owned(), directory.to_owned()));
        assert_eq!(files(r#"BASE_DIR / "static""#), found("static"));
        assert_eq!(files(r#""/srv/static""#), None);
        assert_eq!(files(r#"BASE_DIR / "../static""#), None);
        assert_eq!(files("get_root()"), None);
        for root in [r#"BASE_DIR / ".""#, r#""./""#, r#""a//b""#, r#"BASE_DIR / "a/.""#] {
            assert_eq!(files(root), None, "{root}");
        }
    }
}
