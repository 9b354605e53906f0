"""Checks if the pinned requirements can be installed with every supported Python; asks the index, installs nothing.

    python tests/check_pins.py [VERSION...]

VERSION is a version of Python; the default is the oldest of each minor version that people have. Prints why pip refuses
a file of requirements, and exits with 1. tests/python/test_requirements.py checks the oldest without a network.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# tests/requirements.txt contains that of the samples.
REQUIREMENTS = ["tests/requirements.txt", "tests/clients/requirements.txt"]
OLDEST = "3.11.2"  # the version in Debian 12
VERSIONS = [OLDEST, "3.12", "3.13", "3.14"]


def refusal(requirements: str, version: str) -> str:
    """Returns pip's message if these requirements cannot be installed with this Python, or an empty string."""
    with tempfile.TemporaryDirectory() as target:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"),
                *("--ignore-installed", "--only-binary=:all:", "--python-version", version, "--target", target),
                *("-r", ROOT / requirements),
            ],
            capture_output=True,
            text=True,
        )
    # pip reports a yanked version as a warning.
    return (done.stderr.strip() or f"pip ended with {done.returncode}") if done.returncode or done.stderr else ""


def main() -> int:
    status = 0
    for version in sys.argv[1:] or VERSIONS:
        for requirements in REQUIREMENTS:
            said = refusal(requirements, version)
            print(f"Python {version}: {requirements}: {said or 'can be installed'}")
            status = 1 if said else status
    return status


if __name__ == "__main__":
    sys.exit(main())
