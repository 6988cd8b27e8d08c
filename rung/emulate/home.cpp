// SPDX-License-Identifier: Apache-2.0
// Locates rung's libraries and headers relative to the running program.
#include "rung/emulate/home.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "rung/core/error.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::emulate {

namespace fs = std::filesystem;

Home find_home() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&simt::symbol_name), &info) == 0) {
    throw Error(ErrorCode::internal, "rung emulate: librung.so does not know where it is");
  }
  const fs::path library = fs::canonical(info.dli_fname).parent_path();
  const fs::path program = fs::canonical("/proc/self/exe");
  for (const fs::path& root : {program.parent_path().parent_path(), library.parent_path(),
                               library.parent_path().parent_path()}) {
    const fs::path include = root / "include";
    if (fs::exists(include / "rung/emulate/include/cuda_runtime.h")) {
      return {library.string(), include.string(), program.string()};
    }
  }
  throw Error(ErrorCode::not_available,
              fmt::format("rung emulate: no CUDA headers in {}/../include/rung/emulate/include: "
                          "rung is not installed whole (Debian: librung-dev has them)",
                          program.parent_path().string()));
}

std::string host_compiler() {
  const char* given = std::getenv("CXX");
  return given != nullptr && *given != '\0' ? given : "g++";
}

std::string shell_quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    literal += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  }
  return literal + '"';
}

}  // namespace rung::emulate
