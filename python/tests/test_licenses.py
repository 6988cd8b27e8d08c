# SPDX-License-Identifier: Apache-2.0
"""License texts of the libraries that a wheel carries. Needs the source tree and Debian's packages."""
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import rung

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "licenses.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists() or shutil.which("dpkg-query") is None,
                                reason="needs the source tree and dpkg")


def wheel_of(path, libraries, texts):
    with zipfile.ZipFile(path, "w") as wheel:
        for name in libraries:
            wheel.writestr(f"rung.libs/{name}", "")
        for text in texts:
            wheel.write(text, f"rung-0.1.0.dist-info/licenses/bundled/{text.name}")
    return subprocess.run([sys.executable, SCRIPT, "--check", path], capture_output=True, text=True, check=False)


def test_each_library_has_a_text(tmp_path):
    extension = next(pathlib.Path(rung.__file__).parent.glob("_rung*.so"))
    subprocess.run([sys.executable, SCRIPT, tmp_path / "texts", extension], check=True)
    texts = sorted((tmp_path / "texts").iterdir())
    index = dict(line.split(": ") for line in (tmp_path / "texts" / "libraries.txt").read_text().splitlines())
    openmp = next(name for name in index if name.startswith("libgomp"))
    assert "GNU GENERAL PUBLIC LICENSE" in (tmp_path / "texts" / index[openmp]).read_text(encoding="utf-8")
    grafted = [name.replace(".", "-0123abcd.", 1) for name in index if not name.startswith("(")]
    assert wheel_of(tmp_path / "whole.whl", grafted, texts).returncode == 0
    found = wheel_of(tmp_path / "other.whl", [*grafted, "libother-0123abcd.so.1"], texts)
    assert found.returncode == 1 and found.stderr.strip() == "no license text of libother-0123abcd.so.1"
    assert wheel_of(tmp_path / "none.whl", grafted, []).returncode == 1
