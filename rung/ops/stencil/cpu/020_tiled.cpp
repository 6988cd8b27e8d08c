// SPDX-License-Identifier: Apache-2.0
// stencil / tiled
//
// Idea     Loop interchange: the loop over the mask is the outer one, the loop over columns the
//          inner one. A tap adds its weight times a 512-column segment of a row to a segment of
//          sums, over the range of columns that have that neighbor. Segments are short enough that
//          the rows under the mask stay in L1.
// Changes  Against naive: no bounds test per element, and independent sums, which the compiler
//          vectorizes.
// Cost     2 K operations per element for a mask of K elements, and one load and one store of the
//          sum per tap, from L1.
// Limits   f32; one or two axes, a mask, zero edges; one thread.
// Source   M. Wolf and M. Lam, A Data Locality Optimizing Algorithm, PLDI 1991.
#include <algorithm>

#include "rung/ops/stencil/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace stencil_cpu;

constexpr std::int64_t tile = 512;  // columns: 2 KiB of f32; L1 holds at least 16 such segments

void tiled(const Image& x, const Mask& mask, const ImageOut& y) {
  float sums[tile];
  for (std::int64_t first = 0; first < x.shape[1]; first += tile) {
    const std::int64_t last = std::min(first + tile, x.shape[1]);
    for (std::int64_t row = 0; row < x.shape[0]; ++row) {
      std::fill(sums, sums + (last - first), 0.0F);
      for (int i = 0; i < mask.rows; ++i) {
        const std::int64_t from_row = row + i - mask.origin_row;
        if (from_row < 0 || from_row >= x.shape[0]) continue;
        for (int j = 0; j < mask.columns; ++j) {
          const std::int64_t shift = j - mask.origin_column;
          const std::int64_t begin = std::max(first, -shift);
          const std::int64_t end = std::min(last, x.shape[1] - shift);
          const float weight = mask(i, j);
          if (x.strides[1] == 1) {
            const float* from = &x(from_row, 0) + shift;
            for (std::int64_t c = begin; c < end; ++c) sums[c - first] += weight * from[c];
          } else {
            for (std::int64_t c = begin; c < end; ++c) {
              sums[c - first] += weight * x(from_row, c + shift);
            }
          }
        }
      }
      for (std::int64_t c = first; c < last; ++c) y(row, c) = mask.scale * sums[c - first];
    }
  }
}

void run(const Stencil::Args& args, Context& context) {
  for_each_image(args, context,
                 [](const Image& x, const Mask& mask, const ImageOut& y) { tiled(x, mask, y); });
}

const Rung<Stencil> self{{.name = "tiled",
                          .step = 20,
                          .after = "naive",
                          .teaching = true,
                          .supports = supports_textbook,
                          .run = run}};

}  // namespace
}  // namespace rung
