// SPDX-License-Identifier: Apache-2.0
// conv / im2col + GEMM
//
// Idea     x is unrolled into a matrix with one row per term (a channel and a tap) and one column
//          per pixel of y. y of an image is the product of w, as a matrix, and this matrix. The
//          product is the textbook loop in order i k j: a row of y accumulates multiples of rows of
//          the matrix, which the compiler vectorizes.
// Changes  Against naive: the inner loops have no bounds checks and no index arithmetic.
// Cost     The matrix, kh kw times the size of x, is written to memory and read again; each
//          multiply-add loads one element of the matrix, and loads and stores one of y, in L1 or
//          L2.
// Limits   f32, channels first with contiguous rows of y; one thread.
// Source   K. Chellapilla, S. Puri & P. Simard, High performance convolutional neural networks for
//          document processing, 2006.
#include <algorithm>

#include "rung/ops/conv/cpu/detail/textbook.hpp"

namespace rung {
namespace {

/// Writes one row of the matrix: one channel and tap of x, for all pixels of an image.
void unroll_term(const ConvGeometry& g, const View<const float, 5>& x, std::int64_t n,
                 std::int64_t c, const std::int64_t (&t)[3], float* to) {
  for (std::int64_t od = 0; od < g.axis[0].out; ++od) {
    const std::int64_t d = g.axis[0].source(od, t[0]);
    for (std::int64_t oh = 0; oh < g.axis[1].out; ++oh) {
      const std::int64_t h = g.axis[1].source(oh, t[1]);
      for (std::int64_t ow = 0; ow < g.axis[2].out; ++ow) {
        const std::int64_t v = g.axis[2].source(ow, t[2]);
        *to++ = d < 0 || h < 0 || v < 0 ? 0.0F : x(n, c, d, h, v);
      }
    }
  }
}

/// Term of a sum: a channel of a group, and a tap.
struct Term {
  std::int64_t c, t[3];
};
Term term_of(const ConvGeometry& g, std::int64_t index) {
  Term term{};
  for (int axis = 2; axis >= 0; --axis) {
    term.t[axis] = index % g.axis[axis].kernel;
    index /= g.axis[axis].kernel;
  }
  term.c = index;
  return term;
}

/// Returns the number of matrix rows that are unrolled at a time: all rows if they fit in 16 MiB. A
/// larger matrix would take kh kw times the memory of x.
std::int64_t rows_at_once(std::int64_t terms, std::int64_t pixels) {
  constexpr std::int64_t max_elements = 4 << 20;
  return std::clamp<std::int64_t>(max_elements / std::max<std::int64_t>(pixels, 1), 1,
                                  std::max<std::int64_t>(terms, 1));
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const auto x = args.x.view<const float, 5>();
  const auto w = args.w.view<const float, 5>();
  const auto y = args.y.view<float, 5>();
  const std::int64_t pixels = g.results();
  const std::int64_t block = rows_at_once(args.terms(), pixels);
  auto* const matrix = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(Extents{block, pixels, sizeof(float)}.product())));
  for (std::int64_t n = 0; n < g.images; ++n) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const std::int64_t first_channel = group * g.group_channels();
      for (std::int64_t first = 0; first == 0 || first < args.terms(); first += block) {
        const std::int64_t last = std::min(first + block, args.terms());
        for (std::int64_t i = first; i < last; ++i) {
          const Term term = term_of(g, i);
          unroll_term(g, x, n, first_channel + term.c, term.t, matrix + (i - first) * pixels);
        }
        for (std::int64_t i = 0; i < g.group_filters(); ++i) {
          const std::int64_t k = group * g.group_filters() + i;
          float* const sums = &y(n, k, 0, 0, 0);
          if (first == 0) std::fill(sums, sums + pixels, 0.0F);
          for (std::int64_t at = first; at < last; ++at) {
            const Term term = term_of(g, at);
            const float weight = w(k, term.c, term.t[0], term.t[1], term.t[2]);
            const float* const row = matrix + (at - first) * pixels;
            for (std::int64_t j = 0; j < pixels; ++j) sums[j] += weight * row[j];
          }
          if (last < args.terms()) continue;
          for (std::int64_t j = 0; j < pixels; ++j) {
            sums[j] = conv_cpu::finish<float>(args, k, sums[j]);
          }
        }
      }
    }
  }
}

Support supports(const Conv::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  std::int64_t expected = 1;
  for (int axis = 4; axis >= 2; --axis) {
    if (args.y.shape[axis] != 1 && args.y.strides[axis] != expected) {
      return unsupported("the images of y must be contiguous");
    }
    expected *= args.y.shape[axis];
  }
  return supported;
}

Work work(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  return {.blocks = g.images * g.results(), .steps = args.terms()};
}

const Rung<Conv> self{{.name = "im2col_gemm",
                       .step = 20,
                       .after = "naive",
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
