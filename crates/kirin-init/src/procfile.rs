//! The `web` process of a Procfile.

use crate::evidence::{Evidence, printable};
use crate::found::{Candidate, Plan, ServerPlan, Step};
use crate::project::Project;
use crate::started_server::StartedServer;

/// Finds the `web` process of a Procfile.
pub(crate) fn find(project: &Project) -> Option<Candidate> {
    let text = project.text("Procfile")?;
    let (number, command) = text.lines().find_map(|(number, line)| {
        Some((number, line.trim_start().strip_prefix("web:")?.trim()))
    })?;
    let started = StartedServer::from_command(command);
    let fact = format!("starts the web process: {command}");
    let mut evidence = vec![Evidence::of_line("Procfile", Some(number), fact)];
    evidence
        .extend(started.remark.map(|remark| Evidence::of_line("Procfile", Some(number), remark)));
    let public = project.is_file("config/application.rb") && project.is_directory("public");
    let plan = ServerPlan {
        port: started.port,
        is_guess: started.is_guess,
        public: public.then_some("public"),
    };
    let step = Step { purpose: "start the application", command: printable(&started.command) };
    Some(Candidate { plan: Plan::Server(plan), evidence, steps: vec![step] })
}
