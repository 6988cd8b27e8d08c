// SPDX-License-Identifier: Apache-2.0
// histogram / tbb: the peer oneTBB, a parallel_for with a table per thread (combinable); in a
// module beside librung, so that librung loads without oneTBB.
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/histogram/peers/call.hpp"
#include "rung/ops/histogram/peers/tbb/module.hpp"
#include "rung/peers/module.hpp"

namespace rung {
namespace {

struct Tbb {
  DynamicLibrary library{"RUNG_PEER_HISTOGRAM_TBB", {peers::module_path("histogram_tbb")}};
  peer_histogram_tbb::CountBytes* count_bytes;
  peer_histogram_tbb::CountFloats* count_floats;
  peer_histogram_tbb::Version* version;

  Tbb() {
    library.require(count_bytes, "rung_histogram_tbb_u8");
    library.require(count_floats, "rung_histogram_tbb_f32");
    library.require(version, "rung_histogram_tbb_version");
  }
};

Tbb& tbb() {
  static Tbb loaded;
  return loaded;
}

Support present() { return tbb().library.present(); }

std::string about() { return std::string("oneTBB ") + tbb().version(); }

Support supports(const Histogram::Args& args, const Context&) {
  return histogram_peer::supports_plain(args);
}

void run(const Histogram::Args& args, Context& context) {
  auto* const counts = static_cast<std::int32_t*>(args.counts.data);
  const std::int64_t size = args.size();
  const int threads = context.threads();
  bool done = false;
  if (args.x.dtype == DType::u8) {
    done = tbb().count_bytes(static_cast<const std::uint8_t*>(args.x.data), size, counts, threads);
  } else {
    const auto even = EvenBins<float>::make(args);
    done = tbb().count_floats(static_cast<const float*>(args.x.data), size,
                              {even.low, even.high, even.scale, even.last}, counts, threads);
  }
  if (!done) throw Error(ErrorCode::out_of_memory, "oneTBB has no memory left");
}

const Rung<Histogram> self{{.name = "tbb",
                            .peer = true,
                            .about = about,
                            .present = present,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
