"""What importing a module brings along."""

import subprocess
import sys

from tests.support.paths import ROOT


def packages_loaded_by(module: str, *packages: str) -> list[str]:
    """Those of `packages` that a new Python has loaded after importing `module`.

    Each of them has to exist: a check for a name that is no longer used would always pass.
    """
    code = (
        f"import sys, {module}; print(*sys.modules)\n"
        "from importlib.util import find_spec; print(*(name for name in sys.argv[1:] if find_spec(name) is None))"
    )
    command = [sys.executable, "-c", code, *packages]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    loaded, unknown = (line.split() for line in shown.split("\n")[:2])
    assert unknown == []
    return [name for name in packages if any(f"{one}.".startswith(f"{name}.") for one in loaded)]
