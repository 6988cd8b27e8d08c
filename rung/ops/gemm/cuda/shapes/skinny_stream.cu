// SPDX-License-Identifier: Apache-2.0
// gemm / skinny stream
//
// Idea     a product with at most 64 rows or columns, as in decoding, costs what it takes to read
//          the long operand W once. Persistent blocks stream it: each takes an equal run of chunks
//          of 128 rows by 64 of k, through tile after tile, and its ring of cp.async never drains.
// Changes  against few_rows: tensor cores make the sums, so that 64 columns cost as little as one;
//          no wave of blocks is partly filled (stream-K). A tile that several blocks share is
//          added up by the last of them to finish, in the order of k: one launch, the same bits.
// Cost     W once; X once per 128 rows of W, from L2. 160 KiB in flight per SM.
// Limits   memory bandwidth. f16 and bf16; W's lines and X's rows along k begin at multiples of
//          16 bytes. Padding to 16, 32 or 64 columns is free.
// Source   M. Osama et al. 2023, Stream-K; PTX ISA, "Matrix fragments for mma.m16n8k16".
#include "rung/device/last_block.hpp"
#include "rung/ops/gemm/cuda/220_ldmatrix_pipeline.cuh"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/shapes/dots.cuh"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int skinny_threads = 256;  // eight warps of 16 rows each
constexpr int skinny_rows = 128;     // of W, per tile
constexpr int skinny_depth = 64;     // of k, per chunk: lines of 128 bytes
constexpr std::int64_t skinny_max_columns = 64;

/// Two blocks per SM, of some 108 KiB each.
constexpr int skinny_stages(int columns) { return columns == 64 ? 4 : columns == 32 ? 5 : 6; }

/// Returns to how many columns a product's are padded.
constexpr int skinny_columns(std::int64_t columns) {
  return columns <= 16 ? 16 : columns <= 32 ? 32 : 64;
}

struct SkinnyPlan {
  std::int64_t tiles, chunks;  // per matrix, per tile
  std::int64_t per_block;      // chunks
  std::int64_t blocks;
  double seconds;
};

/// C = W X; C has few columns.
template <class T>
struct SkinnyCall {
  Finish<T> finish;
  std::int64_t tiles, chunks, per_block;  // as in SkinnyPlan
  float* partial;                         // two tiles per block
  unsigned* tickets;                      // one per block
};

template <class T, int Columns, bool KMajor>
struct SkinnyLayout {
  using W = SwizzledTile<T, skinny_rows, KMajor>;
  using X = SwizzledTile<T, Columns, true>;
  struct alignas(1024) Stage {
    unsigned char w[W::bytes];
    unsigned char x[X::bytes];
  };
  Stage stages[skinny_stages(Columns)];
  int scratch;
};

/// A chunk's place: which matrix, which tile of it, which chunk of the tile.
struct SkinnyPlace {
  int batch;
  std::int64_t tile, chunk;

  __device__ SkinnyPlace(std::int64_t number, std::int64_t tiles, std::int64_t chunks)
      : batch(static_cast<int>(number / chunks / tiles)),
        tile(number / chunks % tiles),
        chunk(number % chunks) {}
  __device__ void advance(std::int64_t tiles, std::int64_t chunks) {
    if (++chunk < chunks) return;
    chunk = 0;
    if (++tile < tiles) return;
    tile = 0;
    ++batch;
  }
};

/// KMajor: W is contiguous along k, else along its rows.
template <class T, int Columns, bool KMajor>
__global__ void __launch_bounds__(skinny_threads, 2) gemm_skinny_stream(SkinnyCall<T> call) {
  using Layout = SkinnyLayout<T, Columns, KMajor>;
  constexpr int stages = skinny_stages(Columns);
  constexpr int chunk = vector_width<T>;               // elements per copy of 16 bytes
  constexpr int along_lines = skinny_depth / chunk;    // copies per line of 128 bytes
  constexpr int lines = skinny_threads / along_lines;  // that all threads copy at once
  auto& layout = shared<Layout>();
  const auto& p = call.finish.p;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;

  const std::int64_t begin = blockIdx.x * call.per_block;
  const std::int64_t end = smaller(begin + call.per_block, call.tiles * call.chunks * p.c.shape[0]);

  // Starts the copies of a chunk of W and of X. What does not exist becomes zero.
  const auto copy = [&](typename Layout::Stage& stage, const SkinnyPlace& at) {
    const std::int64_t first_k = at.chunk * skinny_depth;
    const std::int64_t first_row = at.tile * skinny_rows;
    const auto k_left = static_cast<int>(clamped<std::int64_t>(p.k() - first_k, 0, skinny_depth));
    const auto rows_left = static_cast<int>(smaller<std::int64_t>(p.m() - first_row, skinny_rows));
    const int along = thread % along_lines * chunk;
    const T* const w = p.a.data + at.batch * p.a.strides[0] + first_row * p.a.strides[1] +
                       first_k * p.a.strides[2];
#pragma unroll
    for (int line = thread / along_lines; line < skinny_rows; line += lines) {
      // Lines along the rows are in two panels, one behind the other, of 64 rows each.
      const int row = KMajor ? line : line / skinny_depth * skinny_depth + along;
      const int k = KMajor ? along : line % skinny_depth;
      const bool exists = KMajor ? row < rows_left : k < k_left;
      const int valid = exists ? clamped(KMajor ? k_left - k : rows_left - row, 0, chunk) : 0;
      const T* const from =
          w + row * (KMajor ? p.a.strides[1] : 1) + k * (KMajor ? 1 : p.a.strides[2]);
      ptx::async_copy<16>(stage.w + Layout::W::place(row, k), valid > 0 ? from : p.a.data,
                          valid * static_cast<int>(sizeof(T)));
    }
    const T* const x = p.b.data + at.batch * p.b.strides[0] + first_k;
#pragma unroll
    for (int column = thread / along_lines; column < Columns; column += lines) {
      const int valid = column < p.n() ? clamped(k_left - along, 0, chunk) : 0;
      ptx::async_copy<16>(stage.x + Layout::X::place(column, along),
                          valid > 0 ? x + column * p.b.strides[2] + along : p.b.data,
                          valid * static_cast<int>(sizeof(T)));
    }
  };

  SkinnyPlace copying(begin, call.tiles, call.chunks);
#pragma unroll
  for (int stage = 0; stage < stages - 1; ++stage) {
    if (begin + stage < end) {
      copy(layout.stages[stage], copying);
      copying.advance(call.tiles, call.chunks);
    }
    ptx::async_commit();
  }
  float sums[Columns / 8][4] = {};
  SkinnyPlace at(begin, call.tiles, call.chunks);
  int reading = 0;
  int writing = stages - 1;
  for (std::int64_t number = begin; number < end; ++number) {
    ptx::async_wait<stages - 2>();
    __syncthreads();  // the chunk is there for all, and all have read the one that is written next
    if (number + stages - 1 < end) {
      copy(layout.stages[writing], copying);
      copying.advance(call.tiles, call.chunks);
    }
    ptx::async_commit();
    const auto& stage = layout.stages[reading];
#pragma unroll
    for (int step = 0; step < skinny_depth / 16; ++step) {
      std::uint32_t w[4];
      load_fragment4<T, skinny_rows, KMajor, Second::rows>(w, stage.w, 16 * warp, step);
#pragma unroll
      for (int j = 0; j < Columns / 16; ++j) {
        std::uint32_t x[4];  // of twice 8 columns
        load_fragment4<T, Columns, true, Second::depth>(x, stage.x, 16 * j, step);
        ptx::mma<T>(sums[2 * j], w, {x[0], x[1]});
        ptx::mma<T>(sums[2 * j + 1], w, {x[2], x[3]});
      }
    }
    reading = reading == stages - 1 ? 0 : reading + 1;
    writing = writing == stages - 1 ? 0 : writing + 1;

    const SkinnyPlace done = at;
    at.advance(call.tiles, call.chunks);
    if (done.chunk + 1 < call.chunks && number + 1 < end) continue;

    // The tile ends here, or this block's part of it. Blocks first to last share it.
    const std::int64_t tile_begin = (done.batch * call.tiles + done.tile) * call.chunks;
    const std::int64_t first = tile_begin / call.per_block;
    const std::int64_t last = (tile_begin + call.chunks - 1) / call.per_block;
    bool finishes = true;
    if (first != last) {
      // The first block ends with the tile, all others begin with it.
      const auto partial_of = [&](std::int64_t block, int i) -> float& {
        const std::int64_t slot = 2 * block + (block == first ? 1 : 0);
        return call.partial[(slot * (Columns / 2) + i) * skinny_threads + thread];
      };
#pragma unroll
      for (int i = 0; i < Columns / 2; ++i) partial_of(blockIdx.x, i) = sums[i / 4][i % 4];
      __syncthreads();
      finishes =
          is_last_block(call.tickets + first, static_cast<int>(last - first + 1), layout.scratch);
      if (finishes) {
#pragma unroll
        for (int i = 0; i < Columns / 2; ++i) sums[i / 4][i % 4] = 0;
        for (std::int64_t block = first; block <= last; ++block) {
#pragma unroll
          for (int i = 0; i < Columns / 2; ++i) sums[i / 4][i % 4] += partial_of(block, i);
        }
      }
    }
    if (finishes) {
      with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
        const std::int64_t row = done.tile * skinny_rows + 16 * warp + lane / 4;
        // Rolled: every copy of finish() holds every activation.
#pragma unroll 1
        for (int j = 0; j < Columns / 8; ++j) {
          float picked[4] = {};
#pragma unroll
          for (int candidate = 0; candidate < Columns / 8; ++candidate) {
#pragma unroll
            for (int i = 0; i < 4; ++i) picked[i] = candidate == j ? sums[candidate][i] : picked[i];
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const std::int64_t at_row = row + i / 2 * 8;
            const int column = j * 8 + lane % 4 * 2 + i % 2;
            if (at_row < p.m() && column < p.n()) {
              finish(target, done.batch, at_row, column, picked[i]);
            }
          }
        }
      });
    }
#pragma unroll
    for (int i = 0; i < Columns / 2; ++i) sums[i / 4][i % 4] = 0;
  }
  ptx::async_wait_all();
}

template <class T>
void launch_skinny(Context& context, const Finish<T>& finish, const SkinnyPlan& plan) {
  const auto& p = finish.p;
  const bool k_major = has_wide_lines(p.a, true, 1, 2);
  const int columns = skinny_columns(p.n());
  SkinnyCall<T> call{.finish = finish,
                     .tiles = plan.tiles,
                     .chunks = plan.chunks,
                     .per_block = plan.per_block,
                     .partial = nullptr,
                     .tickets = nullptr};
  if (plan.per_block % plan.chunks != 0) {
    call.tickets = sums_tickets_of(context);
    call.partial = static_cast<float*>(context.workspace(
        static_cast<std::size_t>(2 * plan.blocks * skinny_rows * columns) * sizeof(float)));
  }
  const auto launch_as = [&]<int Columns, bool KMajor>() {
    launch(context,
           {.grid = plan.blocks,
            .block = skinny_threads,
            .shared_bytes = sizeof(SkinnyLayout<T, Columns, KMajor>)},
           gemm_skinny_stream<T, Columns, KMajor>, call);
  };
  const auto by_columns = [&]<bool KMajor>() {
    if (columns == 16) return launch_as.template operator()<16, KMajor>();
    columns == 32 ? launch_as.template operator()<32, KMajor>()
                  : launch_as.template operator()<64, KMajor>();
  };
  k_major ? by_columns.template operator()<true>() : by_columns.template operator()<false>();
}

/// The product whose C has no more columns than rows.
template <class T>
Finish<T> with_few_columns(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  if (finish.p.m() < finish.p.n()) finish.p = transpose(finish.p);
  return finish;
}

SkinnyPlan plan_of(const Gemm::Args& args, const Context& context) {
  constexpr double memory_share = 0.86;  // of the nominal rate
  constexpr double l2_rate = 5.5e12;
  constexpr double start = 1.2e-6;   // the first chunk, and the last products
  constexpr double shared = 1.5e-6;  // partial sums through L2, and a ticket
  const std::int64_t rows = larger(args.m(), args.n());
  const std::int64_t columns = smaller(args.m(), args.n());
  SkinnyPlan plan{};
  plan.tiles = tiles_of(rows, skinny_rows);
  plan.chunks = larger<std::int64_t>(tiles_of(args.k(), skinny_depth), 1);
  const std::int64_t total = plan.tiles * plan.chunks * args.batch();
  constexpr std::int64_t fewest = 4;  // chunks per block: fewer are not worth its partial sums
  plan.per_block = larger(tiles_of(total, std::int64_t{2} * context.info().sms), fewest);
  plan.blocks = tiles_of(total, plan.per_block);
  const double bytes = Gemm::cost(args).bytes;
  const double again =
      static_cast<double>(plan.tiles * args.batch() * columns) * static_cast<double>(args.k()) * 2;
  plan.seconds = launch_seconds + start + (plan.per_block % plan.chunks != 0 ? shared : 0) +
                 std::max(bytes / memory_share / nominal_rates(context).bytes_per_second,
                          (bytes + again) / l2_rate);
  return plan;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::f16 && args.a.dtype != DType::bf16) {
    return unsupported("only f16 and bf16 operands");
  }
  const bool few_rows = args.m() <= args.n();
  if (smaller(args.m(), args.n()) > skinny_max_columns) {
    return unsupported("C has more than 64 rows and more than 64 columns");
  }
  // Lines along k of the operand with few rows or columns, either of the other.
  const auto lines_of = [](const ConstTensorRef& matrix, int contiguous, int across) {
    constexpr std::int64_t width = vector_width<f16>;
    return (matrix.strides[contiguous] == 1 || matrix.shape[contiguous] <= 1) &&
           (matrix.strides[across] % width == 0 || matrix.shape[across] <= 1) &&
           (matrix.strides[0] % width == 0 || matrix.shape[0] <= 1) &&
           reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
  };
  const ConstTensorRef& x = few_rows ? args.a : args.b;
  const ConstTensorRef& w = few_rows ? args.b : args.a;
  if (!lines_of(x, few_rows ? 2 : 1, few_rows ? 1 : 2)) {
    return unsupported(
        "the few rows or columns must be contiguous along k, at multiples of 16 "
        "bytes");
  }
  if (!lines_of(w, 1, 2) && !lines_of(w, 2, 1)) {
    return unsupported("the long operand's lines must begin at multiples of 16 bytes");
  }
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (args.batch() > most || args.k() > most || larger(args.m(), args.n()) > most) {
    return unsupported("an extent of more than 2^30");
  }
  if (plan_of(args, context).blocks > sums_tickets) {
    return unsupported("more blocks than there are tickets");
  }
  return supported;
}

double estimate(const Gemm::Args& args, const Context& context) {
  return plan_of(args, context).seconds;
}

void run(const Gemm::Args& args, Context& context) {
  const SkinnyPlan plan = plan_of(args, context);
  visit<f16, bf16>(args.a.dtype,
                   [&]<class T>() { launch_skinny(context, with_few_columns<T>(args), plan); });
}

const Rung<Gemm> self{{.name = "skinny_stream",
                       .after = "few_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = skinny_max_columns, .columns = skinny_rows},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
