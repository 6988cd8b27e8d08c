// SPDX-License-Identifier: Apache-2.0
// Fuzzer of Problem::parse(): any text gives a problem or an Error. A problem has one canonical
// text.
#include "rung/harness/problem.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rung/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const rung::Problem problem =
        rung::Problem::parse({reinterpret_cast<const char*>(bytes), size});
    const std::string text = problem.to_string();
    if (!(rung::Problem::parse(text) == problem)) std::abort();
    if (rung::Problem::parse(text).to_string() != text) std::abort();
  } catch (const rung::Error&) {
    // Rejected with a message.
  }
  return 0;
}
