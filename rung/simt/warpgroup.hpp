// SPDX-License-Identifier: Apache-2.0
// What the warpgroups of a block have asked of the tensor cores. Internal to simt/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rung/simt/wgmma.hpp"

namespace rung::simt {

struct Block;

inline constexpr int warpgroup_threads = 128;

/// Where a thread's sums of a product lie.
struct SumPlaces {
  std::uint32_t* first = nullptr;
  std::vector<std::uint32_t*> each;  // empty: in a row from the first

  bool operator==(const SumPlaces&) const = default;
  [[nodiscard]] std::uint32_t* at(std::size_t i) const {
    return each.empty() ? first + i : each[i];
  }
  void read(std::uint32_t* to, std::size_t words) const;
  void write(const std::uint32_t* from, std::size_t words) const;
  /// Returns whether some of these words are among the other's.
  [[nodiscard]] bool meet(std::size_t words, const SumPlaces& other, std::size_t its_words) const;
};

/// One wgmma, from the first thread that issues it to the last that has waited for it.
struct MatrixProduct {
  WgmmaShape shape;
  bool a_in_registers;
  std::uint64_t a_matrix, b_matrix;
  bool accumulate;
  Place place;
  int issued = 0;
  int collected = 0;
  bool done = false;
  bool continued = false;           // a later product adds to its sums
  bool superseded = false;          // the sums have gone to that product
  std::int64_t before = -1;         // the product in flight whose sums this one adds to
  std::vector<std::uint32_t> sums;  // n / 2 words per thread
  std::vector<std::uint32_t> a;     // of registers: four a thread
};

struct Warpgroup {
  struct Registers {  // that a product has written
    SumPlaces sums;
    std::uint64_t hash;
  };
  struct Member {
    std::int64_t issued = 0;
    std::int64_t collected = 0;
    std::vector<std::int64_t> groups;  // committed: the products before this one
    std::vector<SumPlaces> sums;       // of each product that it has not collected
    std::vector<Registers> written;    // since its last fence
    bool fenced = false;
  };
  std::int64_t first = 0;  // the number of products.front()
  std::deque<MatrixProduct> products;
  std::array<Member, warpgroup_threads> members;

  MatrixProduct& product(std::int64_t number) {
    return products[static_cast<std::size_t>(number - first)];
  }
};

/// An operand in shared memory: its rows, of M or N, and the bytes of an element.
struct OperandShape {
  int rows, element;
  bool turned;  // MN-major
};
/// Where element k of a row begins, as shared_address() counts.
std::uint32_t operand_address(std::uint64_t matrix, const OperandShape& shape, int row, int k);

}  // namespace rung::simt
