//! Configurations of uWSGI's documentation, and what becomes a `kirin.toml`.

use proptest::prelude::*;

use super::import;
use crate::testing::{MemoryFiles, check, check_parts};

#[test]
fn a_perl_application_runs_in_kirin() {
    check(
        import,
        "[uwsgi]
; a shop
base = /srv/shop
chdir = %(base)
psgi = app.psgi
http-socket = :8080
http-socket-modifier1 = 5
plugins = psgi
master
processes = 8
harakiri = 30
max-requests = 5000
reload-on-rss = 200
uid = www-data
gid = www-data
env = PLACK_ENV=production
static-map = /static=%(base)/static
vacuum = true
die-on-term = true
touch-reload = %(base)/app.psgi
logto = /var/log/shop.log
",
        r#"
user = "www-data"

# f:6
[[listener]]
address = "*:8080"
access_log = "/var/log/shop.log"

# f:5
[[app]]
name = "f"
load = "/srv/shop/app.psgi"
workers = 8
directory = "/srv/shop"
deadline = "30s"
max_requests = 5000
max_memory = "200MB"
env = { PLACK_ENV = "production" }

# f:17
[[route]]
path = "/static"
try = ["files:/srv/shop", "app:f"]
index = []

# f:5
[[route]]
path = "/"
try = ["app:f"]
"#,
        "
3 = base = /srv/shop
4 + chdir = /srv/shop
5 + psgi = app.psgi
6 + http-socket = :8080
7 - http-socket-modifier1 = 5
8 = plugins = psgi
9 = master = true
10 + processes = 8
11 + harakiri = 30
12 + max-requests = 5000
13 + reload-on-rss = 200
14 + uid = www-data
15 - gid = www-data
16 + env = PLACK_ENV=production
17 + static-map = /static=/srv/shop/static
18 = vacuum = true
19 = die-on-term = true
20 - touch-reload = /srv/shop/app.psgi
21 + logto = /var/log/shop.log
",
    );
}

#[test]
fn an_application_in_python_runs_in_kirin() {
    check_parts(
        import,
        "[uwsgi]\nhttp = :80\nmodule = shop.wsgi\nchdir = /srv/shop\nhome = /srv/venv\n\
         pythonpath = /srv/lib\npp = /srv/more\nenv = DEBUG=0\nprocesses = 4\nharakiri = 30\n\
         static-map = /s=/srv/s\npyargv = --x\n",
        &[
            "name = \"f\"\nload = \"shop.wsgi:application\"\nworkers = 4\ndirectory = \"/srv/shop\"\n",
            "env = { DEBUG = \"0\", PYTHONPATH = \"/srv/lib:/srv/more\", VIRTUAL_ENV = \"/srv/venv\" }",
            "deadline = \"30s\"",
            "path = \"/\"\ntry = [\"app:f\"]",
            "path = \"/s\"\ntry = [\"files:/srv\", \"app:f\"]",
            "3 + module = shop.wsgi",
            "5 + home = /srv/venv",
            "12 - pyargv = --x: a worker has no arguments",
        ],
    );
}

#[test]
fn what_python_loads_is_named_as_kirin_names_it() {
    for (options, load) in [
        ("module = shop:app", "shop:app"),
        ("wsgi = shop\ncallable = app", "shop:app"),
        ("wsgi-file = app.py\nchdir = /srv", "/srv/app.py"),
        ("wsgi-file = app.py\ncallable = make()", "app.py:make()"),
        ("file = /srv/app.py", "/srv/app.py"),
    ] {
        check_parts(import, &format!("[uwsgi]\n{options}\n"), &[&format!("load = \"{load}\"")]);
    }
}

#[test]
fn a_rack_file_is_loaded() {
    check_parts(
        import,
        "[uwsgi]\nhttp = :80\nrack = config.ru\nchdir = /srv/shop\nprocesses = 3\n\
         rbrequire = bundler/setup\nenv = RACK_ENV=staging\nmount = /wiki=wiki.ru\n",
        &[
            "load = \"/srv/shop/config.ru\"\nworkers = 3\ndirectory = \"/srv/shop\"\n\
             env = { RACK_ENV = \"staging\" }",
            "load = \"/srv/shop/wiki.ru\"",
            "path = \"/\"\ntry = [\"app:f\"]",
            "3 + rack = config.ru: A request may take",
            "6 - rbrequire = bundler/setup: write `require` into the Rack file",
        ],
    );
    check_parts(import, "[uwsgi]\nhttp = :80\nrack = app\n", &["uwsgi://127.0.0.1:3031"]);
}

#[test]
fn an_application_that_kirin_cannot_run_stays_in_uwsgi() {
    check_parts(
        import,
        "[uwsgi]\nhttp = :80\nsocket = 127.0.0.1:3031\nwsgi-file = app.wsgi\nprocesses = 4\n\
         static-map = /s=/srv/s\nuid = www\n",
        &[
            "servers = [\"uwsgi://127.0.0.1:3031\"]",
            "path = \"/\"\ntry = [\"proxy:f\"]",
            "path = \"/s\"\ntry = [\"files:/srv\", \"proxy:f\"]",
            "address = \"*:80\"",
            "3 = socket = 127.0.0.1:3031: it stays in uWSGI",
            "4 = wsgi-file = app.wsgi: it stays in uWSGI",
            "7 = uid = www: it stays in uWSGI",
            "1 - [uwsgi]: Kirin runs applications in Perl, Python and Ruby",
        ],
    );
}

/// Options of a Perl application, with parts of the `kirin.toml` or of the notes.
const OPTIONS: &[(&str, &[&str])] = &[
    ("socket = /run/a.sock", &["address = \"unix:/run/a.sock\"\ntrusted = [\"unix:\"]"]),
    ("socket = /a.sock\nhttp = :80", &["address = \"*:80\"", "- socket = /a.sock: Kirin listens"]),
    (
        "https = :443,a.crt,a.key,HIGH,!ca.pem",
        &["certificates = [{ chain = \"a.crt\", key = \"a.key\" }]\nclient_ca = \"ca.pem\""],
    ),
    ("https = :443,a.crt,a.key,HIGH,ca.pem", &["client_verify = \"optional\""]),
    ("http-to-https = :80", &["address = \"*:80\"\nredirect_to_https = 443"]),
    (
        "static-map = /s=/srv/other",
        &[
            "path = \"/s\"\ntry = [\"files:/srv/other\"]\nindex = []\n\
                                      rewrite = \"/\"",
            "a missing file gets 404",
        ],
    ),
    ("static-map2 = /s=/srv", &["path = \"/s\"\ntry = [\"files:/srv\", \"app:f\"]"]),
    (
        "check-static = /srv/www\nstatic-index = index.html\nstatic-skip-ext = .pl",
        &[
            "path = \"*.pl\"\ntry = [\"app:f\"]",
            "path = \"/\"\ntry = [\"files:/srv/www\", \"app:f\"]\nindex = [\"index.html\"]",
        ],
    ),
    (
        "mount = /shop=shop.psgi",
        &[
            "load = \"shop.psgi\"",
            "path = \"/shop\"\ntry = \
                                   [\"app:app-shop\"]\nrewrite = \"/\"",
        ],
    ),
    (
        // Three paths that are one name: each application still has its own.
        "mount = /a.b=x.psgi\nmount = /a/b=y.psgi\nmount = /a-b=z.psgi",
        &[
            "name = \"app-a-b\"\nload = \"x.psgi\"",
            "name = \"app-a-b-2\"\nload = \"y.psgi\"",
            "name = \"app-a-b-3\"\nload = \"z.psgi\"",
            "path = \"/a-b\"\ntry = [\"app:app-a-b-3\"]",
        ],
    ),
    ("route = ^/gone$ break:404", &["path = \"= /gone\"\ndeny = 404"]),
    ("route = ^/old$ redirect-permanent:/new", &["redirect = \"/new\"\nredirect_status = 301"]),
    (
        "route = ^/admin/ basicauth:Admin,bob:secret",
        &[
            "# Closed: route = ^/admin/ basicauth\n[[route]]\npath = \"/admin\"\ndeny = 403",
            "PROTECTION NOT CARRIED OVER",
        ],
    ),
    (
        "route-remote-addr = ^10\\. continue:",
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    ("route = ^/a/(.*) rewrite:/b/$1", &["Kirin has no rules with expressions"]),
    ("uid = 33", &["# f:3: write the name of this user.\nuser = \"33\""]),
    ("add-header = X-A: {b}", &["headers = { X-A = \"{{b}\" }"]),
    ("limit-post = 1048576", &["body_limit = \"1MB\""]),
    ("lazy-apps = true", &["preload = false"]),
    ("buffer-size = 65536\nhttp = :80", &["head_limit = \"64KB\""]),
    ("chroot = /srv", &["PROTECTION NOT CARRIED OVER"]),
    ("limit-as = 512", &["`LimitAS=`"]),
    ("master = maybe\nnew-option = 1", &["- new-option = 1: not known here"]),
    ("if-env = A\nuid = a\nendif =\nhttp = :80", &["- uid = a: it depends on a condition"]),
    (
        "http = :80\nlogto = syslog:x\nlog-format = %(method) %(status)",
        &["access_log = { format = \"%m %s\", path = \"syslog\" }"],
    ),
];

#[test]
fn an_option_becomes_keys() {
    for (options, parts) in OPTIONS {
        let text = format!("[uwsgi]\npsgi = app.psgi\n{options}\n");
        check_parts(import, &text, parts);
    }
}

#[test]
fn files_include_each_other_but_not_themselves() {
    let files = MemoryFiles::new(&[
        ("/e/a.ini", "[uwsgi]\nini = base.ini\nini = :more\n[more]\nprocesses = 3\n"),
        ("/e/base.ini", "[uwsgi]\npsgi = %n.psgi\n"),
        ("/e/c.ini", "[uwsgi]\ninclude = /e/c.ini\n"),
        ("/e/d.ini", "[uwsgi]\nini = none.ini\n"),
    ]);
    let config = import("/e/a.ini", &files).expect("import").config();
    assert!(config.contains("load = \"base.psgi\"\nworkers = 3"), "{config}");
    let error = import("/e/c.ini", &files).expect_err("a circle");
    assert_eq!(error.to_string(), "/e/c.ini:2: `/e/c.ini` includes itself");
    let error = import("/e/d.ini", &files).expect_err("no file");
    assert_eq!(error.to_string(), "/e/d.ini:2: `/e/none.ini`: there is no such file");
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC*") {
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }

    #[test]
    fn no_option_causes_a_panic(
        lines in prop::collection::vec(("static-map|route|http|https|mount|logto|log-format|env|psgi",
            "[%()$^/:=,.a é]{0,16}"), 0..8),
    ) {
        let lines: Vec<_> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let text = format!("[uwsgi]\n{}", lines.join("\n"));
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }
}
