//! Web applications in Python. Kirin is in front of gunicorn or uvicorn, which the user starts.

use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, ServerPlan, Step};
use crate::project::{Project, Text};

/// The default port of gunicorn and uvicorn.
const PORT: u16 = 8000;

/// The files in which small applications are.
const FILES: [&str; 7] =
    ["app.py", "main.py", "wsgi.py", "asgi.py", "application.py", "app/main.py", "app/__init__.py"];

/// The classes of applications, and whether they speak ASGI.
const CLASSES: [(&str, bool); 8] = [
    ("FastAPI", true),
    ("Starlette", true),
    ("Litestar", true),
    ("Quart", true),
    ("Sanic", true),
    ("Flask", false),
    ("Bottle", false),
    ("get_wsgi_application", false),
];

/// Finds an application in Python.
pub(crate) fn find(project: &Project) -> Option<Candidate> {
    django(project).or_else(|| FILES.iter().find_map(|path| small_application(project, path)))
}

fn django(project: &Project) -> Option<Candidate> {
    let text = project.text("manage.py")?;
    let (line, module) = text.lines().find_map(|(number, line)| {
        let (_, rest) = line.split_once("DJANGO_SETTINGS_MODULE")?;
        let (_, rest) = rest.split_once(',')?;
        let module = rest.trim().trim_start_matches(['"', '\'']).split('.').next()?;
        is_identifier(module).then_some((number, module))
    })?;
    let evidence = Evidence::of_line("manage.py", Some(line), "starts a Django project");
    Some(candidate(evidence, format!("gunicorn --bind 127.0.0.1:{PORT} {module}.wsgi")))
}

fn small_application(project: &Project, path: &str) -> Option<Candidate> {
    let text = project.text(path)?;
    let (line, name, class, is_asgi) = application(&text)?;
    let module = path.trim_end_matches(".py").trim_end_matches("/__init__").replace('/', ".");
    let command = match is_asgi {
        true => format!("uvicorn --host 127.0.0.1 --port {PORT} {module}:{name}"),
        false => format!("gunicorn --bind 127.0.0.1:{PORT} {module}:{name}"),
    };
    let fact = match class {
        "get_wsgi_application" => "makes a WSGI application".to_owned(),
        class => format!("makes a {class} application"),
    };
    Some(candidate(Evidence::of_line(path, Some(line), fact), command))
}

fn candidate(evidence: Evidence, command: String) -> Candidate {
    let plan = ServerPlan { port: PORT, is_guess: false, public: None };
    let steps = vec![Step { purpose: "start the application", command }];
    Candidate { plan: Plan::Server(plan), evidence: vec![evidence], steps }
}

/// Returns the line, the variable, the class and the kind of the first `app = Flask(__name__)`.
fn application(text: &Text) -> Option<(usize, &str, &'static str, bool)> {
    text.lines().find_map(|(number, line)| {
        let (name, value) = line.split_once('=')?;
        // A type may follow the name: `app: FastAPI = FastAPI()`.
        let name = name.split(':').next()?.trim_end();
        let call = value.trim_start().split('(').next()?;
        let class = call.rsplit('.').next()?;
        let (class, is_asgi) = CLASSES.iter().find(|(known, _)| *known == class)?;
        is_identifier(name).then_some((number, name, *class, *is_asgi))
    })
}

fn is_identifier(text: &str) -> bool {
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty()
        && text.bytes().all(is_in_name)
        && !text.starts_with(|first: char| first.is_ascii_digit())
}
