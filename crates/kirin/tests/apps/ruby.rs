//! Ruby applications by one command: files, projects, gems, and the Ruby that runs them.

use std::process::Command;

use kirin_tests::{Kirin, Site, repository, run_kirin, wait_for};
use rustix::process::Signal;

/// An application that says where it is and which process has loaded it.
const APP: &str = "\
LOADER = Process.pid
APPLICATION = lambda do |env|
  lines = [env['PATH_INFO'], Dir.pwd, ENV['RACK_ENV'], LOADER, Process.pid, Process.ppid]
  [200, { 'content-type' => 'text/plain' }, [lines.join(\"\\n\")]]
end
";

/// Returns a Rack file with [`APP`].
pub fn rack_file() -> String {
    format!("{APP}run APPLICATION\n")
}

fn serve(site: &Site, arguments: &[&str]) -> Kirin {
    let arguments = [&["serve", "--listen", "0", "--workers", "2"], arguments].concat();
    Kirin::start_with(site, &arguments)
}

/// Returns a configuration for `config.ru` with more keys of `[[app]]`.
pub fn config(keys: &str) -> String {
    format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\nname = \"web\"\nload = \"config.ru\"\n\
         {keys}\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
    )
}

/// Returns the text of a line of [`APP`]'s answer.
fn line(kirin: &Kirin, number: usize) -> String {
    let text = kirin.get("/").text();
    text.lines().nth(number).unwrap_or_else(|| panic!("{text}\n{}", kirin.whole_log())).to_owned()
}

/// Asserts that `kirin serve` ends with an error that has all these parts.
fn assert_refused(site: &Site, target: &str, parts: &[&str]) {
    let output = run_kirin(site, &["serve", "--listen", "0", target]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{target} is served");
    for part in parts {
        assert!(error.contains(part), "{target}: {part} is not in\n{error}");
    }
}

#[test]
fn a_rack_file_or_a_ruby_file_is_served_by_its_name() {
    let site = Site::new()
        .with("config.ru", rack_file())
        .with("value.rb", format!("{APP}APPLICATION\n"))
        .with("constant.rb", format!("{APP}App = APPLICATION\nnil\n"))
        .with("sub/other.ru", rack_file())
        .with("public/hello.txt", "hello\n");
    let root = site.root().display().to_string();
    for (target, directory) in
        [("config.ru", ""), ("value.rb", ""), ("constant.rb", ""), ("sub/other.ru", "/sub")]
    {
        let kirin = serve(&site, &[target]);
        let text = kirin.get("/a%20b").text();
        let seen: Vec<_> = text.lines().take(3).collect();
        let expected = ["/a%20b", &format!("{root}{directory}"), "production"];
        assert_eq!(seen, expected, "{target}\n{}", kirin.whole_log());
        let has_files = directory.is_empty();
        assert_eq!(kirin.get("/hello.txt").text() == "hello\n", has_files, "{target}");
    }
}

#[test]
fn a_configuration_can_be_printed_for_a_rack_file() {
    let site = Site::new().with("config.ru", rack_file());
    let output = run_kirin(&site, &["serve", "--print-config", "config.ru"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("load = \"config.ru\"\nworkers = 5\n"), "{text}");
    let file = site.path("kirin.toml");
    std::fs::write(&file, text.replace("127.0.0.1:8080", "127.0.0.1:0")).expect("write");
    let kirin = Kirin::start_with(&site, &["serve"]);
    assert_eq!(kirin.get("/").status, 200);
}

#[test]
fn a_gemfile_decides_which_gems_an_application_can_load() {
    let app = "\
begin
  require 'sinatra/base'
  found = 'sinatra'
rescue LoadError
  found = 'none'
end
run ->(_) { [200, {}, [found]] }
";
    for (gemfile, found) in [
        (None, "sinatra"),
        (Some("source 'https://rubygems.org'\ngem 'rack'\ngem 'sinatra'\n"), "sinatra"),
        (Some("source 'https://rubygems.org'\ngem 'rack'\n"), "none"),
    ] {
        let site = Site::new().with("config.ru", app);
        let site = gemfile.into_iter().fold(site, |site, text| site.with("Gemfile", text));
        let kirin = serve(&site, &["config.ru"]);
        assert_eq!(kirin.get("/").text(), found, "{gemfile:?}\n{}", kirin.whole_log());
    }
}

#[test]
fn a_gemfile_without_its_gems_or_without_bundler_says_so() {
    let site = Site::new()
        .with("config.ru", rack_file())
        .with("Gemfile", "source 'https://rubygems.org'\ngem 'no_such_gem_anywhere'\n");
    assert_refused(&site, "config.ru", &["no_such_gem_anywhere"]);

    // A library of this name has the place of the one that is missing.
    let site = site.with(
        "lib/bundler.rb",
        "raise LoadError.new('cannot load such file -- bundler').tap { |error| \
         error.instance_variable_set(:@path, 'bundler') }\n",
    );
    std::fs::write(site.path("kirin.toml"), config("env = { RUBYLIB = \"lib\" }")).expect("write");
    let output = run_kirin(&site, &["serve"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for part in ["Gemfile needs Bundler", "apt-get install"] {
        assert!(error.contains(part), "{part} is not in\n{error}");
    }
}

#[test]
fn an_application_that_cannot_be_loaded_says_why() {
    let site = Site::new()
        .with("syntax.ru", "run lambda do |\n")
        .with("require.ru", "require 'no_such_library_anywhere'\n")
        .with("nothing.ru", "# nothing\n")
        .with("value.rb", "APPLICATION_OF_MINE = 1\n")
        .with("raises.ru", "def settings = raise('no database')\nsettings\n")
        .with("cause.rb", "begin; Integer('x'); rescue; raise 'bad settings'; end\n")
        .with("exit.ru", "exit 3\n")
        .with("config/kirin.rb", "before_work { }\n");
    assert_refused(&site, "raises.ru", &["before_work", "config/kirin.rb:1"]);
    std::fs::remove_file(site.path("config/kirin.rb")).expect("a file");
    for (target, parts) in [
        ("syntax.ru", &["yntax", "syntax.ru"][..]),
        (
            "require.ru",
            &["no_such_library_anywhere", "require.ru:1", "The interpreter is", "The gem path is"],
        ),
        ("nothing.ru", &["missing run or map statement"]),
        ("value.rb", &["there is no application", "value.rb"]),
        ("raises.ru", &["no database", "RuntimeError", "raises.ru:1", "raises.ru:2"]),
        ("cause.rb", &["bad settings", "invalid value for Integer()", "cause.rb:1"]),
        ("exit.ru", &["exit"]),
    ] {
        assert_refused(&site, target, parts);
    }
}

#[test]
fn a_reload_loads_changed_files_and_keeps_the_old_code_if_they_are_broken() {
    let version = |number: u32| format!("VERSION = {number}\n");
    let site = Site::new()
        .with(
            "config.ru",
            "require_relative 'version'\nrun ->(_) { [200, {}, [\"v#{VERSION}\"]] }\n",
        )
        .with("version.rb", version(1));
    let kirin = serve(&site, &["config.ru"]);
    assert_eq!(kirin.get("/").text(), "v1");
    std::fs::write(site.path("version.rb"), version(2)).expect("write");
    kirin.signal(Signal::HUP);
    wait_for("the new version", || (kirin.get("/").text() == "v2").then_some(()));
    std::fs::write(site.path("version.rb"), "raise 'broken'\n").expect("write");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("broken");
    kirin.wait_for_log("reload failed");
    assert_eq!(kirin.get("/").text(), "v2");
}

#[test]
fn an_application_is_told_its_environment_and_may_be_given_another() {
    let site = Site::new().with("config.ru", rack_file());
    let kirin = Kirin::start(&site, &config("env = { RACK_ENV = \"staging\" }"));
    assert_eq!(line(&kirin, 2), "staging");
}

#[test]
fn an_installed_adapter_serves_a_kirin_that_has_none_beside_it() {
    // A directory of the application with this name must not come first.
    let site = Site::new()
        .with("config.ru", rack_file())
        .with("kirin/app_parent.rb", "abort 'the wrong file'\n")
        .with("bin/.keep", "");
    let program = site.path("bin/kirin");
    std::fs::copy(kirin_tests::binary(), &program).expect("copy");
    let start = |library: Option<String>| {
        let mut command = Command::new(&program);
        command.current_dir(site.root()).args(["serve", "--listen", "0", "config.ru"]);
        command.envs(library.map(|library| ("RUBYLIB", library)));
        command
    };
    let library = repository().join("adapters/ruby/lib").display().to_string();
    let kirin = Kirin::start_command(&mut start(Some(library)));
    assert_eq!(kirin.get("/x").text().lines().next(), Some("/x"), "{}", kirin.whole_log());

    let mut kirin = Kirin::spawn_command(&mut start(None));
    assert!(!kirin.wait().success());
    let log = kirin.whole_log();
    assert!(log.contains("nor is `kirin` among the gems of this Ruby"), "{log}");
}

#[test]
fn the_configuration_names_the_ruby_to_run() {
    let site = Site::new().with("config.ru", rack_file());
    let wrapper = "#!/bin/sh\nexport RACK_ENV=wrapped\nexec ruby \"$@\"\n";
    let site = site.with("bin/my-ruby", wrapper);
    let mut mode = Command::new("chmod");
    assert!(mode.arg("+x").arg(site.path("bin/my-ruby")).status().expect("chmod").success());
    let kirin = Kirin::start(&site, &config("interpreter = \"bin/my-ruby\""));
    assert_eq!(line(&kirin, 2), "wrapped");
    drop(kirin);

    for (keys, part) in [
        ("interpreter = \"no-such-ruby\"", "there is no `no-such-ruby` in PATH"),
        ("interpreter = \"bin/none\"", "there is no file"),
        ("adapter = \"bin\"", "bin/kirin-worker, which every adapter has"),
    ] {
        std::fs::write(site.path("kirin.toml"), config(keys)).expect("write");
        let output = run_kirin(&site, &["serve"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(part), "{keys}: {error}");
    }
}

#[test]
fn a_file_of_another_language_is_run_by_the_adapter_that_is_named() {
    // The adapter of Ruby is one for any file, if it runs that as Ruby.
    let site = Site::new().with("app.site", format!("{APP}APPLICATION\n")).with(
        "adapter/bin/kirin-worker",
        format!(
            "#!/usr/bin/env ruby\nsource = ARGV.pop\n\
                 copy = File.join(File.dirname(source), 'copy.rb')\n\
                 File.write(copy, File.read(source))\nARGV << copy\nload '{}'\n",
            repository().join("adapters/ruby/bin/kirin-worker").display()
        ),
    );
    let program = site.path("adapter/bin/kirin-worker");
    let keys = "adapter = \"adapter\"";
    let of_site = |keys: &str| config(keys).replace("config.ru", "app.site");
    std::fs::write(site.path("kirin.toml"), of_site(keys)).expect("write");
    let output = run_kirin(&site, &["serve"]);
    let error = String::from_utf8_lossy(&output.stderr);
    let denied = format!("cannot start {}: Permission denied", program.display());
    assert!(!output.status.success() && error.contains(&denied), "{error}");
    // With an interpreter it need not be a program.
    let kirin = Kirin::start(&site, &of_site(&format!("{keys}\ninterpreter = \"ruby\"")));
    assert_eq!(kirin.get("/y").text().lines().next(), Some("/y"));
    drop(kirin);
    let mut mode = Command::new("chmod");
    assert!(mode.arg("+x").arg(&program).status().expect("chmod").success());
    let kirin = Kirin::start(&site, &of_site(keys));
    assert_eq!(kirin.get("/z").text().lines().next(), Some("/z"));
}
