//! Programs that build static sites, with the directory that each of them writes.

use crate::evidence::Evidence;
use crate::package_json::{Package, runner};
use crate::project::{Project, Text, is_plain_path};

/// A static site that a program builds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GeneratedSite {
    /// The file and the line that name the program.
    pub evidence: Evidence,
    /// The directory that it writes.
    pub output: String,
    /// The command that builds the site.
    pub command: String,
    /// Whether the pages are made in the browser, by one `index.html`.
    pub is_single_page: bool,
    /// The path of files with fingerprints in their names.
    pub immutable: Option<&'static str>,
}

/// A generator with a configuration file of its own.
struct Generator {
    name: &'static str,
    files: &'static [&'static str],
    /// The text that the file must have. Other programs have files of the same name.
    mark: &'static str,
    output: &'static str,
    /// The key of the file that names another output directory.
    output_key: &'static str,
    command: &'static str,
}

const GENERATORS: [Generator; 8] = [
    Generator {
        name: "Hugo",
        files: &["hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json"],
        mark: "",
        output: "public",
        output_key: "publishDir",
        command: "hugo",
    },
    Generator {
        name: "Hugo",
        files: &["config.toml", "config.yaml"],
        mark: "baseURL",
        output: "public",
        output_key: "publishDir",
        command: "hugo",
    },
    Generator {
        name: "Zola",
        files: &["config.toml", "zola.toml"],
        mark: "base_url",
        output: "public",
        output_key: "output_dir",
        command: "zola build",
    },
    Generator {
        name: "Jekyll",
        files: &["_config.yml"],
        mark: "",
        output: "_site",
        output_key: "destination",
        command: "bundle exec jekyll build",
    },
    Generator {
        name: "MkDocs",
        files: &["mkdocs.yml", "mkdocs.yaml"],
        mark: "",
        output: "site",
        output_key: "site_dir",
        command: "mkdocs build",
    },
    Generator {
        name: "mdBook",
        files: &["book.toml"],
        mark: "[book]",
        output: "book",
        output_key: "build-dir",
        command: "mdbook build",
    },
    Generator {
        name: "Eleventy",
        files: &[
            ".eleventy.js",
            "eleventy.config.js",
            "eleventy.config.mjs",
            "eleventy.config.cjs",
            "eleventy.config.ts",
        ],
        mark: "",
        output: "_site",
        output_key: "",
        command: "npx @11ty/eleventy",
    },
    Generator {
        name: "Pelican",
        files: &["pelicanconf.py"],
        mark: "",
        output: "output",
        output_key: "OUTPUT_PATH",
        command: "pelican content",
    },
];

/// A package of npm that builds a site.
struct Builder {
    dependency: &'static str,
    name: &'static str,
    output: &'static str,
    is_single_page: bool,
    immutable: Option<&'static str>,
}

/// A package comes before those that it uses itself.
const BUILDERS: [Builder; 11] = [
    builder("astro", "Astro", "dist", false, Some("/_astro")),
    builder("vitepress", "VitePress", "docs/.vitepress/dist", false, Some("/assets")),
    builder("gatsby", "Gatsby", "public", false, None),
    builder("@docusaurus/core", "Docusaurus", "build", false, None),
    builder("@11ty/eleventy", "Eleventy", "_site", false, None),
    builder("@sveltejs/adapter-static", "SvelteKit", "build", false, Some("/_app/immutable")),
    builder("react-scripts", "Create React App", "build", true, Some("/static")),
    builder("@vue/cli-service", "Vue CLI", "dist", true, None),
    builder("@parcel/core", "Parcel", "dist", false, None),
    builder("parcel", "Parcel", "dist", false, None),
    builder("vite", "Vite", "dist", true, Some("/assets")),
];

/// Files in which Next.js is told to write a static site.
const NEXT_CONFIGURATIONS: [&str; 4] =
    ["next.config.js", "next.config.mjs", "next.config.ts", "next.config.cjs"];

const fn builder(
    dependency: &'static str,
    name: &'static str,
    output: &'static str,
    is_single_page: bool,
    immutable: Option<&'static str>,
) -> Builder {
    Builder { dependency, name, output, is_single_page, immutable }
}

/// Finds the generator of a static site by its configuration file.
pub(crate) fn by_configuration(project: &Project) -> Option<GeneratedSite> {
    GENERATORS.iter().find_map(|generator| {
        let file = project.first_file(generator.files)?;
        let text = project.text(file)?;
        let line = text.line_with(generator.mark)?;
        Some(GeneratedSite {
            evidence: Evidence::of_line(
                file,
                (!generator.mark.is_empty()).then_some(line),
                format!("is the configuration of {}, which builds the site", generator.name),
            ),
            output: configured_output(&text, generator.output_key)
                .unwrap_or_else(|| generator.output.into()),
            command: generator.command.into(),
            is_single_page: false,
            immutable: None,
        })
    })
}

/// Finds the package that builds a static site.
pub(crate) fn by_package(project: &Project, package: &Package) -> Option<GeneratedSite> {
    if let Some(site) = angular(project, package) {
        return Some(site);
    }
    let builder = BUILDERS.iter().find(|builder| package.needs(builder.dependency))?;
    let command = match package.script("build") {
        Some(_) => format!("{} run build", runner(project)),
        None => format!("npx {}", program(builder.dependency)),
    };
    Some(GeneratedSite {
        evidence: package
            .evidence(builder.dependency, format!("needs {}, which builds a site", builder.name)),
        output: builder.output.into(),
        command,
        is_single_page: builder.is_single_page,
        immutable: builder.immutable,
    })
}

/// Returns the program of a package that builds the site, with its arguments.
fn program(dependency: &str) -> String {
    match dependency {
        "vitepress" => "vitepress build docs".into(),
        "@docusaurus/core" => "docusaurus build".into(),
        "@11ty/eleventy" => "@11ty/eleventy".into(),
        "@sveltejs/adapter-static" => "vite build".into(),
        "@vue/cli-service" => "vue-cli-service build".into(),
        "@parcel/core" => "parcel build".into(),
        other => format!("{other} build"),
    }
}

/// Finds Angular, which writes a directory with the name of the project.
fn angular(project: &Project, package: &Package) -> Option<GeneratedSite> {
    if !package.needs("@angular/core") {
        return None;
    }
    let names = project.names("dist");
    let is_built = |name: &&str| project.is_file(&format!("dist/{name}/browser/index.html"));
    let name = names.iter().map(String::as_str).filter(|name| is_plain_path(name)).find(is_built);
    Some(GeneratedSite {
        evidence: package.evidence("@angular/core", "needs Angular, which builds a site"),
        output: format!("dist/{}/browser", name.or(package.name())?),
        command: format!("{} run build", runner(project)),
        is_single_page: true,
        immutable: None,
    })
}

/// Finds the static export of Next.js, which is a server otherwise.
pub(crate) fn next_export(project: &Project, package: &Package) -> Option<GeneratedSite> {
    if !package.needs("next") {
        return None;
    }
    let file = project.first_file(&NEXT_CONFIGURATIONS)?;
    let text = project.text(file)?;
    let (line, _) = text.lines().find(|(_, line)| {
        let line: String = line.split_whitespace().collect();
        line.starts_with("output:\"export\"") || line.starts_with("output:'export'")
    })?;
    Some(GeneratedSite {
        evidence: Evidence::of_line(file, Some(line), "makes Next.js build a static site"),
        output: "out".into(),
        command: format!("{} run build", runner(project)),
        is_single_page: false,
        immutable: Some("/_next/static"),
    })
}

/// Returns the directory that a configuration names for the output: `key = "x"` or `key: x`. Only a
/// directory of the project counts.
fn configured_output(text: &Text, key: &str) -> Option<String> {
    if key.is_empty() {
        return None;
    }
    let value = text.lines().find_map(|(_, line)| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(key)?;
        rest.trim_start_matches(['"', ' ']).strip_prefix(['=', ':'])
    })?;
    let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
    let path = value.trim_start_matches("./").trim_end_matches('/');
    is_plain_path(path).then(|| path.to_owned())
}
