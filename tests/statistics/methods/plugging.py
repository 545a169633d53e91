"""Packages with methods for sfumato, built and installed without a build tool or a network."""

import base64
import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile


def wheel(folder: Path, into: Path) -> Path:
    """A wheel of the single module that a folder has beside its pyproject.toml, with its entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    about = f"{name}-{version}.dist-info"
    groups = project.get("entry-points", {}).items()
    files = {
        f"{name}.py": (folder / f"{name}.py").read_text(encoding="utf-8"),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "".join(
            f"[{group}]\n" + "".join(f"{entry} = {value}\n" for entry, value in named.items())
            for group, named in groups
        ),
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in files.items())
    built = into / f"{name}-{version}-py3-none-any.whl"
    with ZipFile(built, "w") as packed:
        for path, text in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
            packed.writestr(path, text)
    return built


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def install(folder: Path, site: Path) -> str:
    """Install the package of a folder into `site`; returned is the PYTHONPATH with which it is found."""
    site.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*pip, str(wheel(folder, site.parent))], check=True, capture_output=True)
    return os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
