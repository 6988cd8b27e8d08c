// SPDX-License-Identifier: Apache-2.0
// Stub of the OpenCL backend for builds without it: reports no devices, and why.
#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/opencl/ceiling.hpp"

namespace rung {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::not_available, "this build of rung has no opencl backend");
}

const DeviceRegistration self{{.backend = Backend::opencl,
                               .device_count = [] { return 0; },
                               .why_not = []() -> const char* {
                                 return "built without opencl-headers or with -DRUNG_OPENCL=OFF";
                               },
                               .info = [](int) -> DeviceInfo { refuse(); },
                               .allocate = [](int, std::size_t) -> void* { refuse(); },
                               .release = [](int, void*) noexcept {},
                               .copy = [](int, void*, const void*, std::size_t) { refuse(); },
                               .create_stream = [](int) -> void* { refuse(); },
                               .destroy_stream = [](int, void*) noexcept {},
                               .synchronize = [](int, void*) { refuse(); },
                               .index_of = [](int, int) -> int { refuse(); }}};

}  // namespace

opencl::MeasuredRates opencl::measure_rates(Context&) { return {}; }

}  // namespace rung
