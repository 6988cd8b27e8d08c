# SPDX-License-Identifier: Apache-2.0
"""Location and execution of the program, with a fake program that can end in every way."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from rung import _program, notebook

FAKE = f"""#!{sys.executable}
import json, os, signal, sys, time
words = sys.argv[1:]
if words[0] == "echo":
    print(json.dumps({{"words": words, "color": os.environ.get("NO_COLOR"), "tty": os.isatty(2)}}))
elif words[0] == "large":
    sys.stderr.write("\\r[####....]  50 %  f32 64x64\\033[K")
    sys.stderr.flush()
    print(json.dumps(["x" * 1000] * 2000))
    sys.stderr.write("\\r[########] 100 %  done \\u00b5\\033[K\\r\\033[K")
elif words[0] == "refuse":
    sys.stderr.write("gemm: takes about a second\\nrung: gemm: a is 4x8, b is 7x3" + " and more" * 30 + "\\n")
    sys.exit(2)
elif words[0] == "failed":
    print(json.dumps({{"failed": 3}}))
    sys.exit(1)
elif words[0] == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif words[0] == "silent":
    sys.exit(0)
elif words[0] == "file":
    open(words[-1], "w").write(json.dumps({{"rows": [1]}}))
    print("a table for people")
elif words[0] == "wait":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    open(words[1], "w").write(str(os.getpid()))
    time.sleep(60)
elif words[0] == "stubborn":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    open(words[1], "w").write(str(os.getpid()))
    time.sleep(60)
"""


def make_program(path, text=FAKE):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    path = make_program(tmp_path / "rung")
    monkeypatch.setenv("RUNG_PROGRAM", path)
    return path


# --- location


def test_environment_names_the_program(fake):
    assert _program.program() == fake


@pytest.mark.parametrize("name", ["/nonexistent/rung", "/"])
def test_environment_that_names_no_program_is_refused(monkeypatch, name):
    monkeypatch.setenv("RUNG_PROGRAM", name)
    with pytest.raises(ValueError, match=f"RUNG_PROGRAM: '{name}' given"):
        _program.program()


def test_installed_program_comes_before_build_tree_and_path(tmp_path, monkeypatch):
    monkeypatch.delenv("RUNG_PROGRAM", raising=False)
    (tmp_path / "path").mkdir()
    on_path = make_program(tmp_path / "path" / "rung", "\177ELF")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    package = tmp_path / "build" / "python" / "rung"
    monkeypatch.setattr(_program, "_PACKAGE", package)
    monkeypatch.setattr(_program, "_INSTALLED", package / "_prefix" / "bin" / "rung")
    assert _program.program() == on_path
    (tmp_path / "build" / "bin").mkdir(parents=True)
    in_tree = make_program(tmp_path / "build" / "bin" / "rung")
    assert _program.program() == in_tree
    (package / "_prefix" / "bin").mkdir(parents=True)
    installed = make_program(package / "_prefix" / "bin" / "rung")
    assert _program.program() == installed


def test_source_tree_finds_its_newest_build(tmp_path, monkeypatch):
    monkeypatch.delenv("RUNG_PROGRAM", raising=False)
    monkeypatch.setattr(_program, "_PACKAGE", tmp_path / "python" / "rung")
    monkeypatch.setattr(_program, "_INSTALLED", tmp_path / "none")
    for at, name in enumerate(("release", "dev")):
        folder = tmp_path / "build" / name / "bin"
        folder.mkdir(parents=True)
        os.utime(make_program(folder / "rung"), (at, at))
    assert _program.program() == str(tmp_path / "build" / "dev" / "bin" / "rung")


def test_console_script_on_path_is_not_taken_for_the_program(tmp_path, monkeypatch):
    monkeypatch.delenv("RUNG_PROGRAM", raising=False)
    monkeypatch.setattr(_program, "_PACKAGE", tmp_path / "nothing" / "python" / "rung")
    monkeypatch.setattr(_program, "_INSTALLED", tmp_path / "none")
    make_program(tmp_path / "rung", "#!/usr/bin/python3\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="the program rung is not found"):
        _program.program()


def test_console_script_replaces_itself_by_the_program(fake):
    code = "import sys; sys.argv[0] = 'rung'; from rung._program import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "echo", "a b"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["words"] == ["echo", "a b"]


def test_console_script_does_not_run_itself(tmp_path):
    """If RUNG_PROGRAM named the console script, it would run itself without end."""
    script = make_program(tmp_path / "rung", f"#!{sys.executable}\nfrom rung._program import main\nmain()\n")
    done = subprocess.run([script], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "RUNG_PROGRAM": script})
    assert (done.returncode, done.stderr) == (
        3, f"rung: RUNG_PROGRAM: '{script}' given, which is this command; accepted: the path of the program rung\n")


# --- output


def test_json_is_the_last_word_and_colors_are_off(fake):
    answer = _program.run("echo", "reduce", 3, progress=False)
    assert answer == {"words": ["echo", "reduce", "3", "--json"], "color": "1", "tty": True}


def test_progress_is_reported_while_a_large_answer_is_read(fake):
    seen = []
    answer = _program.run("large", progress=lambda share, doing: seen.append((share, doing)))
    assert len(answer) == 2000
    assert seen == [(0.5, "f32 64x64"), (1.0, "done \u00b5")]


def test_refusal_is_an_error_with_the_programs_words(fake):
    with pytest.raises(ValueError) as refused:
        _program.run("refuse", progress=False)
    assert str(refused.value) == "gemm: a is 4x8, b is 7x3" + " and more" * 30


def test_failed_check_is_an_answer(fake):
    assert _program.run("failed", progress=False) == {"failed": 3}


@pytest.mark.parametrize(("word", "message"), [("crash", "rung crash ended by signal 11"),
                                               ("silent", "rung silent: printed no JSON")])
def test_end_without_an_answer_is_an_error(fake, word, message):
    with pytest.raises(ValueError, match=message):
        _program.run(word, progress=False)


def test_program_that_cannot_start_is_an_error(fake, tmp_path):
    (tmp_path / "rung").write_text("#!/nonexistent/interpreter\n")
    with pytest.raises(ValueError, match="cannot be run: No such file"):
        _program.run("echo", progress=False)


def test_command_that_writes_a_file_gives_its_content(fake):
    assert _program.run("file", progress=False, file=True) == {"rows": [1]}


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("word", ["wait", "stubborn"])
def test_ctrl_c_ends_the_program(fake, tmp_path, word):
    """Runs in a separate process: the terminal's signal reaches Python alone."""
    noted = tmp_path / "pid"
    code = f"from rung import _program; _program.run({word!r}, {str(noted)!r}, progress=False)"
    python = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        if noted.exists() and noted.read_text():
            break
        time.sleep(0.05)
    pid = int(noted.read_text())
    assert is_running(pid)
    python.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in python.communicate(timeout=20)[1]
    assert not is_running(pid)


def test_callback_that_raises_ends_the_program(fake):
    class Enough(Exception):
        pass

    def progress(share, doing):
        raise Enough
    with pytest.raises(Enough):
        _program.run("large", progress=progress)


def test_threads_run_programs_side_by_side_and_leave_no_descriptor(fake):
    before = len(os.listdir("/proc/self/fd"))
    answers = []
    threads = [threading.Thread(target=lambda at=at: answers.append(_program.run("echo", at, progress=False)))
               for at in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["words"][1] for answer in answers) == list("0123456")
    assert len(os.listdir("/proc/self/fd")) == before


def test_error_is_rungs_where_the_extension_is_there():
    import rung
    kind = type(_program.error("x"))
    assert kind is getattr(rung, "Error", ValueError)


# --- progress shown to a person


def test_line_is_drawn_and_wiped(capsys):
    with notebook.progress_line(True) as report:
        report(0.5, "f32 64x64")
    drawn = capsys.readouterr().err
    assert "[############............]  50%  f32 64x64" in drawn
    assert drawn.endswith("\r\033[K")


def test_nothing_is_drawn_where_nobody_looks(capsys):
    with notebook.progress_line(None) as report:
        report(0.5, "f32 64x64")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("value", "text"), [(0.00123, "1.23 ms"), (9.996e-4, "1.00 ms"), (0, "0 s"), (None, ""),
                                             (2.5, "2.50 s"), (4.1e-8, "41.0 ns"), (123.4, "123 s")])
def test_times_have_three_digits(value, text):
    assert notebook.si(value, "s") == text


@pytest.mark.parametrize(("value", "text"), [(1234567, "1,234,567"), (16.5, "16.5"), (3.0, "3"), (None, ""),
                                             ("-", "-"), (True, "True")])
def test_numbers_are_readable(value, text):
    assert notebook.number(value) == text


def test_html_is_escaped_and_aligned():
    table = notebook.html_table(["rung", ">time"], [["<b>&", "1"]], "a < b", {0})
    assert "&lt;b&gt;&amp;" in table and "<caption>a &lt; b</caption>" in table
    assert '<th style="text-align:right">time</th>' in table
    assert '<tr style="opacity:.6">' in table


def test_text_is_aligned():
    assert notebook.text_table(["rung", ">time"], [["a", "10"], ["long", "1"]]) == \
        "rung  time\na       10\nlong     1"
