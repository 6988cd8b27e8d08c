# SPDX-License-Identifier: Apache-2.0
"""The processes of differential.py: each runs a part of the cases; the parent reports their findings, including
crashes."""
import ctypes
import json
import mmap
import os
import select
import signal
import struct
import sys
import time
import traceback

from against_numpy import Api
from comparison import Wrong
from differential_attention import attention, attention_backward
from differential_conv import conv, conv_backward_data, conv_backward_filter
from differential_core import core
from differential_elements import activation_backward, elementwise, transpose
from differential_gemm import gemm
from differential_image import image
from differential_norm import norm, norm_backward
from differential_pool import pool, pool_backward
from differential_rows import histogram, reduce, scan, softmax, softmax_backward
from differential_stencil import stencil
from differential_training import loss, optimizer
from random_case import Case, make_contexts

OPERATORS = {function.__name__: function for function in (
    activation_backward, attention, attention_backward, conv, conv_backward_data, conv_backward_filter, core,
    elementwise, gemm, histogram, image, loss, norm, norm_backward, optimizer, pool, pool_backward, reduce, scan,
    softmax, softmax_backward, stencil, transpose)}
HANGS_AFTER = 120  # seconds after which a case counts as hanging
MOST_COMPLAINTS = 100
CASE = struct.Struct("=qqd")  # operator's index, case, start time
TEXT = struct.Struct("3000s")


class Session(Api):
    """librung.so with one context per number of threads."""

    def __init__(self, library, slot):
        super().__init__(library)
        self.contexts, self.slot = make_contexts(self), slot

    def announce(self, description):
        """Stores a call's description for the parent, in case the call crashes."""
        text = description.encode()[:TEXT.size - 8]
        self.slot[CASE.size:CASE.size + TEXT.size] = TEXT.pack(text)

    def status_of(self, thread_count, function, tensors, options):
        described = [None if tensor is None else ctypes.byref(self.tensor(tensor)) for tensor in tensors]
        return getattr(self.library, f"rung_{function}")(self.contexts[thread_count], *described, ctypes.byref(options))

    def call_on(self, thread_count, function, tensors, options):
        self.check(self.status_of(thread_count, function, tensors, options))


def complaint_about(case):
    """Runs a case; returns its complaint, or None."""
    try:
        OPERATORS[case.operator](case)
    except Wrong as error:
        layouts = "; ".join(map(repr, case.tensors[:12]))
        return f"{error}\n  {case.description}\n  tensors: {layouts}"
    finally:
        case.release()
    return None


def work(options, here, first_round, step, slot, report):
    """Runs every step-th round, one case per operator, until the time is over."""
    session = Session(options.library, slot)
    end = options.begin + options.seconds
    number = first_round
    while time.monotonic() < end:
        for index, operator in enumerate(here):
            slot[:CASE.size] = CASE.pack(index, number, time.monotonic())
            session.announce("")
            case = Case(session, operator, options.seed, number)
            wrong = complaint_about(case)
            report({"operator": operator, "case": number, "calls": case.calls, "middle": case.middle, "wrong": wrong})
            if time.monotonic() >= end:
                break
        if options.case is not None:
            break
        number += step


class Worker:
    """A child process, its output so far, and its current case."""

    def __init__(self, options, here, first_round, step):
        self.options, self.here, self.step = options, here, step
        self.slot = mmap.mmap(-1, mmap.PAGESIZE)
        self.start(first_round)

    def start(self, first_round):
        self.slot[:CASE.size] = CASE.pack(0, first_round, time.monotonic())
        self.pipe, told = os.pipe()
        self.text = b""
        self.pid = os.fork()
        if self.pid:
            os.close(told)
            return
        os.close(self.pipe)
        code = 1
        try:
            pending = []

            def report(result):
                pending.append(json.dumps(result))
                if result["wrong"] or len(pending) == 64:
                    os.write(told, ("\n".join(pending) + "\n").encode())
                    pending.clear()

            work(self.options, self.here, first_round, self.step, self.slot, report)
            os.write(told, "".join(line + "\n" for line in pending).encode())
            code = 0
        except BaseException:  # this copy of the parent must end here in any case
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def current(self):
        """Returns operator and case in progress, and the seconds since its start."""
        index, number, began = CASE.unpack(self.slot[:CASE.size])
        return self.here[index], number, time.monotonic() - began

    def description(self):
        """Returns the last call's description, with layouts and options."""
        return TEXT.unpack(self.slot[CASE.size:CASE.size + TEXT.size])[0].rstrip(b"\0").decode(errors="replace")

    def results(self):
        """Returns the reports since the last call; None after the end of the process."""
        data = os.read(self.pipe, 1 << 20)
        self.text += data
        *lines, self.text = self.text.split(b"\n")
        return [json.loads(line) for line in lines] if data else None

    def end_of_process(self):
        """Returns the reason why the process ended early, or None."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            return f"ends by {signal.Signals(os.WTERMSIG(status)).name}"
        return None if os.WEXITSTATUS(status) == 0 else "ends the process, see above"


class Tally:
    """Cases, calls and complaints by operator."""

    def __init__(self, here):
        self.counts = {name: [0, 0, 0] for name in here}  # cases, medium-sized cases, calls
        self.wrong = 0

    def add(self, result):
        count = self.counts[result["operator"]]
        for at, more in enumerate((1, result["middle"], result["calls"])):
            count[at] += more

    def summary(self):
        lines = [f"{name} {calls} ({middle} of {cases} cases of middle size)"
                 for name, (cases, middle, calls) in self.counts.items()]
        total = sum(calls for _, _, calls in self.counts.values())
        return f"{total} calls: " + ", ".join(lines)


def search(options, here):
    """Starts the processes and collects their findings; returns the exit code."""
    print(f"seed {options.seed}", flush=True)
    options.begin = time.monotonic()
    processes = 1 if options.case is not None else options.processes
    workers = [Worker(options, here, i if options.case is None else options.case, processes) for i in range(processes)]
    tally = Tally(here)

    def complain(operator, number, text):
        tally.wrong += 1
        print(f"{operator}, case {number}, after {time.monotonic() - options.begin:.1f} s: {text}\n"
              f"  again: --seed {options.seed} --case {number} {operator}", flush=True)

    while workers and tally.wrong < (MOST_COMPLAINTS if options.keep_going else 1):
        ready, _, _ = select.select([worker.pipe for worker in workers], [], [], 1.0)
        for worker in list(workers):
            operator, number, seconds = worker.current()
            if seconds > HANGS_AFTER:
                os.kill(worker.pid, signal.SIGKILL)
            if worker.pipe not in ready:
                continue
            results = worker.results()
            for result in results or []:
                tally.add(result)
                if result["wrong"]:
                    complain(result["operator"], result["case"], result["wrong"])
            if results is None:
                ended = worker.end_of_process()
                workers.remove(worker)
                if ended:
                    operator, number, seconds = worker.current()
                    complain(operator, number, f"{ended}, {seconds:.1f} s after it began\n  {worker.description()}")
                    if options.keep_going and options.case is None:
                        worker.start(number + worker.step)
                        workers.append(worker)
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
        worker.end_of_process()
    print(tally.summary(), flush=True)
    if tally.wrong:
        print(f"{tally.wrong} cases are wrong")
        return 1
    if options.case is None and min(cases for cases, _, _ in tally.counts.values()) == 0:
        print("an operator was not tried")
        return 1
    return 0
