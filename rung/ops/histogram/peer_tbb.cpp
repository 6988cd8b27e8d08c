// SPDX-License-Identifier: Apache-2.0
// histogram / tbb: the peer oneTBB, a parallel_for with a table a thread (combinable); in a module
// beside librung, so that librung starts where oneTBB is missing.
#include <dlfcn.h>

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/histogram/peer_call.hpp"
#include "rung/ops/histogram/peer_tbb/module.hpp"

namespace rung {
namespace {

/// Modules lie where librung lies, wherever that was installed.
std::string beside_librung(const std::string& file) {
  Dl_info here;
  static const int anchor = 0;
  if (dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) return file;
  const std::string self = here.dli_fname;
  const std::size_t slash = self.rfind('/');
  return slash == std::string::npos ? file : self.substr(0, slash + 1) + file;
}

struct Tbb {
  DynamicLibrary library{"RUNG_PEER_HISTOGRAM_TBB",
                         {beside_librung("librung_peer_histogram_tbb.so")}};
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
