// SPDX-License-Identifier: Apache-2.0
// Child processes and temporary files.
#include "rung/emulate/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT: sigaction is POSIX
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "rung/core/error.hpp"

extern char** environ;  // NOLINT: name defined by POSIX

namespace rung::emulate {
namespace {

// Includes SIGPIPE: the reader of our messages may have exited (`| head -1`).
constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

std::atomic<int> ending_signal{0};

void on_ending_signal(int signal) { ending_signal = signal; }

// run_program() may be called on several threads, but signal handlers are per process.
std::mutex holders_mutex;
int holders = 0;
struct sigaction handlers_before[std::size(ending_signals)];

pid_t start(const std::vector<std::string>& command,
            const std::vector<std::pair<std::string, std::string>>& variables,
            const std::string& errors) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<std::string> settings;
  std::set<std::string> set_here;
  for (const auto& [name, value] : variables) {
    settings.push_back(fmt::format("{}={}", name, value));
    set_here.insert(name);
  }
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (set_here.count(std::string(text.substr(0, text.find('=')))) == 0) {
      settings.emplace_back(text);
    }
  }
  std::vector<char*> environment;
  environment.reserve(settings.size() + 1);
  for (std::string& one : settings) environment.push_back(one.data());
  environment.push_back(nullptr);
  // A successful exec closes the pipe; a failed exec sends errno through it.
  int failure_pipe[2];
  if (pipe2(failure_pipe, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::not_available,
                fmt::format("{} cannot be run: {}", command[0], std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    if (!errors.empty()) {
      const int file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      if (file >= 0) dup2(file, STDERR_FILENO);
    }
    // Kills the child when rung is killed; getppid() detects that the parent died before this call.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
      execvpe(words[0], words.data(), environment.data());
    }
    const int failed = errno;
    static_cast<void>(!write(failure_pipe[1], &failed, sizeof failed));
    _exit(127);
  }
  int failed = child < 0 ? errno : 0;
  close(failure_pipe[1]);
  if (child > 0 && read(failure_pipe[0], &failed, sizeof failed) > 0) waitpid(child, nullptr, 0);
  close(failure_pipe[0]);
  if (failed != 0) {
    throw Error(ErrorCode::not_available,
                fmt::format("{} cannot be run: {}", command[0], std::strerror(failed)));
  }
  return child;
}

}  // namespace

int interrupted() { return ending_signal; }

HeldSignals::HeldSignals() {
  const std::lock_guard lock(holders_mutex);
  if (holders++ != 0) return;
  struct sigaction action = {};
  action.sa_handler = on_ending_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
    sigaction(ending_signals[i], nullptr, &handlers_before[i]);
    // Signals ignored because of nohup or a shell's & stay ignored.
    if (handlers_before[i].sa_handler != SIG_IGN) sigaction(ending_signals[i], &action, nullptr);
  }
}

HeldSignals::~HeldSignals() {
  const std::lock_guard lock(holders_mutex);
  if (--holders != 0) return;
  for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
    sigaction(ending_signals[i], &handlers_before[i], nullptr);
  }
}

/// Grace period in which a program that has timed out reports its location, for which it must read
/// line tables.
constexpr std::chrono::seconds time_to_tell{10};

Ending run_program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& variables,
                   double seconds, const std::string& errors) {
  const HeldSignals held;
  if (const int signal = interrupted(); signal != 0) {
    return {.exit_code = 128 + signal, .signal = signal};
  }
  const pid_t child = start(command, variables, errors);
  const auto begin = std::chrono::steady_clock::now();
  auto alarmed = begin;
  Ending ending;
  int status = 0;
  bool told = false;
  // Polls, at first frequently; a signal that arrives between two polls is not lost.
  for (auto pause = std::chrono::microseconds(200);;) {
    const pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) break;
    if (done < 0 && errno != EINTR) break;
    if (const int signal = interrupted(); signal != 0 && !told) {
      told = true;
      kill(child, signal);
    }
    const auto now = std::chrono::steady_clock::now();
    if (seconds > 0 && !ending.timed_out &&
        std::chrono::duration<double>(now - begin).count() > seconds) {
      ending.timed_out = true;
      kill(child, SIGALRM);  // makes the program report its location and exit
      alarmed = now;
    }
    // Measured from the alarm, since the time limit may be exceeded by any amount on a loaded or
    // suspended machine.
    if (ending.timed_out && now - alarmed > time_to_tell) kill(child, SIGKILL);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 5 / 4, std::chrono::microseconds(20000));
  }
  if (WIFSIGNALED(status)) {
    ending.signal = WTERMSIG(status);
    ending.exit_code = 128 + ending.signal;
  } else {
    ending.exit_code = WEXITSTATUS(status);
  }
  return ending;
}

TemporaryFolder::TemporaryFolder() {
  std::error_code none;
  path_ = std::filesystem::temp_directory_path(none).string();
  if (none) path_ = "/tmp";
  path_ += "/rung-emulate-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw Error(ErrorCode::io,
                fmt::format("{}: no temporary folder: {}", path_, std::strerror(errno)));
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rung::emulate
