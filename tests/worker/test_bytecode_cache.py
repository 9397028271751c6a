"""Each case in an interpreter of its own: what was imported once is not imported again."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

OURS = pathlib.Path(__file__).parents[2] / "crates/runtime/src/python/bytecode_cache.py"
TRY = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("ours", sys.argv[1])
ours = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ours)
before = sys.dont_write_bytecode
with ours.kept(["missing", "large"], sys.argv[2]) as place:
    import large.part
assert sys.dont_write_bytecode == before and sys.pycache_prefix == (sys.argv[3] or None)
print(place or "nowhere", large.part.__cached__ if place else "", large.part.VALUE)
"""


class Test(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.base = pathlib.Path(temporary.name).resolve()
        self.packages, self.folder = self.base / "packages", self.base / "cache/warpsmith/bytecode"
        (self.packages / "large").mkdir(parents=True)
        (self.packages / "large-1.0.dist-info").mkdir()
        (self.packages / "large/__init__.py").write_text("")
        self.part = self.packages / "large/part.py"
        self.part.write_text("VALUE = 1\n")

    def go(self, *options, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PYTHONPATH": str(self.packages), **variables}
        command = [sys.executable, *options, "-c", TRY, OURS, self.folder, variables.get("PYTHONPYCACHEPREFIX", "")]
        ran = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True)
        self.assertEqual((ran.stderr, ran.returncode), ("", 0))
        return ran.stdout.split()

    def beside(self):
        return [path.name for path in self.packages.glob("large/__pycache__/*")]

    def test_what_nobody_keeps_is_kept(self):
        place, cached, value = self.go("-B")
        self.assertEqual((value, self.beside()), ("1", []))
        self.assertTrue(cached.startswith(place) and os.path.exists(cached))
        written = os.stat(cached).st_mtime_ns
        self.assertEqual(self.go("-B"), [place, cached, "1"])
        self.assertEqual(os.stat(cached).st_mtime_ns, written)
        self.part.write_text("VALUE = 22\n")
        self.assertEqual(self.go("-B")[2], "22")

    def test_what_python_keeps_is_left_to_it(self):
        self.assertEqual(self.go()[0], "nowhere")
        self.assertEqual(len(self.beside()), 2)
        # It is there now, whether more would be written or not.
        self.assertEqual(self.go("-B")[0], "nowhere")
        self.assertFalse(self.folder.exists())

    def test_the_users_own_place_counts(self):
        self.assertEqual(self.go("-B", PYTHONPYCACHEPREFIX=str(self.base / "own"))[0], "nowhere")

    def test_another_version_with_the_same_time_and_size_is_not_taken_for_the_first(self):
        first = self.go("-B")[0]
        was = os.stat(self.part)
        self.part.write_text("VALUE = 2\n")
        os.utime(self.part, ns=(was.st_atime_ns, was.st_mtime_ns))
        (self.packages / "large-1.0.dist-info").rename(self.packages / "large-1.1.dist-info")
        second, _, value = self.go("-B")
        self.assertEqual((value, os.path.exists(first)), ("2", False))
        self.assertNotEqual(first, second)

    def test_a_place_that_others_write_to_is_not_used(self):
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o777)
        self.assertEqual(self.go("-B")[0], "nowhere")

    def test_without_a_place_it_is_as_before(self):
        self.folder.parent.mkdir(parents=True)
        self.folder.write_text("a file")
        self.assertEqual(self.go("-B"), ["nowhere", "1"])


if __name__ == "__main__":
    unittest.main()
