//! Links out of a directory, and its listing.

use super::*;

#[test]
fn links_out_of_the_directory_are_followed_as_the_route_says() {
    let site = Site::new()
        .with("public/inside/f", "inside")
        .with("shared/f", "shared")
        .with("shared/deep/f", "deep")
        .with("others/f", "others")
        .with("themes/style.css", "theme");
    let link = |target: &str, name: &str| {
        let target = target.replace("SITE", &site.root().display().to_string());
        std::os::unix::fs::symlink(target, site.path(name)).expect("a link");
    };
    link("inside/f", "public/in");
    link("SITE/public/inside/f", "public/back-in");
    link("../shared", "public/uploads");
    link("SITE/shared/f", "public/absolute");
    link("uploads", "public/chain");
    link("../others", "public/others");
    link("../others/f", "public/file-of-others");
    link("../others", "shared/hop");
    link("loop", "public/loop");
    link("../gone", "public/gone");
    link("/proc/self/cwd", "public/magic");
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for path in ["others", "others/f"] {
            std::os::unix::fs::chown(site.path(path), Some(65_534), None).expect("chown");
        }
    }
    let route = |path: &str, follow: &str| {
        format!(
            "[[route]]\npath = \"/{path}\"\nrewrite = \"/\"\ntry = [\"files:public\"]\nlisting = true\nfollow_links = {follow}\n"
        )
    };
    let routes = route("none", "false") + &route("owner", "\"owner\"") + &route("all", "true");
    let kirin = serve(&site, &routes);
    for (path, none, owner, all) in [
        ("inside/f", 200, 200, 200),
        ("in", 200, 200, 200),
        ("back-in", 403, 200, 200),
        ("uploads/f", 403, 200, 200),
        ("uploads/deep/f", 403, 200, 200),
        ("absolute", 403, 200, 200),
        ("chain/f", 403, 200, 200),
        ("others/f", 403, 403, 200),
        ("file-of-others", 403, 403, 200),
        ("uploads/hop/f", 403, 403, 200),
        ("uploads/../inside/f", 200, 200, 200),
        ("uploads/", 403, 200, 200),
        ("loop", 403, 403, 403),
        ("gone", 403, 404, 404),
        ("magic/kirin.toml", 403, 403, 403),
    ] {
        for (route, expected) in [("none", none), ("owner", owner), ("all", all)] {
            if is_root || !(path.contains("others") || path.contains("hop")) || route != "owner" {
                let status = kirin.get(&format!("/{route}/{path}")).status;
                assert_eq!(status, expected, "{route} {path}: {}", kirin.log());
            }
        }
    }
    assert_eq!(kirin.get("/owner/chain/deep/f").text(), "deep");
    let log = kirin.log();
    let shared = site.path("public/uploads").display().to_string();
    assert!(log.contains(&format!("{shared} is a symbolic link of uid")), "{log}");
    assert!(
        log.contains("to ../shared") && log.contains("`follow_links = \"owner\"` on the route"),
        "{log}"
    );
    if is_root {
        assert!(
            log.contains(
                "to ../others, which belongs to uid 65534: `follow_links = \"owner\"` follows"
            ),
            "{log}"
        );
    }
}

#[test]
fn directories_are_listed_only_where_the_route_says_so() {
    let site = Site::new()
        .with("public/docs/a b&c.txt", "12345")
        .with("public/docs/.hidden", "")
        .with("public/docs/sub/x", "")
        .with("outside", "");
    let kirin = serve(
        &site,
        "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         [[route]]\npath = \"/list\"\ntry = [\"files:public\"]\nlisting = true\nrewrite = \"/\"\n",
    );
    let mut client = kirin.connect();
    assert_eq!(client.get("/docs/").status, 404);
    assert_eq!(client.get("/docs").status, 404);
    let reply = client.get("/list/docs");
    assert_eq!((reply.status, reply.field("location")), (301, Some("/list/docs/")));
    let reply = client.get("/list/docs/");
    assert_eq!(
        (reply.status, reply.field("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let text = reply.text();
    assert!(
        text.contains("href=\"./a%20b%26c.txt\">a b&amp;c.txt</a>") && text.contains("<td>5</td>"),
        "{text}"
    );
    assert!(
        text.contains("href=\"./sub/\"") && !text.contains("hidden") && !text.contains("outside"),
        "{text}"
    );
    assert_eq!(client.get("/list/docs/a%20b%26c.txt").text(), "12345");
    assert_eq!(client.request("HEAD", "/list/docs/", "").status, 200);
    let reply = client.request("OPTIONS", "/list/docs/", "");
    assert_eq!(reply.status, 204);
    assert_eq!(client.get("/list/docs/../../../").status, 400);
}
