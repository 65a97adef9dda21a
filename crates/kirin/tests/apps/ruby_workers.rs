//! The workers of a Ruby application: what the suite of the adapters does not say.

use std::collections::BTreeSet;
use std::net::TcpListener;

use kirin_tests::{Kirin, Site, patient_seconds, wait_for};
use rustix::process::{Pid, Signal};

use super::ruby::{config, rack_file};

/// Returns the process that has loaded the application, the worker, and its parent.
fn who(kirin: &Kirin) -> [String; 3] {
    let text = kirin.get("/").text();
    let mut lines = text.lines().skip(3).map(str::to_owned);
    std::array::from_fn(|_| lines.next().expect("three numbers"))
}

#[test]
fn rack_lint_finds_nothing_in_requests_and_responses() {
    let site = Site::new().with(
        "config.ru",
        "\
require 'rack/lint'
require 'uri' # Rack::Lint needs it, and does not say so.
require 'digest'
use Rack::Lint
class Parts
  def initialize(*parts) = @parts = parts
  def each(&block) = @parts.each(&block)
  def close = $stderr.puts('closed')
end
run(lambda do |env|
  text = { 'content-type' => 'text/plain' }
  input = env['rack.input']
  case env['PATH_INFO']
  when '/read' then [200, text, [Digest::MD5.hexdigest(input&.read.to_s)]]
  when '/gets'
    lines = []
    while (line = input.gets) do lines << line end
    [200, text, [lines.size.to_s]]
  when '/each'
    count = 0
    input.each { |line| count += line.bytesize }
    [200, text, [count.to_s]]
  when '/parts' then [200, text, Parts.new('one', 'two')]
  when '/none' then [204, {}, []]
  when '/unmodified' then [304, {}, []]
  when '/errors'
    env['rack.errors'].puts('a line by puts')
    env['rack.errors'].write('a line by write')
    env['rack.errors'].flush
    [200, text, ['logged']]
  else [200, text.merge('content-length' => '5'), ['hello']]
  end
end)
",
    );
    std::fs::write(site.path("kirin.toml"), config("workers = 1")).expect("write");
    let kirin = Kirin::start_with(&site, &["serve"]);
    let mut client = kirin.connect();
    let large = vec![b'x'; 2_000_000];
    for (method, target, status) in [
        ("GET", "/", 200),
        ("GET", "/a%20b/%C3%A9?q=%20&r", 200),
        ("HEAD", "/", 200),
        ("DELETE", "/", 200),
        ("GET", "/read", 200),
        ("GET", "/parts", 200),
        ("HEAD", "/parts", 200),
        ("GET", "/none", 204),
        ("GET", "/unmodified", 304),
        ("GET", "/errors", 200),
    ] {
        let fields = "X-Custom: caf\u{e9}\r\nCookie: a=b\r\nAccept: */*\r\n";
        let reply = client.request(method, target, fields);
        assert_eq!(reply.status, status, "{method} {target}\n{}", kirin.whole_log());
    }
    for (target, body, answer) in [
        ("/read", &b"hello"[..], "5d41402abc4b2a76b9719d911017c592"),
        ("/read", &large, "939ee55a36872cb4222e09cced62a7b5"),
        ("/gets", b"one\ntwo\n\nthree", "4"),
        ("/each", b"one\ntwo", "7"),
        ("/each", &large, "2000000"),
    ] {
        let reply = client.post(target, "text/plain", body);
        assert_eq!(reply.status, 200, "{target}\n{}", kirin.whole_log());
        assert_eq!(reply.text(), answer, "{target}");
    }
    client.send(
        "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert_eq!(client.read_reply().text(), "900150983cd24fb0d6963f7d28e17f72");
    kirin.wait_for_log("a line by write");
    let log = kirin.log();
    assert!(!log.contains("Lint") && !log.contains("ERROR"), "{log}");
    assert_eq!(log.matches("closed\n").count(), 2, "{log}");
}

#[test]
fn a_request_over_its_deadline_leaves_a_backtrace_of_ruby() {
    let site = Site::new().with(
        "config.ru",
        "\
require 'socket'
def wait_in_ruby = loop { @count = (@count || 0) + 1 }
def wait_for_a_thread = Thread.new { sleep 600 }.join
def wait_for_a_socket
  ours, = Socket.pair(:UNIX, :STREAM)
  ours.read
end
ACTIONS = { '/ruby' => :wait_in_ruby, '/thread' => :wait_for_a_thread,
            '/socket' => :wait_for_a_socket }
run ->(env) { send(ACTIONS.fetch(env['PATH_INFO'])) }
",
    );
    let deadline = patient_seconds(1);
    let keys = format!("workers = 1\ndeadline = \"{deadline}\"");
    let kirin = Kirin::start(&site, &config(&keys));
    for (path, method) in [
        ("/ruby", "wait_in_ruby"),
        ("/thread", "wait_for_a_thread"),
        ("/socket", "wait_for_a_socket"),
    ] {
        assert_eq!(kirin.get(path).status, 504);
        kirin.wait_for_log(&format!("GET {path}: took too long"));
        wait_for(&format!("{method} in the log"), || {
            let log = kirin.log();
            let entry = log.split(&format!("GET {path}: took too long")).nth(1)?;
            let stack: Vec<_> =
                entry.lines().skip(1).take_while(|at| at.starts_with(' ')).collect();
            stack.iter().any(|at| at.contains("config.ru:") && at.contains(method)).then_some(())
        });
    }
}

#[test]
fn workers_are_forked_from_a_process_that_has_loaded_the_application() {
    let site = Site::new().with("config.ru", rack_file());
    for (keys, is_shared) in [("", true), ("preload = true", true), ("preload = false", false)] {
        let kirin = Kirin::start(&site, &config(&format!("workers = 2\n{keys}")));
        let [loader, worker, parent] = who(&kirin);
        let expected = if is_shared { &parent } else { &worker };
        assert_eq!(&loader, expected, "{keys}\n{}", kirin.whole_log());
    }
}

#[test]
fn what_processes_cannot_share_is_loaded_by_each_worker() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = server.local_addr().expect("an address");
    let connects = format!(
        "require 'socket'\nSERVER = TCPSocket.new('127.0.0.1', {})\n{}",
        address.port(),
        rack_file()
    );
    let threads = format!("Thread.new {{ sleep }}\n{}", rack_file());
    for (program, logged) in
        [(connects, format!("a connection to {address}")), (threads, "thread".into())]
    {
        let site = Site::new().with("config.ru", program);
        let kirin = Kirin::start(&site, &config("workers = 2"));
        kirin.wait_for_log(&logged);
        let [loader, worker, _] = who(&kirin);
        assert_eq!(loader, worker, "{}", kirin.whole_log());
    }
}

#[test]
fn hooks_run_in_the_parent_and_in_each_worker() {
    let hooks = "\
before_fork { File.write('before', \"#{Process.pid}\\n\", mode: 'a') }
on_worker_boot { File.write(\"boot.#{Process.pid}\", '') }
on_worker_shutdown { File.write(\"shutdown.#{Process.pid}\", '') }
";
    let site = Site::new().with("config.ru", rack_file()).with("config/kirin.rb", hooks);
    let mut kirin = Kirin::start(&site, &config("workers = 2"));
    let [_, worker, parent] = who(&kirin);
    let before = || std::fs::read_to_string(site.path("before")).expect("before");
    assert_eq!(before(), format!("{parent}\n"));
    site.wait_for_files("boot.", 2);
    assert!(site.path(&format!("boot.{worker}")).exists());
    // Each of these signals lets a worker leave, and another one follows.
    for (signal, boots) in [(Signal::TERM, 3), (Signal::QUIT, 4)] {
        let [_, worker, _] = who(&kirin);
        let pid = Pid::from_raw(worker.parse().expect("a number")).expect("a process id");
        rustix::process::kill_process(pid, signal).expect("a signal");
        wait_for("the end of the worker", || {
            site.path(&format!("shutdown.{worker}")).exists().then_some(())
        });
        site.wait_for_files("boot.", boots);
    }
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0));
    // When Kirin stops, a worker may be replaced once more.
    let with_prefix = |prefix: &str| -> BTreeSet<String> {
        let names = std::fs::read_dir(site.root()).expect("a directory");
        let names =
            names.map(|name| name.expect("a file").file_name().into_string().expect("UTF-8"));
        names.filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned())).collect()
    };
    assert_eq!(with_prefix("shutdown."), with_prefix("boot."), "{}", kirin.whole_log());
    assert_eq!(before(), format!("{parent}\n"));
}

#[test]
fn hooks_in_the_rack_file_do_the_same_and_a_failure_is_logged() {
    let program = format!(
        "Kirin.on_worker_boot do\n  next if File.exist?('tried')\n  File.write('tried', '')\n  \
         raise 'no database'\nend\n{}",
        rack_file()
    );
    let site = Site::new().with("config.ru", program);
    let kirin =
        Kirin::start_with(&site, &["serve", "--listen", "0", "--workers", "1", "config.ru"]);
    kirin.wait_for_log("no database");
    assert_eq!(kirin.get("/").status, 200);
}
