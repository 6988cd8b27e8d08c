// SPDX-License-Identifier: Apache-2.0
// Fatal signals. One that a kernel causes ends the kernel as it would on a GPU: the launch fails
// with an error that the program gets, and goes on. One that host code causes ends the program,
// after its place in the source has been told.
#include "rung/emulate/runtime/crash.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"

namespace rung::cuda {
namespace {

struct Fault {
  int signal = 0;
  const void* address = nullptr;
  const void* code = nullptr;
  bool general = false;  // no page is to blame
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
    default:
      return "an access to an invalid address";
  }
}

std::string place_of(const void* code) {
  const std::string line = simt::source_line(code);
  return line.empty() ? "" : "\n  at " + line;
}

/// The innermost function of the program itself that is being called now.
std::string place_of_caller() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  for (int i = 0; i < count; ++i) {
    const std::string line = simt::source_line(static_cast<char*>(frames[i]) - 1);
    // Neither ours nor the system's.
    bool foreign = line.empty() || line.starts_with("..");
    for (const char* folder : {"rung/emulate/runtime", "rung/simt", "/usr/", "libstdc++"}) {
      foreign |= line.find(folder) != std::string::npos;
    }
    if (!foreign) return "\n  at " + line;
  }
  return "";
}

/// Where a faulting thread of a kernel goes on: on its own stack, out of the handler.
[[noreturn]] void leave_kernel() {
  char pointer[32];
  std::snprintf(pointer, sizeof pointer, "%p", fault.address);
  // A fault without an address is one of an instruction that wants its operand aligned.
  const bool misaligned = fault.signal == SIGSEGV && fault.address == nullptr && fault.general;
  std::string text = misaligned ? "misaligned address: " : "invalid address: ";
  text += what(fault.signal);
  if (fault.signal == SIGSEGV || fault.signal == SIGBUS) text += std::string(": ") + pointer;
  text += place_of(fault.code);
  std::snprintf(message, sizeof message, "%s", text.c_str());
  text = std::string();  // nothing that owns memory may be alive
  simt::fail(message, simt::Place{});
}

#if defined(__x86_64__)
const void* code_of(const ucontext_t& context) {
  return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
}
void continue_at(ucontext_t& context, void (*function)()) {
  auto& registers = context.uc_mcontext.gregs;
  // Below the red zone, aligned as after a call.
  registers[REG_RSP] = ((registers[REG_RSP] - 256) & ~15LL) - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(function);
}
#else
const void* code_of(const ucontext_t&) { return nullptr; }
void continue_at(ucontext_t&, void (*)()) {}
#endif

void tell_host_fault(int signal, const void* code) {
  std::fflush(stdout);
  std::string text = std::string("the program's host code: ") + what(signal);
  text += place_of(code);
  if (text.find("\n  at ") == std::string::npos) text += place_of_caller();
  std::fprintf(stderr, "rung: %s\n", text.c_str());
}

void on_fault(int signal, siginfo_t* info, void* given) {
  auto& context = *static_cast<ucontext_t*>(given);
  fault = {signal, info->si_addr, code_of(context), info->si_code == SI_KERNEL};
#if defined(__x86_64__)
  if (simt::in_kernel()) {
    continue_at(context, &leave_kernel);
    return;
  }
#endif
  std::signal(signal, SIG_DFL);
  tell_host_fault(signal, fault.code);
  write_report();
  raise(signal);
}

/// Ctrl-C and time limits: where the program is, then the end.
void on_stop(int signal, siginfo_t*, void* given) {
  if (!simt::in_kernel() && pass_signal(signal)) return;
  std::signal(signal, SIG_DFL);
  const void* code = code_of(*static_cast<ucontext_t*>(given));
  const bool kernel = simt::in_kernel();
  std::string place = place_of(code);
  const auto within = [&](const char* part) { return place.find(part) != std::string::npos; };
  if (place.empty() || within("rung/") || within(" at ..")) place = place_of_caller();
  std::fprintf(stderr, "rung: %s while %s runs%s\n", what(signal),
               kernel ? "a kernel" : "host code", place.c_str());
  write_report();
  raise(signal);
}

/// An assertion of the host's code that fails, most often: what was found may be why.
void on_abort(int signal) {
  std::signal(signal, SIG_DFL);
  write_report();
  raise(signal);
}

void on_terminate() {
  std::string text = "the program's host code threw an exception that nothing catches";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      text += std::string(": ") + exception.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch): it has no text
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
    static const auto& stack = *new SignalStack;  // in a kernel it is left at once
    static_cast<void>(stack);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
    action.sa_sigaction = on_stop;
    for (const int signal : {SIGALRM, SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
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
