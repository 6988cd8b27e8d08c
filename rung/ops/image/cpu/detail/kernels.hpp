// SPDX-License-Identifier: Apache-2.0
// The vector code of image's CPU rungs. A line is a piece of a row with what is outside of the
// picture in place, so that no kernel knows of edges; in it the neighbor of an element is `group`
// elements on. Lines may be read, and results of neighborhoods be written, up to line_slack
// elements beyond `count`. Grey begins and ends exactly. `next` is prefetched in the meantime,
// unless it is null.
#pragma once

#include <cstdint>

#include "rung/ops/image/op/image.hpp"

namespace rung::image_cpu {

/// Of a line, behind its content: four vectors of 64 bytes of f32, or one of u8.
inline constexpr std::int64_t line_slack = 64;

// --- grey ----------------------------------------------------------------------------------------

/// Pixels beside each other: interleaved (x[0], y[0]), or planes.
template <class T>
struct GreyPixels {
  const T* x[4];
  T* y[2];  // [1]: planes' alpha
  int channels;
  int out_channels;
  bool interleaved;
  GreyWeights weights;
};
void grey_pixels(const GreyPixels<std::uint8_t>& pixels, std::int64_t count);
void grey_pixels(const GreyPixels<float>& pixels, std::int64_t count);

// --- blurs of u8 ---------------------------------------------------------------------------------

/// Of a Gaussian, what is between the passes: sums along the row less 2^15, as i16.
void weigh_along(const std::uint8_t* line, int group, const Image::Args& args, std::int16_t* sums,
                 std::int64_t count, const std::uint8_t* next);
/// Down the columns of 2 radius + 1 lines of such sums.
void weigh_down(const std::int16_t* const* lines, const Image::Args& args, std::uint8_t* out,
                std::int64_t count);

/// sums += entering - leaving; leaving may be null.
void slide(std::uint16_t* sums, const std::uint8_t* entering, const std::uint8_t* leaving,
           std::int64_t count, const std::uint8_t* next);
/// Computes the mean over 2 radius + 1 neighbors of column sums, rounded to nearest or down;
/// `scratch` is one more line of sums.
void mean_along(const std::uint16_t* sums, int group, int radius, bool truncate,
                std::uint16_t* scratch, std::uint8_t* out, std::int64_t count);

// --- blurs of f32 --------------------------------------------------------------------------------

/// Either pass: along a row, lines are one line, shifted. out = scale sum weights[k] lines[k].
void weigh(const float* const* lines, const float* weights, int count, float scale, float* out,
           std::int64_t length);

// --- others --------------------------------------------------------------------------------------

/// out may be `blurred`.
void sharpen(const std::uint8_t* x, const std::uint8_t* blurred, const Image::Args& args,
             std::uint8_t* out, std::int64_t count);
void sharpen(const float* x, const float* blurred, const Image::Args& args, float* out,
             std::int64_t count);

/// Three lines whose first element is the neighbor in front of the first result.
void sobel(const std::uint8_t* const (&lines)[3], int group, std::uint8_t* out, std::int64_t count,
           const std::uint8_t* next);
void sobel(const float* const (&lines)[3], int group, float* out, std::int64_t count,
           const float* next);

}  // namespace rung::image_cpu
