// SPDX-License-Identifier: Apache-2.0
// Exceptions in simulated threads: those that escape a kernel, those that do not, and which of
// several failures is reported.
#include <cstring>
#include <exception>
#include <stdexcept>

#include "tests/simt/failure_fixture.hpp"

namespace rung {
namespace {

class ExceptionTest : public FailureTest {};

__global__ void throws_at(int block) {
  __syncthreads();
  if (static_cast<int>(blockIdx.x) >= block && threadIdx.x == 40) {
    throw std::out_of_range("index " + std::to_string(blockIdx.x));
  }
  __syncthreads();
}

TEST_P(ExceptionTest, ExceptionArrivesNestedInAnError) {
  Context c = context();
  try {
    launch(c, {.grid = 64, .block = 64}, throws_at, 7);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::strstr(error.what(), "thread (40, 0, 0)"), nullptr) << error.what();
    EXPECT_NE(std::strstr(error.what(), "throws_at(int)"), nullptr) << error.what();
    try {
      std::rethrow_if_nested(error);
      FAIL() << "nothing nested";
    } catch (const std::out_of_range& cause) {
      EXPECT_EQ(std::string(cause.what()).substr(0, 6), "index ");
    }
    // Launches while an exception is being handled: the runtime must keep the two apart.
    expect_healthy(c);
    EXPECT_NE(std::strstr(error.what(), "index"), nullptr);
  }
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  expect_healthy(c);
}

/// Waits inside each thread's own exception handler: each must find its own exception again.
__global__ void barrier_in_handlers(int* out) {
  try {
    throw static_cast<int>(threadIdx.x);
  } catch (int first) {
    __syncthreads();
    try {
      throw std::to_string(threadIdx.x + 1000);
    } catch (const std::string& second) {
      __syncthreads();
      out[threadIdx.x] = first + std::stoi(second);
    }
    __syncthreads();
    try {
      throw;  // this thread's exception, not the one that another thread threw last
    } catch (int again) {
      out[threadIdx.x] += 10000 * again;
    }
  }
}

TEST_P(ExceptionTest, ExceptionsOfThreadsDoNotMix) {
  constexpr int threads = 50;
  Context c = context();
  Buffer<int> out(threads);
  launch(c, {.block = threads}, barrier_in_handlers, out.data());
  for (int i = 0; i < threads; ++i) {
    ASSERT_EQ(out.values()[static_cast<std::size_t>(i)], 10000 * i + 2 * i + 1000);
  }
}

// Not under ASan, which reports the abandoned (leaked) exceptions and maps memory of its own.
#if !defined(__SANITIZE_ADDRESS__)
/// Fails while every thread handles an exception.
__global__ void trap_in_handler() {
  try {
    throw 1;
  } catch (int) {
    __syncthreads();
    if (threadIdx.x == 9) __trap();
    __syncthreads();
  }
}
__global__ void count_inherited_exceptions(int* count) {
  if (std::current_exception() != nullptr || std::uncaught_exceptions() != 0) atomicAdd(count, 1);
  __syncthreads();
}

TEST_P(ExceptionTest, ExceptionsOfAbandonedThreadsAreForgotten) {
  Context c = context();
  EXPECT_THROW(launch(c, {.block = 64}, trap_in_handler), Error);
  EXPECT_EQ(std::current_exception(), nullptr);
  Buffer<int> count(std::vector<int>{0});
  launch(c, {.block = 64}, count_inherited_exceptions, count.data());
  EXPECT_EQ(count.values()[0], 0);
}
#endif

/// Checks that the reported failure does not depend on the number of OS threads.
TEST_P(ExceptionTest, TheFirstFailureInOrderIsReported) {
  std::string first;
  for (const int os_threads : {1, 2, 4}) {
    for (int round = 0; round < 5; ++round) {
      Context c = Context::on(Backend::simt, os_threads);
      try {
        launch(c, {.grid = 999, .block = 64}, throws_at, 100);
        FAIL();
      } catch (const Error& error) {
        if (first.empty()) first = error.what();
        EXPECT_EQ(first, error.what()) << os_threads << " OS threads";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ExceptionTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung
