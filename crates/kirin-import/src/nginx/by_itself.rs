//! Directives that say what Kirin does by itself.

/// Returns what Kirin does in place of a directive. Returns `None` if that is not in the table.
pub fn by_itself(name: &str) -> Option<&'static str> {
    let rows = TABLE.iter().find(|(names, _)| names.contains(&name));
    rows.map(|(_, text)| *text).or_else(|| by_start(name))
}

/// The names, and what Kirin does.
const TABLE: [(&[&str], &str); 28] = [
    (
        &[
            "sendfile",
            "sendfile_max_chunk",
            "tcp_nopush",
            "tcp_nodelay",
            "aio",
            "aio_write",
            "directio",
            "directio_alignment",
            "output_buffers",
            "postpone_output",
            "read_ahead",
            "thread_pool",
        ],
        "Kirin chooses how it sends files",
    ),
    (
        &[
            "worker_rlimit_nofile",
            "worker_cpu_affinity",
            "worker_priority",
            "worker_rlimit_core",
            "worker_shutdown_timeout",
            "worker_aio_requests",
            "timer_resolution",
            "pcre_jit",
            "lock_file",
            "accept_mutex",
            "multi_accept",
            "use",
            "working_directory",
            "master_process",
            "debug_points",
            "ssl_engine",
        ],
        "Kirin has threads and event loops of its own; systemd sets the limits of a service",
    ),
    (&["pid"], "`kirin serve --pid-file FILE`"),
    (&["daemon"], "Kirin stays in the foreground, for systemd"),
    (
        &["error_log"],
        "the log goes to standard error; the environment variable KIRIN_LOG sets its level",
    ),
    (&["load_module", "perl_modules", "js_import", "js_path"], "Kirin has no modules"),
    (&["env"], "environment variables stand in all strings, as ${NAME}"),
    (
        &[
            "server_tokens",
            "server_name_in_redirect",
            "port_in_redirect",
            "absolute_redirect",
            "server_names_hash_bucket_size",
            "server_names_hash_max_size",
            "variables_hash_max_size",
            "variables_hash_bucket_size",
            "types_hash_max_size",
            "types_hash_bucket_size",
            "map_hash_max_size",
            "map_hash_bucket_size",
            "limit_req_log_level",
            "limit_conn_log_level",
            "log_not_found",
            "log_subrequest",
            "rewrite_log",
            "uninitialized_variable_warn",
            "merge_slashes",
            "connection_pool_size",
            "request_pool_size",
            "msie_padding",
            "msie_refresh",
            "recursive_error_pages",
            "chunked_transfer_encoding",
        ],
        "nothing to set",
    ),
    (
        &[
            "http2",
            "http2_max_concurrent_streams",
            "http2_chunk_size",
            "http2_body_preread_size",
            "http2_idle_timeout",
            "http2_max_field_size",
            "http2_max_header_size",
            "http2_max_requests",
            "http2_recv_buffer_size",
            "http2_recv_timeout",
            "http2_push",
            "http2_push_preload",
        ],
        "HTTP/2 is always there, with limits of its own",
    ),
    (
        &[
            "gzip_types",
            "gzip_comp_level",
            "gzip_min_length",
            "gzip_buffers",
            "gzip_vary",
            "gzip_proxied",
            "gzip_disable",
            "gzip_http_version",
            "gzip_static",
            "brotli_static",
            "brotli_types",
            "brotli_comp_level",
            "brotli_min_length",
            "brotli_buffers",
            "zstd_static",
            "zstd_types",
            "zstd_comp_level",
            "zstd_min_length",
            "gunzip",
            "gunzip_buffers",
        ],
        "types, levels and sizes of compression cannot be set, and files with .br, .zst and .gz are sent",
    ),
    (&["gzip", "brotli", "zstd"], "files are compressed"),
    (
        &[
            "ssl",
            "ssl_session_cache",
            "ssl_session_timeout",
            "ssl_session_tickets",
            "ssl_session_ticket_key",
            "ssl_buffer_size",
            "ssl_prefer_server_ciphers",
            "ssl_verify_depth",
        ],
        "sessions resume by tickets, with keys that change",
    ),
    (
        &["open_file_cache_min_uses", "open_file_cache_errors", "open_log_file_cache"],
        "Kirin remembers open files, and paths that lead to no file",
    ),
    (
        &["charset_types", "override_charset", "source_charset", "charset_map"],
        "all text has the charset",
    ),
    (
        &["autoindex_exact_size", "autoindex_localtime"],
        "a listing has sizes in bytes and times in UTC",
    ),
    (
        &[
            "client_body_buffer_size",
            "client_body_temp_path",
            "client_body_in_single_buffer",
            "client_header_buffer_size",
            "subrequest_output_buffer_size",
        ],
        "1 MB of a body is in memory and the rest in a file; `client_memory` and `client_disk` of [limits] are for all clients",
    ),
    (&["real_ip_recursive"], "Kirin always looks for the first address that is not trusted"),
    (
        &[
            "fastcgi_split_path_info",
            "fastcgi_index",
            "fastcgi_catch_stderr",
            "fastcgi_keep_conn",
            "fastcgi_socket_keepalive",
            "scgi_socket_keepalive",
            "uwsgi_socket_keepalive",
            "proxy_socket_keepalive",
            "grpc_socket_keepalive",
        ],
        "nothing to set",
    ),
    (
        &["uwsgi_param", "scgi_param", "uwsgi_modifier1", "uwsgi_modifier2"],
        "servers get the variables of CGI",
    ),
    (
        &[
            "proxy_http_version",
            "proxy_headers_hash_max_size",
            "proxy_headers_hash_bucket_size",
            "fastcgi_request_buffering",
            "uwsgi_request_buffering",
            "scgi_request_buffering",
            "proxy_request_buffering",
        ],
        "nothing to set",
    ),
    (
        &[
            "proxy_pass_header",
            "fastcgi_pass_header",
            "uwsgi_pass_header",
            "scgi_pass_header",
            "grpc_pass_header",
        ],
        "all fields of a response are passed on",
    ),
    (
        &["ssi_min_file_chunk", "ssi_value_length", "ssi_types", "ssi_silent_errors"],
        "directives of `text/html` run",
    ),
    (&["auth_delay"], "wrong passwords are slow by themselves"),
    (
        &["resolver", "resolver_timeout"],
        "the resolver is that of the system; `resolve` of an upstream says how often",
    ),
    (
        &["limit_conn_zone", "limit_req_zone", "upstream", "log_format", "map", "geo"],
        "nothing uses it",
    ),
    (
        &["default_type", "types", "index", "root", "auth_basic_user_file", "real_ip_header"],
        "nothing here uses it",
    ),
    (&["break"], "places answer in their order"),
    (&["http"], "everything stands in one file, or in those of `include`"),
];

/// Returns what Kirin does in place of a directive whose name begins with that of a module.
fn by_start(name: &str) -> Option<&'static str> {
    let rest = ["proxy_", "fastcgi_", "uwsgi_", "scgi_", "grpc_"]
        .iter()
        .find_map(|start| name.strip_prefix(start))?;
    let text = match rest {
        "buffering"
        | "buffers"
        | "buffer_size"
        | "busy_buffers_size"
        | "max_temp_file_size"
        | "temp_file_write_size"
        | "temp_path"
        | "read_ahead"
        | "force_ranges" => "responses are passed on as they arrive",
        "cache_revalidate"
        | "cache_background_update"
        | "cache_lock"
        | "cache_lock_age"
        | "cache_lock_timeout"
        | "cache_path"
        | "cache_key" => "the cache does it, where there is one",
        "ssl_server_name" | "ssl_session_reuse" | "ssl_protocols" | "ssl_ciphers"
        | "ssl_verify_depth" => {
            "TLS 1.2 and 1.3, with the name of the server and sessions that resume"
        }
        "connect_timeout" | "read_timeout" | "send_timeout" | "set_header" | "hide_header"
        | "intercept_errors" | "param" | "cache_valid" | "cache_use_stale" | "next_upstream" => {
            "nothing here uses it"
        }
        "next_upstream_tries" | "next_upstream_timeout" => "`retry_percent` limits retries",
        _ => return None,
    };
    Some(text)
}
