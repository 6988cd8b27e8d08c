// SPDX-License-Identifier: Apache-2.0
// State of a block's warpgroups: wgmma products in flight. Internal to simt/.
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

/// Addresses of a thread's registers that hold a product's sums.
struct SumPlaces {
  std::uint32_t* first = nullptr;
  std::vector<std::uint32_t*> each;  // addresses; empty: contiguous from the first

  bool operator==(const SumPlaces&) const = default;
  [[nodiscard]] std::uint32_t* at(std::size_t i) const {
    return each.empty() ? first + i : each[i];
  }
  void read(std::uint32_t* to, std::size_t words) const;
  void write(const std::uint32_t* from, std::size_t words) const;
  /// Returns true if this and `other` have words in common.
  [[nodiscard]] bool overlaps(std::size_t words, const SumPlaces& other,
                              std::size_t its_words) const;
};

/// A wgmma product, from its issue by the first thread until the last thread has waited for it.
struct MatrixProduct {
  WgmmaShape shape;
  bool a_in_registers;
  std::uint64_t a_matrix, b_matrix;
  bool accumulate;
  Place place;
  int issued = 0;
  int collected = 0;
  bool done = false;
  bool continued = false;   // a later product accumulates onto its sums
  bool superseded = false;  // its sums have moved to the later product
  // number of the product in flight onto whose sums this one accumulates; -1: none
  std::int64_t before = -1;
  std::vector<std::uint32_t> sums;  // n / 2 words per thread
  std::vector<std::uint32_t> a;     // A in registers: four per thread
};

struct Warpgroup {
  struct Registers {  // written by a product
    SumPlaces sums;
    std::uint64_t hash;
  };
  struct Member {
    std::int64_t issued = 0;
    std::int64_t collected = 0;
    std::vector<std::int64_t> groups;  // per committed group: number of products up to its end
    std::vector<SumPlaces> sums;       // sums of each product that the thread has not waited for
    std::vector<Registers> written;    // registers written since the thread's last wgmma.fence
    bool fenced = false;
  };
  std::int64_t first = 0;  // number of the product at products.front()
  std::deque<MatrixProduct> products;
  std::array<Member, warpgroup_threads> members;

  MatrixProduct& product(std::int64_t number) {
    return products[static_cast<std::size_t>(number - first)];
  }
};

/// Shape of an operand in shared memory: rows (M or N) and the element size in bytes.
struct OperandShape {
  int rows, element;
  bool turned;  // MN-major
};
/// Returns the shared_address() of element k of a row.
std::uint32_t operand_address(std::uint64_t matrix, const OperandShape& shape, int row, int k);

}  // namespace rung::simt
