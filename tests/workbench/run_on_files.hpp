// SPDX-License-Identifier: Apache-2.0
// Shared by tests of `rung run`: the program itself, run by a shell in a temporary folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "rung/harness/npy.hpp"

namespace rung::test {

struct Ended {
  int code = -1;
  std::string said;  // standard output and standard error together
};

inline Ended shell(const std::string& command) {
  Ended ended;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ended;
  std::array<char, 4096> part{};
  while (const std::size_t got = fread(part.data(), 1, part.size(), pipe)) {
    ended.said.append(part.data(), got);
  }
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

class RunGemm : public testing::Test {
 protected:
  RunGemm() {
    char name[] = "/tmp/rung-run-XXXXXX";
    folder = mkdtemp(name);
  }
  ~RunGemm() override { std::filesystem::remove_all(folder); }

  Ended run(const std::string& words) {
    return shell("cd " + folder + " && " RUNG_BINARY " run gemm " + words);
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(folder + "/" + name);
  }

  Tensor save(const std::string& name, DType dtype, const Extents& shape) {
    Tensor tensor(dtype, shape);
    for (std::int64_t i = 0; i < shape.product(); ++i) {
      store_from_double(dtype, tensor.data<char>() + i * static_cast<std::int64_t>(size_of(dtype)),
                        static_cast<double>(i % 7) - 3);
    }
    write_npy(folder + "/" + name, tensor);
    return tensor;
  }

  std::string folder;
};

}  // namespace rung::test
