// SPDX-License-Identifier: Apache-2.0
// Fuzzer of the emulator's lexer and rewriter: any text becomes C++ or gives an Error, quickly.
#include "rung/emulate/rewrite.hpp"

#include <cstdint>
#include <string>

#include "rung/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string source(reinterpret_cast<const char*>(bytes), size);
  try {
    static_cast<void>(rung::emulate::rewrite(source));
    static_cast<void>(rung::emulate::holds_assembly(source));
    static_cast<void>(rung::emulate::holds_volatile(source));
  } catch (const rung::Error&) {
    // Rejected with a message.
  }
  return 0;
}
