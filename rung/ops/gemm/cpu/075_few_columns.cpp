// SPDX-License-Identifier: Apache-2.0
// gemm / few columns
//
// Idea     with few columns in B, A is the whole cost: it is read once, where it is, eight rows
//          adjacent from end to end, each fetched 1 KiB ahead; near the end, the next rows.
// Changes  against packed_simd: A is neither packed nor cut at a block of k; fetching it overlaps
//          with arithmetic instead of preceding it.
// Cost     A once from memory; B, packed, from L2 for every eight rows.
// Limits   up to two vectors of columns (32 f32 on AVX-512), rows of A contiguous. Narrow types
//          are widened into a buffer first, a block of k at a time.
// Tried    on a 2-core Zen 5 vCPU at 4096x16x4096, one thread (reading A alone: 1.8 ms): this 3.0
//          ms; 24 rows by 256 k copied to a buffer, the next fetched meanwhile, 4.1; packed_simd's
//          way 5.5. Of this: nothing fetched ahead 3.8; 4, 6, 12, 16 rows 4.6, 3.6, 3.1, 3.9; k cut
//          at 1024 4.3.
// Source   measured here.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/estimate.hpp"
#include "rung/ops/gemm/cpu/detail/few_columns-inl.hpp"

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(panels_f32);
HWY_EXPORT(panels_f64);

template <class T>
Panels<T> panels() {
  if constexpr (std::is_same_v<T, double>) {
    return HWY_DYNAMIC_DISPATCH(panels_f64)();
  } else {
    return HWY_DYNAMIC_DISPATCH(panels_f32)();
  }
}

constexpr std::int64_t block_k = 512;  // widened at a time
template <class T>
constexpr std::int64_t prefetch_distance = 1024 / sizeof(T);

template <class T>
void few_columns(const Call& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const Panels<T> kernel = panels<T>();
  const int in = static_cast<int>(call.in);
  const bool widened = size_of(call.in) != sizeof(T);
  const std::int64_t row_bytes = call.a.row * static_cast<std::int64_t>(size_of(call.in));
  const std::int64_t line_bytes = 64 / sizeof(T) * size_of(call.in);
  const auto address = [&](std::int64_t batch, std::int64_t row, std::int64_t column) {
    return static_cast<const char*>(at(call.a, call.in, batch, row, column));
  };
  const int threads = threads_worth(call, context.threads());
  const int width = strip_width(ks, call.n);
  const int vectors = width / ks.lanes;
  const std::int64_t most = kernel.max_rows[vectors - 1];
  const std::int64_t a_row = copied_row<T>(block_k);
  const std::int64_t a_size = widened ? round_up(most * a_row, 1024) : 0;
  const std::int64_t own = a_size + round_up(most * width, 1024);
  const std::int64_t b_size = round_up(call.k * width, 1024);
  T* b = static_cast<T*>(context.workspace((b_size + threads * own) * sizeof(T)));

  cpu::run_team(threads, [&](const cpu::Team& team) {
    T* a = b + b_size + team.rank() * own;
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      team.wait();
      const cpu::Range blocks = team.share(ceil_div(call.k, block_k));
      for (std::int64_t x = blocks.begin; x < blocks.end; ++x) {
        const std::int64_t p = x * block_k;
        pack_b(call, ks, batch, p, std::min(block_k, call.k - p), 0, call.n, b + p * width);
      }
      team.wait();
      Sums<T> sums = make_sums(call, ks, batch, a + a_size, width);
      const cpu::Range rows = team.share(call.m);
      for (std::int64_t i = rows.begin; i < rows.end; i += most) {
        const std::int64_t count = std::min(most, rows.end - i);
        if (sums.staged) sums.i0 = i;
        PanelFunction<T>* const multiply = kernel.functions[vectors - 1][count - 1];
        TileArgs<T> tile{};
        tile.a_column = 1;
        tile.b_row = width;
        tile.c = sums.at(i, 0);
        tile.c_row = sums.row;
        tile.columns = static_cast<int>(call.n);
        tile.alpha = static_cast<T>(call.alpha);
        const std::int64_t next = i + count < rows.end ? i + count : i;
        if (!widened) {
          const std::int64_t ahead = std::min(call.k, prefetch_distance<T>);
          tile.k = call.k;
          tile.a = static_cast<const T*>(at(call.a, call.in, batch, i, 0));
          tile.a_row = call.a.row;
          tile.b = b;
          tile.beta = sums.beta(true);
          multiply({tile, address(batch, i, ahead), row_bytes, 64, call.k - ahead,
                    address(batch, next, 0)});
        } else {
          for (std::int64_t p = 0; p < call.k; p += block_k) {
            tile.k = std::min(block_k, call.k - p);
            ks.copy[in](at(call.a, call.in, batch, i, p), call.a.row, count, tile.k, a, a_row);
            tile.a = a;
            tile.a_row = a_row;
            tile.b = b + p * width;
            tile.beta = sums.beta(p == 0);
            const char* following =
                p + block_k < call.k ? address(batch, i, p + block_k) : address(batch, next, 0);
            multiply({tile, following, row_bytes, line_bytes, tile.k, following});
          }
        }
        sums.finish(i, count, 0, call.n);
      }
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const Call call = make_call(args);
  const int width =
      call.in == DType::f64 ? kernels<double>().tile_columns() : kernels<float>().tile_columns();
  if (call.n > width) return unsupported("more columns than two vectors hold");
  if (call.a.column != 1) return unsupported("takes contiguous rows in A");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if (call.k * width > (1 << 21)) return unsupported("B is more than 8 MiB when packed");
  return supported;
}

double estimate(const Gemm::Args& args, const Context& context) {
  const Call call = make_call(args);
  const int threads = threads_worth(call, context.threads());
  const double lanes = call.in == DType::f64 ? kernels<double>().lanes : kernels<float>().lanes;
  const double n = static_cast<double>(call.n);
  const double used = n / (std::ceil(n / lanes) * lanes);  // of the vectors
  const double a = static_cast<double>(call.m) * static_cast<double>(call.k);
  constexpr double a_matrix = 35e-9;
  return streaming_seconds(call, a, 0.75 * used, threads) +
         static_cast<double>(call.batch) * a_matrix + strips_seconds(call, columns_of_tile(call));
}

void run(const Gemm::Args& args, Context& context) {
  const Call call = make_call(args);
  if (call.in == DType::f64) {
    few_columns<double>(call, context);
  } else {
    few_columns<float>(call, context);  // f16 and bf16 too, which are widened while packing
  }
}

const Rung<Gemm> self{{.name = "few_columns",
                       .step = 75,
                       .after = "few_rows",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
