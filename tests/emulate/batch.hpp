// SPDX-License-Identifier: Apache-2.0
// Many programs in one: the main() that programs.py generates calls run(). Each program runs in a
// process of its own; its output, exit status and findings are printed for programs.py.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace batch {

struct Program {
  const char* name;
  int (*main)();
};

/// Prints a file to the standard output, after a line with its kind.
inline void show(const char* what, const char* path) {
  std::printf("@%s\n", what);
  if (std::FILE* file = path != nullptr ? std::fopen(path, "r") : nullptr) {
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) std::putchar(c);
    std::fclose(file);
    std::remove(path);
  }
}

template <int count>
int run(const Program (&programs)[count], unsigned seconds) {
  const char* report = std::getenv("RUNG_EMULATE_REPORT");
  char output[4096];
  std::snprintf(output, sizeof output, "%s.output", report);
  for (const Program& one : programs) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (std::freopen(output, "w", stdout) == nullptr || dup2(fileno(stdout), 2) < 0) _exit(99);
      std::setvbuf(stdout, nullptr, _IOLBF, 0);
      alarm(seconds);
      std::exit(one.main());
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("@program %s %d %d\n", one.name, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    show("report", report);
    show("output", output);
  }
  std::puts("@end");
  return 0;
}

}  // namespace batch
