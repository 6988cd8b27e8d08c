// SPDX-License-Identifier: Apache-2.0
// Limits of the simulated device, an H200.
#pragma once

#include <cstddef>

namespace rung::simt {

inline constexpr int warp_lanes = 32;
inline constexpr int compute_capability = 90;
inline constexpr int multiprocessors = 132;
inline constexpr int threads_per_multiprocessor = 2048;
inline constexpr int blocks_per_multiprocessor = 32;
inline constexpr int named_barriers = 16;
inline constexpr int tile_barriers = 30;  // 16 tiles of 64 threads, 8 of 128, 4 of 256, 2 of 512
inline constexpr std::size_t shared_bytes_per_block = 227 << 10;
inline constexpr std::size_t shared_bytes_per_multiprocessor = 228 << 10;
inline constexpr std::size_t shared_bytes_reserved = 1 << 10;  // per block, reserved by the system
inline constexpr std::size_t shared_alignment = 1024;
inline constexpr std::size_t l2_bytes = 50 << 20;
inline constexpr double bytes_per_second = 2 * 3.201e9 * 768;  // nominal memory bandwidth

/// Byte that fills fresh memory: NaN in every floating-point type, -1 in signed integers.
inline constexpr int poison = 0xff;

}  // namespace rung::simt
