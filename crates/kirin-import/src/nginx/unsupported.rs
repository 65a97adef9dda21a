//! Directives that Kirin does not have, and what to do instead.

use crate::report::NOT_PROTECTED;

/// Returns why a directive is left out. Returns `None` if the importer does not know it.
pub fn reason(name: &str) -> Option<String> {
    if let Some((_, text)) = GUARDS.iter().find(|(names, _)| names.contains(&name)) {
        return Some(format!("{NOT_PROTECTED}: {text}"));
    }
    let found = TABLE.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, text)| (*text).to_owned()).or_else(|| by_start(name).map(str::to_owned))
}

/// Directives that protect something.
const GUARDS: [(&[&str], &str); 8] = [
    (
        &[
            "modsecurity",
            "modsecurity_rules",
            "modsecurity_rules_file",
            "modsecurity_transaction_id",
            "SecRulesEnabled",
            "LearningMode",
            "CheckRule",
        ],
        "Kirin has no firewall for applications",
    ),
    (
        &[
            "allow",
            "deny",
            "auth_basic",
            "auth_request",
            "satisfy",
            "internal",
            "limit_except",
            "valid_referers",
        ],
        "no route of the kirin.toml has it, because the block around it is not there",
    ),
    (
        &["secure_link", "secure_link_md5", "secure_link_secret"],
        "Kirin checks no signed links: let an application send the files with X-Sendfile",
    ),
    (
        &["ssl_verify_client", "ssl_client_certificate"],
        "no listener asks for certificates of clients",
    ),
    (
        &["ssl_crl", "ssl_ocsp", "ssl_ocsp_cache", "ssl_ocsp_responder"],
        "certificates that were revoked are accepted until they end",
    ),
    (
        &[
            "auth_jwt",
            "auth_jwt_key_file",
            "auth_jwt_require",
            "auth_ldap",
            "auth_ldap_servers",
            "auth_pam",
            "auth_digest",
            "auth_gss",
        ],
        "write `auth_request` with a program that asks for the visitor's name",
    ),
    (
        &[
            "access_by_lua_block",
            "access_by_lua_file",
            "access_by_lua",
            "rewrite_by_lua_block",
            "rewrite_by_lua_file",
            "js_access",
        ],
        "write `auth_request`, or a script for `lua:FILE`",
    ),
    (
        &["disable_symlinks"],
        "`follow_links` of a route is not written here; Kirin follows no link out of a directory",
    ),
];

/// The names, and what to do instead.
const TABLE: [(&[&str], &str); 33] = [
    (
        &["sub_filter", "sub_filter_once", "sub_filter_types", "sub_filter_last_modified"],
        "Kirin does not change the text of responses: let the application write it, or use `ssi`",
    ),
    (
        &["addition_types", "add_before_body", "add_after_body"],
        "Kirin adds no text to responses: use an include of `ssi`",
    ),
    (
        &["set", "uninitialized_variable_warn"],
        "Kirin has no variables of your own: a constant is written where it is used, and for others write a `match`",
    ),
    (&["if"], "write a route with `match`"),
    (&["rewrite"], "no other route is looked for: write a route with `rewrite` or `redirect`"),
    (&["return"], "write `redirect`, `deny` or a script"),
    (
        &[
            "limit_rate",
            "limit_rate_after",
            "proxy_limit_rate",
            "fastcgi_limit_rate",
            "uwsgi_limit_rate",
            "scgi_limit_rate",
        ],
        "Kirin does not slow down responses",
    ),
    (
        &["ssl_protocols", "ssl_ciphers", "ssl_dhparam", "ssl_ecdh_curve", "ssl_conf_command"],
        "TLS 1.2 and 1.3, with the suites of rustls; they cannot be set",
    ),
    (
        &[
            "ssl_stapling",
            "ssl_stapling_verify",
            "ssl_stapling_file",
            "ssl_stapling_responder",
            "ssl_trusted_certificate",
        ],
        "Kirin sends no OCSP responses; most authorities have ended them",
    ),
    (&["ssl_early_data"], "early data is for HTTP/3 only (`tls.early_data`)"),
    (&["ssl_reject_handshake"], "an unknown name gets the first certificate, and then 421"),
    (&["ssl_password_file"], "the keys of certificates have no passwords"),
    (
        &["ssl_certificate", "ssl_certificate_key"],
        "write the certificate into `certificates` of [listener.tls]",
    ),
    (
        &["keepalive_requests", "keepalive_disable", "keepalive_time"],
        "a connection has no such limit",
    ),
    (
        &["etag", "if_modified_since", "max_ranges"],
        "files always have `ETag`, `Last-Modified` and ranges",
    ),
    (
        &["reset_timedout_connection", "lingering_close", "lingering_time", "lingering_timeout"],
        "Kirin closes connections in its own way",
    ),
    (
        &["client_body_in_file_only", "client_max_body_size"],
        "`body_limit` of a route with a program says how large bodies may be",
    ),
    (
        &["underscores_in_headers", "ignore_invalid_headers", "auth_http_header"],
        "Kirin refuses malformed fields, and passes fields with `_` to servers as they are",
    ),
    (
        &["proxy_redirect", "proxy_cookie_path", "proxy_cookie_domain", "proxy_cookie_flags"],
        "`Location` and `Set-Cookie` are never changed; servers get the client's `Host`, so their URLs are right",
    ),
    (
        &[
            "proxy_method",
            "proxy_set_body",
            "proxy_pass_request_body",
            "proxy_pass_request_headers",
            "fastcgi_pass_request_body",
            "fastcgi_pass_request_headers",
            "uwsgi_pass_request_body",
        ],
        "servers get the request as it is",
    ),
    (
        &[
            "proxy_bind",
            "proxy_ignore_client_abort",
            "fastcgi_ignore_client_abort",
            "uwsgi_ignore_client_abort",
            "proxy_store",
            "proxy_store_access",
            "fastcgi_store",
            "proxy_send_lowat",
            "fastcgi_send_lowat",
        ],
        "Kirin has no such key",
    ),
    (
        &[
            "proxy_cache_min_uses",
            "proxy_cache_methods",
            "proxy_cache_max_range_offset",
            "proxy_cache_convert_head",
            "fastcgi_cache_min_uses",
            "fastcgi_cache_methods",
            "slice",
        ],
        "the cache stores responses to GET, at the first request",
    ),
    (&["proxy_cache_purge", "fastcgi_cache_purge"], "`purge_from` in [store], or `kirin purge`"),
    (
        &["mirror", "mirror_request_body"],
        "`mirror` of a route names an upstream; write it by hand (docs/mirror.md)",
    ),
    (
        &[
            "random_index",
            "image_filter",
            "image_filter_buffer",
            "image_filter_jpeg_quality",
            "xslt_stylesheet",
            "xml_entities",
            "empty_gif",
            "mp4",
            "mp4_buffer_size",
            "mp4_max_buffer_size",
            "flv",
            "hls",
        ],
        "let an application answer",
    ),
    (
        &[
            "dav_methods",
            "dav_ext_methods",
            "dav_access",
            "create_full_put_path",
            "min_delete_depth",
        ],
        "`files:` is read only: WebDAV needs an application",
    ),
    (
        &["userid", "userid_name", "userid_domain", "userid_path", "userid_expires", "userid_p3p"],
        "Kirin gives visitors no cookies",
    ),
    (
        &[
            "split_clients",
            "geoip_country",
            "geoip_city",
            "geoip2",
            "geoip_proxy",
            "perl_set",
            "js_set",
            "set_by_lua_block",
            "set_by_lua_file",
        ],
        "a `match` has no such condition: use a script for `lua:FILE`",
    ),
    (&["autoindex_format"], "a listing is a page"),
    (&["add_trailer", "early_hints"], "Kirin adds no trailers, and passes 103 of servers on"),
    (
        &[
            "memcached_connect_timeout",
            "memcached_read_timeout",
            "memcached_send_timeout",
            "memcached_next_upstream",
            "memcached_gzip_flag",
            "memcached_buffer_size",
            "memcached_bind",
        ],
        "the store is in Kirin",
    ),
    (
        &[
            "post_action",
            "log_by_lua_block",
            "lua_shared_dict",
            "lua_package_path",
            "init_by_lua_block",
            "init_worker_by_lua_block",
            "header_filter_by_lua_block",
            "body_filter_by_lua_block",
            "lua_code_cache",
            "otel_trace",
            "opentracing",
        ],
        "Kirin has scripts for `lua:FILE` (docs/lua.md) and traces of its own (docs/traces.md)",
    ),
    (
        &[
            "pagespeed",
            "fancyindex",
            "upload_pass",
            "upload_progress",
            "concat",
            "push_stream_publisher",
            "rtmp",
            "vhost_traffic_status",
            "vhost_traffic_status_zone",
            "vhost_traffic_status_display",
        ],
        "it is of a module that Kirin has no equivalent of",
    ),
];

/// Returns the reason for a directive whose name begins with that of a module.
fn by_start(name: &str) -> Option<&'static str> {
    let starts = ["proxy_", "fastcgi_", "uwsgi_", "scgi_", "grpc_", "memcached_"];
    if starts.iter().any(|start| name.starts_with(start)) {
        return Some("an [[upstream]] and a route have no such key");
    }
    if name.starts_with("ssl_") {
        return Some("[listener.tls] has no such key");
    }
    if name.starts_with("http3") || name.starts_with("quic") {
        return Some("a listener with `tls` has HTTP/3; `tls.http3 = false` turns it off");
    }
    if name.contains("_by_lua") || name.starts_with("lua_") || name.starts_with("js_") {
        return Some("write a script for `lua:FILE` (docs/lua.md)");
    }
    KNOWN.contains(&name).then_some("it has no effect where it stands, or its block is not here")
}

/// Directives that are carried over elsewhere, if the block around them is.
const KNOWN: [&str; 34] = [
    "access_log",
    "add_header",
    "alias",
    "auth_basic_user_file",
    "auth_request_set",
    "autoindex",
    "charset",
    "client_body_timeout",
    "client_header_timeout",
    "error_page",
    "expires",
    "keepalive_timeout",
    "large_client_header_buffers",
    "limit_conn",
    "limit_conn_dry_run",
    "limit_conn_status",
    "limit_req",
    "limit_req_dry_run",
    "limit_req_status",
    "listen",
    "location",
    "more_clear_headers",
    "more_set_headers",
    "open_file_cache",
    "open_file_cache_valid",
    "send_timeout",
    "server",
    "server_name",
    "set_real_ip_from",
    "ssi",
    "ssi_last_modified",
    "stub_status",
    "try_files",
    "include",
];
