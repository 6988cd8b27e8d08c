// SPDX-License-Identifier: Apache-2.0
// The command line.
#pragma once

#include <string>

namespace digits {

struct Options {
  std::string model;  // all of them where it is empty
  std::string data = "build/digits", set = "mnist";
  std::string backend = "cpu", checkpoint, png, curve;
  int epochs = 0, batch = 0, shift = -1, seed = 1, threads = 0, steps = 0;
  double rate = 0;
  bool resume = false, profile = false, copy_steps = false;
};

/// Prints what there is and ends the program for --help. Throws rung::Error for what is wrong.
Options parse(int count, char** arguments);

/// Throws rung::Error(invalid_argument).
[[noreturn]] void reject(const std::string& what);

}  // namespace digits
