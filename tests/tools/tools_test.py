"""The checks of tools/ in a copy of the tree without a repository, and where there is nothing to look at: then they
fail. A check that finds no file must not pass."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NO_GIT = {"PATH": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}


def run(root, tool, *arguments, **settings):
    return subprocess.run([sys.executable, str(root / "tools" / tool), *arguments], capture_output=True, text=True,
                          cwd=root, check=False, **settings)  # fmt: skip


class Unpacked(unittest.TestCase):
    """A tree as an archive leaves it: without .git, and with what a build has made."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "tools", self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / ".gitignore", self.root)
        self.put("src/support/file.h", "// Files.\n#pragma once\nnamespace pruner {\nstruct File {};\n}\n")
        self.put("include/pruner/module.h", "/* A module. */\n")
        self.put("README.md", "[a tool](tools/tree.py)\n")
        self.put("CMakeLists.txt", "add_layer(support)\n")
        for name in ("build/release/made.md", "src/support/file.o", "out/x.md", "out_resnet/x.md"):
            self.put(name, "[none](none.md)\n")

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_files_are_found_without_git(self):
        done = run(self.root, "tree.py", "src/*", "*.md", env=NO_GIT)
        self.assertEqual((done.stdout, done.stderr), ("README.md\nsrc/support/file.h\n", ""))

    def test_files_are_found_where_git_does_not_read_the_repository(self):
        self.put(".git/HEAD", "damaged\n")
        self.assertEqual(run(self.root, "tree.py", "*.h").stdout, "include/pruner/module.h\nsrc/support/file.h\n")

    def test_links_are_checked_without_git(self):
        self.assertEqual(run(self.root, "check_links.py", env=NO_GIT).stdout,
                         "links: 1 pages, what they link to is here\n")  # fmt: skip
        self.put("docs/page.md", "[none](none.md)\n")
        done = run(self.root, "check_links.py", env=NO_GIT)
        self.assertEqual((done.returncode, done.stdout), (1, "docs/page.md: no none.md\n"))

    def test_quoted_code_has_to_be_in_the_sources(self):
        self.put("src/support/file.cpp", "int twice(int x) {\n  return 2 * x;\n}\n")
        self.put("tests/support/file_test.cpp", "int main() {}\n")
        page = "<!-- quotes the source -->\n`src/support/file.cpp`, `src/support/NAME.cpp`\n"
        self.put("docs/page.md", page + "```cpp\nint twice(int x) {\n return 2 * x;\n}\n```\n")
        self.assertEqual(run(self.root, "check_quotes.py", env=NO_GIT).stdout,
                         "quotes: 1 pages, the sources have what they show\n")  # fmt: skip
        self.put("docs/page.md", page + "`src/none.cpp`\n```cpp\nint thrice(int x) {\n}\n```\n")
        done = run(self.root, "check_quotes.py", env=NO_GIT)
        self.assertEqual((done.returncode, done.stdout),
                         (1, "docs/page.md: no source has: int thrice(int x) { ...\n"
                             "docs/page.md: no src/none.cpp\n"))  # fmt: skip

    def test_nothing_to_look_at_is_an_error(self):
        shutil.rmtree(self.root / "src")
        os.remove(self.root / "README.md")
        for tool, arguments, why in (
            ("tree.py", ["src/*.cpp"], "src/*.cpp: no file of the repository matches"),
            ("check_links.py", [], "*.md: no file of the repository matches"),
            ("check_quotes.py", [], "*.md: no file of the repository matches"),
            ("check_layers.py", [], "src: no file there ends in .h or .cpp or .c"),
            ("check_types.py", [], "src: no file there ends in .h or .cpp"),
            ("lint.py", [], "lint: no file is named"),
        ):
            done = run(self.root, tool, *arguments)
            self.assertEqual((done.returncode, done.stderr.strip()), (1, why), tool)

    def test_the_container_file_has_to_build_something(self):
        self.put("Dockerfile", "FROM debian:12\n")
        shutil.copy(ROOT / "CMakePresets.json", self.root)
        done = run(self.root, "check_container.py")
        self.assertEqual((done.returncode, done.stderr.startswith("Dockerfile: ")), (1, True))

    def test_check_sh_fails_without_files(self):
        shutil.rmtree(self.root / "src")
        done = subprocess.run([self.root / "tools/check.sh"], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no file of the repository matches", done.stderr)

    def test_check_portable_needs_a_file(self):
        done = subprocess.run([self.root / "tools/check_portable.sh"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "usage: tools/check_portable.sh FILE...\n"))


class Here(unittest.TestCase):
    def test_files_are_the_same_with_git_and_without(self):
        """The rules of .gitignore that tree.py knows are all that there are."""
        sys.path.insert(0, str(ROOT / "tools"))
        import tree

        known = tree.known_to_git()
        if known is None:
            self.skipTest("no repository here")
        self.assertEqual(sorted(known), sorted(tree.found_without_git()))

    def test_packages_have_what_the_checks_call(self):
        lists = (ROOT / "tools/packages.sh").read_text()
        for program in ("git", "python3", "clang-format-14"):
            self.assertRegex(lists, rf"[\"\s]{program}[\"\s]")


if __name__ == "__main__":
    unittest.main()
