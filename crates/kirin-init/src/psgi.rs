//! PSGI applications: a `.psgi` file, or a script of Mojolicious.

use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, PsgiPlan, ServerPlan, Step};
use crate::project::{Project, Text, is_plain_path};

/// The most scripts that are read in search of Mojolicious.
const MAX_SCRIPTS: usize = 50;

/// Finds a PSGI application.
pub(crate) fn find(project: &Project) -> Option<Candidate> {
    let mut files = psgi_files(project).into_iter();
    let Some(load) = files.next() else { return mojolicious(project) };
    let mut evidence = vec![Evidence::of_file(&load, "is a PSGI file")];
    let mut framework = None;
    if let Some(text) = project.text(&load)
        && let Some((name, line)) = framework_of(&text)
    {
        framework = Some(name);
        evidence.push(Evidence::of_line(&load, Some(line), format!("uses {name}")));
    }
    let candidate = candidate(project, load, framework, evidence);
    for other in files {
        project.note_problem(Evidence::of_file(&other, "is a PSGI file, too"));
    }
    Some(candidate)
}

/// Finds Catalyst without a PSGI file. Only its own server can start it.
pub(crate) fn find_catalyst_script(project: &Project) -> Option<Candidate> {
    let names = project.names("script");
    let is_server = |name: &&String| name.ends_with("_server.pl") && is_plain_path(name);
    let name = names.iter().find(is_server)?;
    let path = format!("script/{name}");
    let text = project.text(&path)?;
    let line = text.line_with("Catalyst::ScriptRunner")?;
    let plan = ServerPlan { port: 3000, is_guess: false, public: None };
    let advice = "starts the Catalyst application. With a file such as my_app.psgi \
                  (`use MyApp; MyApp->psgi_app`) Kirin could run it itself";
    Some(Candidate {
        plan: Plan::Server(plan),
        evidence: vec![Evidence::of_line(&path, Some(line), advice)],
        steps: vec![Step {
            purpose: "start the application",
            command: format!("perl -Ilib {path} -h 127.0.0.1 -p 3000"),
        }],
    })
}

/// Returns the PSGI files, the one to load first.
fn psgi_files(project: &Project) -> Vec<String> {
    let mut files = Vec::new();
    for path in ["app.psgi", "bin/app.psgi"] {
        if project.is_file(path) {
            files.push(path.to_owned());
        }
    }
    for (directory, prefix) in [(".", ""), ("bin", "bin/"), ("script", "script/")] {
        let paths = project
            .names(directory)
            .into_iter()
            .filter(|name| name.ends_with(".psgi"))
            .map(|name| format!("{prefix}{name}"));
        for path in paths {
            if !files.contains(&path) && project.is_file(&path) {
                files.push(path);
            }
        }
    }
    files
}

/// Finds a script of Mojolicious, which PSGI servers can load.
fn mojolicious(project: &Project) -> Option<Candidate> {
    let in_script = project.names("script").into_iter().map(|name| format!("script/{name}"));
    let at_top = project.names(".").into_iter().filter(|name| name.ends_with(".pl"));
    for path in in_script.chain(at_top).take(MAX_SCRIPTS) {
        let Some(text) = project.is_file(&path).then(|| project.text(&path)).flatten() else {
            continue;
        };
        let is_perl = text.text.starts_with("#!") && text.text.lines().next()?.contains("perl");
        let marks = ["Mojolicious::Lite", "Mojolicious::Commands", "Mojo::Server"];
        let Some(line) = marks.iter().find_map(|mark| text.line_with(mark)) else { continue };
        if is_perl {
            let fact = "is a script of Mojolicious, which Kirin loads as a PSGI file";
            let evidence = vec![Evidence::of_line(&path, Some(line), fact)];
            return Some(candidate(project, path, Some("Mojolicious"), evidence));
        }
    }
    None
}

fn candidate(
    project: &Project,
    load: String,
    framework: Option<&'static str>,
    mut evidence: Vec<Evidence>,
) -> Candidate {
    let public = project.is_directory("public").then_some("public");
    if let Some(public) = public {
        evidence.push(Evidence::of_file(public, "has the files for visitors"));
    }
    let parents = [("root", "root/static"), (".", "static")];
    let static_parent = parents.iter().find(|(_, path)| project.is_directory(path));
    if let Some((_, path)) = static_parent {
        evidence.push(Evidence::of_file(path, "has the files of the paths below /static"));
    }
    let mut libraries = Vec::new();
    for (path, fact) in [
        ("lib", "has Perl modules of the project"),
        ("local/lib/perl5", "has Perl modules that were installed for the project"),
    ] {
        if project.is_directory(path) {
            libraries.push(path);
            evidence.push(Evidence::of_file(path, fact));
        }
    }
    let mut steps = Vec::new();
    if project.is_file("cpanfile") && !libraries.contains(&"local/lib/perl5") {
        let fact = "lists the Perl modules that the application needs";
        evidence.push(Evidence::of_file("cpanfile", fact));
        steps.push(Step {
            purpose: "install modules that are missing",
            command: "cpanm --installdeps .".into(),
        });
    }
    let static_parent = static_parent.map(|(parent, _)| *parent);
    let plan = PsgiPlan { load, framework, public, static_parent, libraries };
    Candidate { plan: Plan::Psgi(plan), evidence, steps }
}

/// Returns the framework that a PSGI file uses, and the line.
fn framework_of(text: &Text) -> Option<(&'static str, usize)> {
    let marks = [
        ("Dancer2", "Dancer2"),
        ("->psgi_app", "Catalyst"),
        ("Mojo::Server::PSGI", "Mojolicious"),
        ("Mojolicious", "Mojolicious"),
    ];
    marks.iter().find_map(|(mark, name)| text.line_with(mark).map(|line| (*name, line)))
}
