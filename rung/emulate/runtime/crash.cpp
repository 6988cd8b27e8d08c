// SPDX-License-Identifier: Apache-2.0
// Fatal signals. A signal raised by a kernel ends the kernel as on a GPU: the launch fails with an
// error, and the program continues. A signal raised by host code ends the program, after a forked
// copy of the process has reported the source location, since the heap may be damaged or locked.
#include "rung/emulate/runtime/crash.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include "rung/emulate/runtime/apart.hpp"
#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/running_kernel.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"

namespace rung::cuda {
namespace {

struct Fault {
  int signal = 0;
  const void* address = nullptr;
  const void* code = nullptr;
  unsigned long error = 0;  // error code of the page fault; bit 1: a write
  bool general = false;     // general protection fault, which has no address
};
thread_local Fault fault;

thread_local char message[1024];

const char* what(int signal) {
  switch (signal) {
    case SIGFPE:
      return "a division by zero of integers";
    case SIGILL:
      return "an illegal instruction";
    case SIGALRM:
      return "the time is up";
    case SIGINT:
    case SIGTERM:
      return "interrupted";
    case SIGABRT:
      return "aborted";
    default:
      return "an access to an invalid address";
  }
}

/// Returns the source line of code of the program; "" for system libraries, even if their debug
/// information is installed.
std::string program_line(const void* code) {
  Dl_info object;
  if (dladdr(code, &object) != 0 && object.dli_fname != nullptr) {
    const std::string_view name = object.dli_fname;
    if (name.starts_with("/usr/lib") || name.starts_with("/lib")) return "";
  }
  return simt::source_line(code);
}

std::string place_of(const void* code) {
  const std::string line = program_line(code);
  return line.empty() ? "" : "\n  at " + line;
}

/// Returns the location of the program's innermost function on the call stack.
std::string place_of_caller() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  for (int i = 0; i < count; ++i) {
    const std::string line = program_line(static_cast<char*>(frames[i]) - 1);
    // Skips frames of rung and the system.
    bool foreign = line.empty() || line.starts_with("..");
    for (const char* folder :
         {"rung/emulate/include", "rung/emulate/runtime", "rung/simt", "/usr/", "libstdc++"}) {
      foreign |= line.find(folder) != std::string::npos;
    }
    if (!foreign) return "\n  at " + line;
  }
  return "";
}

/// Describes freed memory at the address by its size and the call that freed it; "" if there is
/// none.
std::string what_lies_at(const void* address) {
  const FreedMemory freed = find_freed(address);
  if (freed.begin == nullptr) return "";
  const std::string line =
      freed.code == nullptr ? "" : simt::source_line(static_cast<const char*>(freed.code) - 1);
  return " in " + std::to_string(freed.bytes) + " bytes that have been freed" +
         (line.empty() ? "" : " at " + line);
}

/// Fails the kernel. Runs on the faulting thread's own stack, outside the signal handler.
[[noreturn]] void leave_kernel() {
  char pointer[32];
  std::snprintf(pointer, sizeof pointer, "%p", fault.address);
  // A fault without an address is caused by an instruction that requires alignment.
  const bool misaligned = fault.signal == SIGSEGV && fault.address == nullptr && fault.general;
  std::string text = misaligned ? "misaligned address: " : "invalid address: ";
  text += what(fault.signal);
  if (fault.signal == SIGSEGV || fault.signal == SIGBUS) {
    text += std::string(": ") + pointer + what_lies_at(fault.address);
  }
  text += place_of(fault.code);
  std::snprintf(message, sizeof message, "%s", text.c_str());
  text = std::string();  // the next call does not return, so no object may own memory here
  simt::fail(message, simt::Place{});
}

#if defined(__x86_64__)
const void* code_of(const ucontext_t& context) {
  return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
}
unsigned long error_of(const ucontext_t& context) {
  return static_cast<unsigned long>(context.uc_mcontext.gregs[REG_ERR]);
}
void continue_at(ucontext_t& context, void (*function)()) {
  auto& registers = context.uc_mcontext.gregs;
  // Moves the stack pointer below the red zone, aligned as after a call.
  registers[REG_RSP] = ((registers[REG_RSP] - 256) & ~15LL) - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(function);
}
#else
const void* code_of(const ucontext_t&) { return nullptr; }
unsigned long error_of(const ucontext_t&) { return 0; }
void continue_at(ucontext_t&, void (*)()) {}
#endif

/// Reports a fault in host code. Runs in a copy of the process, which has only this thread.
void tell_host_fault() {
  std::fflush(stdout);
  std::string where = place_of(fault.code);
  if (where.empty()) where = place_of_caller();
  const Allocation found = find(fault.address);
  if (found.begin != nullptr && found.type == cudaMemoryTypeDevice) {
    const bool writes = (fault.error & 2) != 0;
    report_host_access(found, static_cast<const char*>(fault.address), writes,
                       where.empty() ? "" : where.substr(where.find("at ") + 3));
  } else {
    std::string text = std::string("the program's host code: ") + what(fault.signal);
    text += what_lies_at(fault.address) + where;
    std::fprintf(stderr, "rung: %s\n", text.c_str());
  }
  write_report();
}

/// Runs work() in a copy of the process, and then lets the signal end the process.
void tell_apart(int signal, void (*work)()) {
  std::signal(signal, SIG_DFL);
  if (!do_apart(work)) {
    write_plainly("rung: the program's host code: ");
    write_plainly(what(signal));
    write_plainly(". Its heap is damaged, or locked: where it was cannot be told.\n");
    write_plainly(findings_as_text());
  }
  raise(signal);
}

void on_fault(int signal, siginfo_t* info, void* given) {
  auto& context = *static_cast<ucontext_t*>(given);
  fault = {signal, info->si_addr, code_of(context), error_of(context), info->si_code == SI_KERNEL};
#if defined(__x86_64__)
  if (simt::in_kernel()) {
    continue_at(context, &leave_kernel);
    return;
  }
#endif
  tell_apart(signal, tell_host_fault);
}

/// Returns the program's location when the signal arrived.
std::string interrupted_place() {
  std::string place = place_of(fault.code);
  const auto within = [&](const char* part) { return place.find(part) != std::string::npos; };
  const bool ours = place.empty() || within("rung/") || within(" at ..");
  return ours ? place_of_caller() : place;
}

void tell_stop() {
  const bool kernel = simt::in_kernel();
  std::fprintf(stderr, "rung: %s while %s runs%s\n", what(fault.signal),
               kernel ? "a kernel" : "host code", interrupted_place().c_str());
  write_report();
}

void tell_long_launch() {
  const char* const known = launch_data != nullptr ? launch_data->kernel : nullptr;
  const std::string kernel = known != nullptr ? "kernel " + plain_name(known) : "a kernel";
  std::fprintf(stderr, "rung: %s has run for %g s, and goes on%s\n", kernel.c_str(),
               long_launch_seconds(), interrupted_place().c_str());
}

void on_long_launch(int signal, siginfo_t*, void* given) {
  const int error = errno;
  fault = {.signal = signal, .code = code_of(*static_cast<ucontext_t*>(given))};
  if (simt::in_kernel()) do_apart(tell_long_launch);
  errno = error;
}

/// Handles Ctrl-C and time limits: reports the program's location and ends the program.
void on_stop(int signal, siginfo_t*, void* given) {
  if (!simt::in_kernel() && pass_signal(signal)) return;
  fault = {.signal = signal, .code = code_of(*static_cast<ucontext_t*>(given))};
  tell_apart(signal, tell_stop);
}

/// Handles SIGABRT, which mostly comes from failed assertions in host code; findings may explain
/// them.
void on_abort(int signal) { tell_apart(signal, write_report); }

void on_terminate() {
  std::string text = "the program's host code threw an exception that nothing catches";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      text += std::string(": ") + exception.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the exception has no text
    }
  }
  std::fflush(stdout);
  std::fprintf(stderr, "rung: %s%s\n", text.c_str(), place_of_caller().c_str());
  write_report();
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

struct Install {
  Install() {
    static const auto& stack = *new SignalStack;  // kernels leave it immediately
    static_cast<void>(stack);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
    action.sa_sigaction = on_stop;
    for (const int signal : {SIGALRM, SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
    action.sa_sigaction = on_long_launch;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(long_launch_signal(), &action, nullptr);
    std::signal(SIGABRT, on_abort);
    std::set_terminate(on_terminate);
  }
} const install;

}  // namespace

SignalStack::SignalStack() {
  constexpr std::size_t bytes = 128 << 10;
  memory_ = std::malloc(bytes);
  stack_t alternate = {};
  alternate.ss_sp = memory_;
  alternate.ss_size = bytes;
  sigaltstack(&alternate, nullptr);
}
SignalStack::~SignalStack() {
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  std::free(memory_);
}

}  // namespace rung::cuda
