// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of Inputs: every layout, and an entry's elements as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rung/harness/inputs.hpp"

namespace rung::test {

inline constexpr Layout layouts[] = {Layout::plain,   Layout::misaligned, Layout::padded,
                                     Layout::strided, Layout::transposed, Layout::broadcast};

inline std::vector<double> numbers(const Inputs& inputs, std::size_t entry) {
  const Tensor host = inputs.host(entry);
  std::vector<double> all;
  for (std::int64_t i = 0; i < host.ref().size(); ++i) {
    all.push_back(load_as_double(
        host.dtype(),
        host.data<std::byte>() + static_cast<std::size_t>(i) * size_of(host.dtype())));
  }
  return all;
}

}  // namespace rung::test
