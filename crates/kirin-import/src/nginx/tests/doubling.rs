//! The cost of an import grows with the bytes of the configuration (`kirin-doubling`).

use kirin_doubling::Table;

use super::{FakeFiles, import};

/// How often a piece stands in the smaller configuration.
const COUNT: usize = 120;

#[test]
fn an_import_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "a ",
        "a;",
        "a{}",
        "\"",
        "\\",
        "$",
        "${",
        "#",
        "\n",
        "{",
        "}",
        "server{}",
        "server{server_name a;root /w;}",
        "server{listen 1;return 403;}",
        "location /a{root /w;}",
        "location ~ a{deny all;}",
        "location ~ \\.x${deny all;}",
        "location /a{}location ~ \\.x${deny all;}",
        "location = /a{return 301 /b;}",
        "if ($http_a){return 403;}",
        "if ($a){return 301 /b;}",
        "if ($host = a){return 301 http://b/;}",
        "rewrite ^/a/(.*)$ /b/$1 permanent;",
        "allow 10.0.0.1;",
        "deny 10.0.0.1;",
        "set $a $b;",
        "add_header A a;",
        "error_page 404 /a;",
        "proxy_set_header A b;",
        "try_files $uri @a;",
        "map $uri $a {}",
        "upstream a {server b:1;}",
        "geo $a {}",
        "include a;",
        "limit_req zone=a;",
        "index a;",
        "location /a{location /b{}}",
    ];
    let starts = [
        "",
        "http{",
        "server{root /w;",
        "server{location /{",
        "server{index ",
        "upstream a{",
        "map $uri $a{",
        "server{location ~ ",
    ];
    for piece in pieces {
        for start in starts {
            check(&mut table, start, piece);
        }
    }
    table.finish();
}

#[test]
fn many_different_servers_and_locations_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let pieces = [
        "server{server_name a{N}.b;root /w;}",
        "server{listen {N};server_name a{N}.b;return 301 https://$host$request_uri;}",
        "location /a{N}{proxy_pass http://b{N}:1;}",
        "location = /a{N}{return 301 /b;}",
        "location /a{N}{root /w;}location ~ \\.x{N}${deny all;}",
        "location @a{N}{proxy_pass http://b:1;}location /a{N}{try_files $uri @a{N};}",
        "rewrite ^/a{N}/(.*)$ /b/$1 permanent;",
        "if ($http_a = {N}){return 403;}",
        "if ($host = a{N}){return 301 http://b/;}",
        "allow 10.0.{B}.1;deny 10.1.{B}.1;",
        "map $uri $a{N} {}if ($a{N}){return 301 $a{N};}",
        "set $a{N} $b;",
        "add_header A{N} a;",
        "error_page 404 /a{N};",
    ];
    for piece in pieces {
        for start in ["", "server{root /w;", "server{location /{root /w;"] {
            check(&mut table, start, piece);
        }
    }
    table.finish();
}

/// Checks configurations of a start and many pieces. `{N}` in a piece is its number, and `{B}` one
/// that fits into a byte.
fn check(table: &mut Table, start: &str, piece: &str) {
    let text = |count: usize| {
        let mut text = start.to_owned();
        for number in 0..count {
            let piece = piece.replace("{N}", &number.to_string());
            text.push_str(&piece.replace("{B}", &(number % 250).to_string()));
        }
        let open = text.matches('{').count().saturating_sub(text.matches('}').count());
        if !text.ends_with([';', '}', '{']) {
            text.push(';');
        }
        text.push_str(&"}".repeat(open.min(64)));
        FakeFiles::new(&[("n", &text)])
    };
    table.check(&format!("{start}{piece}"), COUNT, text, |files| import("n", files).is_ok());
}
