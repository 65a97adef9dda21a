//! Static sites and single-page applications.

use crate::support::{Layout, check};

pub const LAYOUTS: [Layout; 16] = [
    Layout {
        name: "pages_at_the_top",
        files: &[
            ("index.html", "<h1>x</h1>"),
            ("404.html", "x"),
            ("README.md", "x"),
            ("Dockerfile", "FROM nginx\nEXPOSE 80\n"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:."]
error_pages = { 404 = "/404.html" }
[[route]]
path = "= /kirin.toml"
deny = 404
[[route]]
path = "= /Dockerfile"
deny = 404
"#,
        report: "Found a static site:
  index.html is the page of a static site
  404.html is the page for missing paths
Found too, and not used:
  Dockerfile (line 2) names port 80
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "pages_in_public",
        files: &[("public/index.html", "x"), ("public/404.html", "x")],
        settings: r#"[[route]]
path = "/"
try = ["files:public"]
error_pages = { 404 = "/404.html" }
"#,
        report: "Found a static site:
  public/index.html is the page of a static site
  public/404.html is the page for missing paths
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_single_page_application_of_vite",
        files: &[
            (
                "package.json",
                "{\"scripts\": {\"build\": \"vite build\", \"dev\": \"vite\"},\n \"devDependencies\": {\"vite\": \"8\"}}",
            ),
            ("index.html", "x"),
            ("dist/index.html", r#"<script type="module" src="/assets/a-1.js"></script>"#),
            ("dist/assets/a-1.js", "1"),
            ("Dockerfile", "FROM node AS build\nFROM nginx\nEXPOSE 80\n"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:dist"]
fallback = "index.html"
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/assets"
try = ["files:dist"]
immutable = true
"#,
        report: "Found a single-page application:
  package.json (line 2) needs Vite, which builds a site
  dist is the directory that it builds
Found too, and not used:
  Dockerfile (line 3) names port 80
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "vite_before_its_first_build",
        files: &[
            (
                "package.json",
                r#"{"scripts": {"build": "vite build"}, "devDependencies": {"vite": "8"}}"#,
            ),
            ("index.html", "x"),
            ("yarn.lock", ""),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:dist"]
fallback = "index.html"
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/assets"
try = ["files:dist"]
immutable = true
"#,
        report: "Found a single-page application:
  package.json (line 1) needs Vite, which builds a site
  dist is not built yet
Next:
  yarn run build    # build the site
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_package_without_a_script_for_the_build",
        files: &[("package.json", r#"{"devDependencies": {"@docusaurus/core": "3"}}"#)],
        settings: r#"[[route]]
path = "/"
try = ["files:build"]
"#,
        report: "Found a static site:
  package.json (line 1) needs Docusaurus, which builds a site
  build is not built yet
Next:
  npx docusaurus build    # build the site
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "a_built_single_page_application_alone",
        files: &[
            (
                "dist/index.html",
                "<!doctype html>\n<script type=\"module\" crossorigin src=\"/assets/a-1.js\"></script>",
            ),
            ("dist/assets/a-1.js", "1"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:dist"]
fallback = "index.html"
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/assets"
try = ["files:dist"]
immutable = true
"#,
        report: "Found a single-page application:
  dist/index.html is the page of a static site
  dist/index.html (line 2) loads a script that makes the pages
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "hugo_before_its_first_build",
        files: &[("hugo.toml", "baseURL = \"https://example.org/\"\n")],
        settings: r#"[[route]]
path = "/"
try = ["files:public"]
"#,
        report: "Found a static site:
  hugo.toml is the configuration of Hugo, which builds the site
  public is not built yet
Next:
  hugo    # build the site
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "jekyll_with_another_destination",
        files: &[
            ("_config.yml", "title: x\ndestination: ./www/out/\n"),
            ("www/out/index.html", "x"),
            ("www/out/404.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:www/out"]
error_pages = { 404 = "/404.html" }
"#,
        report: "Found a static site:
  _config.yml is the configuration of Jekyll, which builds the site
  www/out is the directory that it builds
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "mkdocs",
        files: &[
            ("mkdocs.yml", "site_name: x\n"),
            ("site/index.html", "x"),
            ("site/404.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:site"]
error_pages = { 404 = "/404.html" }
"#,
        report: "Found a static site:
  mkdocs.yml is the configuration of MkDocs, which builds the site
  site is the directory that it builds
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "the_export_of_next_js",
        files: &[
            (
                "package.json",
                r#"{"scripts": {"build": "next build"}, "dependencies": {"next": "16"}}"#,
            ),
            ("next.config.mjs", "export default {\n  output: 'export',\n}\n"),
            ("out/index.html", "x"),
            ("out/404.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:out"]
error_pages = { 404 = "/404.html" }
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/_next/static"
try = ["files:out"]
immutable = true
"#,
        report: "Found a static site:
  next.config.mjs (line 2) makes Next.js build a static site
  out is the directory that it builds
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "eleventy_in_a_package",
        files: &[
            ("package.json", r#"{"devDependencies": {"@11ty/eleventy": "3"}}"#),
            ("_site/index.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:_site"]
"#,
        report: "Found a static site:
  package.json (line 1) needs Eleventy, which builds a site
  _site is the directory that it builds
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "private_files_beside_the_pages",
        files: &[
            ("index.html", "x"),
            ("dump.sql", "x"),
            ("package.json", "{}"),
            ("vendor/jquery.js", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:."]
[[route]]
path = "= /kirin.toml"
deny = 404
[[route]]
path = "= /package.json"
deny = 404
[[route]]
path = "*.sql"
deny = 404
"#,
        report: "Found a static site:
  index.html is the page of a static site
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "sources_beside_a_build",
        files: &[
            ("package.json", r#"{"scripts": {"start": "x"}}"#),
            ("index.html", "x"),
            ("build/index.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:build"]
"#,
        report: "Found a static site:
  build/index.html is the page of a static site
Found too, and not used:
  package.json (line 1) has the script start: x
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "angular",
        files: &[
            ("package.json", r#"{"name": "shop", "dependencies": {"@angular/core": "21"}}"#),
            ("dist/other/browser/index.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:dist/other/browser"]
fallback = "index.html"
"#,
        report: "Found a single-page application:
  package.json (line 1) needs Angular, which builds a site
  dist/other/browser is the directory that it builds
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "angular_before_its_first_build",
        files: &[("package.json", r#"{"name": "shop", "dependencies": {"@angular/core": "21"}}"#)],
        settings: r#"[[route]]
path = "/"
try = ["files:dist/shop/browser"]
fallback = "index.html"
"#,
        report: "Found a single-page application:
  package.json (line 1) needs Angular, which builds a site
  dist/shop/browser is not built yet
Next:
  npm run build    # build the site
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
    Layout {
        name: "vite_with_a_library_of_a_server",
        files: &[
            (
                "package.json",
                "{\n  \"scripts\": {\"build\": \"vite build\"},\n  \"devDependencies\": {\"vite\": \"8\", \"express\": \"5\"}\n}\n",
            ),
            ("dist/index.html", "x"),
            ("dist/404.html", "x"),
        ],
        settings: r#"[[route]]
path = "/"
try = ["files:dist"]
error_pages = { 404 = "/404.html" }
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/assets"
try = ["files:dist"]
immutable = true
"#,
        report: "Found a static site:
  package.json (line 3) needs Vite, which builds a site
  dist is the directory that it builds
Next:
  kirin serve    # then open http://127.0.0.1:8080/
",
    },
];

#[test]
fn static_sites_are_served_from_their_directory() {
    for layout in &LAYOUTS {
        check(layout);
    }
}
