// SPDX-License-Identifier: Apache-2.0
// SM limits of every compute capability, as published by NVIDIA: limits from the CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability" (release 13 for 7.5 and
// newer, 12 for 5.x to 7.2, 8 for 2.x and 3.x, 6 for 1.3); shared memory carve-outs from the sheet
// "GPU Data" of NVIDIA's CUDA Occupancy Calculator and, since 8.0, from the guide's notes on shared
// memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "rung/bench/occupancy.hpp"
#include "rung/core/error.hpp"

namespace rung::bench {
namespace {

constexpr int kib = 1 << 10;

constexpr Multiprocessor tesla(int capability) {
  return {.capability = capability,
          .warps = 32,
          .blocks = 8,
          .registers = 16 * kib,
          .shared_bytes = 16 * kib,
          .threads_per_block = 512,
          .registers_per_block = 16 * kib,
          .registers_per_thread = 124,
          .shared_bytes_per_block = 16 * kib,
          .register_portion = 512,
          .shared_portion = 512,
          .partitions = 2};
}

constexpr Multiprocessor fermi(int capability) {
  return {.capability = capability,
          .warps = 48,
          .blocks = 8,
          .registers = 32 * kib,
          .shared_bytes = 48 * kib,
          .registers_per_block = 32 * kib,
          .registers_per_thread = 63,
          .shared_bytes_per_block = 48 * kib,
          .register_portion = 64,
          .partitions = 2};
}

struct Size {
  int warps = 64, blocks = 32, shared_kib = 0, shared_kib_per_block = 48;
};

/// Returns the limits since 3.0. Registers are allocated in units of 256; shared memory in units of
/// 256 bytes, or of 128 since 8.0, where the system also reserves 1 KiB per block.
constexpr Multiprocessor newer(int capability, Size size) {
  const bool ampere = capability >= 80;
  return {.capability = capability,
          .warps = size.warps,
          .blocks = size.blocks,
          .registers = 64 * kib,
          .shared_bytes = size.shared_kib * kib,
          .registers_per_block = 64 * kib,
          .shared_bytes_per_block = size.shared_kib_per_block * kib,
          .shared_bytes_reserved = ampere ? kib : 0,
          .shared_portion = ampere ? 128 : 256};
}

constexpr Multiprocessor with(Multiprocessor chip, int Multiprocessor::* what, int value) {
  chip.*what = value;
  return chip;
}

using Chip = Multiprocessor;

constexpr std::array table = {
    tesla(13),
    fermi(20),
    fermi(21),
    with(newer(30, {.blocks = 16, .shared_kib = 48}), &Chip::registers_per_thread, 63),
    with(newer(32, {.blocks = 16, .shared_kib = 48}), &Chip::registers_per_block, 32 * kib),
    newer(35, {.blocks = 16, .shared_kib = 48}),
    with(newer(37, {.blocks = 16, .shared_kib = 112}), &Chip::registers, 128 * kib),
    newer(50, {.shared_kib = 64}),
    newer(52, {.shared_kib = 96}),
    with(newer(53, {.shared_kib = 64}), &Chip::registers_per_block, 32 * kib),
    with(newer(60, {.shared_kib = 64}), &Chip::partitions, 2),
    newer(61, {.shared_kib = 96}),
    with(newer(62, {.shared_kib = 64}), &Chip::registers_per_block, 32 * kib),
    newer(70, {.shared_kib = 96, .shared_kib_per_block = 96}),
    newer(72, {.shared_kib = 96, .shared_kib_per_block = 96}),
    newer(75, {.warps = 32, .blocks = 16, .shared_kib = 64, .shared_kib_per_block = 64}),
    newer(80, {.shared_kib = 164, .shared_kib_per_block = 163}),
    newer(86, {.warps = 48, .blocks = 16, .shared_kib = 100, .shared_kib_per_block = 99}),
    newer(87, {.warps = 48, .blocks = 16, .shared_kib = 164, .shared_kib_per_block = 163}),
    newer(89, {.warps = 48, .blocks = 24, .shared_kib = 100, .shared_kib_per_block = 99}),
    newer(90, {.shared_kib = 228, .shared_kib_per_block = 227}),
    newer(100, {.shared_kib = 228, .shared_kib_per_block = 227}),
    newer(103, {.shared_kib = 228, .shared_kib_per_block = 227}),
    newer(110, {.warps = 48, .blocks = 24, .shared_kib = 228, .shared_kib_per_block = 227}),
    newer(120, {.warps = 48, .blocks = 24, .shared_kib = 100, .shared_kib_per_block = 99}),
    newer(121, {.warps = 48, .blocks = 24, .shared_kib = 100, .shared_kib_per_block = 99}),
};
static_assert(std::is_sorted(table.begin(), table.end(),
                             [](const Multiprocessor& a, const Multiprocessor& b) {
                               return a.capability < b.capability;
                             }));

std::string known() {
  std::string names;
  for (const Multiprocessor& one : table) {
    names += (names.empty() ? "" : ", ") + capability_name(one.capability);
  }
  return names;
}

/// Smallest number without a point whose last digit is the minor version, as in sm_20; smaller
/// numbers such as 9 and 12 mean 9.0 and 12.0.
constexpr int first_in_digits = 13;

}  // namespace

std::span<const Multiprocessor> multiprocessors() { return table; }

const Multiprocessor& find_multiprocessor(int capability) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Multiprocessor& one) {
    return one.capability == capability;
  });
  if (found != table.end()) return *found;
  throw Error(ErrorCode::invalid_argument, fmt::format("compute capability: {} given; known: {}",
                                                       capability_name(capability), known()));
}

int parse_capability(std::string_view text) {
  constexpr std::string_view prefixes[] = {"sm_", "compute_"};
  std::string_view number = text;
  for (const std::string_view prefix : prefixes) {
    if (number.starts_with(prefix)) number.remove_prefix(prefix.size());
  }
  // sm_90a and sm_100f have the limits of sm_90 and sm_100.
  if (number.ends_with('a') || number.ends_with('f')) number.remove_suffix(1);
  const std::size_t dot = number.find('.');
  int major = 0;
  int minor = 0;
  const auto reads = [&](std::string_view digits, int& value) {
    const char* const end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc() && stopped == end;
  };
  bool good = reads(number.substr(0, dot), major);
  if (dot != std::string_view::npos) {
    good = good && reads(number.substr(dot + 1), minor);
  } else if (major >= first_in_digits) {
    minor = major % 10;
    major /= 10;
  }
  if (!good || major < 1 || major > 99 || minor < 0 || minor > 9) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("compute capability: \"{}\" given; known: {}", text, known()));
  }
  return 10 * major + minor;
}

std::string capability_name(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

Multiprocessor own_multiprocessor(const OwnMultiprocessor& own) {
  constexpr int warp = 32;
  constexpr int usual_block = 1024;
  Multiprocessor chip{.warps = own.warps,
                      .blocks = own.blocks,
                      .registers = own.registers,
                      .shared_bytes = own.shared_bytes,
                      .registers_per_block = own.registers,
                      .shared_bytes_per_block = own.shared_bytes,
                      .register_portion = 1,
                      .shared_portion = 1,
                      .partitions = 1};
  if (own.threads > 0) {
    const int warps = own.threads / warp;
    chip.warps = chip.warps == 0 ? warps : std::min(chip.warps, warps);
  }
  chip.threads_per_block =
      own.threads_per_block > 0 ? own.threads_per_block : std::min(usual_block, chip.warps * warp);
  if (chip.shared_bytes == 0) chip.shared_bytes_per_block = std::numeric_limits<int>::max();
  return chip;
}

}  // namespace rung::bench
