// SPDX-License-Identifier: Apache-2.0
// transfer / chunked streams
//
// Idea     the data in chunks of 4 MiB, each with its copy in, its computation and its copy out on
//          one of several streams. Steps of one stream follow each other; those of different
//          streams overlap: while one chunk computes, the next comes in and the last goes out, so
//          that both directions of the link and the device work at once.
// Changes  against pinned_copy: chunks and streams; page-locked memory of a few chunks instead of
//          all. What the host copies to and from it (for pageable memory) overlaps too: it fills
//          the next chunk while the device has the others.
// Cost     each byte crosses the link once; the time is that of the slowest of the four - copy in,
//          compute, copy out, the host's own copies - plus filling and draining.
// Limits   every valid call; small ones are one chunk, and gain nothing. In the simulator streams
//          are immediate: what is checked there is that no chunk is lost, doubled or overwritten.
// Source   CUDA C++ Best Practices Guide, "Concurrent copy and execute". Not measured on a GPU yet.
#include <algorithm>

#include "rung/ops/transfer/cuda_link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

struct Tuning {
  std::int64_t chunk_bytes;  // long against the 10 us that starting a copy costs
  std::size_t lanes;         // one chunk coming, one computed, one going, one at the host
};
constexpr Tuning tuning{.chunk_bytes = std::int64_t{4} << 20, .lanes = 4};

/// The elements a lane is at work on.
struct Chunk {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

double estimate(const Transfer::Args& args, const Context&) {
  const double bytes = bytes_one_way(args);
  const double chunk = std::min(bytes, static_cast<double>(tuning.chunk_bytes));
  const bool staged = !is_page_locked(args.x.data) || !is_page_locked(args.y.data);
  const double rate = staged ? 5e9 : 0.8 * link_bytes_per_second;
  return 30e-6 + bytes / rate + 2 * chunk / (0.9 * link_bytes_per_second);
}

void run(const Transfer::Args& args, Context& context) {
  const std::int64_t total = args.y.size();
  const auto size = static_cast<std::int64_t>(size_of(args.y.dtype));
  const std::int64_t chunk = tuning.chunk_bytes / size;
  const bool read_direct = is_page_locked(args.x.data);
  const bool write_direct = is_page_locked(args.y.data);
  Lanes& lanes = context.memo<Lanes>();
  Chunk at_work[tuning.lanes];

  // Waits for a lane's chunk and brings it home; the lane is free then.
  const auto finish = [&](std::size_t index) {
    Chunk& done = at_work[index];
    if (done.count == 0) return;
    Lane& lane = lanes.get(context, index);
    lane.context().synchronize();
    if (!write_direct) {
      const std::int64_t bytes = done.count * size;
      std::memcpy(at(args.y, done.first), lane.out.reserve(bytes), static_cast<std::size_t>(bytes));
    }
    done.count = 0;
  };

  std::size_t turn = 0;
  for (std::int64_t first = 0; first < total; first += chunk, turn = (turn + 1) % tuning.lanes) {
    finish(turn);
    const std::int64_t count = std::min(chunk, total - first);
    const std::int64_t bytes = count * size;
    Lane& lane = lanes.get(context, turn);
    // Buffers of whole chunks, so that none grows while a copy is under way.
    const TensorRef memory = lane.device_memory(args.y.dtype, std::min(chunk, total));
    const TensorRef there(memory.data, memory.dtype, Extents{count}, memory.device);
    const void* from = at(args.x, first);
    if (!read_direct) {
      from = std::memcpy(lane.in.reserve(std::min(chunk, total) * size), from,
                         static_cast<std::size_t>(bytes));
    }
    void* to = write_direct ? at(args.y, first) : lane.out.reserve(std::min(chunk, total) * size);
    copy_async(lane.context(), there.data, from, bytes);
    elementwise(lane.context(), {.x = there}, there, {.function = args.function});
    copy_async(lane.context(), to, there.data, bytes);
    at_work[turn] = {first, count};
  }
  for (std::size_t i = 0; i < tuning.lanes; ++i) finish((turn + i) % tuning.lanes);
}

const Rung<Transfer> self{{.name = "chunked_streams",
                           .step = 30,
                           .after = "pinned_copy",
                           .backend = device_backend,
                           .estimate = estimate,
                           .run = run}};

}  // namespace
}  // namespace rung
