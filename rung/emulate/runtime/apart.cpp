// SPDX-License-Identifier: Apache-2.0
// Runs work in a forked copy of this process.
#include "rung/emulate/runtime/apart.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>

namespace rung::cuda {
namespace {

constexpr int fatal_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGALRM, SIGINT, SIGTERM};
constexpr long poll_pause = 20'000'000;  // nanoseconds between polls
constexpr int max_polls = 3000;
// Number of consecutive polls that find the copy asleep before it is considered deadlocked.
constexpr int max_asleep = 100;

/// Returns true if the process is asleep according to its file /proc/PID/stat ("pid (name) S ...").
bool is_asleep(const char* status_file) {
  char text[512];
  const int file = open(status_file, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = 0;
  const char* const name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

/// Formats "/proc/PID/stat" without library functions.
void name_status_file(char (&path)[32], pid_t process) {
  char digits[16];
  int count = 0;
  for (; process > 0; process /= 10) digits[count++] = static_cast<char>('0' + process % 10);
  char* to = std::strcpy(path, "/proc/") + 6;
  while (count > 0) *to++ = digits[--count];
  std::strcpy(to, "/stat");
}

}  // namespace

bool do_apart(void (*work)()) {
  // fork() would wait for the heap's locks.
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child < 0) return false;
  if (child == 0) {
    for (const int signal : fatal_signals) std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    work();
    _exit(0);
  }
  char status_file[32];
  name_status_file(status_file, child);
  int asleep = 0;
  for (int poll = 0; poll < max_polls && asleep < max_asleep; ++poll) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    asleep = is_asleep(status_file) ? asleep + 1 : 0;
    const timespec pause{0, poll_pause};
    nanosleep(&pause, nullptr);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return false;
}

void write_plainly(const char* text) {
  // Text beyond a partial write is lost.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

}  // namespace rung::cuda
