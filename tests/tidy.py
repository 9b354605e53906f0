"""Runs clang-tidy with .clang-tidy, over the C++ files that differ from a commit or over all of them.

    python tests/tidy.py --since COMMIT   files that differ from COMMIT, committed or not
    python tests/tidy.py --all            every file that is built
    python tests/tidy.py FILE...          these

A header is checked through one source file that includes it. Exits with 1 on a finding, with 2 if it could not run.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
# The compile commands without repetition: a file compiled once per instruction set is checked only once.
COMMANDS = BUILD / "checked"
PATTERNS = ["*.cpp", "*.hpp", "*.h"]
# The commands are g++'s; clang knows neither all of its warnings nor --param.
FOR_CLANG = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Qunused-arguments"]


class CannotRunError(Exception):
    pass


def clang_tidy_version() -> str:
    if not shutil.which("clang-tidy"):
        raise CannotRunError("clang-tidy was not found. On Debian or Ubuntu: apt-get install clang-tidy")
    printed = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\S+)", printed)
    return found[1] if found else "of an unknown version"


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.split("\0") if line]


def changed_since(commit: str) -> list[str]:
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    if known.returncode:
        raise CannotRunError(f"git knows no commit {commit}; a shallow clone may lack it: git fetch --unshallow")
    changed = git("diff", "--name-only", "-z", "--diff-filter=d", commit, "--", *PATTERNS)
    return sorted({*changed, *git("ls-files", "-z", "--others", "--exclude-standard", "--", *PATTERNS)})


def compiled_files() -> list[str]:
    """Configures build/tidy and returns the C++ files of the repository that it would compile."""
    configured = subprocess.run(
        ["cmake", "--preset", "dev", "--fresh", "-B", str(BUILD), "-DBASCULE_BATCHES=OFF", "-DBASCULE_COMPILER_CACHE=",
         "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if configured.returncode:
        raise CannotRunError(f"CMake could not configure build/tidy:\n{configured.stderr}")
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    sources = [entry for entry in reversed(entries) if entry["file"].endswith(".cpp")]
    once = {entry["file"]: entry for entry in sources if not Path(entry["file"]).is_relative_to(BUILD)}
    COMMANDS.mkdir(exist_ok=True)
    (COMMANDS / "compile_commands.json").write_text(json.dumps(list(once.values()), indent=1))
    return sorted(Path(file).relative_to(ROOT).as_posix() for file in once)


def including(header: str, files: list[str]) -> list[str]:
    include = re.compile(rf'^\s*#\s*include\s*[<"]([^>"]*/)?{re.escape(Path(header).name)}[>"]', re.MULTILINE)
    return [file for file in files if include.search((ROOT / file).read_text(encoding="utf-8", errors="replace"))]


def source_of(header: str, compiled: list[str]) -> str | None:
    """A compiled file through which to check `header`: its own, else one that includes it, even indirectly; or None."""
    own = Path(header).with_suffix(".cpp").as_posix()
    if own in compiled:
        return own
    forced = json.loads((COMMANDS / "compile_commands.json").read_text())
    for entry in forced:
        if re.search(rf"-include \S*{re.escape('/'.join(Path(header).parts[-2:]))}(\s|$)", entry["command"]):
            return Path(entry["file"]).relative_to(ROOT).as_posix()
    headers = git("ls-files", "-z", "--", "*.hpp", "*.h")
    seen, looking = {header}, [header]
    while looking:
        name = looking.pop(0)
        if sources := including(name, compiled):
            return sources[0]
        further = [file for file in including(name, headers) if file not in seen]
        seen.update(further)
        looking += further
    return None


def sources_of(files: list[str], compiled: list[str]) -> list[str]:
    """Returns the compiled files through which to check `files`; prints the files for which there is no such file."""
    sources: set[str] = set()
    for file in files:
        source = file if file in compiled else source_of(file, compiled) if file.endswith((".hpp", ".h")) else None
        if source:
            sources.add(source)
        else:
            print(f"{file}: not checked, the preset dev does not compile it")
    return sorted(sources)


def in_the_tree(path: str) -> str:
    """`path` relative to the repository, without the links of build/tidy/include."""
    resolved = Path(path).resolve()
    return str(resolved.relative_to(ROOT)) if resolved.is_relative_to(ROOT) else path


def findings_of(source: str) -> tuple[list[str], float]:
    """clang-tidy's findings in `source` and the headers that it includes, one text each; and the seconds it took."""
    start = time.monotonic()
    command = ["clang-tidy", "--quiet", "-p", str(COMMANDS), *FOR_CLANG, str(ROOT / source)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    findings: list[str] = []
    for line in done.stdout.splitlines():
        place = re.match(r"(/[^:]+)(:\d+:\d+: (error|warning|note): .*)", line)
        text = f"{in_the_tree(place[1])}{place[2]}" if place else line
        if findings and (not place or place[3] == "note"):
            findings[-1] += f"\n{text}"
        else:
            findings.append(text)
    if done.returncode and not findings:
        findings.append(f"{source}: clang-tidy ended with status {done.returncode}:\n{done.stderr}")
    return findings, time.monotonic() - start


def check(sources: list[str]) -> tuple[int, dict[str, float]]:
    """Checks `sources` in parallel and prints each finding once; returns how many, and the seconds of each file."""
    printed: set[str] = set()
    seconds: dict[str, float] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(findings_of, source): source for source in sources}
        for future in as_completed(running):
            findings, seconds[running[future]] = future.result()
            for finding in findings:
                first = finding.splitlines()[0]  # notes of a header's finding differ among sources
                if first not in printed:
                    printed.add(first)
                    print(finding, flush=True)
    return len(printed), seconds


def run(options: argparse.Namespace) -> int:
    version = clang_tidy_version()
    if options.since:
        files = changed_since(options.since)
        if not files:
            print(f"no C++ file differs from {options.since}")
            return 0
    else:
        files = [in_the_tree(file) for file in options.files]
    compiled = compiled_files()
    sources = compiled if options.all else sources_of(files, compiled)
    start = time.monotonic()
    found, seconds = check(sources)
    if options.all:
        for source in sorted(seconds, key=lambda file: -seconds[file])[:3]:
            print(f"{seconds[source]:5.0f} s  {source}")
    print(f"clang-tidy {version}: {found} findings in {len(sources)} files, {time.monotonic() - start:.0f} s")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--since", metavar="COMMIT", help="the C++ files that differ from COMMIT")
    which.add_argument("--all", action="store_true", help="every file that is built")
    which.add_argument("files", metavar="FILE", nargs="*", default=[], help="these files")
    try:
        return run(parser.parse_args())
    except CannotRunError as error:
        print(f"tests/tidy.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
