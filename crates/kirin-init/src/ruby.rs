//! Web applications in Ruby. Kirin is in front of Puma, which the user starts.

use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, ServerPlan, Step};
use crate::project::Project;

/// Finds a Rack application.
pub(crate) fn find(project: &Project) -> Option<Candidate> {
    if !project.is_file("config.ru") {
        return None;
    }
    let is_rails = project.is_file("config/application.rb");
    let (port, fact) = match is_rails {
        true => (3000, "starts a Rails application"),
        false => (9292, "starts a Rack application"),
    };
    let mut evidence = vec![Evidence::of_file("config.ru", fact)];
    if is_rails {
        evidence.push(Evidence::of_file("config/application.rb", "is a part of Rails"));
    }
    // Rack applications leave the files in `public` to the web server.
    let public = project.is_directory("public").then_some("public");
    if let Some(public) = public {
        evidence.push(Evidence::of_file(public, "has the files for visitors"));
    }
    let plan = ServerPlan { port, is_guess: false, public };
    let command = format!("bundle exec puma -b tcp://127.0.0.1:{port}");
    let steps = vec![Step { purpose: "start the application", command }];
    Some(Candidate { plan: Plan::Server(plan), evidence, steps })
}
