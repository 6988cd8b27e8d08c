// SPDX-License-Identifier: Apache-2.0
// Threads, the workspace's reuse and lifetime, and errors for backends that are not available.
#include "rung/core/context.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "expect_error.hpp"
#include "fake_device.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/require.hpp"
#include "rung/core/tensor.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::fake_device;

/// Sets or clears OMP_NUM_THREADS for one scope.
class ThreadsVariable {
 public:
  explicit ThreadsVariable(const char* value) {
    if (const char* now = std::getenv(name); now != nullptr) before_ = now;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~ThreadsVariable() { before_ ? setenv(name, before_->c_str(), 1) : unsetenv(name); }
  ThreadsVariable(const ThreadsVariable&) = delete;
  ThreadsVariable& operator=(const ThreadsVariable&) = delete;

 private:
  static constexpr const char* name = "OMP_NUM_THREADS";
  std::optional<std::string> before_;
};

TEST(Context, CountsTheCoresItMayUse) {
  const ThreadsVariable cleared(nullptr);
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(Context::cpu().threads(), CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(Context::cpu().threads(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(Context, HonorsOmpNumThreads) {
  const struct {
    const char* value;
    int threads;  // 0: as if the variable were not set
  } cases[] = {{"3", 3},  {"5,2", 5},  {"7 ", 7}, {"0", 0},
               {"-2", 0}, {"many", 0}, {"", 0},   {"3x", 0}};
  const int otherwise = [] {
    const ThreadsVariable cleared(nullptr);
    return Context::cpu().threads();
  }();
  for (const auto& [value, threads] : cases) {
    const ThreadsVariable set(value);
    EXPECT_EQ(Context::cpu().threads(), threads != 0 ? threads : otherwise) << value;
    EXPECT_EQ(Context::cpu(2).threads(), 2) << "what the caller asks for counts";
  }
}

TEST(Context, RefusesImpossibleThreads) {
  expect_error(ErrorCode::invalid_argument, {"threads is -1"}, [] { Context::cpu(-1); });
  expect_error(ErrorCode::invalid_argument, {"threads is 1000000"}, [] { Context::cpu(1000000); });
}

TEST(Context, ChecksThreadsOfABackendThatHasNone) {
  expect_error(ErrorCode::invalid_argument, {"threads is -3"},
               [] { Context::on(Backend::cuda, -3); });
}

TEST(Context, MovedFromItIsAnErrorAndMayBeAssignedTo) {
  Context context = Context::cpu(1);
  Context other = std::move(context);
  EXPECT_TRUE(other.valid());
  // NOLINTBEGIN(bugprone-use-after-move): that is the test
  EXPECT_FALSE(context.valid());
  const auto expect_moved = [](const auto& body) {
    expect_error(ErrorCode::invalid_argument, {"has been moved from"}, body);
  };
  expect_moved([&] { context.workspace(100); });
  expect_moved([&] { context.synchronize(); });
  float x = 0;
  expect_moved([&] { require_here("op", ConstTensorRef(&x, {1}), "x", context); });
  // NOLINTEND(bugprone-use-after-move)
  context = Context::cpu(2);
  EXPECT_EQ(context.threads(), 2);
  EXPECT_NE(context.workspace(100), nullptr);
}

TEST(Context, DescribesTheCpu) {
  const Context context = Context::cpu();
  EXPECT_EQ(context.backend(), Backend::cpu);
  EXPECT_FALSE(context.info().name.empty());
  EXPECT_GT(context.info().memory_bytes, std::size_t{1} << 28);
  EXPECT_GE(context.info().sms, 1);
  EXPECT_EQ(context.info().compute_capability, 0);
  EXPECT_TRUE(available(Backend::cpu));
}

TEST(Context, DescribesMemoryOfItsDevice) {
  const Context context = Context::cpu();
  float elements[6] = {};
  const float* const constant = elements;
  const TensorRef matrix = context.tensor(elements, {2, 3});
  EXPECT_EQ(matrix, TensorRef(elements, {2, 3}, context.device()));
  EXPECT_EQ(context.tensor(constant, {2, 2}, {1, 3}),
            ConstTensorRef(constant, {2, 2}, {1, 3}, context.device()));
  void* const bytes = elements;
  EXPECT_EQ(context.tensor(bytes, DType::i32, {6}),
            TensorRef(bytes, DType::i32, {6}, context.device()));
  static_assert(std::is_same_v<decltype(context.tensor(constant, {2})), ConstTensorRef>);
  expect_error(ErrorCode::invalid_argument, {"strides"}, [&] {
    static_cast<void>(context.tensor(elements, {2, 3}, {1}));
  });
}

TEST(Context, ReusesItsWorkspace) {
  Context context = Context::cpu();
  EXPECT_EQ(context.workspace_capacity(), 0u);
  void* const first = context.workspace(10000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 4096, 0u);
  EXPECT_GE(context.workspace_capacity(), 10000u);
  std::memset(first, 1, 10000);
  const std::size_t capacity = context.workspace_capacity();
  EXPECT_EQ(context.workspace(10000), first);
  EXPECT_EQ(context.workspace(1), first);
  EXPECT_EQ(context.workspace_capacity(), capacity);
}

TEST(Context, LargeWorkspacesLieOnHugePages) {
  Context context = Context::cpu();
  constexpr std::size_t bytes = (std::size_t{17} << 20) + 1;
  void* const memory = context.workspace(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (2 << 20), 0u);
  std::memset(memory, 1, bytes);
  // On a CPU the workspace grows to the size needed: gemm promises a bound on its memory.
  EXPECT_LT(context.workspace_capacity(), bytes + 8192);
  context.workspace(bytes + 10000);
  EXPECT_LT(context.workspace_capacity(), bytes + 20000);
}

TEST(Context, GpuWorkspacesOutliveGrowth) {
  const std::size_t before = fake_device().blocks.size();
  {
    Context context = Context::cuda();
    int allocations = fake_device().allocations;
    void* const first = context.workspace(100000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 4096, 0u);
    EXPECT_EQ(fake_device().allocations, allocations + 1);
    void* const second = context.workspace(200000);
    EXPECT_NE(second, first);
    EXPECT_EQ(fake_device().allocations, allocations + 2);
    // A captured graph may still use the first block.
    EXPECT_EQ(fake_device().blocks.size(), before + 2);
    EXPECT_TRUE(fake_device().unlock(first, false));
    // The last byte of each workspace is within its block.
    EXPECT_TRUE(
        fake_device().unlock(static_cast<char*>(second) + context.workspace_capacity() - 1, false));
    // Geometric growth: many small steps take few allocations, and no more than twice the memory
    // needed.
    allocations = fake_device().allocations;
    for (std::size_t bytes = 200000; bytes < 20000000; bytes += 10000) context.workspace(bytes);
    EXPECT_LE(fake_device().allocations - allocations, 8);
    EXPECT_LE(context.workspace_capacity(), 2u * 20000000);
  }
  EXPECT_EQ(fake_device().blocks.size(), before);
}

TEST(Context, AFailedGrowthLeavesTheContextUsable) {
  Context gpu = Context::cuda();
  void* const held = gpu.workspace(1000);
  expect_error(ErrorCode::out_of_memory, {"fake"}, [&] { gpu.workspace(std::size_t{1} << 40); });
  EXPECT_EQ(gpu.workspace(1000), held);
  Context host = Context::cpu();
  host.workspace(1000);
  expect_error(ErrorCode::out_of_memory, {"cannot be"}, [&] { host.workspace(SIZE_MAX); });
#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer's allocator ends the program instead
  expect_error(ErrorCode::out_of_memory, {"host"}, [&] { host.workspace(std::size_t{1} << 60); });
  EXPECT_EQ(host.workspace_capacity(), 0u) << "the old block went before the new one came";
#endif
  std::memset(host.workspace(1000), 1, 1000);
}

TEST(Context, MovesWithItsWorkspace) {
  Context first = Context::cpu(3);
  void* const memory = first.workspace(5000);
  Context second = std::move(first);
  EXPECT_EQ(second.threads(), 3);
  EXPECT_EQ(second.workspace(5000), memory);
  EXPECT_EQ(first.workspace_capacity(), 0u);  // NOLINT(bugprone-use-after-move): what is tested
  Context third = Context::cpu(1);
  third.workspace(100);
  third = std::move(second);
  EXPECT_EQ(third.workspace(5000), memory);
  EXPECT_EQ(third.threads(), 3);
}

TEST(Context, TakesAStreamAndSynchronizes) {
  int stream = 0;
  Context context = Context::cuda(1, &stream);
  EXPECT_EQ(context.stream(), &stream);
  EXPECT_EQ(context.device(), (Device{Backend::cuda, 1}));
  EXPECT_EQ(context.info().name, "fake 1");
  const int before = fake_device().synchronizations;
  context.synchronize();
  EXPECT_EQ(fake_device().synchronizations, before + 1);
  Context::cpu().synchronize();
}

TEST(Context, RefusesDevicesThatDoNotExist) {
  expect_error(ErrorCode::invalid_argument, {"cuda device 2", "0 to 1"}, [] { Context::cuda(2); });
  expect_error(ErrorCode::invalid_argument, {"cuda device -1"}, [] { Context::cuda(-1); });
}

TEST(Availability, OfABackendThatDoesNotExistIsAnError) {
  const auto unknown = static_cast<Backend>(77);
  EXPECT_EQ(device_api(unknown), nullptr);
  const auto expect_unknown = [](const auto& body) {
    expect_error(ErrorCode::invalid_argument,
                 {"backend", "is 77; accepted: cpu, cuda, simt, opencl"}, body);
  };
  expect_unknown([&] { available(unknown); });
  expect_unknown([&] { Context::on(unknown); });
  expect_unknown([&] { Tensor(DType::f32, {1}, {unknown, 0}); });
}

TEST(NominalRates, GrowWithTheMachine) {
  const NominalRates one = nominal_rates(Context::cpu(1));
  const NominalRates four = nominal_rates(Context::cpu(4));
  EXPECT_GT(four.operations_per_second, one.operations_per_second);
  EXPECT_GT(one.bytes_per_second, 0);
  EXPECT_GT(nominal_rates(Context::cuda()).operations_per_second, four.operations_per_second);
}

}  // namespace
}  // namespace rung
