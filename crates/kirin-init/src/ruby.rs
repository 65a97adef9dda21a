//! Web applications in Ruby, which speak Rack.

use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, RubyPlan, Step};
use crate::project::{Project, Text};

/// The file that starts the application.
const FILE: &str = "config.ru";

/// Finds a Rack application.
pub(crate) fn find(project: &Project) -> Option<Candidate> {
    if !project.is_file(FILE) {
        return None;
    }
    let is_rails = project.is_file("config/application.rb");
    let mut evidence = Vec::new();
    let framework = match is_rails {
        true => {
            evidence.push(Evidence::of_file(FILE, "starts a Rails application"));
            evidence.push(Evidence::of_file("config/application.rb", "is a part of Rails"));
            Some("Rails")
        }
        false => {
            evidence.push(Evidence::of_file(FILE, "starts a Rack application"));
            let text = project.text(FILE);
            let known = text.as_ref().and_then(framework_of);
            known.map(|(name, line)| {
                evidence.push(Evidence::of_line(FILE, Some(line), format!("uses {name}")));
                name
            })
        }
    };
    // Rack applications leave the files in `public` to the web server.
    let public = project.is_directory("public").then_some("public");
    if let Some(public) = public {
        evidence.push(Evidence::of_file(public, "has the files for visitors"));
    }
    let mut steps = Vec::new();
    if project.is_file("Gemfile") {
        evidence.push(Evidence::of_file("Gemfile", "lists the gems that the application needs"));
        let purpose = "install the gems, if they are not there";
        steps.push(Step { purpose, command: "bundle install".into() });
    }
    // Rails builds assets while it runs, but not in production.
    if is_rails && project.is_directory("app/assets") && !project.is_directory("public/assets") {
        let command = "RAILS_ENV=production bin/rails assets:precompile".into();
        steps.push(Step { purpose: "build the assets", command });
    }
    let plan = RubyPlan { load: FILE, framework, public };
    Some(Candidate { plan: Plan::Ruby(plan), evidence, steps })
}

/// Returns the framework that a Rack file uses, and the line.
fn framework_of(text: &Text) -> Option<(&'static str, usize)> {
    ["Sinatra", "Hanami", "Roda", "Grape", "Padrino"]
        .into_iter()
        .find_map(|name| text.line_with(name).map(|line| (name, line)))
}
