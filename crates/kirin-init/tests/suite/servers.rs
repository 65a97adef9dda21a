//! Projects that another program serves.

use crate::support::{Layout, check};

pub const LAYOUTS: [Layout; 18] = [
    Layout {
        name: "a_procfile_names_the_port",
        files: &[
            ("Procfile", "worker: x -p 1\nweb: thin start -p 3001\n"),
            ("Dockerfile", "FROM ruby\nEXPOSE 3001\n"),
            ("compose.yaml", "services:\n  web:\n    ports:\n      - 8000:3001\n"),
        ],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:3001"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 3001:
  Procfile (line 2) starts the web process: thin start -p 3001
Found too, and not used:
  compose.yaml (line 4) publishes port 8000
  Dockerfile (line 2) names port 3001, too
Next:
  thin start -p 3001    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "kirin_runs_flask_itself",
        files: &[
            ("Procfile", "web: gunicorn -b 0.0.0.0:$PORT app:app\n"),
            ("app.py", "from flask import Flask\napp = Flask(__name__)\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "app:app"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a Python application (Flask):
  app.py (line 2) makes a Flask application
Found too, and not used:
  Procfile (line 1) starts the web process: gunicorn -b 0.0.0.0:$PORT app:app
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_procfile_without_a_port",
        files: &[("Procfile", "web: node server.js\n")],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:3000"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 3000:
  Procfile (line 1) starts the web process: node server.js
  Procfile (line 1) names no port: 3000 is a guess
Next:
  PORT=3000 node server.js    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "the_server_has_the_port_of_kirin",
        files: &[("Dockerfile", "FROM golang AS build\nFROM debian\nEXPOSE 8080/tcp\n")],
        settings: r#"listener = [
    { address = "127.0.0.1:8081", access_log = { path = "stderr", format = "terminal" } },
]
[[upstream]]
name = "web"
servers = ["http://127.0.0.1:8080"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 8080:
  Dockerfile (line 3) names port 8080
Next:
  docker build -t app . && docker run -p 127.0.0.1:8080:8080 app    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8081/
",
    },
    Layout {
        name: "django",
        files: &[
            (
                "manage.py",
                "import os\nos.environ.setdefault(\"DJANGO_SETTINGS_MODULE\", \"mysite.settings\")\n",
            ),
            ("mysite/wsgi.py", ""),
            (
                "mysite/settings.py",
                "STATIC_URL = 'assets/'\nSTATIC_ROOT = BASE_DIR / \"build\" / \"collected\"\n",
            ),
            ("requirements.txt", "django\n"),
            ("package.json", r#"{"devDependencies": {"vite": "7"}}"#),
        ],
        settings: r#"[[app]]
name = "web"
load = "mysite.wsgi:application"
[[route]]
path = "/"
try = ["store", "app:web"]
[[route]]
path = "/assets"
try = ["files:build/collected"]
rewrite = "/"
"#,
        report: "Found a Python application (Django):
  manage.py (line 2) starts a Django project
  build/collected has the files of the paths below /assets
Found too, and not used:
  package.json (line 1) needs Vite, which builds a site
Next:
  python3 -m venv .venv && .venv/bin/pip install -r requirements.txt    # install the packages, if they are not there
  python3 manage.py collectstatic    # collect the static files
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "flask_in_a_package_with_an_environment",
        files: &[
            ("app/__init__.py", "from flask import Flask\napplication = Flask(__name__)\n"),
            ("app/static/a.css", ""),
            (".venv/pyvenv.cfg", ""),
            ("requirements.txt", "flask\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "app:application"
[[route]]
path = "/"
try = ["store", "app:web"]
[[route]]
path = "/static"
try = ["files:app/static"]
rewrite = "/"
"#,
        report: "Found a Python application (Flask):
  app/__init__.py (line 2) makes a Flask application
  .venv/pyvenv.cfg is of the virtual environment
  app/static has the files of the paths below /static
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "fastapi_in_a_package",
        files: &[(
            "app/main.py",
            "import fastapi\n\napi: fastapi.FastAPI = fastapi.FastAPI(title=\"x\")\n",
        )],
        settings: r#"[[app]]
name = "web"
load = "app.main:api"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a Python application (FastAPI):
  app/main.py (line 3) makes a FastAPI application
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "django_with_channels",
        files: &[
            (
                "manage.py",
                "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings.dev')\n",
            ),
            ("shop/settings/dev.py", "from .base import *\n"),
            ("shop/settings/base.py", "ASGI_APPLICATION = 'shop.asgi.application'\n"),
            ("shop/wsgi.py", ""),
            ("shop/asgi.py", ""),
        ],
        settings: r#"[[app]]
name = "web"
load = "shop.asgi:application"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a Python application (Django):
  manage.py (line 1) starts a Django project
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "rails",
        files: &[
            ("config.ru", "run Rails.application\n"),
            ("config/application.rb", ""),
            ("Gemfile", "gem 'rails'\n"),
            ("app/assets/a.css", ""),
            ("Procfile", "web: bundle exec puma -p 3000\n"),
            ("public/404.html", "x"),
            ("package.json", r#"{"dependencies": {"esbuild": "1"}}"#),
        ],
        settings: r#"[[app]]
name = "web"
load = "config.ru"
[[route]]
path = "/"
try = ["store", "files:public", "app:web"]
[[route]]
path = "/assets"
try = ["files:public", "app:web"]
immutable = true
"#,
        report: "Found a Ruby application (Rails):
  config.ru starts a Rails application
  config/application.rb is a part of Rails
  public has the files for visitors
  Gemfile lists the gems that the application needs
Found too, and not used:
  Procfile (line 1) starts the web process: bundle exec puma -p 3000
Next:
  bundle install    # install the gems, if they are not there
  RAILS_ENV=production bin/rails assets:precompile    # build the assets
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_rack_application",
        files: &[("config.ru", "run App\n")],
        settings: r#"[[app]]
name = "web"
load = "config.ru"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a Ruby application:
  config.ru starts a Rack application
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "sinatra",
        files: &[("config.ru", "require './app'\nrun Sinatra::Application\n")],
        settings: r#"[[app]]
name = "web"
load = "config.ru"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a Ruby application (Sinatra):
  config.ru starts a Rack application
  config.ru (line 2) uses Sinatra
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "next_js",
        files: &[
            (
                "package.json",
                "{\n  \"scripts\": {\"build\": \"next build\", \"start\": \"next start\"},\n  \"dependencies\": {\"next\": \"16\"}\n}\n",
            ),
            ("pnpm-lock.yaml", ""),
            ("public/index.html", "x"),
        ],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:3000"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 3000:
  package.json (line 3) needs Next.js
  package.json (line 2) has the script start: next start
  package.json names no port: 3000 is the default of the program
Found too, and not used:
  public/index.html is the page of a static site
Next:
  pnpm run build    # build the application
  pnpm start    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "express_without_a_port",
        files: &[
            (
                "package.json",
                "{\n  \"scripts\": {\"start\": \"node server.js\"},\n  \"dependencies\": {\"express\": \"5\"}\n}\n",
            ),
            ("dist/index.html", "x"),
        ],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:3000"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 3000:
  package.json (line 3) needs Express
  package.json (line 2) has the script start: node server.js
  package.json names no port: 3000 is a guess
Found too, and not used:
  dist/index.html is the page of a static site
Next:
  PORT=3000 npm start    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "astro_with_a_server",
        files: &[(
            "package.json",
            r#"{"scripts": {"dev": "astro dev"}, "dependencies": {"astro": "5", "@astrojs/node": "9"}}"#,
        )],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:4321"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 4321:
  package.json (line 1) needs Astro
  package.json (line 1) has the script dev: astro dev
  package.json names no port: 4321 is the default of the program
Found too, and not used:
  package.json (line 1) needs Astro, which builds a site
Next:
  npm run dev    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_start_script_alone",
        files: &[("package.json", r#"{"scripts": {"start": "PORT=4000 node ."}}"#)],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:4000"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 4000:
  package.json (line 1) has the script start: PORT=4000 node .
Next:
  PORT=4000 npm start    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_compose_file",
        files: &[(
            "compose.yaml",
            "services:\n  db:\n    ports:\n      - \"5432:5432\"\n  web:\n    ports:\n      - \"127.0.0.1:8000:80\"\n",
        )],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:8000"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 8000:
  compose.yaml (line 7) publishes port 8000
Next:
  docker compose up    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_container_of_nginx_alone",
        files: &[("Dockerfile", "FROM nginx\nEXPOSE 80\n")],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:80"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 80:
  Dockerfile (line 2) names port 80
Next:
  docker build -t app . && docker run -p 127.0.0.1:80:80 app    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "vite_inside_a_server",
        files: &[
            (
                "package.json",
                "{\n  \"scripts\": {\"start\": \"node server.js --port 3002\"},\n  \"dependencies\": {\"express\": \"5\"},\n  \"devDependencies\": {\"vite\": \"8\"}\n}\n",
            ),
            ("dist/index.html", "x"),
        ],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:3002"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 3002:
  package.json (line 3) needs Express
  package.json (line 2) has the script start: node server.js --port 3002
Found too, and not used:
  package.json (line 4) needs Vite, which builds a site
Next:
  npm start    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
];

#[test]
fn projects_with_a_server_get_an_upstream() {
    for layout in &LAYOUTS {
        check(layout);
    }
}
