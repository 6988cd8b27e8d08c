// SPDX-License-Identifier: Apache-2.0
// Handling of fatal signals while a rung runs.
#include "rung/workbench/crash.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace rung::workbench {
namespace {

constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t longest_command = 1024;

// Preallocated: a signal handler must not allocate memory.
char running[longest_command] = {};
struct sigaction previous[std::size(fatal_signals)];

void write_text(const char* text) {
  // A failed write cannot be reported by a crashing program.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void on_fatal_signal(int signal) {
  write_text("\nrung: a kernel crashed: ");
  write_text(signal == SIGFPE   ? "arithmetic fault"
             : signal == SIGILL ? "instruction this CPU does not have"
                                : "invalid memory access");
  write_text("\n  again: ");
  write_text(running);
  write_text("\n");
  _exit(1);
}

}  // namespace

CrashNote::CrashNote(const std::string& command) {
  const std::size_t length = std::min(command.size(), longest_command - 1);
  std::memcpy(running, command.data(), length);
  running[length] = '\0';
  struct sigaction action = {};
  action.sa_handler = on_fatal_signal;
  for (std::size_t i = 0; i < std::size(fatal_signals); ++i) {
    sigaction(fatal_signals[i], &action, &previous[i]);
  }
}

CrashNote::~CrashNote() {
  for (std::size_t i = 0; i < std::size(fatal_signals); ++i) {
    sigaction(fatal_signals[i], &previous[i], nullptr);
  }
}

}  // namespace rung::workbench
