// SPDX-License-Identifier: Apache-2.0
// Decodes the machine instructions that make up the test of a condition.
#include "rung/simt/record/condition.hpp"

#include "rung/simt/record/source.hpp"

namespace rung::simt::record {

#if defined(__x86_64__)

namespace {

class Reader {
 public:
  explicit Reader(std::uintptr_t code) : at_(reinterpret_cast<const std::uint8_t*>(code)) {}

  [[nodiscard]] std::uintptr_t position() const { return reinterpret_cast<std::uintptr_t>(at_); }

  /// Role of an instruction in a condition.
  enum class What { part, jump, other };
  What next() {
    bool half = false;  // a 16-bit or SSE operand prefix was read
    for (; is_prefix(*at_); ++at_) half |= *at_ != thread_local_memory;
    bool wide = false;
    if ((*at_ & 0xf0) == 0x40) wide = (*at_++ & 8) != 0;
    const std::uint8_t code = *at_++;
    if (code == 0x0f) return vector_or_jump(*at_++);
    if ((code & 0xf0) == 0x70) return What::jump;
    switch (code) {
      case 0x38:
      case 0x39:
      case 0x3a:
      case 0x3b:  // cmp
      case 0x84:
      case 0x85:  // test
      case 0x89:
      case 0x8b:
      case 0x8d:
      case 0x63:  // mov, lea, movslq
        return operands(0);
      case 0x80:
      case 0x83:  // add, and, sub, cmp with an 8-bit immediate
        return simple_operation() ? operands(1) : What::other;
      case 0x81:  // add, and, sub, cmp with a 32-bit immediate
        return simple_operation() && !half ? operands(4) : What::other;
      case 0xf6:  // test with an 8-bit immediate
        return operation() == 0 ? operands(1) : What::other;
      case 0xf7:  // test with a 32-bit immediate
        return operation() == 0 && !half ? operands(4) : What::other;
      case 0xc7:  // mov of a 32-bit immediate
        return half ? What::other : operands(4);
      case 0x3c:
      case 0xa8:  // cmp, test of al with an immediate
        return skip(1);
      case 0x3d:
      case 0xa9:  // cmp, test of eax with an immediate
        return half ? What::other : skip(4);
      default:
        break;
    }
    const bool moves_constant = (code & 0xf8) == 0xb8 && !wide && !half;
    return moves_constant ? skip(4) : What::other;
  }

 private:
  What vector_or_jump(std::uint8_t code) {
    if ((code & 0xf0) == 0x80) return What::jump;
    switch (code) {
      case 0x2e:
      case 0x2f:  // ucomiss, comiss
      case 0x10:
      case 0x28:
      case 0x6f:  // movss, movaps, movdqa
      case 0x57:
      case 0xef:  // xorps, pxor
      case 0xb6:
      case 0xb7:
      case 0xbe:
      case 0xbf:  // movzx, movsx
        return operands(0);
      default:
        return What::other;
    }
  }
  static constexpr std::uint8_t thread_local_memory = 0x64;
  static bool is_prefix(std::uint8_t code) {
    return code == thread_local_memory || code == 0x66 || code == 0xf2 || code == 0xf3;
  }
  [[nodiscard]] int operation() const { return *at_ >> 3 & 7; }
  [[nodiscard]] bool simple_operation() const {
    return operation() == 0 || operation() == 4 || operation() == 5 || operation() == 7;
  }
  What skip(int bytes) {
    at_ += bytes;
    return What::part;
  }
  /// Decodes the ModRM byte and skips its displacement and an immediate of `constant_bytes` bytes.
  What operands(int constant_bytes) {
    const int mode = *at_ >> 6, rm = *at_ & 7;
    ++at_;
    if (mode == 3) return skip(constant_bytes);
    int base = rm;
    if (rm == 4) base = *at_++ & 7;
    const bool has_word = mode == 2 || (mode == 0 && base == 5);
    return skip(constant_bytes + (has_word ? 4 : mode));
  }

  const std::uint8_t* at_;
};

}  // namespace

bool is_part_of_condition(std::uintptr_t site) {
  constexpr int enough = 12;                // maximum number of instructions of a test
  constexpr std::uintptr_t call_bytes = 5;  // size of the hook's call
  Reader reader(site);
  for (int i = 0; i < enough; ++i) {
    const Reader::What what = reader.next();
    if (what == Reader::What::part) continue;
    // A test that begins a source statement belongs to a separate condition.
    return what == Reader::What::jump && !begins_statement(site - call_bytes, reader.position());
  }
  return false;
}

#else

bool is_part_of_condition(std::uintptr_t) { return false; }

#endif

}  // namespace rung::simt::record
