# SPDX-License-Identifier: Apache-2.0
"""examples/digits on small synthetic data.

usage: digits.py SOURCE PROGRAM [--simt]

Each model learns the data; the loss of every step is bitwise equal for any number of threads, and within 1e-5 on the
simulated GPU; a stopped run resumes bitwise; a checkpoint whose writing is killed leaves the previous one; malformed
input gives a message; a drawn digit is recognized.
"""
import argparse
import pathlib
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

EDGE = 28
# Which of the seven segments - top, upper left, upper right, middle, lower left, lower right, bottom - a digit has.
STROKES = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"]


def stroke_pixels(digit):
    """Yields row and column of every pixel of a seven-segment digit, 16 x 10 pixels."""
    lines = [[(0, c) for c in range(10)], [(r, 0) for r in range(8)], [(r, 9) for r in range(8)],
             [(8, c) for c in range(10)], [(r, 0) for r in range(8, 16)], [(r, 9) for r in range(8, 16)],
             [(15, c) for c in range(10)]]
    for line, on in zip(lines, STROKES[digit]):
        if on == "1":
            yield from line


def image(digit, draw):
    """Returns a digit near the center, with lines two pixels wide, over noise."""
    pixels = bytearray(draw.randrange(60) for _ in range(EDGE * EDGE))
    top, left = 5 + draw.randrange(3), 7 + draw.randrange(3)
    for row, column in stroke_pixels(digit):
        for down in range(2):
            for right in range(2):
                pixels[(top + row + down) * EDGE + left + column + right] = 200 + draw.randrange(56)
    return bytes(pixels)


def png(width, height, pixels):
    """Returns an 8-bit grayscale PNG file."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + pixels[row * width:(row + 1) * width] for row in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Test:
    def __init__(self, source, program, folder):
        sys.path.insert(0, str(source / "tools"))
        import digits_data
        self.npy, self.tool = digits_data.npy, source / "tools/digits_data.py"
        self.program, self.folder = program, folder
        draw = random.Random(1)
        labels = [i % 10 for i in range(400)]
        draw.shuffle(labels)
        self.write("good", b"".join(image(label, draw) for label in labels), labels)

    def write(self, name, pixels, labels, shape=None):
        shape = shape or (len(labels), EDGE, EDGE)
        (self.folder / f"{name}_images.npy").write_bytes(self.npy("|u1", shape, pixels))
        (self.folder / f"{name}_labels.npy").write_bytes(
            self.npy("<i8", (len(labels),), struct.pack(f"<{len(labels)}q", *labels)))

    def command(self, *words):
        # One thread: there are few images, and on a busy machine threads wait long for each other.
        given = {"--data": self.folder, "--set": "good", "--threads": 1}
        more = [word for name, value in given.items() if name not in words for word in (name, value)]
        return [self.program, *map(str, (*more, *words))]

    def run(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=200)
        if done.returncode != 0:
            sys.exit(f"{words} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def refused(self, words, message):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=200)
        if done.returncode != 1 or message not in done.stderr:
            sys.exit(f"{words} ends with {done.returncode}, without '{message}':\n{done.stdout}{done.stderr}")

    def curve(self, *words):
        """Returns the loss of every step."""
        self.run(*words, "--curve", self.folder / "curve.npy")
        content = (self.folder / "curve.npy").read_bytes()
        header = 10 + int.from_bytes(content[8:10], "little")
        return struct.unpack(f"<{(len(content) - header) // 4}f", content[header:])

    def learns(self):
        for model, epochs, least in ("perceptron", 10, 90), ("softmax", 10, 90), ("mlp", 8, 95), ("lenet", 8, 95):
            text = self.run("--model", model, "--epochs", epochs, "--batch", 16)
            accuracy = float(text.rsplit("accuracy ", 1)[1].split(" ")[0])
            if accuracy < least:
                sys.exit(f"{model} reads {accuracy} % of the digits, not {least}:\n{text}")

    def repeats(self, simt):
        for model in "perceptron", "softmax", "mlp", "lenet":
            # 37 images: the last batch of an epoch is smaller.
            words = ("--model", model, "--epochs", 1, "--batch", 37)
            one = self.curve(*words, "--threads", 1)
            for more in (*words, "--threads", 3), (*words, "--threads", 2, "--copy-steps"):
                if self.curve(*more) != one:
                    sys.exit(f"{more}: other losses than with one thread")
            if self.curve(*words, "--seed", 2) == one:
                sys.exit(f"{model}: the seed changes nothing")
            if not simt:
                continue
            simulated = self.curve(*words, "--backend", "simt", "--steps", 3)
            if len(simulated) != 3 or any(abs(a - b) > 1e-5 * b for a, b in zip(simulated, one)):
                sys.exit(f"{model}: {simulated} on the simulated GPU, {one[:3]} on the CPU")

    def goes_on(self):
        for model in "softmax", "lenet":
            words = ("--model", model, "--epochs", 4, "--batch", 32, "--checkpoint")
            whole, parts = self.folder / "whole.npz", self.folder / "parts.npz"
            self.run(*words, whole)
            self.run(*words, parts, "--steps", 25)  # within the third epoch of 10 steps
            if parts.read_bytes() == whole.read_bytes():
                sys.exit("a run of 25 steps is one of 40")
            self.run(*words, parts, "--resume")
            if parts.read_bytes() != whole.read_bytes():
                sys.exit(f"{model}: a run that was stopped and resumed ends elsewhere")
            with zipfile.ZipFile(whole) as archive:
                if archive.testzip() is not None or "output.weight.npy" not in archive.namelist():
                    sys.exit("the checkpoint is no zip archive of arrays")

    def survives(self):
        """Kills the program at any moment: the checkpoint must be that of an epoch, and resumable."""
        # Few images: most of the time is spent writing checkpoints.
        draw = random.Random(3)
        self.write("few", b"".join(image(digit, draw) for digit in range(10)), list(range(10)))
        path = self.folder / "killed.npz"
        words = ("--set", "few", "--model", "mlp", "--epochs", 100000, "--batch", 8, "--checkpoint", path)
        for attempt in range(12):
            before = path.stat().st_mtime_ns if path.exists() else 0
            resume = ["--resume"] if path.exists() else []
            with subprocess.Popen(self.command(*words, *resume), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE) as process:
                deadline = time.monotonic() + 60
                while process.poll() is None and time.monotonic() < deadline:
                    if path.exists() and path.stat().st_mtime_ns != before:
                        break
                    time.sleep(0.001)
                time.sleep(0.02 * draw.random())
                process.send_signal(signal.SIGKILL)
                error = process.communicate()[1]
            if error or not path.exists() or path.stat().st_mtime_ns == before:
                sys.exit(f"attempt {attempt}: {error.decode() or 'no checkpoint was written'}")
            try:
                with zipfile.ZipFile(path) as archive:
                    damaged = archive.testzip()
            except zipfile.BadZipFile as broken:
                damaged = str(broken)
            if damaged is not None:
                sys.exit(f"attempt {attempt}: the checkpoint is damaged: {damaged}")
        # Certainly during a write: a file-size limit of half a checkpoint.
        before = path.read_bytes()
        half = len(before) // 2
        done = subprocess.run(self.command(*words, "--resume"), capture_output=True, check=False, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (half, half)))
        if done.returncode == 0 or path.read_bytes() != before:
            sys.exit(f"ended by {done.returncode} while a checkpoint was written, and the one before is gone")

    def refuses(self):
        good = self.folder / "good.npz"
        words = ("--model", "mlp", "--epochs", 1, "--checkpoint", good)
        self.run(*words)
        content = good.read_bytes()
        for name, damaged in (("short", content[:-400 - 64000]), ("flipped", content[:5000] + bytes([content[5000] ^ 1])
                                                                   + content[5001:]), ("empty", b"")):
            path = self.folder / f"{name}.npz"
            path.write_bytes(damaged)
            self.refused(("--model", "mlp", "--epochs", 1, "--checkpoint", path, "--resume"), str(path))
        self.refused(("--model", "softmax", "--epochs", 1, "--checkpoint", good, "--resume"),
                     "no checkpoint of this model")
        self.refused(("--model", "mlp", "--epochs", 2, "--checkpoint", good, "--resume"), "other epochs")
        self.refused(("--model", "mlp", "--checkpoint", self.folder / "none.npz", "--resume"), "cannot be read")
        self.refused(("--model", "vgg"), "accepted: perceptron, softmax, mlp, lenet")
        self.refused(("--rate", "fast"), "--rate is fast")
        self.refused(("--speed", "1"), "no option --speed")
        pixels = bytes(EDGE * EDGE * 20)
        labels = [i % 10 for i in range(20)]
        self.write("label", pixels, labels[:-1] + [10])
        self.refused(("--set", "label", "--model", "mlp"), "has the label 10; accepted: 0 to 9")
        self.write("fewer", pixels, labels[:-1], (20, EDGE, EDGE))
        self.refused(("--set", "fewer", "--model", "mlp"), "19 labels for 20 images")
        self.write("wide", pixels[:20 * 28 * 14], labels, (20, 28, 14))
        self.refused(("--set", "wide", "--model", "mlp"), "28 x 14; accepted: squares")
        self.write("cut", pixels[:-1], labels)
        self.refused(("--set", "cut", "--model", "mlp"), "cut_images.npy")
        self.write("small", bytes(64 * 20), labels, (20, 8, 8))
        self.refused(("--set", "small", "--model", "lenet"), "accepted: 28 for lenet")

    def reads(self):
        path = self.folder / "lenet.npz"
        words = ("--model", "lenet", "--epochs", 8, "--batch", 16, "--checkpoint", path)
        self.run(*words)
        for digit in 3, 7:
            # Drawn three times as large, dark on white, off-center.
            size, pixels = 120, bytearray(b"\xff" * 120 * 120)
            for row, column in stroke_pixels(digit):
                for down in range(6):
                    for right in range(6):
                        pixels[(10 + row * 3 + down) * size + 50 + column * 3 + right] = 20
            picture = self.folder / "drawn.png"
            picture.write_bytes(png(size, size, bytes(pixels)))
            text = self.run(*words, "--png", picture)
            if f"drawn.png: {digit}\n" not in text:
                sys.exit(f"a drawn {digit} is read as:\n{text}")
        blank = self.folder / "blank.png"
        blank.write_bytes(png(30, 30, b"\xff" * 900))
        self.refused((*words, "--png", blank), "is blank")
        blank.write_bytes(b"\x89PNG\r\n\x1a\n")
        self.refused((*words, "--png", blank), "no PNG file")

    def converts(self):
        """Runs tools/digits_data.py on packages made here: a valid one, and malformed ones."""
        import gzip
        table = "sklearn/datasets/data/digits.csv.gz"
        line = ",".join(["16"] + ["0"] * 63 + ["7"])
        for text, message in ((f"{line}\n{line}\n", ""), (f"{line}\n1,2\n", "line 2: 2 fields; accepted: 65"),
                              (line.replace("16", "17"), "a pixel is not from 0 to 16"),
                              (line[:-1] + "10", "the label is 10"), (line.replace("16", "x"), "not whole numbers"),
                              ("", "no images"), (None, "There is no item named")):
            wheel = self.folder / "scikit_learn-1-py3.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                if text is not None:
                    archive.writestr(table, gzip.compress(text.encode()))
            done = subprocess.run([sys.executable, self.tool, self.folder, "--set", "digits", "--wheel", wheel],
                                  capture_output=True, text=True, check=False)
            if (done.returncode == 0) != (message == "") or message not in done.stderr:
                sys.exit(f"digits_data.py on {text!r}: {done.returncode}\n{done.stderr}")
        content = (self.folder / "digits_images.npy").read_bytes()
        if len(content) != 128 + 128 or content[128] != 16:
            sys.exit("digits_images.npy is not what was in the table")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("program")
    parser.add_argument("--simt", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(options.source, options.program, pathlib.Path(folder))
        for part in test.learns, lambda: test.repeats(options.simt), test.goes_on, test.survives, test.refuses, \
                test.reads, test.converts:
            began = time.monotonic()
            part()
            print(f"{time.monotonic() - began:.1f} s")
    print("digits: 7 parts passed")


if __name__ == "__main__":
    main()
