//! The cost of a configuration grows with its bytes (`kirin-doubling`).

use kirin_doubling::Table;

use crate::testing::{Importer, MemoryFiles};

/// Checks an importer with each piece repeated, between a start and an end.
fn check(
    table: &mut Table,
    name: &str,
    importer: Importer,
    around: &[(&str, &str)],
    pieces: &[&str],
) {
    for piece in pieces {
        for (start, end) in around {
            let text = |count: usize| {
                let text = format!("{start}{}{end}", piece.repeat(count));
                MemoryFiles::new(&[("f", text.as_str())])
            };
            table.check(&format!("{name} {start}{piece}{end}"), 200, text, |files| {
                importer("f", files).is_ok()
            });
        }
    }
}

#[test]
fn a_configuration_of_unit_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "${",
        "$a",
        "\"",
        "\\\\",
        "[",
        "{\"a\":",
        "1,",
        "\"a\",",
        "/*",
        "// a\n",
        "{\"action\":{\"return\":403}},",
        "{\"match\":{\"uri\":\"/a/*\",\"scheme\":\"http\"},\"action\":{\"share\":\"/a$uri\"}},",
        "{\"match\":{\"uri\":\"~^/a(b)\"},\"action\":{\"share\":\"/a$uri\"}},",
        "{\"match\":{\"host\":\"a\"},\"action\":{\"share\":\"/a$host$uri\"}},",
    ];
    let around = [
        ("", ""),
        (
            "{\"listeners\":{\"*:80\":{\"pass\":\"routes\"}},\"routes\":[",
            "{\"action\":{\"return\":404}}]}",
        ),
        ("{\"listeners\":{\"*:80\":{\"pass\":\"", "\"}}}"),
        (
            "{\"listeners\":{\"*:80\":{\"pass\":\"routes\"}},\"routes\":[{\"action\":{\"share\":\"",
            "$uri\"}}]}",
        ),
    ];
    check(&mut table, "unit", crate::unit::import, &around, &pieces);
    table.finish();
}

#[test]
fn a_configuration_of_uwsgi_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "%",
        "%(a)",
        "%(",
        "[",
        "=",
        "\n",
        "a=b\n",
        "http = :80\n",
        "env = A=b\n",
        "psgi = app.psgi\n",
        "static-map = /a=/b/a\n",
        "static-map = /a=/b\n",
        "route = ^/a/(b|c) basicauth:a,b:c\n",
        "mount = /a=a.psgi\n",
        "static-skip-ext = .a\n",
        "if-env = A\n",
        "log-format = %(method)\n",
        "end\n",
    ];
    let around = [("", ""), ("[uwsgi]\n", "\n"), ("[uwsgi]\npsgi = a.psgi\nroute = ^/", "\n")];
    check(&mut table, "uwsgi", crate::uwsgi::import, &around, &pieces);
    table.finish();
}

#[test]
fn a_caddyfile_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "{",
        "{ ",
        "}",
        "\n",
        "\"",
        "a ",
        "`",
        "{$A}",
        "{$",
        "{args[0]}",
        "<<A\n",
        "\\\n",
        "# a\n",
        "a,",
        "import s\n",
        "header X-A b\n",
        "header /a/* X-A b\n",
        "respond /a 404\n",
        "reverse_proxy a:1 b:2\n",
        "@a path /a /b\n",
        "handle /a/* {\n respond 404\n}\n",
        "basic_auth /a/* {\n b c\n}\n",
        "redir /a /b\n",
        "file_server\n",
    ];
    let around = [
        ("", ""),
        (":80 {\n", "\n}"),
        ("(s) {\n respond 404\n}\n:80 {\n", "\n file_server\n}"),
        (":80 {\n header X-A ", "\n}"),
        (":80 {\n reverse_proxy ", "\n}"),
    ];
    check(&mut table, "caddy", crate::caddy::import, &around, &pieces);
    table.finish();
}

#[test]
fn a_configuration_of_apache_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "a ",
        "\"",
        "\\\n",
        "${",
        "${A}",
        "%{",
        "(",
        "|",
        "\n",
        "<A>\n",
        "<Location /a>\nRequire all denied\n</Location>\n",
        "<Directory /a/b>\nOptions Indexes\n</Directory>\n",
        "<Files \"*.a\">\nRequire all denied\n</Files>\n",
        "Alias /a /b\n",
        "ProxyPass /a http://b/c\n",
        "Redirect /a /b\n",
        "RewriteCond %{HTTPS} off\n",
        "RewriteRule ^/a/(b|c)$ /d [R]\n",
        "Header set A b\n",
        "LogFormat \"%h\" a\n",
        "<VirtualHost *:80>\n</VirtualHost>\n",
    ];
    let around = [
        ("", ""),
        ("DocumentRoot /a\nRewriteEngine On\n", "\n"),
        ("RewriteEngine On\nRewriteRule ^/", " - [F]\n"),
        ("CustomLog /a \"", "\"\n"),
        ("<FilesMatch \"", "$\">\nRequire all denied\n</FilesMatch>\n"),
    ];
    check(&mut table, "apache", crate::apache::import, &around, &pieces);
    table.finish();
}

#[test]
fn a_configuration_of_varnish_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "a ",
        "\"",
        "{\"",
        "/*",
        "# a\n",
        "{",
        "(",
        ";",
        "! ",
        "a && ",
        "req.url ~ \"^/a/\" || ",
        "req.http.Cookie ~ \"a|b\" || ",
        "a || b == \"c",
        "set req.http.A = \"b\";",
        "set beresp.ttl = 1h;",
        "if (req.url ~ \"^/a/\") { return (pass); }",
        "if (req.url ~ \"^/a/[0-9]\") { return (synth(403)); }",
        "if (a) { } else ",
        "backend a { .host = \"b\"; }\n",
        "acl a { \"::1\"; }\n",
    ];
    let around = [
        ("", ""),
        ("backend d { .host = \"a\"; }\nsub vcl_recv {\n", "\n}"),
        ("sub vcl_recv { if (", "req.url == \"/\") { return (pass); } }"),
        ("sub vcl_recv { set req.http.A = \"", "\"; }"),
        ("acl a {", "}"),
    ];
    check(&mut table, "vcl", crate::vcl::import, &around, &pieces);
    table.finish();
}
