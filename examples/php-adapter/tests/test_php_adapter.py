"""The example in PHP: requests, signals, and programs that the application starts."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "node-adapter", "tests"))
from adapter_checks import AdapterChecks, KilledChecks  # noqa: E402


class PhpAdapter(AdapterChecks, unittest.TestCase):
    example, application, language, count = "php-adapter", "app.php", "PHP", 4
    printing = "const TEXT", "echo \"failed by the application\\n\";\nconst TEXT"

    def test_programs_of_the_application_get_no_descriptor_of_kirin(self):
        self.replace_application(
            "[200, TEXT, \"Hello, {$env['REMOTE_ADDR']}. This is PHP.\\n\"]",
            "[200, TEXT, shell_exec('readlink /proc/$$/fd/*')]")
        targets = self.site.get("/")[2].decode().split()
        self.assertIn("/dev/null", targets)
        self.assertFalse([target for target in targets if target.startswith("socket:")])


class KilledPhp(KilledChecks, unittest.TestCase):
    example = "php-adapter"


if __name__ == "__main__":
    unittest.main()
