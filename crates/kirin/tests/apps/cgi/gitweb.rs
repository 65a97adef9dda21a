//! Debian's gitweb, as its page in docs/cgi.md shows it.

use std::process::Command;

use kirin_tests::{Kirin, Site, wait_for};

use super::config;

/// Creates a repository with a directory and a file.
fn repository(site: &Site) {
    let script = "git init -q repos/demo.git && cd repos/demo.git && mkdir doc && echo hello > doc/a.txt && \
                  git add . && git -c user.name=t -c user.email=t@example.org commit -q -m 'first commit' && \
                  echo 'A demo' > .git/description";
    let made = Command::new("sh").args(["-ec", script]).current_dir(site.root()).output();
    let made = made.expect("sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn start(place: &str, path: &str) -> (Site, Kirin) {
    let site = super::site();
    repository(&site);
    let settings = format!(
        "our $projectroot = '{}';\nour @stylesheets = ('/gitweb/static/gitweb.css');\n\
         $feature{{'pathinfo'}}{{'default'}} = [1];\n1;\n",
        site.path("repos").display()
    );
    let site = site.with("gitweb.conf", settings);
    let rest = format!(
        "[[route]]\npath = \"{path}\"\ntry = [\"{place}\"]\nfollow_links = \"owner\"\n\
         cgi = {{ env = {{ GITWEB_CONFIG = \"{}\" }} }}\n\
         [[route]]\npath = \"/gitweb/static\"\nrewrite = \"/\"\ntry = [\"files:/usr/share/gitweb/static\"]\n",
        site.path("gitweb.conf").display()
    );
    let kirin = Kirin::start(&site, &config(&rest));
    (site, kirin)
}

/// Returns the values of `href` in a page that lead into `path`.
fn links(page: &str, path: &str) -> Vec<String> {
    let found = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    found.filter(|link| link.starts_with(path)).map(|link| link.replace("&amp;", "&")).collect()
}

#[test]
fn gitweb_is_browsed_from_its_first_page_on() {
    for (place, path, mount) in [
        ("cgi:/usr/share/gitweb/gitweb.cgi", "/gitweb", "/gitweb"),
        ("cgi:/usr/lib/cgi-bin", "/cgi-bin", "/cgi-bin/gitweb.cgi"),
    ] {
        let (_site, kirin) = start(place, path);
        let mut client = kirin.connect();
        let first = client.get(mount);
        assert_eq!(first.status, 200, "{}", first.text());
        assert_eq!(first.field("content-type"), Some("text/html; charset=utf-8"));
        assert!(first.text().contains("A demo"), "{}", first.text());
        let all = links(&first.text(), &format!("{mount}/demo.git"));
        assert!(all.len() > 2, "{}", first.text());
        for link in all {
            let reply = client.get(&link);
            let expected = if link.contains("snapshot") { [200, 403] } else { [200, 200] };
            assert!(expected.contains(&reply.status), "{link}: {}", reply.text());
        }
        let file = client.get(&format!("{mount}/demo.git/.git/blob_plain/HEAD:/doc/a.txt"));
        assert_eq!((file.status, file.text().as_str()), (200, "hello\n"));
        let commit = client.get(&format!("{mount}/demo.git/.git/log"));
        assert!(commit.text().contains("first commit"), "{}", commit.text());
        assert_eq!(client.get(&format!("{mount}?p=none.git")).status, 404);
        assert_eq!(client.get("/gitweb/static/gitweb.css").status, 200);
        wait_for("no failure", || (!kirin.log().contains("request failed")).then_some(()));
    }
}
