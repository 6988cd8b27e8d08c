// SPDX-License-Identifier: Apache-2.0
// Options of the C functions: versions of their structs, optional tensors, lists of axes.
#include "rung/c/options.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

namespace rung::c_api {

TensorRef reference(const Argument& argument) {
  const bool missing = argument.tensor == nullptr && argument.optional;
  TensorRef tensor = missing ? TensorRef() : reference(argument.tensor, argument.name);
  // Operators treat a tensor without data as absent. A given tensor without data is empty, and must
  // still be checked.
  alignas(64) static std::byte nowhere[1];
  if (tensor.data == nullptr && !missing) tensor.data = nowhere;
  return tensor;
}

Extents extents(const std::int64_t* numbers, const char* name, int count, const char* count_name) {
  if (count < 0 || count > max_rank) {
    invalid(count_name + std::string(" is ") + std::to_string(count) + "; accepted: 0 to " +
            std::to_string(max_rank));
  }
  if (count > 0) require(numbers, {name});
  return Extents(std::span(numbers, static_cast<std::size_t>(count)));
}

void complete(void* options, std::size_t size, const void* given, std::size_t given_size,
              std::size_t first_version, const char* type) {
  // A struct's size is a multiple of its alignment; any other size ends within a field.
  if (given_size < first_version || given_size % alignof(double) != 0) {
    invalid("size of options is " + std::to_string(given_size) + "; call " + type +
            "_init first, which sets at least " + std::to_string(first_version));
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  if (given_size > size &&
      std::any_of(bytes + size, bytes + given_size, [](unsigned char byte) { return byte != 0; })) {
    throw Error(ErrorCode::unsupported,
                "options use a field that this library, rung " RUNG_VERSION ", does not know");
  }
  std::memcpy(options, given, std::min(size, given_size));
}

void initialize(void* options, std::size_t size, const void* defaults, std::size_t known,
                const char* type) {
  require(options, {"options"});
  if (size < sizeof(std::size_t)) {
    invalid("size is " + std::to_string(size) + "; pass sizeof(" + type + ")");
  }
  std::memset(options, 0, size);
  std::memcpy(options, defaults, std::min(size, known));
  std::memcpy(options, &size, sizeof size);  // the program's size, not this library's
}

}  // namespace rung::c_api
