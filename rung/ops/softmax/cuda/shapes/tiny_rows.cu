// SPDX-License-Identifier: Apache-2.0
// softmax / tiny rows
//
// Idea     Rows of 1 to 8 elements: a thread loads the fewest aligned packs of 16 bytes that hold
//          whole rows, computes the rows in its registers, and stores the packs.
// Changes  against short_rows: no shared memory, no barrier, no shuffles; the length is known to
//          the compiler.
// Cost     Compulsory traffic; a pack of a warp spans up to 7 times the bytes that it loads, so
//          that other packs of the warp hit L1.
// Limits   Rows one after another in tensors that begin at multiples of 16 bytes; results of the
//          type of x.
#include <numeric>

#include "rung/core/integer.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/row/packed_words.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int tiny_threads = 256;
constexpr int longest_tiny_row = 8;

/// Packs that hold whole rows.
template <class T, int length>
struct TinyRows {
  static constexpr int width = vector_width<T>;
  static constexpr int packs = length / std::gcd(length, width);
  static constexpr int elements = packs * width;
  static constexpr int rows = elements / length;
};

template <class T, int length>
__global__ void __launch_bounds__(tiny_threads)
    softmax_tiny_rows(const T* all_x, T* all_y, std::int64_t elements, Accumulator<T> scale,
                      bool log) {
  using Sum = Accumulator<T>;
  using Rows = TinyRows<T, length>;
  constexpr int width = Rows::width;
  const std::int64_t thread = std::int64_t{blockIdx.x} * tiny_threads + threadIdx.x;
  const std::int64_t first = thread * Rows::elements;
  if (first >= elements) return;
  const bool whole = elements - first >= Rows::elements;
  const int left = whole ? Rows::elements : static_cast<int>(elements - first);
  const T* const x = all_x + first;
  T* const y = all_y + first;
  Pack<Sum, width> values[Rows::packs];
  if (whole) {
    PackedWords read[Rows::packs];
#pragma unroll
    for (int p = 0; p < Rows::packs; ++p) read[p] = load_words_streaming(x + p * width);
#pragma unroll
    for (int p = 0; p < Rows::packs; ++p) values[p] = widen<Sum, T>(read[p]);
  } else {
#pragma unroll
    for (int i = 0; i < Rows::elements; ++i) {
      values[i / width][i % width] = i < left ? convert<Sum>(x[i]) : Sum{0};
    }
  }
#pragma unroll
  for (int row = 0; row < Rows::rows; ++row) {
    const auto at = [&](int i) -> Sum& {
      return values[(row * length + i) / width][(row * length + i) % width];
    };
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int i = 0; i < length; ++i) maximum = Larger{}(maximum, at(i));
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < length; ++i) {
      at(i) = (at(i) - maximum) * scale;
      const Sum raised = fast_exp(at(i));
      sum += raised;
      if (!log) at(i) = raised;
    }
    const Sum last = log ? logarithm(sum) : reciprocal(sum);
#pragma unroll
    for (int i = 0; i < length; ++i) at(i) = log ? at(i) - last : at(i) * last;
  }
  if (whole) {
#pragma unroll
    for (int p = 0; p < Rows::packs; ++p) {
      store_words_streaming(y + p * width, narrow<T>(values[p]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < Rows::elements; ++i) {
      if (i < left) y[i] = convert<T>(values[i / width][i % width]);
    }
  }
}

/// Calls f<length>() with the length of the rows.
template <class F>
void with_length(std::int64_t length, F&& f) {
  [&]<int... before>(std::integer_sequence<int, before...>) {
    ((length == before + 1 ? f.template operator()<before + 1>() : void()), ...);
  }
  (std::make_integer_sequence<int, longest_tiny_row>{});
}

std::int64_t tiny_blocks(const Softmax::Args& args) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const std::int64_t elements = args.length() / std::gcd(args.length(), width) * width;
  return ceil_div(args.count() * args.length(), elements * tiny_threads);
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (args.length() < 1 || args.length() > longest_tiny_row) {
    return unsupported("rows of 1 to 8 elements");
  }
  const Rows<2>& rows = args.rows;
  bool follow = rows.are_contiguous() && rows.others.rank <= 1;
  for (int tensor = 0; tensor < 2 && rows.count() > 1; ++tensor) {
    follow = follow && rows.others.strides[tensor][0] == rows.length;
  }
  if (!follow) return unsupported("rows must follow one another");
  if (tiny_blocks(args) > 0x7fffffff) return unsupported("more than 2^31 - 1 blocks");
  for (const void* const p : {args.x.data, static_cast<const void*>(args.y.data)}) {
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) {
      return unsupported("tensors must begin at multiples of 16 bytes");
    }
  }
  return supported;
}

Work work(const Softmax::Args& args, const Context&) {
  return block_work(tiny_blocks(args), tiny_threads, 1, type_path(args.x.dtype), 40);
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  with_length(args.length(), [&]<int length>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      const auto p = call_of<T, T>(args);
      launch(context, {.grid = tiny_blocks(args), .block = tiny_threads},
             softmax_tiny_rows<T, length>, p.x, p.y, args.count() * args.length(), p.scale, p.log);
    });
  });
}

const Rung<Softmax> self{{.name = "tiny_rows",
                          .after = "short_rows",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
