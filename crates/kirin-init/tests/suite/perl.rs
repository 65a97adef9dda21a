//! Projects in Perl.

use crate::support::{Layout, check};

pub const LAYOUTS: [Layout; 9] = [
    Layout {
        name: "a_psgi_file_with_public_files",
        files: &[
            ("app.psgi", "my $app = sub { [200, [], [\"x\"]] };\n"),
            ("public/logo.svg", "<svg/>"),
        ],
        settings: r#"[[app]]
name = "web"
load = "app.psgi"
[[route]]
path = "/"
try = ["store", "files:public", "app:web"]
"#,
        report: "Found a PSGI application:
  app.psgi is a PSGI file
  public has the files for visitors
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_psgi_file_and_its_modules",
        files: &[
            ("app.psgi", "sub { [200, [], [\"x\"]] };\n"),
            ("lib/My.pm", "1;"),
            ("local/lib/perl5/Other.pm", "1;"),
            ("cpanfile", "requires \"Plack\";\n"),
            ("static/a.css", "a{}"),
        ],
        settings: r#"[[app]]
name = "web"
load = "app.psgi"
env = { PERL5LIB = "lib:local/lib/perl5:${PERL5LIB:-}" }
[[route]]
path = "/"
try = ["store", "app:web"]
[[route]]
path = "/static"
try = ["files:.", "app:web"]
"#,
        report: "Found a PSGI application:
  app.psgi is a PSGI file
  static has the files of the paths below /static
  lib has Perl modules of the project
  local/lib/perl5 has Perl modules that were installed for the project
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "dancer2_with_a_dockerfile",
        files: &[
            ("bin/app.psgi", "#!/usr/bin/env perl\nuse lib \"lib\";\nuse My;\n# Dancer2\nMy->to_app;\n"),
            ("lib/My.pm", "package My; use Dancer2; 1;"),
            ("public/404.html", "404"),
            ("cpanfile", "requires \"Dancer2\";\n"),
            ("Dockerfile", "FROM perl\nEXPOSE 5000\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "bin/app.psgi"
env = { PERL5LIB = "lib:${PERL5LIB:-}" }
[[route]]
path = "/"
try = ["store", "files:public", "app:web"]
"#,
        report: "Found a PSGI application (Dancer2):
  bin/app.psgi is a PSGI file
  bin/app.psgi (line 4) uses Dancer2
  public has the files for visitors
  lib has Perl modules of the project
  cpanfile lists the Perl modules that the application needs
Found too, and not used:
  Dockerfile (line 2) names port 5000
Next:
  cpanm --installdeps .    # install modules that are missing
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_script_of_mojolicious",
        files: &[
            ("script/my_app", "#!/usr/bin/env perl\nuse Mojo::File qw(curfile);\nuse lib curfile->dirname->sibling(\"lib\")->to_string;\nuse Mojolicious::Commands;\nMojolicious::Commands->start_app(\"MyApp\");\n"),
            ("lib/MyApp.pm", "package MyApp; 1;"),
            ("public/index.html", "x"),
        ],
        settings: r#"[[app]]
name = "web"
load = "script/my_app"
env = { PERL5LIB = "lib:${PERL5LIB:-}" }
[[route]]
path = "/"
try = ["store", "files:public", "app:web"]
"#,
        report: "Found a PSGI application (Mojolicious):
  script/my_app (line 4) is a script of Mojolicious, which Kirin loads as a PSGI file
  public has the files for visitors
  lib has Perl modules of the project
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "mojolicious_lite_at_the_top",
        files: &[
            ("hello.pl", "#!/usr/bin/perl\nuse Mojolicious::Lite;\napp->start;\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "hello.pl"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a PSGI application (Mojolicious):
  hello.pl (line 2) is a script of Mojolicious, which Kirin loads as a PSGI file
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "catalyst_with_a_psgi_file",
        files: &[
            ("my_app.psgi", "use MyApp;\nMyApp->apply_default_middlewares(MyApp->psgi_app);\n"),
            ("lib/MyApp.pm", "1;"),
            ("root/static/a.css", "a{}"),
            ("script/my_app_server.pl", "use Catalyst::ScriptRunner;\nCatalyst::ScriptRunner->run('MyApp', 'Server');\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "my_app.psgi"
env = { PERL5LIB = "lib:${PERL5LIB:-}" }
[[route]]
path = "/"
try = ["store", "app:web"]
[[route]]
path = "/static"
try = ["files:root", "app:web"]
"#,
        report: "Found a PSGI application (Catalyst):
  my_app.psgi is a PSGI file
  my_app.psgi (line 2) uses Catalyst
  root/static has the files of the paths below /static
  lib has Perl modules of the project
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "catalyst_without_a_psgi_file",
        files: &[
            ("lib/MyApp.pm", "1;"),
            ("script/my_app_server.pl", "#!/usr/bin/env perl\nuse Catalyst::ScriptRunner;\nCatalyst::ScriptRunner->run('MyApp', 'Server');\n"),
        ],
        settings: r#"[[upstream]]
name = "web"
servers = ["http://127.0.0.1:3000"]
[[route]]
path = "/"
try = ["store", "proxy:web"]
"#,
        report: "Found an application that listens on port 3000:
  script/my_app_server.pl (line 2) starts the Catalyst application. With a file such as my_app.psgi (`use MyApp; MyApp->psgi_app`) Kirin could run it itself
Next:
  perl -Ilib script/my_app_server.pl -h 127.0.0.1 -p 3000    # start the application
  kirin serve    # in another terminal; then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "two_psgi_files_and_a_procfile",
        files: &[
            ("app.psgi", "sub { [200, [], [\"x\"]] };\n"),
            ("admin.psgi", "sub { [200, [], [\"x\"]] };\n"),
            ("Procfile", "web: plackup -p 5000 app.psgi\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "app.psgi"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a PSGI application:
  app.psgi is a PSGI file
Found too, and not used:
  Procfile (line 1) starts the web process: plackup -p 5000 app.psgi
  admin.psgi is a PSGI file, too
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_psgi_file_in_script",
        files: &[
            ("script/site.psgi", "sub { [200, [], [\"x\"]] };\n"),
        ],
        settings: r#"[[app]]
name = "web"
load = "script/site.psgi"
[[route]]
path = "/"
try = ["store", "app:web"]
"#,
        report: "Found a PSGI application:
  script/site.psgi is a PSGI file
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
];

#[test]
fn projects_in_perl_get_workers() {
    for layout in &LAYOUTS {
        check(layout);
    }
}
