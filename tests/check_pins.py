"""Whether the pinned requirements can be installed with every supported Python: asks the index, and installs nothing.

    python tests/check_pins.py [VERSION...]

Versions are those of Python, by default the oldest of each minor version that people have. Prints why pip refuses a
file of requirements, and exits with 1. tests/python/test_requirements.py checks the oldest without a network.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# tests/requirements.txt contains that of the samples.
REQUIREMENTS = ["tests/requirements.txt", "tests/clients/requirements.txt"]
OLDEST = "3.11.2"  # Debian 12's own
VERSIONS = [OLDEST, "3.12", "3.13", "3.14"]


def refusal(requirements: str, version: str) -> str:
    """What pip says about installing these requirements with this Python; empty if it can."""
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
    # A yanked version is a warning.
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
