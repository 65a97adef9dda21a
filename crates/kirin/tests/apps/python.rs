//! Python applications by one command: files, modules, projects, and virtual environments.

use std::process::Command;

use kirin_tests::{Kirin, Site, run_kirin, wait_for};
use rustix::process::Signal;

/// An application that says where it is and which Python runs it.
const APP: &str = "\
import os, sys

def application(environ, start_response):
    start_response('200 OK', [('Content-Type', 'text/plain')])
    seen = [__name__, os.getcwd(), sys.prefix, environ['PATH_INFO']]
    return ['\\n'.join(seen).encode()]
";

/// A module that has the place of the package.
const FLASK: &str = "\
class Flask:
    def __init__(self, name):
        self.name = name
    def __call__(self, environ, start_response):
        start_response('200 OK', [('Content-Type', 'text/plain')])
        return [f'{self.name} {environ[\"PATH_INFO\"]}'.encode()]
";

/// A module that has the place of the package, with applications of ASGI.
const FASTAPI: &str = "\
class FastAPI:
    async def __call__(self, scope, receive, send):
        if scope['type'] == 'lifespan':
            raise NotImplementedError
        body = scope['path'].encode()
        headers = [(b'content-type', b'text/plain')]
        await send({'type': 'http.response.start', 'status': 200, 'headers': headers})
        await send({'type': 'http.response.body', 'body': body})
";

fn serve(site: &Site, arguments: &[&str]) -> Kirin {
    let arguments = [&["serve", "--listen", "0", "--workers", "2"], arguments].concat();
    Kirin::start_with(site, &arguments)
}

#[test]
fn a_file_or_a_module_is_served_by_its_name() {
    let site = Site::new()
        .with("app.py", APP)
        .with("shop/__init__.py", "")
        .with("shop/site.py", APP.replace("application", "web"))
        .with("shop/made.py", format!("{APP}\ndef make(): return application\n"))
        .with("sub/main.py", APP.replace("application", "app"))
        .with("public/hello.txt", "hello\n");
    let root = site.root().display().to_string();
    for (target, module, directory) in [
        ("app.py", "app", ""),
        ("app.py:application", "app", ""),
        ("app", "app", ""),
        ("app:application", "app", ""),
        ("shop.site:web", "shop.site", ""),
        ("shop.made:make()", "shop.made", ""),
        ("shop/site.py:web", "shop.site", "/shop"),
        ("sub/main.py", "main", "/sub"),
        ("sub/main:app", "main", "/sub"),
    ] {
        let kirin = serve(&site, &[target]);
        let text = kirin.get("/a%20b").text();
        let lines: Vec<_> = text.lines().collect();
        let expected = [module, &format!("{root}{directory}"), "/a b"];
        assert_eq!([lines[0], lines[1], lines[3]], expected, "{target}\n{}", kirin.whole_log());
        let has_files = directory.is_empty();
        assert_eq!(kirin.get("/hello.txt").text() == "hello\n", has_files, "{target}");
    }
}

#[test]
fn a_configuration_can_be_printed_for_a_python_target() {
    let site = Site::new().with("app.py", APP).with("sub/main.py", APP);
    for (target, lines) in [
        ("app.py", "load = \"app.py\"\nworkers = 5\n"),
        ("sub/main:application", "load = \"main:application\"\ndirectory = \"sub\"\nworkers = 5\n"),
    ] {
        let output = run_kirin(&site, &["serve", "--print-config", target]);
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains(lines), "{text}");
        let file = site.path("kirin.toml");
        std::fs::write(&file, text.replace("127.0.0.1:8080", "127.0.0.1:0")).expect("write");
        let kirin = Kirin::start_with(&site, &["serve"]);
        assert_eq!(kirin.get("/").status, 200, "{target}");
    }
}

#[test]
fn the_directory_of_a_project_is_served_and_the_log_says_what_was_found() {
    let site = Site::new()
        .with("flask.py", FLASK)
        .with("main.py", "from flask import Flask\nshop = Flask(__name__)\n")
        .with("static/a.css", "body { }\n");
    let kirin = serve(&site, &["."]);
    let found = "found a Python application (Flask): main.py (line 2) makes a Flask application";
    assert!(kirin.whole_log().contains(found), "{}", kirin.whole_log());
    assert_eq!(kirin.get("/x").text(), "main /x");
    assert_eq!(kirin.get("/static/a.css").text(), "body { }\n");
    // The source is not public.
    assert_eq!(kirin.get("/main.py").text(), "main /main.py");

    let files = Site::new().with("index.html", "<p>files</p>");
    let kirin = Kirin::start_with(&files, &["serve", "--listen", "0", "."]);
    assert_eq!(kirin.get("/").text(), "<p>files</p>");
}

#[test]
fn an_application_of_asgi_needs_no_other_command() {
    let site = Site::new()
        .with("fastapi.py", FASTAPI)
        .with("app/__init__.py", "")
        .with("app/main.py", "from fastapi import FastAPI\n\napp = FastAPI()\n");
    let kirin = serve(&site, &["."]);
    let found =
        "found a Python application (FastAPI): app/main.py (line 3) makes a FastAPI application";
    assert!(kirin.whole_log().contains(found), "{}", kirin.whole_log());
    assert_eq!(kirin.get("/x%20y").text(), "/x y");
    for target in ["app.main:app", "app.main", "app/main.py"] {
        assert_eq!(serve(&site, &[target]).get("/z").text(), "/z", "{target}");
    }
}

#[test]
fn a_django_project_is_found_with_its_collected_files() {
    // A module has the place of the package: only the finding is tested here.
    let site = Site::new()
        .with("manage.py", "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site_a.settings')\n")
        .with("site_a/__init__.py", "")
        .with(
            "site_a/settings.py",
            "STATIC_URL = 'assets/'\nSTATIC_ROOT = BASE_DIR / 'collected'\n",
        )
        .with("site_a/wsgi.py", APP)
        .with("collected/a.css", "body { }\n");
    let kirin = serve(&site, &["."]);
    let found = "found a Python application (Django): manage.py (line 1) starts a Django project";
    assert!(kirin.whole_log().contains(found), "{}", kirin.whole_log());
    assert!(kirin.get("/x").text().starts_with("site_a.wsgi\n"));
    assert_eq!(kirin.get("/assets/a.css").text(), "body { }\n");
}

#[test]
fn the_virtual_environment_of_the_project_runs_the_application() {
    let site = Site::new().with("app.py", APP);
    let prefix = |kirin: &Kirin| kirin.get("/").text().lines().nth(2).map(str::to_owned);
    let make = |name: &str| {
        let mut command = Command::new("python3");
        command.args(["-m", "venv", "--without-pip"]).arg(site.path(name));
        assert!(command.status().expect("python3").success(), "python3-venv is not installed");
        site.path(name).display().to_string()
    };
    let found = make(".venv");
    assert_eq!(prefix(&serve(&site, &["app.py"])).as_deref(), Some(&*found));

    let other = make("elsewhere");
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\nname = \"web\"\nload = \"app.py\"\n\
         env = { VIRTUAL_ENV = \"elsewhere\" }\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";
    assert_eq!(prefix(&Kirin::start(&site, config)).as_deref(), Some(&*other));

    let config = config.replace("elsewhere", "gone");
    std::fs::write(site.path("kirin.toml"), config).expect("write");
    let output = run_kirin(&site, &["serve"]);
    let error = String::from_utf8_lossy(&output.stderr);
    let text = format!("there is no {}", site.path("gone/bin/python").display());
    assert!(!output.status.success() && error.contains(&text), "{error}");
}

#[test]
fn an_application_that_cannot_be_loaded_says_why() {
    let site = Site::new()
        .with("syntax.py", "def application(\n")
        .with("import.py", "import no_such_module_anywhere\n")
        .with("names.py", "def application_of_mine(environ, start_response): pass\n")
        .with("raises.py", "def settings():\n    raise RuntimeError('no database')\nsettings()\n");
    for (target, parts) in [
        ("syntax.py", &["SyntaxError", "syntax.py"][..]),
        ("import.py", &["No module named 'no_such_module_anywhere'", "import.py"]),
        ("names.py", &["application, app", "application_of_mine"]),
        ("names.py:other", &["has no 'other'"]),
        ("raises.py", &["RuntimeError: no database", "raises.py", "line 2"]),
        ("gone.module:app", &["No module named 'gone'"]),
    ] {
        let output = run_kirin(&site, &["serve", "--listen", "0", target]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{target} is served");
        for part in parts {
            assert!(error.contains(part), "{target}: {part} is not in\n{error}");
        }
    }
}

#[test]
fn a_reload_loads_new_code_and_keeps_the_old_if_it_is_broken() {
    let version = |number: u32| {
        format!(
            "def application(environ, start_response):\n    \
             start_response('200 OK', [])\n    return [b'version {number}']\n"
        )
    };
    let site = Site::new().with("app.py", version(1));
    let kirin = serve(&site, &["app.py"]);
    assert_eq!(kirin.get("/").text(), "version 1");
    std::fs::write(site.path("app.py"), version(2)).expect("write");
    kirin.signal(Signal::HUP);
    wait_for("the new version", || (kirin.get("/").text() == "version 2").then_some(()));
    std::fs::write(site.path("app.py"), "raise RuntimeError('broken')\n").expect("write");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("RuntimeError: broken");
    assert_eq!(kirin.get("/").text(), "version 2");
}

#[test]
fn the_source_of_an_application_is_not_served_as_files() {
    let fastapi = "from fastapi import FastAPI\napp = FastAPI()\n";
    for (files, part) in [
        (&[("main.py", fastapi)][..], "main.py (line 2) makes a FastAPI application"),
        (&[("shop/__init__.py", ""), ("pyproject.toml", "")], "has pyproject.toml"),
        (&[("__init__.py", "")], "has __init__.py"),
        (&[("index.php", "<?php"), ("config.php", "<?php")], "a PHP application"),
    ] {
        let site = files.iter().fold(Site::new(), |site, (name, text)| site.with(name, text));
        let output = run_kirin(&site, &["serve", "--listen", "0", "."]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(part), "{part} is not in {error}");
    }
    // A directory with an index page has files for visitors.
    let site = Site::new().with("index.html", "<p>docs</p>").with("requirements.txt", "mkdocs\n");
    let kirin = Kirin::start_with(&site, &["serve", "--listen", "0", "."]);
    assert_eq!(kirin.get("/").text(), "<p>docs</p>");
}

#[test]
fn an_installed_adapter_serves_a_kirin_that_has_none_beside_it() {
    // A module of the application with this name must not come first.
    let site =
        Site::new().with("app.py", APP).with("kirin.py", "raise SystemExit('wrong module')\n");
    let program = site.path("bin/kirin");
    std::fs::create_dir(site.path("bin")).expect("bin");
    std::fs::copy(kirin_tests::binary(), &program).expect("copy");
    let mut command = Command::new(&program);
    command.current_dir(site.root()).args(["serve", "--listen", "0", "app.py"]);
    command.env("PYTHONPATH", kirin_tests::repository().join("adapters/python/src"));
    let kirin = Kirin::start_command(&mut command);
    assert!(kirin.get("/").text().starts_with("app\n"), "{}", kirin.whole_log());
}
