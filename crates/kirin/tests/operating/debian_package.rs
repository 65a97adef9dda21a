//! The unpacked Debian package can serve, and its applications use the ring.

use std::path::Path;
use std::process::Command;

use kirin_tests::{Kirin, Site, binary};

fn output(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_package_has_all_that_an_application_needs() {
    let site = Site::new().with(
        "app.psgi",
        "sub { [200, ['Content-Type' => 'text/plain'], [\"from $INC{'Kirin/Worker.pm'}\",
            \" ring \" . Kirin::Ring::is_available()]] }",
    );
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = output(
        Command::new(repository.join("packaging/build-deb"))
            .arg("--program")
            .arg(binary())
            .arg("--output")
            .arg(site.path("packages")),
    );
    let package = package.trim();
    let depends = output(Command::new("dpkg-deb").args(["--field", package, "Depends"]));
    assert!(depends.contains("libc6") && depends.contains("perl"), "{depends}");
    let root = site.path("root");
    output(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    let inside = |path: &str| root.join(path);

    // The configuration is changed for another root.
    let config = std::fs::read_to_string(inside("etc/kirin/kirin.toml")).expect("kirin.toml");
    let config = config
        .replace("/usr/share", &inside("usr/share").display().to_string())
        .replace("/var/lib/kirin", &site.root().display().to_string())
        .replace("/var/log/kirin", &site.root().display().to_string());
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    output(
        Command::new(inside("usr/bin/kirin"))
            .args(["check", "--config"])
            .arg(site.path("kirin.toml")),
    );

    // This application uses only the modules of the package.
    let mut command = Command::new(inside("usr/bin/kirin"));
    command.current_dir(site.root()).args(["serve", "app.psgi", "--listen", "0"]);
    let arch = output(Command::new("perl").args(["-MConfig", "-e", "print $Config{vendorarch}"]));
    let arch = inside(arch.trim_start_matches('/'));
    let modules = format!("{}:{}", inside("usr/share/perl5").display(), arch.display());
    let kirin = Kirin::start_command(command.env("PERL5LIB", modules));
    assert_eq!(
        kirin.get("/").text(),
        format!("from {} ring 1", inside("usr/share/perl5/Kirin/Worker.pm").display())
    );

    let python = "import kirin, kirin.ring\n\
        def application(environ, start_response):\n    \
            start_response('200 OK', [])\n    \
            return [f'from {kirin.__file__} ring {kirin.ring.is_available()}'.encode()]\n";
    std::fs::write(site.path("app.py"), python).expect("app.py");
    let mut command = Command::new(inside("usr/bin/kirin"));
    command.current_dir(site.root()).args(["serve", "app.py", "--listen", "0"]);
    let kirin = Kirin::start_command(&mut command);
    let module = inside("usr/lib/kirin/adapters/python/src/kirin/__init__.py");
    assert_eq!(kirin.get("/").text(), format!("from {} ring True", module.display()));

    output(Command::new("dpkg-deb").arg("-e").arg(package).arg(site.path("scripts")));
    for script in ["postinst", "prerm", "postrm"] {
        output(Command::new("sh").arg("-n").arg(site.path("scripts").join(script)));
    }
    for (file, part) in [
        ("usr/share/man/man1/kirin-serve.1.gz", "PSGI"),
        ("usr/share/bash-completion/completions/kirin", "--print-config"),
        ("usr/share/zsh/vendor-completions/_kirin", "--print-config"),
        ("usr/share/fish/vendor_completions.d/kirin.fish", "print-config"),
    ] {
        let text = output(Command::new("zcat").arg("-f").arg(inside(file)));
        assert!(text.contains(part), "{file}: {text}");
        assert!(!text.contains("serve-loaded"), "{file} has an internal command: {text}");
    }
    for unit in ["kirin.service", "kirin.socket"] {
        assert!(inside("lib/systemd/system").join(unit).is_file(), "{unit}");
    }
}
