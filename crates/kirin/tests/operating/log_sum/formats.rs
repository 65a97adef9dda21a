//! The formats of Kirin and nginx, as the programs write them and `kirin log sum` reads them back.

use std::process::{Child, Command, Stdio};

use kirin_tests::{Kirin, LeasedPort, Site, wait_for};
use serde_json::Value;

use super::{COMBINED, report, rows, sum};

/// A format of an access log, and what its lines say.
struct WrittenFormat {
    format: &'static str,
    has_method: bool,
    has_time: bool,
    has_duration: bool,
}

const fn format(
    format: &'static str,
    has_method: bool,
    has_time: bool,
    has_duration: bool,
) -> WrittenFormat {
    WrittenFormat { format, has_method, has_time, has_duration }
}

/// The names, and each directive in a format of several.
const FORMATS: [WrittenFormat; 21] = [
    format("combined", true, true, true),
    format("common", true, true, false),
    format("json", true, true, true),
    format("ltsv", true, true, true),
    format("terminal", true, false, true),
    format("%h %l %u %t \"%r\" %>s %b", true, true, false),
    format("%h %l %u %t %r %>s %B %D", true, true, true),
    format("%t %U%q %s", false, true, false),
    format("%m|%{uri}k|%s|%{ms}T", true, false, true),
    format("%m\t%U\t%q\t%<s\t%{us}T\t%%", true, false, true),
    format("%{%Y-%m-%d %T}t %{%z}t %m %{uri}k %s %T", true, true, true),
    format("%{end:%d/%b/%Y:%T}t.%{end:msec_frac}t %r %s %{s}T", true, true, true),
    format("%{msec}t %m %{uri}k %s %{reqtime}k", true, true, true),
    format("%{usec}t %{begin:sec}t.%{usec_frac}t %m %{uri}k %s", true, true, false),
    format("%{c}a %a %v %V %p %{local}p %{canonical}p %P %H %m %{uri}k %s", true, false, false),
    format("%s %{uri}k \"%{User-Agent}i\" \"%{Content-Type}o\" \"%{a}C\"", false, false, false),
    format("%{PATH}e %m %{uri}k %s", true, false, false),
    format("%{place}k %{answered_by}k %{cache}k %{queue}k %{worker}k %r %s", true, false, false),
    format("%{upstream}k %{upstream_time}k %{tls}k %{request_id}k %r %s", true, false, false),
    format("%{bytes_in}k %{end}k %{user}k %{vhost}k %{Host}i %m %{uri}k %s", true, false, false),
    format("{\"r\":\"%r\",\"s\":%s,\"t\":%D,\"at\":\"%{%c}t\"}", true, true, true),
];

/// Returns the configuration of a Kirin with a route and a log for each format.
fn configuration() -> String {
    let mut config = String::from("threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n");
    for (number, written) in FORMATS.iter().enumerate() {
        let format = toml_text(written.format);
        config += &format!(
            "[[route]]\npath = \"/{number}\"\ntry = [\"files:public\"]\n\
             access_log = {{ path = \"{number}.log\", format = {format} }}\n"
        );
    }
    config
}

fn toml_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// Starts a Kirin that writes logs in all formats, each with two lines.
fn written_logs() -> Site {
    let config = configuration();
    let mut site = Site::new();
    for number in 0..FORMATS.len() {
        site = site.with(&format!("public/{number}/memo/7"), "text");
    }
    let kirin = Kirin::start(&site, &config);
    for number in 0..FORMATS.len() {
        assert_eq!(kirin.get(&format!("/{number}/memo/7?a=\\x41")).status, 200);
        assert_eq!(kirin.get(&format!("/{number}/memo/8")).status, 404);
    }
    for (number, written) in FORMATS.iter().enumerate() {
        wait_for(written.format, || {
            let log = std::fs::read_to_string(site.path(&format!("{number}.log"))).ok()?;
            (log.lines().count() == 2).then_some(())
        });
    }
    site
}

#[test]
fn each_format_that_kirin_writes_is_read_by_itself() {
    let site = written_logs();
    for (number, written) in FORMATS.iter().enumerate() {
        let file = format!("{number}.log");
        let line = std::fs::read_to_string(site.path(&file)).expect("a log");
        let output = sum(&site, &[&file, "--output", "json", "--pattern", "/{format}/memo/{id}"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let format = written.format.replace('\t', "\\t");
        let note = format!("kirin: kirin.toml says: {file} has the format {format}\n");
        assert_eq!(said, note, "{line}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let method = if written.has_method { "GET" } else { "-" };
        let row = &report["rows"][0];
        assert_eq!(row["method"], method, "{format}: {line}{report}");
        assert_eq!(row["pattern"], "/{format}/memo/{id}", "{format}: {line}{report}");
        assert_eq!(row["count"], 2, "{format}: {line}{report}");
        assert_eq!(row["status"]["2xx"], 1, "{format}: {line}{report}");
        assert_eq!(row["status"]["4xx"], 1, "{format}: {line}{report}");
        let has_duration = report["rows"][0]["seconds"].is_object();
        assert_eq!(has_duration, written.has_duration, "{format}: {line}{report}");
        let since = sum(&site, &[&file, "--since", "2020-01-01", "--output", "json"]);
        assert_eq!(since.status.success(), written.has_time, "{format}: {line}{since:?}");
    }
    let all = report(&site, &[]);
    assert_eq!(all["total"]["count"], 2 * FORMATS.len(), "{all}");
    let named = report(&site, &["--config", "kirin.toml"]);
    assert_eq!(named, all);
}

#[test]
fn the_format_of_a_rotated_log_is_that_of_the_log() {
    let config = "[[listener]]\naccess_log = { path = \"own.log\", format = \"%s %r\" }\n";
    let site = Site::new().with("kirin.toml", config).with("own.log.1", "200 GET / HTTP/1.1\n");
    assert_eq!(report(&site, &["own.log.1"])["total"]["count"], 1);
    let alone = sum(&site, &[]);
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(said.contains("no access log of kirin.toml exists yet: own.log"), "{said}");
    std::fs::write(site.path("own.log"), "200 GET / HTTP/1.1\n").expect("a log");
    assert_eq!(report(&site, &[])["total"]["count"], 1);
}

#[test]
fn the_configuration_of_this_directory_gives_the_sites() {
    let config = "[[listener]]\naccess_log = { path = \"a.log\", format = \"%v %s %r\" }\n\
         [[site]]\nname = \"wiki\"\nhosts = [\"wiki.test\", \"www.wiki.test\"]\n";
    let log = "wiki.test 200 GET / HTTP/1.1\nwww.wiki.test 200 GET / HTTP/1.1\n";
    let site = Site::new().with("kirin.toml", config).with("a.log", log).with("b.log", COMBINED);
    let output = sum(&site, &["a.log", "--output", "csv"]);
    let (text, said) = (String::from_utf8_lossy(&output.stdout), output.stderr.as_slice());
    assert!(text.contains("wiki") && text.lines().count() == 2, "{text}");
    let said = String::from_utf8_lossy(said);
    let expected = "kirin: kirin.toml says: a.log has the format %v %s %r, there is 1 site\n";
    assert_eq!(said, expected);
    // A file that is no log of it has nothing to do with it.
    let other = sum(&site, &["b.log", "--output", "csv"]);
    let text = String::from_utf8_lossy(&other.stdout);
    assert!(other.stderr.is_empty() && !text.contains("site"), "{other:?}");
}

#[test]
fn a_format_that_does_not_fit_is_found_out() {
    let config = "[[listener]]\naccess_log = { path = \"a.log\", format = \"json\" }\n";
    let site = Site::new().with("kirin.toml", config).with("a.log", COMBINED);
    for arguments in [&["a.log"][..], &[], &["a.log", "--config", "kirin.toml"]] {
        let output = sum(&site, &[&["--output", "json"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "a.log: the first lines do not have the format json of kirin.toml, so it is \
                        found out";
        assert!(said.contains(expected), "{arguments:?}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["total"]["count"], 4, "{arguments:?}: {report}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_named() {
    let ambiguous = "[[listener]]\naccess_log = { path = \"a.log\", format = \"%r %{A}i %s\" }\n";
    for (config, arguments, is_error, part) in [
        (None, &[][..], true, "name a FILE, or the --config of the Kirin whose access logs"),
        (None, &["--config", "kirin.toml"], true, "kirin.toml: cannot read the configuration"),
        (None, &["--format", "%r %s"], true, "name the FILE that has this --format"),
        (None, &["--compare"], true, "--compare takes two files, not 0"),
        (Some("[[["), &["a.log"], false, "kirin.toml is not used, because it cannot be read"),
        (Some("[[["), &[], true, "kirin.toml:1:"),
        (Some("[[["), &["a.log", "--config", "kirin.toml"], true, "kirin.toml:1:"),
        (Some(ambiguous), &["a.log"], false, "in kirin.toml: the end of `%{A}i` cannot be found"),
        (Some(ambiguous), &[], true, "in kirin.toml: the end of `%{A}i` cannot be found"),
        (Some("[[listener]]\n"), &[], true, "name a FILE: no access_log of kirin.toml is a file"),
        (
            Some("[[listener]]\naccess_log = \"stdout\"\n"),
            &[],
            true,
            "name a FILE: no access_log of kirin.toml is a file",
        ),
        (
            Some("[[listener]]\naccess_log = \"b.log\"\n"),
            &["a.log", "--config", "kirin.toml"],
            false,
            "kirin.toml says: a.log is no access log of it",
        ),
        (
            Some("[[listener]]\naccess_log = \"a.log\"\n"),
            &["a.log", "--time-unit", "ms"],
            true,
            "a.log: --time-unit ms contradicts the format: it is that of kirin.toml",
        ),
        (
            None,
            &["a.log", "--time-unit", "s", "--format", "%r %s %D"],
            true,
            "--time-unit s contradicts the format: `%D` is in microseconds",
        ),
    ] {
        let mut site = Site::new().with("a.log", COMBINED);
        if let Some(config) = config {
            site = site.with("kirin.toml", config);
        }
        let output = sum(&site, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part), "{config:?} {arguments:?}: {said}");
        assert_eq!(!output.status.success(), is_error, "{config:?} {arguments:?}: {said}");
    }
}

/// A running nginx. It is killed when it is dropped.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The formats that nginx writes, as a person would write them in `nginx.conf`.
const NGINX_FORMATS: [&str; 5] = [
    r#"'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" $request_time $upstream_response_time'"#,
    r#"'$upstream_connect_time $upstream_header_time $upstream_response_time $upstream_addr '
    '$pipe ${request_time}s $msec $request_method $uri$is_args$args $status'"#,
    r#"'host:$remote_addr\ttime:$time_iso8601\treq:$request\tstatus:$status\tcost:$request_time'"#,
    r#"escape=json '{"at":"$time_iso8601","line":"$request","code":$status,"cost":$request_time}'"#,
    r#"'$host $request_id $http_user_agent $status [$time_local] "$request_uri" "$request_method" $request_time'"#,
];

#[test]
fn the_formats_that_nginx_writes_are_read() {
    let (front, backend, closed) = (LeasedPort::lease(), LeasedPort::lease(), LeasedPort::lease());
    let mut http = String::new();
    for (number, format) in NGINX_FORMATS.iter().enumerate() {
        http += &format!("log_format f{number} {format};\n");
    }
    let logs: String = (0..NGINX_FORMATS.len())
        .map(|number| format!("access_log {number}.log f{number};\n"))
        .collect();
    let config = format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log error;
        events {{}}
        http {{
            access_log off;
            client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;
            uwsgi_temp_path t4; scgi_temp_path t5;
            {http}
            upstream two {{ server {closed}; server {backend}; }}
            server {{ listen {backend}; location / {{ return 200 text; }} }}
            server {{ listen {front}; {logs} location / {{ proxy_pass http://two; }} }}
        }}",
        closed = closed.address(),
        backend = backend.address(),
        front = front.address(),
    );
    let site = Site::new().with("nginx.conf", config);
    let process = Command::new("nginx")
        .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
        .arg(site.root())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("nginx (Debian package nginx-light)");
    let _nginx = Nginx(process);
    wait_for("nginx", || std::net::TcpStream::connect(front.address()).ok());
    const REQUESTS: usize = 3;
    for number in 0..REQUESTS {
        let request = format!(
            "GET /memo/{number}?a=%22\"b HTTP/1.1\r\nHost: a.test\r\nUser-Agent: a \"b\\ c\r\n\
             Authorization: Basic YSBiOmM=\r\nConnection: close\r\n\r\n"
        );
        let mut client = std::net::TcpStream::connect(front.address()).expect("nginx");
        std::io::Write::write_all(&mut client, request.as_bytes()).expect("writes");
        let reply = std::io::read_to_string(client).expect("a reply");
        assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    }
    for (number, format) in NGINX_FORMATS.iter().enumerate() {
        let file = format!("{number}.log");
        let log = wait_for(*format, || {
            let log = std::fs::read_to_string(site.path(&file)).ok()?;
            (log.lines().count() == REQUESTS).then_some(log)
        });
        let line = format!("log_format f{number} {format};");
        let since = ["--since", "2020-01-01"];
        let found = report(&site, &[&[&*file, "--format", &*line], &since[..]].concat());
        let row = rows(&found);
        assert!(row.len() == 1 && row[0].starts_with("GET /memo/{id} 3 "), "{found}\n{log}");
        assert_eq!(found["malformed"], 0, "{found}\n{log}");
        assert_eq!(found["rows"][0]["status"]["2xx"], 3, "{found}\n{log}");
    }
}
