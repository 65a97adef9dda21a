"""The word of the greeting that says where the stack of Python is."""
import os
import re
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src"))

from kirin import stack_layout

IS_KNOWN = (
    sys.version_info[:2] in stack_layout._LAYOUTS
    and sys.implementation.name == "cpython"
    and not hasattr(sys, "gettotalrefcount")
)

# The fields of the layout that this version does not have.
UNUSED = {
    "entry_frame": not stack_layout._HAS_ENTRIES,
    "frame_owner": sys.version_info < (3, 12),
    "code_first": not stack_layout._HAS_ADDRESSES,
}


def serve():
    """Stands for the function of a worker that serves."""


def fresh_word(**changes):
    """Returns what a process says first, with changes of the module."""
    with mock.patch.multiple(stack_layout, _is_right=None, **changes):
        return stack_layout.greeting_word(serve)


@unittest.skipUnless(IS_KNOWN, "a Python whose structures the adapter does not know")
class TestStackLayout(unittest.TestCase):
    def test_the_word_has_the_numbers_of_the_protocol(self):
        word = fresh_word()
        self.assertRegex(word, r"^stacks=python:[0-9a-f]+(,[0-9a-f]+){19}$")
        numbers = [int(number, 16) for number in re.findall(r"[0-9a-f]+(?=,|$)", word)]
        self.assertEqual(numbers[0], sys.version_info[1])
        self.assertEqual(numbers[-1], id(serve.__code__))
        self.assertEqual(stack_layout.greeting_word(serve, serve), f"{word},{numbers[-1]:x}")

    def test_each_number_is_checked(self):
        version = stack_layout._VERSION
        layout = stack_layout._LAYOUTS[version]
        for field in layout._fields:
            if UNUSED.get(field):
                continue
            for change in (-8, -4, 4, 8):
                wrong = layout._replace(**{field: max(0, getattr(layout, field) + change)})
                if wrong != layout:
                    with self.subTest(field=field, change=change):
                        self.assertEqual(fresh_word(_LAYOUTS={version: wrong}), "")

    def test_a_python_that_cannot_say_it_works_without(self):
        self.assertEqual(fresh_word(ctypes=None), "")
        self.assertEqual(fresh_word(_LAYOUTS={}), "")
        with mock.patch("os.open", side_effect=PermissionError):
            self.assertEqual(fresh_word(), "")

    def test_a_forked_process_has_the_same_word(self):
        word = fresh_word()
        pid = os.fork()
        if pid == 0:
            os._exit(0 if fresh_word() == word else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_no_descriptor_is_left(self):
        before = os.listdir("/proc/self/fd")
        self.assertNotEqual(fresh_word(), "")
        self.assertEqual(len(os.listdir("/proc/self/fd")), len(before))


if __name__ == "__main__":
    unittest.main()
