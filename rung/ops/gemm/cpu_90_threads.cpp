// SPDX-License-Identifier: Apache-2.0
// gemm / threads
//
// Idea     packed_simd by a team: all threads pack one block of B together and share it; each then
//          multiplies its own rows (or a rectangle of rows and columns) of A by it.
// Changes  against packed_simd: the packed B of a team is double-buffered, so that one barrier a
//          block suffices - whoever is ahead packs the next block while others still read this one.
//          Many small matrices go one to a thread instead.
// Cost     as packed_simd; A is packed once for each column of the grid of threads.
// Limits   the general rung: every valid call. Shapes with one short side do better in the special
//          rungs.
// Source   T. Smith et al., Anatomy of High-Performance Many-Threaded Matrix Multiplication, 2014.
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu_blocked.hpp"
#include "rung/ops/gemm/cpu_estimate.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;
using cpu::Team;

// The team as a grid over C.
struct Grid {
  int rows, columns;
};

// The grid whose largest share is smallest. Shares are counted in tiles, for a tile is the least
// that a thread can do; equals prefer more rows, as then A is packed fewer times.
Grid make_grid(std::int64_t panels, std::int64_t strips, int threads) {
  Grid best{threads, 1};
  std::int64_t least = ceil_div(panels, threads) * strips;
  for (int rows = threads - 1; rows >= 1; --rows) {
    if (threads % rows != 0) continue;
    const std::int64_t share = ceil_div(panels, rows) * ceil_div(strips, threads / rows);
    if (share < least) least = share, best = {rows, threads / rows};
  }
  return best;
}

// One thread alone has nobody to wait for, and less of the caches to fill.
constexpr int b_buffers(int threads) { return threads > 1 ? 2 : 1; }

struct Buffers {
  std::int64_t b, a, staging;  // elements: one B buffer, one thread's A, all of the staging
  [[nodiscard]] std::size_t bytes(int threads, std::size_t size) const {
    return (b_buffers(threads) * b + threads * a + staging) * size;
  }
};

template <class T>
Buffers buffers_of(const Call& call, const Blocking& block) {
  // Whole cache lines, so that no thread's vectors straddle two.
  return {block.kc * block.nc, block.mc * copied_row<T>(block.kc),
          call.direct() ? 0 : std::min(call.m, block.staged_rows) * block.nc};
}

template <class T>
void multiply(const Call& call, const Kernels<T>& ks, const Blocking& block, std::int64_t batch,
              T* workspace, const Team& team) {
  const Buffers buffers = buffers_of<T>(call, block);
  const bool staged = !call.direct();
  T* blocks_of_a = workspace + b_buffers(team.size()) * buffers.b;
  T* a = blocks_of_a + team.rank() * buffers.a;
  T* staging = blocks_of_a + team.size() * buffers.a;
  Sums<T> sums = make_sums(call, ks, batch, staging, block.nc);
  const std::int64_t rows_at_once = staged ? block.staged_rows : call.m;
  const std::int64_t width = ks.tile_columns();
  int turn = 0;
  for (std::int64_t j = 0; j < call.n; j += block.nc) {
    const std::int64_t columns = std::min(block.nc, call.n - j);
    const std::int64_t strips = ceil_div(columns, width);
    for (std::int64_t group = 0; group < call.m; group += rows_at_once) {
      const std::int64_t group_rows = std::min(rows_at_once, call.m - group);
      const std::int64_t panels = ceil_div(group_rows, ks.tile_rows);
      const Grid grid = make_grid(panels, strips, team.size());
      const cpu::Range my_panels = cpu::part_of(panels, team.rank() / grid.columns, grid.rows);
      const cpu::Range my_strips = cpu::part_of(strips, team.rank() % grid.columns, grid.columns);
      const std::int64_t begin = group + my_panels.begin * ks.tile_rows;
      const std::int64_t end = std::min(group + my_panels.end * ks.tile_rows, call.m);
      const std::int64_t left = my_strips.begin * width;
      const std::int64_t right = std::min(my_strips.end * width, columns);
      // Equal blocks of rows, as a short last one would use the packed strips of B badly.
      const std::int64_t steps = std::max<std::int64_t>(1, ceil_div(end - begin, block.mc));
      const std::int64_t mc = round_up(ceil_div(end - begin, steps), ks.tile_rows);
      if (staged) sums.i0 = group, sums.j0 = j;

      for (std::int64_t p = 0; p < call.k; p += block.kc) {
        const std::int64_t k = std::min(block.kc, call.k - p);
        T* b = workspace + turn * buffers.b;
        turn = (turn + 1) % b_buffers(team.size());
        const cpu::Range packing = team.share(strips);
        pack_b(call, ks, batch, p, k, j + packing.begin * width,
               std::min(packing.end * width, columns) - packing.begin * width,
               b + packing.begin * width * k);
        team.wait();
        for (std::int64_t i = begin; i < end; i += mc) {
          const std::int64_t rows = std::min(mc, end - i);
          const PackedA<T> packed = pack_a(call, ks, batch, i, rows, p, k, a);
          multiply_block(sums, packed, b + left * k, k, i, rows, j + left, right - left, p == 0,
                         p + k == call.k);
        }
      }
    }
  }
}

template <class T>
void threads(const Call& call, Context& context) {
  if (call.depth() == 0) return finish_without_product<T>(call);
  const Kernels<T>& ks = kernels<T>();
  const int team_size = threads_worth(call, context.threads());
  const bool one_each = call.batch >= team_size;  // a matrix a thread needs no barrier at all
  BlockLimits limits;
  // However many threads: the workspace stays under 32 MiB.
  limits.a_bytes = std::min<std::int64_t>(limits.a_bytes, (8 << 20) / team_size);
  if (one_each) {
    limits.b_bytes = (8 << 20) / team_size;
    limits.staged_bytes = (8 << 20) / team_size;
  }
  const Blocking block = make_blocking(call, ks, limits);
  const Buffers buffers = buffers_of<T>(call, block);
  if (one_each) {
    const std::size_t each = buffers.bytes(1, sizeof(T)) / 64 * 64 + 64;
    char* workspace = static_cast<char*>(context.workspace(each * team_size));
    cpu::run_team(team_size, [&](const Team& team) {
      const cpu::Range mine = team.share(call.batch);
      T* own = reinterpret_cast<T*>(workspace + team.rank() * each);
      for (std::int64_t batch = mine.begin; batch < mine.end; ++batch) {
        multiply(call, ks, block, batch, own, Team(0, 1, nullptr));
      }
    });
    return;
  }
  T* workspace = static_cast<T*>(context.workspace(buffers.bytes(team_size, sizeof(T))));
  cpu::run_team(team_size, [&](const Team& team) {
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      multiply(call, ks, block, batch, workspace, team);
      // The next matrix packs into the buffer that others may still be reading.
      team.wait();
    }
  });
}

double estimate(const Gemm::Args& args, const Context& context) {
  const Call call = make_call(args);
  return packed_seconds(call, threads_worth(call, context.threads()));
}

void run(const Gemm::Args& args, Context& context) {
  if (args.c.empty()) return;
  const Call call = make_call(args);
  if (call.in == DType::f64) {
    threads<double>(call, context);
  } else {
    threads<float>(call, context);
  }
}

const Rung<Gemm> self{
    {.name = "threads", .step = 90, .after = "packed_simd", .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
