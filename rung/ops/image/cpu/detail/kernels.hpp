// SPDX-License-Identifier: Apache-2.0
// Kernels shared by two rungs, each defined in the rung that introduces it. A kernel computes a
// range of tiles on the calling thread, with scratch memory passed by the caller.
#pragma once

#include <cstddef>

#include "rung/cpu/team.hpp"
#include "rung/cpu/tiles.hpp"
#include "rung/ops/image/op/image.hpp"

namespace rung::image_cpu {

using Kernel = void (*)(const Image::Args& args, cpu::Range tiles, std::byte* scratch);

/// Rung 025, grey. Scratch memory holds six planes of gathered pixels, which stay in L1.
inline constexpr std::int64_t gathered_pixels = 1024;
inline constexpr std::int64_t grey_scratch_bytes = 6 * gathered_pixels * 4;
cpu::Tiles grey_tiles(const Image::Args& args);
void deinterleaved(const Image::Args& args, cpu::Range tiles, std::byte* scratch);
/// Rung 030: computes Gaussian, unsharp, Sobel, and boxes of f32. Tiles and scratch memory:
/// lines.hpp.
void simd(const Image::Args& args, cpu::Range tiles, std::byte* scratch);
/// Rung 035: computes boxes of u8.
void running_box(const Image::Args& args, cpu::Range tiles, std::byte* scratch);

}  // namespace rung::image_cpu
