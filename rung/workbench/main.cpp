// SPDX-License-Identifier: Apache-2.0
// Entry point of the program `rung`; everything else can be linked into tests as well.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "rung/workbench/command.hpp"

int main(int argc, char** argv) {
  const int code = rung::workbench::run_program(argc, argv);
  // Output that a full disk cut short is no success, whatever the command computed.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "rung: standard output cannot be written: %s\n", std::strerror(errno));
  return code == rung::workbench::exit_good ? rung::workbench::exit_failed : code;
}
