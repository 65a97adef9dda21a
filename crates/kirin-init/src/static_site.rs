//! Static sites: a directory with an `index.html`, or one that a generator writes.

use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, SitePlan, Step};
use crate::generators::GeneratedSite;
use crate::private_paths::private_paths;
use crate::project::{Project, below};

/// The directories that builds write. They come first if the project has sources beside them.
const BUILT: [&str; 4] = ["dist", "build", "out", "_site"];

/// The directories that people write.
const WRITTEN: [&str; 6] = [".", "public", "www", "site", "htdocs", "html"];

/// The directory of Vite's files with fingerprints.
const ASSETS: &str = "/assets";

/// Returns the candidate for a generated site, which may not be built yet.
pub(crate) fn of_generator(project: &Project, site: GeneratedSite) -> Candidate {
    let is_built = project.is_directory(&site.output);
    let evidence = vec![
        site.evidence,
        Evidence::of_file(
            &site.output,
            if is_built { "is the directory that it builds" } else { "is not built yet" },
        ),
    ];
    let has_not_found_page = project.is_file(&below(&site.output, "404.html"));
    let mut steps = Vec::new();
    if !is_built {
        steps.push(Step { purpose: "build the site", command: site.command });
    }
    let plan = SitePlan {
        has_not_found_page,
        is_single_page: site.is_single_page && !has_not_found_page,
        immutable: site.immutable,
        denied: denied(project, &site.output),
        directory: site.output,
    };
    Candidate { plan: Plan::Site(plan), evidence, steps }
}

/// Finds a directory with an `index.html`. `has_sources` says that the project is the source of a
/// build.
pub(crate) fn find(project: &Project, has_sources: bool) -> Option<Candidate> {
    let built_first = BUILT.iter().chain(&WRITTEN);
    let written_first = WRITTEN.iter().take(2).chain(&BUILT).chain(WRITTEN.iter().skip(2));
    let has_index = |directory: &&&str| project.is_file(&below(directory, "index.html"));
    let directory = match has_sources {
        true => built_first.clone().find(has_index),
        false => written_first.clone().find(has_index),
    }?;
    let index = below(directory, "index.html");
    let mut evidence = vec![Evidence::of_file(&index, "is the page of a static site")];
    let not_found = below(directory, "404.html");
    let has_not_found_page = project.is_file(&not_found);
    if has_not_found_page {
        evidence.push(Evidence::of_file(&not_found, "is the page for missing paths"));
    }
    let module = module_script(project, &index).filter(|_| BUILT.contains(directory));
    let is_single_page = module.is_some() && !has_not_found_page;
    if is_single_page {
        let fact = "loads a script that makes the pages";
        evidence.push(Evidence::of_line(&index, module, fact));
    }
    let has_assets = project.is_directory(&below(directory, ASSETS.trim_start_matches('/')));
    let denied = denied(project, directory);
    let plan = SitePlan {
        directory: (*directory).into(),
        has_not_found_page,
        is_single_page,
        immutable: (is_single_page && has_assets).then_some(ASSETS),
        denied,
    };
    Some(Candidate { plan: Plan::Site(plan), evidence, steps: Vec::new() })
}

/// Returns the paths that are not for visitors. Only the project itself has such files.
fn denied(project: &Project, directory: &str) -> Vec<&'static str> {
    if directory == "." { private_paths(project) } else { Vec::new() }
}

/// Returns the line of a page that loads a built script as a module.
fn module_script(project: &Project, page: &str) -> Option<usize> {
    let text = project.text(page)?;
    let (line, _) = text.lines().find(|(_, line)| {
        line.contains("<script") && line.contains("type=\"module\"") && line.contains("src=")
    })?;
    Some(line)
}
