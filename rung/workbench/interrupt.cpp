// SPDX-License-Identifier: Apache-2.0
// SIGINT handler shared by InterruptGuard and OpenLine, installed while an object of either exists.
#include "rung/workbench/interrupt.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace rung::workbench {
namespace {

volatile std::sig_atomic_t is_noted = 0;    // SIGINT was received
volatile std::sig_atomic_t is_guarded = 0;  // an InterruptGuard exists
volatile std::sig_atomic_t is_open = 0;     // an OpenLine exists
int users = 0;
struct sigaction before {};

void handle(int signal) {
  std::string_view text = "\nstopping after the call that runs; Ctrl-C again ends at once\n";
  if (is_guarded == 0) text = text.substr(0, 1);
  if (is_open == 0) text.remove_prefix(1);
  // Written to a pipe, too: otherwise a program in a call of minutes seems to ignore Ctrl-C.
  if (!text.empty()) static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  std::signal(signal, SIG_DFL);
  if (is_guarded != 0) {
    is_noted = 1;
  } else {
    std::raise(signal);
  }
}

void add_user() {
  if (users++ != 0) return;
  sigaction(SIGINT, nullptr, &before);
  // Replaces any existing handler: it is a library's (OpenCL drivers contain LLVM, whose handler
  // ends the program).
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

void remove_user() {
  if (--users == 0 && is_noted == 0) sigaction(SIGINT, &before, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  add_user();
  is_guarded = 1;
}

InterruptGuard::~InterruptGuard() {
  is_guarded = 0;
  remove_user();
}

bool InterruptGuard::interrupted() noexcept { return is_noted != 0; }

void InterruptGuard::check() {
  if (interrupted()) throw Interrupted{};
}

void InterruptGuard::end(std::string_view what) {
  std::fflush(stdout);
  fmt::print(stderr, "rung: interrupted: {}\n", what);
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  std::_Exit(128 + SIGINT);  // SIGINT is blocked
}

OpenLine::OpenLine() {
  add_user();
  is_open = 1;
}

OpenLine::~OpenLine() {
  is_open = 0;
  remove_user();
}

}  // namespace rung::workbench
