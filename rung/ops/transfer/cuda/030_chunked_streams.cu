// SPDX-License-Identifier: Apache-2.0
// transfer / chunked streams
//
// Idea     the data in chunks, each with its copy in, its computation and its copy out on one of
//          several streams. Steps of one stream follow each other; those of different streams
//          overlap: while one chunk computes, the next comes in and the last goes out, so that both
//          directions of the link and the device work at once.
// Changes  against pinned_copy: chunks and streams; page-locked memory of a few chunks instead of
//          all. What the host copies to and from it (for pageable memory) overlaps too: its cores
//          empty one chunk and fill the next together while the device has the others. Chunks
//          stay in the host's last cache between its copies and the link's.
// Cost     each byte crosses the link once; the time is that of the slowest of the four - copy in,
//          compute, copy out, the host's own copies - plus filling and draining.
// Limits   every valid call; small ones are one chunk, and gain nothing. In the simulator streams
//          are immediate: what is checked there is that no chunk is lost, doubled or overwritten.
// Source   CUDA C++ Best Practices Guide, "Concurrent copy and execute".

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/transfer/cuda/detail/link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

struct Tuning {
  std::int64_t max_bytes;  // of a chunk
  std::int64_t min_bytes;  // long against the 10 us that starting a copy costs
  std::size_t lanes;       // chunks in flight
};
constexpr Tuning tuning{
    .max_bytes = std::int64_t{8} << 20, .min_bytes = std::int64_t{512} << 10, .lanes = 8};

/// Returns the chunk size for as many chunks as there are lanes, within limits.
std::int64_t chunk_bytes(std::int64_t bytes) {
  const std::int64_t share = ceil_div(bytes, static_cast<std::int64_t>(tuning.lanes));
  return clamped(round_up(share, 4096), tuning.min_bytes, tuning.max_bytes);
}

/// The elements per lane is at work on.
struct Chunk {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

Work work(const Transfer::Args& args, const Context&) {
  // Chunks go both ways at a time, beside the copies of the host; only the first and the last wait.
  const double bytes = bytes_one_way(args);
  const auto chunk = static_cast<double>(chunk_bytes(static_cast<std::int64_t>(bytes)));
  const double threads = Context::cpu().threads();
  const int staged = !is_page_locked(args.x.data) + !is_page_locked(args.y.data);
  return turns_work(bytes * larger(1.0, staged * 2 / threads) + 2 * smaller(bytes, chunk),
                    6 + staged);
}

void run(const Transfer::Args& args, Context& context) {
  const std::int64_t total = args.y.size();
  const auto size = static_cast<std::int64_t>(size_of(args.y.dtype));
  const std::int64_t chunk = smaller(chunk_bytes(total * size) / size, total);
  const bool read_direct = is_page_locked(args.x.data);
  const bool write_direct = is_page_locked(args.y.data);
  Lanes& lanes = context.memo<Lanes>();
  Chunk at_work[tuning.lanes];
  if (total == 0) return;

  // Each turn brings a lane's chunk home and starts its next one.
  const std::int64_t chunks = ceil_div(total, chunk);
  for (std::int64_t turn = 0; turn < chunks + static_cast<std::int64_t>(tuning.lanes); ++turn) {
    const std::size_t index = static_cast<std::size_t>(turn) % tuning.lanes;
    const Chunk done = at_work[index];
    Chunk next;
    if (turn < chunks) next = {turn * chunk, smaller(chunk, total - turn * chunk)};
    if (done.count == 0 && next.count == 0) continue;
    Lane& lane = lanes.get(context, index);
    if (done.count > 0) lane.context().synchronize();

    HostCopy copies[2];
    std::size_t copied = 0;
    if (done.count > 0 && !write_direct) {
      copies[copied++] = {at(args.y, done.first), lane.out.reserve(chunk * size), done.count * size,
                          true};
    }
    if (next.count > 0 && !read_direct) {
      copies[copied++] = {lane.in.reserve(chunk * size), at(args.x, next.first), next.count * size};
    }
    copy_on_host({copies, copied}, lanes.host_threads);

    at_work[index] = next;
    if (next.count == 0) continue;
    const TensorRef memory = lane.device_memory(args.y.dtype, chunk);
    const TensorRef there(memory.data, memory.dtype, Extents{next.count}, memory.device);
    const std::int64_t bytes = next.count * size;
    const void* from = read_direct ? at(args.x, next.first) : lane.in.reserve(chunk * size);
    void* to = write_direct ? at(args.y, next.first) : lane.out.reserve(chunk * size);
    copy_async(lane.context(), there.data, from, bytes);
    elementwise(lane.context(), {.x = there}, there, {.function = args.function});
    copy_async(lane.context(), to, there.data, bytes);
  }
}

const Rung<Transfer> self{{.name = "chunked_streams",
                           .step = 30,
                           .after = "pinned_copy",
                           .backend = device_backend,
                           .work = work,
                           .run = run}};

}  // namespace
}  // namespace rung
